"""One run of ``asr evaluate``: texts gathered, failures told, the report written."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import typer

from asrcli.errors import AsrError, AudioError, UsageError

if TYPE_CHECKING:
    from asrcli.backends.base import Backend
    from asrcli.cli.loading import Settings
    from asrcli.cli.score_report import Report
    from asrcli.console import StderrConsole
    from asrcli.evaluation.references import Reference, References
    from asrcli.evaluation.scoring import Evaluation, Pair
    from asrcli.evaluation.transcripts import Transcripts
    from asrcli.options import Options
    from asrcli.pipeline import Result

MAX_DIFFERENCE = 1.0  # s between what a manifest says of a recording's length and what it is


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
    num_damaged: int = 0
    model: str | None = None
    has_told_of_parts: bool = False

    def __post_init__(self) -> None:
        for warning in self.found.warnings:
            self.console.warn(warning)
        for error in self.found.failures:
            self._fail(error)

    def read(self, transcripts: Transcripts) -> None:
        """Take the transcripts that are there."""
        for error in transcripts.failures:
            self._fail(error)
        if transcripts.note is not None:
            self.console.note(transcripts.note)
        for reference, hypothesis in transcripts.found:
            self._add(reference, hypothesis.text, hypothesis.language, hypothesis.duration)
        models = {hypothesis.model for _, hypothesis in transcripts.found}
        self.model = models.pop() if len(models) == 1 else None

    def transcribe(self, settings: Settings) -> None:
        """Transcribe what has a reference and is there, in one batch."""
        from asrcli.cli.checks import errors_of_all
        from asrcli.cli.loading import load

        references = [each for each in self.found.found if not self._is_missing(each)]
        if errors := errors_of_all([reference.source for reference in references]):
            for error in errors:
                self._fail(error)
            return
        if not references:
            return
        with load(settings, self.options, self.console) as recognizer:
            self.hear(references, recognizer)

    def hear(self, references: Sequence[Reference], backend: Backend) -> None:
        """Let a model transcribe the recordings of these references."""
        from asrcli.cli.interrupts import farewell
        from asrcli.pipeline import transcribe_sources
        from asrcli.progress import BatchProgress, measure

        self.model = backend.name
        sources = [reference.source for reference in references]
        with BatchProgress(self.console, len(sources)) as bar, farewell(bar.stop):
            if self.console.is_live:
                measure(sources, bar)
            results = transcribe_sources(sources, backend, self.options, progress=bar)
            for reference, result in zip(references, results, strict=True):
                bar.finish(result.source)
                self._take(reference, result)

    def finish(self, report: Report) -> None:
        """Score the pairs and write the report.

        Raises:
            typer.Exit: with 1, if anything failed.
            UsageError: there was nothing to do.
        """
        from asrcli.evaluation.scoring import score

        if not self.pairs and not self.failures:
            raise UsageError("there is nothing to score", hint="name recordings with references")
        evaluation = score(
            self.pairs,
            normalizer=self.normalizer,
            metric=self.metric,
            model=self.model,
            failures=self.failures,
        )
        for failure in evaluation.failures[len(self.failures) :]:
            self._fail(AsrError(failure, hint="--normalizer none takes texts as they are"))
        if evaluation.files:
            self._advise(evaluation)
            report.write(evaluation)
        self._sum_up(len(evaluation.files))
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
            if warning not in result.damage:
                self.console.warn(f"{name}: {warning}")
        for loss in result.damage:  # in the end it gives exit code 1, and --quiet says why
            self.console.error(AudioError(f"{name}: {loss}"))
        if result.damage:
            self.num_damaged += 1
            self.failures.append(f"{name}: {result.damage[0]}")
        self._add(reference, transcript.text, transcript.language, transcript.duration)

    def _add(
        self, reference: Reference, text: str, heard: str | None, duration: float | None
    ) -> None:
        """Take a pair of texts; whose language is stated, or told by script, or else heard."""
        from asrcli.evaluation.scoring import Pair
        from asrcli.evaluation.scripts import guess_language

        self._compare_durations(reference, duration)
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

    def _compare_durations(self, reference: Reference, duration: float | None) -> None:
        """Say so, once, where a manifest's text is of less than what was transcribed."""
        if reference.duration is None or duration is None or self.has_told_of_parts:
            return
        if reference.duration < duration - MAX_DIFFERENCE:
            self.has_told_of_parts = True
            what = f"the text is of {reference.duration:g} s, but all {duration:g} s are compared"
            self.console.warn(f"{reference.source.name}: {what}")

    def _explain(self, name: str, error: Exception | None) -> AsrError:
        if error is None or isinstance(error, AsrError):
            return error or AsrError(f"{name}: no result")
        from asrcli.console import internal_error

        if self.console.verbose:  # a fault of ours in one file: the others go on
            from rich.traceback import Traceback

            trace = Traceback.from_exception(type(error), error, error.__traceback__)
            self.console.rich.print(trace)
        return AsrError(f"{name}: {internal_error(error)}")

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

    def _sum_up(self, num_scored: int) -> None:
        """A line for the whole batch, and one for each failure if there were others beside it."""
        num_files = len(self.found.found) + len(self.found.failures)
        if num_files == 1:
            return
        if not self.failures:
            self.console.line(f"{num_files} files scored")
            return
        parts = [f"{num_scored} of {num_files} files scored"]
        if num_scored < num_files:
            parts.append(f"{num_files - num_scored} failed")
        if self.num_damaged:
            parts.append(f"{self.num_damaged} damaged")
        self.console.print(", ".join(parts))
        if num_scored:  # else they have just been told
            for failure in self.failures:
                self.console.print(f"  {failure}")
