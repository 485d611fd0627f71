"""``asr`` and its commands."""

from __future__ import annotations

from typing import Annotated

import typer

from asrcli.cli import bench, evaluate, models, transcribe

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
app.command(name="evaluate")(evaluate.evaluate)
app.command(name="bench")(bench.bench)
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
