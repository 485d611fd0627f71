"""An evaluation for people: a table of files, the worst first, and what went wrong in those."""

from __future__ import annotations

import io
import sys
from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from asrcli.cli.score_diff import lay_out
from asrcli.console import clock

if TYPE_CHECKING:
    from asrcli.evaluation.scoring import Counts, Evaluation, FileScore, Total

PLAIN_WIDTH = 100  # of the diff where no terminal says how wide it is
_ENDLESS = 100_000  # columns: wider than any name is long
_NUMBERS = ("audio", "reference", "WER", "CER", "ins", "del", "sub")
_UNITS = {"wer": "word", "cer": "char"}


def width_of_stdout() -> int | None:
    """The columns of the terminal that standard output is; None if it is none."""
    if sys.stdout is None or not sys.stdout.isatty():
        return None
    return Console(file=sys.stdout).width


def render_table(evaluation: Evaluation, *, num_worst: int, width: int | None) -> str:
    """The table, and the words of the ``num_worst`` worst files side by side.

    Args:
        evaluation: what is shown.
        num_worst: for how many files the words are shown; those without errors are left out.
        width: columns of the terminal, whose colours are used; None gives plain text in which
            no name is cut or wrapped.
    """
    console = Console(
        file=io.StringIO(),
        width=width or _ENDLESS,
        force_terminal=width is not None,
        legacy_windows=False,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as capture:
        console.print(_table(evaluation, wraps=width is not None))
        console.print(Text(_summary(evaluation), style="dim"))
        for file in evaluation.files[:num_worst]:
            if file.counts.num_errors:
                console.print()
                console.print(Text(_heading(file), style="bold"))
                for line in lay_out(file, width or PLAIN_WIDTH):
                    console.print(line, no_wrap=True, overflow="ignore", crop=False)
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _table(evaluation: Evaluation, *, wraps: bool) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("file", no_wrap=not wraps, overflow="fold")
    for name in _NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for file in evaluation.files:
        cells = _cells(file.pair.duration, file.wer, file.cer, file.counts, file.metric)
        table.add_row(Text(file.pair.name), *cells)
    for metric, total in evaluation.totals.items():  # words and characters do not add up
        files = _counted(total.num_files, "file")
        table.add_row(f"total, {files}", *_total_cells(total, metric), style="bold")
    return table


def _total_cells(total: Total, metric: str) -> list[str]:
    counts = total.words if metric == "wer" and total.words else total.characters
    return _cells(total.duration, total.wer, total.cer, counts, metric)


def _cells(
    duration: float | None, wer: float | None, cer: float | None, counts: Counts, metric: str
) -> list[str]:
    errors = (counts.insertions, counts.deletions, counts.substitutions)
    return [
        "–" if duration is None else clock(duration),
        _counted(counts.num_reference, _UNITS[metric]),
        _percent(wer),
        _percent(cer),
        *map(str, errors),
    ]


def _summary(evaluation: Evaluation) -> str:
    """What made the texts, and how they were made comparable."""
    normalizers = Counter(file.normalizer for file in evaluation.files)
    used = ", ".join(
        name if len(normalizers) == 1 else f"{name} ({count})"
        for name, count in sorted(normalizers.items())
    )
    return " · ".join(filter(None, (evaluation.model, f"normalizer: {used}")))


def _heading(file: FileScore) -> str:
    rate = file.wer if file.metric == "wer" else file.cer
    return f"{file.pair.name}  {file.metric.upper()} {_percent(rate)}"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _percent(rate: float | None) -> str:
    return "–" if rate is None else f"{100 * rate:.2f}%"
