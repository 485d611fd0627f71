"""The report of an evaluation: where it goes, in which format, and its way there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.errors import OutputError, UsageError

if TYPE_CHECKING:
    from asrcli.evaluation.scoring import Evaluation

FORMATS = ("table", "json")


@dataclass(frozen=True, slots=True)
class Report:
    """What is written, and where; ``path`` None is standard output."""

    format: str
    path: Path | None
    num_worst: int

    def write(self, evaluation: Evaluation) -> None:
        """Write the report, or else offer it to standard output.

        Raises:
            OutputError: it is not in its place.
        """
        from asrcli.cli.stdout import offer_result, print_result
        from asrcli.writers.files import write_atomically

        text = self._render(evaluation)
        if self.path is None:
            print_result(text, "evaluation")
            return
        try:
            write_atomically(self.path, text)
        except OutputError as error:
            if not offer_result(text):
                raise
            message = f"{error}; standard output has it instead"
            raise OutputError(message, hint=error.hint) from error

    def _render(self, evaluation: Evaluation) -> str:
        if self.format == "json":
            from asrcli.evaluation.report import render_json

            return render_json(evaluation)
        from asrcli.cli.score_table import render_table, width_of_stdout

        width = width_of_stdout() if self.path is None else None
        return render_table(evaluation, num_worst=self.num_worst, width=width)


def plan_report(
    format: str | None, output: str | None, num_worst: int, inputs: Iterable[Path]
) -> Report:
    """Decide where the report goes, and prove that it can go there.

    Args:
        format: one of ``FORMATS``; None goes by the name of the output.
        output: a file; None or "-" is standard output.
        num_worst: files that a table shows word by word.
        inputs: files that must stay: recordings, references, transcripts.

    Raises:
        UsageError: an unknown format, or a place that holds an input.
        OutputError: the place cannot be written.
    """
    from asrcli.cli.checks import check_stdout
    from asrcli.writers.files import shown
    from asrcli.writers.outputs import Output, Plan
    from asrcli.writers.places import prepare

    if format is None:
        format = "json" if output is not None and output.lower().endswith(".json") else "table"
    if format not in FORMATS:
        raise UsageError(f"format {format!r} is unknown", hint=f"one of: {', '.join(FORMATS)}")
    if output == "":
        raise UsageError("the output is an empty name", hint="name a file, or - for stdout")
    path = None if output in (None, "-") else Path(str(output))
    if path is not None and os.path.realpath(path) in set(map(os.path.realpath, inputs)):
        raise UsageError(f"{shown(path)}: is an input", hint="name another file with -o")
    plan = Plan(((Output(format, path),),))
    check_stdout(plan)
    prepare(plan)
    return Report(format, path, num_worst)
