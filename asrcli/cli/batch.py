"""A batch on its way: results are written when they are there, failures told and summed up."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.cli.interrupts import Interrupted, farewell
from asrcli.cli.stdout import print_result
from asrcli.console import StderrConsole, clock
from asrcli.errors import AsrError, OutputError
from asrcli.writers import render, render_shared
from asrcli.writers.cues import cut_cues
from asrcli.writers.outputs import Plan, shown, write_atomically

if TYPE_CHECKING:
    from asrcli.audio.reading import RawFormat
    from asrcli.audio.sources import Source
    from asrcli.backends.base import Backend
    from asrcli.options import Options
    from asrcli.pipeline import Result
    from asrcli.progress import BatchProgress


class Batch:
    """Transcribes sources and takes care of what becomes of each."""

    def __init__(self, sources: Sequence[Source], plan: Plan, console: StderrConsole) -> None:
        self._sources = sources
        self._plan = plan
        self._console = console
        self._failures: list[str] = []
        self._num_finished = 0
        self._is_first_on_stdout = True
        self._is_stopped = False

    def run(self, backend: Backend, options: Options, raw: RawFormat | None) -> int:
        """Transcribe all; returns how many failed, wholly or in part."""
        from asrcli.progress import BatchProgress, measure

        with BatchProgress(self._console, len(self._sources)) as progress:

            def stop() -> None:
                self._stop(progress)

            with farewell(stop):
                if self._console.is_live:
                    measure(self._sources, progress, raw)
                try:
                    duration = self._take_all(backend, options, raw, progress)
                except Interrupted:
                    stop()
                    raise
        self._sum_up(duration, progress)
        return len(self._failures)

    def _take_all(
        self, backend: Backend, options: Options, raw: RawFormat | None, progress: BatchProgress
    ) -> float:
        """Take every result as it comes; returns the seconds of audio in them."""
        from asrcli.pipeline import transcribe_sources

        duration = 0.0
        results = transcribe_sources(self._sources, backend, options, raw=raw, progress=progress)
        for index, result in enumerate(results):
            progress.finish(result.source)
            self._take(index, result)
            self._num_finished += 1
            duration += result.transcript.duration if result.transcript else 0.0
        return duration

    def _take(self, index: int, result: Result) -> None:
        """Write a result, or say what went wrong with it."""
        try:
            if result.transcript is None:
                raise result.error or AsrError(f"{result.source.name}: no result")
            self._write(index, result)
        except AsrError as error:
            self._fail(error)
        except Exception as error:  # a fault of ours in one file: the others go on
            if self._console.verbose:
                self._console.rich.print_exception()
            name = type(error).__name__
            self._fail(AsrError(f"{result.source.name}: internal error ({name}: {error})"))

    def _fail(self, error: AsrError) -> None:
        self._failures.append(str(error))
        self._console.error(error)

    def _write(self, index: int, result: Result) -> None:
        transcript, source = result.transcript, result.source
        assert transcript is not None
        targets = []
        for output in self._plan.outputs[index]:
            if output.path is None:
                self._print(result, output.format)
                continue
            replaced = _write_file(output.path, render(transcript, output.format), source.name)
            targets.append(f"{shown(output.path)}{' (replaced)' if replaced else ''}")
        for warning in transcript.warnings:
            self._console.warn(f"{source.name}: {warning}")
        if result.damage:
            self._failures.append(f"{source.name}: {result.damage[0]}")
        if not transcript.segments:
            self._console.note(f"{source.name}: no speech")
        if targets:
            counted = _counted(result, {output.format for output in self._plan.outputs[index]})
            self._console.line(f"{source.name} → {', '.join(targets)}  {counted}")

    def _print(self, result: Result, format: str) -> None:
        assert result.transcript is not None
        if self._plan.shares_stdout:
            text = render_shared(
                result.transcript,
                format,
                source_name=result.source.name,
                is_first=self._is_first_on_stdout,
            )
        else:
            text = render(result.transcript, format)
        if text:
            self._is_first_on_stdout = False
            print_result(text, result.source.name)

    def _stop(self, progress: BatchProgress) -> None:
        """Clear up what moves, and say how far it came."""
        progress.stop()
        if len(self._sources) > 1 and not self._is_stopped:
            self._is_stopped = True
            self._console.note(f"stopped: {self._num_finished} of {len(self._sources)} files done")

    def _sum_up(self, duration: float, progress: BatchProgress) -> None:
        """A line for the whole batch, and one for each failure if there were others beside it."""
        if len(self._sources) == 1:
            return
        num_failed = len(self._failures)
        failed = f", {num_failed} failed" if num_failed else ""
        speed = duration / progress.elapsed if progress.elapsed else 0.0
        line = (
            f"{len(self._sources) - num_failed} of {len(self._sources)} files done{failed} · "
            f"{clock(duration)} of audio in {clock(progress.elapsed)} · {speed:.0f}× real time"
        )
        if not num_failed:
            self._console.line(line)
            return
        self._console.print(line)
        for failure in self._failures:
            self._console.print(f"  {failure}")


def _write_file(path: Path, text: str, name: str) -> bool:
    """Write a result to its place, or else to standard output: hours of work may be in it.

    Raises:
        OutputError: it is not in its place.
    """
    try:
        return write_atomically(path, text)
    except OutputError as error:
        if sys.stdout is None or not text:
            raise
        print_result(text, name)
        raise OutputError(f"{error}; standard output has it instead", hint=error.hint) from error


def _counted(result: Result, formats: set[str]) -> str:
    """How much there is in a result: its cues where it was written as subtitles alone."""
    transcript = result.transcript
    assert transcript is not None
    if formats <= {"srt", "vtt"}:
        number, what = len(cut_cues(transcript.segments)), "cue"
    else:
        number, what = len(transcript.segments), "segment"
    return f"{clock(transcript.duration)} of audio, {number} {what}{'' if number == 1 else 's'}"
