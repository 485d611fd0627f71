"""The command line: one module a command."""

from __future__ import annotations

import os
import sys
from typing import Annotated, Any, cast

import typer

from asrcli.cli import models, transcribe
from asrcli.cli.interrupts import Interrupted, interruptible
from asrcli.cli.silence import silence_libraries
from asrcli.cli.stdout import CLOSED_PIPE, leave_stdout
from asrcli.errors import AsrError, UsageError

# The class that the parser's own errors have in common. It lives in click, or in typer's copy of
# it, which one depends on the release; typer gives out only what derives from it.
_ParserError = cast("type[Exception]", typer.BadParameter.__mro__[2])

app = typer.Typer(
    name="asr",
    help="Speech in, text and subtitles out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(name="transcribe")(transcribe.transcribe)
app.add_typer(models.app, name="models")


def _print_version(wanted: bool) -> None:
    if wanted:
        from asrcli import __version__

        print(f"asr {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", help="Say which version this is.", callback=_print_version),
    ] = False,
) -> None:
    """Speech in, text and subtitles out."""


def main() -> None:
    """Run ``asr`` and end with its exit code.

    0: all done; 1: some input failed; 2: wrong usage; 130 and 143: interrupted; 141: who read
    standard output has left.
    """
    _use_utf8()
    sys.exit(_run(_spell_out_paths(sys.argv[1:])))


def _run(arguments: list[str]) -> int:
    try:
        with interruptible():
            silence_libraries()
            code = app(args=arguments, standalone_mode=False)
            if sys.stdout is not None:
                sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except AsrError as error:
        _tell(error)
        return error.exit_code
    except _ParserError as error:
        return _explain(error)
    except Interrupted as interrupted:
        return interrupted.exit_code
    except BrokenPipeError:
        leave_stdout()
        return CLOSED_PIPE
    except Exception as error:  # a fault of ours; nobody but us can read a traceback
        if {"-v", "--verbose"}.intersection(arguments):
            raise
        reason = f"internal error ({type(error).__name__}: {error})"
        _tell(AsrError(reason, hint="--verbose shows where"))
        return AsrError.exit_code


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


def _use_utf8() -> None:
    """Speak UTF-8 whatever the locale; names that are not UTF-8 must not stop a message."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _spell_out_paths(arguments: list[str]) -> list[str]:
    """Write files whose names begin with a dash as ./-name, so that they are no options."""
    return [
        f"./{argument}"
        if argument.startswith("-") and len(argument) > 2 and os.path.isfile(argument)  # noqa: PTH113
        else argument
        for argument in arguments
    ]
