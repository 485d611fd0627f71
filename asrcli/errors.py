"""Every error that asrcli raises on purpose.

    AsrError                exit code 1
    ├── UsageError          exit code 2: the call itself is wrong; nothing was done
    ├── AudioError          one input cannot be read or holds no audio
    ├── CheckpointError     a model cannot be found, fetched or loaded
    ├── EngineError         the forward loop cannot go on with a request
    └── OutputError         a result cannot be written

Each carries one line for people (``str(error)``) and, where there is something to be done about it,
a ``hint``: the next command or option to try.
"""

from __future__ import annotations


class AsrError(Exception):
    """A fault that is explained to the user in one line, without a traceback.

    Args:
        message: what is wrong with which input, in one line.
        hint: what to do about it, in one line; None where nothing can be said.
    """

    exit_code = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class UsageError(AsrError):
    """An option, or a combination of options, that cannot be meant."""

    exit_code = 2


class AudioError(AsrError):
    """An input that is missing, empty, damaged or without an audio stream."""


class CheckpointError(AsrError):
    """A model that is unknown, incomplete, out of reach or of a wrong format."""


class EngineError(AsrError):
    """A request that the forward loop had to give up."""


class OutputError(AsrError):
    """A place for results that cannot be written."""
