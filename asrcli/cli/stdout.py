"""Standard output, which may be full, or which nobody reads any more."""

from __future__ import annotations

import os
import sys

from asrcli.errors import OutputError

CLOSED_PIPE = 141
"""Exit code, as of a process that SIGPIPE ends: who read our output has left."""

_lost: tuple[object, str] = (None, "")  # the stream that failed, and why


def print_result(text: str, name: str) -> None:
    """Write the result of an input to standard output at once.

    Raises:
        SystemExit: who read it has left; there is nothing to say, and nothing more to do.
        OutputError: it cannot be written, for example since the disk is full. Nothing that follows
            is written then: a part would be missing before it.
    """
    try:
        _write(text)
    except BrokenPipeError:
        leave_stdout()
        raise SystemExit(CLOSED_PIPE) from None
    except OSError as error:
        raise OutputError(f"{name}: {_trouble(error)}") from error


def print_line(text: str) -> None:
    """Print a line of an answer that is no transcript.

    Raises:
        BrokenPipeError: who read standard output has left.
        OutputError: it cannot be written.
    """
    try:
        print(text)
    except BrokenPipeError:
        raise
    except OSError as error:
        leave_stdout()
        raise OutputError(_trouble(error)) from error


def offer_result(text: str) -> bool:
    """Write a result that has lost its place; False where standard output cannot take it either."""
    if sys.stdout is None:
        return False
    try:
        _write(text)
    except OSError:
        return False
    return True


def flush_stdout() -> None:
    """Write what is still in the buffer.

    Raises:
        BrokenPipeError: who read it has left.
        OutputError: it cannot be written.
    """
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        leave_stdout()
        raise OutputError(_trouble(error)) from error


def leave_stdout() -> None:
    """Drop what could not be written, or Python would try again at its end, and complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write(text: str) -> None:
    global _lost
    stream, reason = _lost
    if stream is sys.stdout:
        raise OSError(reason)
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        _lost = sys.stdout, error.strerror or str(error)
        leave_stdout()
        raise


def _trouble(error: OSError) -> str:
    return f"standard output cannot be written: {(error.strerror or str(error)).lower()}"
