"""``asr models``: which models there are, fetching one, and where one lies."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from asrcli.errors import CheckpointError

app = typer.Typer(help="List models, fetch one, or say where one lies.")

_COLUMNS = (
    "model",
    "family",
    "size",
    "languages",
    "language choice",
    "hotwords",
    "times",
    "streaming",
    "longest window",
    "folder",
)
_NUMBERS = ("size", "languages", "longest window")
_DISPENSABLE = (
    "family",  # what the model's name begins with
    "streaming",
    "language choice",
    "hotwords",
    "times",
    "longest window",
    "languages",
)
"""What a narrow terminal goes without, first of all the first."""
_MIN_FOLDER_WIDTH = 22
_GAP = 3  # between columns, as rich sets this table


@dataclass(frozen=True, slots=True, kw_only=True)
class _Row:
    """One alias, as it is listed. ``path`` is None where it is not on this machine."""

    name: str
    family: str
    hub_id: str
    num_parameters: int
    languages: int
    language_choice: bool
    hotwords: bool
    times: str
    streaming: bool
    max_duration: float
    path: str | None


@app.callback(invoke_without_command=True)
def list_models(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything, as JSON.")] = False,
) -> None:
    """List the short names that --model takes. Hub ids and local folders work as well."""
    if context.invoked_subcommand is not None:
        return
    rows = _rows()
    if as_json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    elif sys.stdout.isatty():
        _print_table(rows)
    else:
        for line in (_COLUMNS, *map(_cells, rows)):
            print(*line, sep="\t")


@app.command()
def pull(
    name: Annotated[str, typer.Argument(help="A short name or a hub id (org/name).")],
) -> None:
    """Fetch a model, unless it is here, and print its folder."""
    from asrcli.console import ConsoleReporter
    from asrcli.models.checkpoints import find_checkpoint

    print(find_checkpoint(name, gpu=_has_gpu, reporter=ConsoleReporter()).path)


@app.command()
def path(
    name: Annotated[str, typer.Argument(help="A short name or a hub id (org/name).")],
) -> None:
    """Print the folder of a model that is on this machine."""
    from asrcli.models.checkpoints import cached_path

    folder = cached_path(name)
    if folder is None:
        raise CheckpointError(f"{name}: not on this machine", hint=f"asr models pull {name}")
    print(folder)


def _rows() -> list[_Row]:
    from asrcli.models.checkpoints import cached_path
    from asrcli.models.registry import aliases

    rows = []
    for name, (family, alias) in aliases().items():
        folder = cached_path(name)
        rows.append(
            _Row(
                name=name,
                family=family.name,
                hub_id=alias.hub_id,
                num_parameters=alias.num_parameters,
                languages=alias.languages,
                language_choice=family.language_choice,
                hotwords=family.hotwords,
                times=family.times,
                streaming=family.streaming,
                max_duration=family.max_duration,
                path=None if folder is None else str(folder),
            )
        )
    return rows


def _cells(row: _Row) -> tuple[str, ...]:
    return (
        row.name,
        row.family,
        _size(row.num_parameters),
        "English" if row.languages == 1 else str(row.languages),
        _answer(row.language_choice),
        _answer(row.hotwords),
        row.times,
        _answer(row.streaming),
        _length(row.max_duration),
        row.path or "-",
    )


def _size(num_parameters: int) -> str:
    """Number of weights as people say it: 74M, 1.5B."""
    millions = round(num_parameters / 1e6)
    return f"{millions}M" if millions < 1000 else f"{num_parameters / 1e9:.1f}B"


def _answer(value: bool) -> str:
    return "yes" if value else "no"


def _length(duration: float) -> str:
    """Seconds as people say them: 30 s, 20 min."""
    if duration < 120:
        return f"{duration:g} s"
    return f"{duration / 60:.1f}".removesuffix(".0") + " min"


def _print_table(rows: list[_Row]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, highlight=False)
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    shown = _columns_that_fit(rows, console.width)
    for column in shown:
        table.add_column(
            _heading(column),
            justify="right" if column in _NUMBERS else "left",
            no_wrap=column != "folder",
            overflow="fold",
        )
    for row in rows:
        cells = dict(zip(_COLUMNS, _cells(row), strict=True))
        cells["folder"] = _with_tilde(cells["folder"])
        table.add_row(*(cells[column] for column in shown))
    console.print(table)


def _columns_that_fit(rows: list[_Row], width: int) -> list[str]:
    """All, or fewer where the terminal leaves too little room for the folders."""
    widths = {
        column: _GAP + max(map(len, (*_heading(column).split("\n"), *cells)))
        for column, *cells in zip(_COLUMNS, *map(_cells, rows), strict=True)
    }
    shown = list(_COLUMNS)
    for column in _DISPENSABLE:
        if sum(widths[name] for name in shown if name != "folder") + _MIN_FOLDER_WIDTH > width:
            shown.remove(column)
    return shown


def _heading(column: str) -> str:
    """A column's name, word under word: it is to be no wider than what stands below it."""
    return column.replace(" ", "\n")


def _with_tilde(folder: str) -> str:
    """As a shell would take it, and shorter."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home raises where there is none
    return f"~{folder[len(home) :]}" if folder.startswith(f"{home}{os.sep}") else folder


def _has_gpu() -> bool:
    import torch

    return torch.cuda.is_available() or torch.backends.mps.is_available()
