"""The command line: one module a command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from asrcli.cli import models, transcribe
from asrcli.errors import AsrError

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
    """Run ``asr`` and end with its exit code: 0, 1 for failed inputs, 2 for wrong usage."""
    from asrcli.console import StderrConsole, silence_libraries

    _use_utf8()
    silence_libraries()
    try:
        app(args=_spell_out_paths(sys.argv[1:]))
    except AsrError as error:
        StderrConsole().error(error)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # Who read our output has left: nothing to say, and nothing more to flush.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(141)


def _use_utf8() -> None:
    """Speak UTF-8 whatever the locale; names that are not UTF-8 must not stop a message."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


def _spell_out_paths(arguments: list[str]) -> list[str]:
    """Write files whose names begin with a dash as ./-name, so that they are no options."""
    return [
        f"./{argument}"
        if argument.startswith("-") and len(argument) > 2 and Path(argument).is_file()
        else argument
        for argument in arguments
    ]
