"""Speech to text and subtitles: Whisper in one continuously batched forward loop.

    >>> import asrcli
    >>> transcript = asrcli.transcribe("talk.mp3", model="whisper:base")
    >>> transcript.text

    >>> with asrcli.Recognizer("whisper:base") as recognizer:  # one model, many calls
    ...     for path in paths:
    ...         print(recognizer.transcribe(path).text)

Names are looked up when they are first used, so importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.errors import (
        AsrError,
        AudioError,
        CheckpointError,
        EngineError,
        OutputError,
        UsageError,
    )
    from asrcli.options import Options
    from asrcli.recognizer import Recognizer, transcribe
    from asrcli.transcript import Segment, Transcript, Word

__version__ = "0.1.0"

_HOMES = {
    "AsrError": "asrcli.errors",
    "AudioError": "asrcli.errors",
    "CheckpointError": "asrcli.errors",
    "EngineError": "asrcli.errors",
    "Options": "asrcli.options",
    "OutputError": "asrcli.errors",
    "Recognizer": "asrcli.recognizer",
    "Segment": "asrcli.transcript",
    "Transcript": "asrcli.transcript",
    "UsageError": "asrcli.errors",
    "Word": "asrcli.transcript",
    "transcribe": "asrcli.recognizer",
}

__all__ = [
    "AsrError",
    "AudioError",
    "CheckpointError",
    "EngineError",
    "Options",
    "OutputError",
    "Recognizer",
    "Segment",
    "Transcript",
    "UsageError",
    "Word",
    "transcribe",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'asrcli' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
