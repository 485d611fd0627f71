"""What a run would read and write, line by line, with nothing done."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from asrcli.cli.checks import why_unreadable
from asrcli.cli.stdout import print_line
from asrcli.writers.files import shown

if TYPE_CHECKING:
    from asrcli.cli.work import Work
    from asrcli.console import StderrConsole
    from asrcli.writers.outputs import Output


def list_work(work: Work, console: StderrConsole) -> int:
    """Print a line for each recording; returns how many cannot be read, which are named too."""
    for source, outputs in zip(work.skipped, work.skipped_plan.outputs, strict=True):
        exist = "exists" if len(outputs) == 1 else "exist"
        print_line(f"{shown(source.name)} → {', '.join(_places(outputs))} ({exist}, skipped)")
    num_failed = 0
    for source, outputs in zip(work.sources, work.plan.outputs, strict=True):
        # Standard input can be read only once, and its turn is not now.
        error = None
        if source.path is not None:
            error = why_unreadable(source, work.reading)
        if error is not None:
            num_failed += 1
            console.error(error)
            continue
        print_line(f"{shown(source.name)} → {', '.join(_changes(outputs))}")
    return num_failed


def _changes(outputs: Sequence[Output]) -> Iterator[str]:
    for output, place in zip(outputs, _places(outputs), strict=True):
        replaces = output.path is not None and os.path.lexists(output.path)
        yield f"{place} (replaces it)" if replaces else place


def _places(outputs: Sequence[Output]) -> list[str]:
    return ["stdout" if output.path is None else shown(output.path) for output in outputs]
