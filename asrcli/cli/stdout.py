"""Standard output, which may be full, or which nobody reads any more."""

from __future__ import annotations

import os
import sys

from asrcli.errors import OutputError

CLOSED_PIPE = 141
"""Exit code, as of a process that SIGPIPE ends: who read our output has left."""


def print_result(text: str, name: str) -> None:
    """Write the result of an input to standard output at once.

    Raises:
        SystemExit: who read it has left; there is nothing to say, and nothing more to do.
        OutputError: it cannot be written, for example since the disk is full.
    """
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        leave_stdout()
        raise SystemExit(CLOSED_PIPE) from None
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"{name}: standard output cannot be written: {reason}") from error


def leave_stdout() -> None:
    """Drop what could not be written, or Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
