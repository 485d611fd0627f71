"""One run of ``asr evaluate``: texts gathered, failures told, the report written."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from asrcli.errors import AsrError, AudioError, OutputError, UsageError

if TYPE_CHECKING:
    from asrcli.cli.loading import Settings
    from asrcli.console import StderrConsole
    from asrcli.evaluation.references import Reference, References
    from asrcli.evaluation.scoring import Evaluation, Pair
    from asrcli.options import Options
    from asrcli.pipeline import Result

FORMATS = ("table", "json")


@dataclass(frozen=True, slots=True)
class Report:
    """What is written, and where; ``path`` None is standard output."""

    format: str
    path: Path | None
    num_worst: int

    def write(self, evaluation: Evaluation) -> None:
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
    format: str | None, output: str | None, num_worst: int, found: References
) -> Report:
    """Decide where the report goes, and prove that it can go there.

    Raises:
        UsageError: an unknown format, or a place that holds a recording or a reference.
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
    if path is not None:
        inputs = (place for each in found.found for place in (each.path, each.source.path))
        if os.path.realpath(path) in {os.path.realpath(place) for place in inputs if place}:
            raise UsageError(f"{shown(path)}: is an input", hint="name another file with -o")
    plan = Plan(((Output(format, path),),))
    check_stdout(plan)
    prepare(plan)
    return Report(format, path, num_worst)


@dataclass(slots=True)
class Run:
    """One evaluation on its way: texts gathered, failures told at once and summed up."""

    found: References
    options: Options
    normalizer: str
    metric: str
    console: StderrConsole
    pairs: list[Pair] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    model: str | None = None

    def __post_init__(self) -> None:
        for warning in self.found.warnings:
            self.console.warn(warning)
        for error in self.found.failures:
            self._fail(error)

    def read(self, folder: Path) -> None:
        """Take the transcripts that are there."""
        from asrcli.evaluation.transcripts import find_transcripts

        found, errors = find_transcripts(self.found.found, folder)
        for error in errors:
            self._fail(error)
        for reference, hypothesis in found:
            self._add(reference, hypothesis.text, hypothesis.language, hypothesis.duration)
        models = {hypothesis.model for _, hypothesis in found}
        self.model = models.pop() if len(models) == 1 else None

    def transcribe(self, settings: Settings) -> None:
        """Transcribe what has a reference and is there, in one batch."""
        from asrcli.cli.checks import errors_of_all
        from asrcli.cli.interrupts import farewell
        from asrcli.cli.loading import load
        from asrcli.pipeline import transcribe_sources
        from asrcli.progress import BatchProgress, measure

        references = [each for each in self.found.found if not self._is_missing(each)]
        sources = [reference.source for reference in references]
        if errors := errors_of_all(sources):
            for error in errors:
                self._fail(error)
            return
        if not sources:
            return
        with load(settings, self.options, self.console) as recognizer:
            self.model = recognizer.name
            with BatchProgress(self.console, len(sources)) as bar, farewell(bar.stop):
                if self.console.is_live:
                    measure(sources, bar)
                results = transcribe_sources(sources, recognizer, self.options, progress=bar)
                for reference, result in zip(references, results, strict=True):
                    bar.finish(result.source)
                    self._take(reference, result)

    def finish(self, report: Report) -> None:
        """Write the report, and end with 1 if anything failed."""
        from asrcli.evaluation.scoring import score

        if self.pairs:
            evaluation = score(
                self.pairs,
                normalizer=self.normalizer,
                metric=self.metric,
                model=self.model,
                failures=self.failures,
            )
            self._advise(evaluation)
            report.write(evaluation)
        self._sum_up()
        if self.failures:
            raise typer.Exit(1)

    def _is_missing(self, reference: Reference) -> bool:
        source = reference.source
        missing = source.path is not None and not os.path.lexists(source.path)
        if missing:
            self._fail(AudioError(f"{source.name}: no such file"))
        return missing

    def _take(self, reference: Reference, result: Result) -> None:
        name, transcript = result.source.name, result.transcript
        if transcript is None:
            self._fail(self._explain(name, result.error))
            return
        for warning in transcript.warnings:
            self.console.warn(f"{name}: {warning}")
        if result.damage:
            self.failures.append(f"{name}: {result.damage[0]}")
        self._add(reference, transcript.text, transcript.language, transcript.duration)

    def _add(
        self, reference: Reference, text: str, heard: str | None, duration: float | None
    ) -> None:
        """Take a pair of texts; whose language is stated, or told by script, or else heard."""
        from asrcli.evaluation.scoring import Pair
        from asrcli.evaluation.scripts import guess_language

        language = reference.language or self.options.language
        if self.options.task == "translate":
            language = "en"
        self.pairs.append(
            Pair(
                name=reference.source.name,
                reference=reference.text,
                hypothesis=text,
                language=language or guess_language(reference.text) or heard,
                duration=duration,
            )
        )

    def _explain(self, name: str, error: Exception | None) -> AsrError:
        if error is None or isinstance(error, AsrError):
            return error or AsrError(f"{name}: no result")
        if self.console.verbose:  # a fault of ours in one file: the others go on
            from rich.traceback import Traceback

            trace = Traceback.from_exception(type(error), error, error.__traceback__)
            self.console.rich.print(trace)
        return AsrError(f"{name}: internal error ({type(error).__name__}: {error})")

    def _fail(self, error: AsrError) -> None:
        self.failures.append(str(error))
        self.console.error(error)

    def _advise(self, evaluation: Evaluation) -> None:
        """Say so where a figure may be unfair since nothing tells the language."""
        said = [file for file in evaluation.files if file.normalized_reference]
        unknown = sum(file.language is None for file in said)
        if unknown and self.normalizer == "auto":
            files = "1 file" if unknown == 1 else f"{unknown} files"
            self.console.note(f"{files} of unknown language: --language en reads English numbers")

    def _sum_up(self) -> None:
        """A line for the whole batch, and one for each failure if there were others beside it."""
        num_files = len(self.found.found) + len(self.found.failures)
        num_failed = len(self.failures)
        if num_files == 1:
            return
        if not num_failed:
            self.console.line(f"{num_files} files scored")
            return
        scored = f"{num_files - num_failed} of {num_files} files scored"
        self.console.print(f"{scored}, {num_failed} failed")
        if self.pairs:  # else they have just been told
            for failure in self.failures:
                self.console.print(f"  {failure}")
