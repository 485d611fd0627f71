"""One run of ``asr``: from its arguments to its exit code, every error told in a line."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any, cast

import typer

from asrcli.cli.app import app
from asrcli.cli.interrupts import Interrupted, interruptible, interruption
from asrcli.cli.silence import silence_libraries
from asrcli.cli.stdout import CLOSED_PIPE, flush_stdout, leave_stdout
from asrcli.cli.streams import set_up_streams
from asrcli.errors import AsrError, OutputError, UsageError

# The class that the parser's own errors have in common. It lives in click, or in typer's copy of
# it, which one depends on the release; typer gives out only what derives from it.
_ParserError = cast("type[Exception]", typer.BadParameter.__mro__[2])


def run(arguments: list[str]) -> int:
    """Run in a process of its own; returns the exit code, unless it was broken off.

    Threads may then be in the middle of something, which Python's own way out does not bear.
    """
    set_up_streams()
    code = run_here(arguments)
    if interruption() or code == CLOSED_PIPE:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.flush()
        os._exit(code)
    return code


def run_here(arguments: list[str]) -> int:
    """Run with the standard streams as they are; returns the exit code."""
    arguments = _spell_out_paths(arguments)
    try:
        with interruptible():
            silence_libraries()
            code = app(args=arguments, standalone_mode=False, obj=arguments)
            flush_stdout()
        return code if isinstance(code, int) else 0
    except Interrupted as interrupted:
        return interrupted.exit_code
    except (Exception, SystemExit) as error:
        if interrupted_by := interruption():
            return interrupted_by.exit_code
        is_verbose = not {"-v", "--verbose"}.isdisjoint(arguments)
        return _end_with(error, is_verbose=is_verbose)


def _end_with(error: Exception | SystemExit, *, is_verbose: bool) -> int:
    """Tell what went wrong, each kind in its way; returns the exit code."""
    if isinstance(error, AsrError):
        _tell(error)
        return error.exit_code
    if isinstance(error, _ParserError):
        return _explain(error)
    # Typer may have met the closed pipe first, and would end with 1.
    met = error.__context__ if isinstance(error, SystemExit) else error
    if isinstance(met, BrokenPipeError):
        leave_stdout()
        return CLOSED_PIPE
    if is_verbose or isinstance(error, SystemExit):
        raise error
    return _admit(error)


def _admit(error: Exception) -> int:
    """Own up to a fault of ours, whose traceback nobody but us can read."""
    from asrcli.console import internal_error

    told = AsrError(internal_error(error), hint="--verbose shows where")
    try:
        flush_stdout()
    except OutputError as trouble:  # it was a help page that found no room
        told = trouble
    _tell(told)
    return told.exit_code


def _explain(error: Any) -> int:
    """Say in our own way what the parser of the command line has against it."""
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help page
        error.show()
    else:
        message = " ".join(error.format_message().split()).removesuffix(".")
        command = error.ctx.command_path if getattr(error, "ctx", None) else "asr"
        hint = f"{command} -h lists what there is"
        _tell(UsageError(message[:1].lower() + message[1:], hint=hint))
    return int(error.exit_code)


def _tell(error: AsrError) -> None:
    from asrcli.console import StderrConsole

    StderrConsole().error(error)


def _spell_out_paths(arguments: list[str]) -> list[str]:
    """Write files whose names begin with a dash as ./-name, so that they are no options."""
    return [
        f"./{argument}"
        if argument.startswith("-") and len(argument) > 2 and os.path.isfile(argument)  # noqa: PTH113
        else argument
        for argument in arguments
    ]
