"""A batch on its way: results are written when they are there, failures told and summed up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.cli.interrupts import Interrupted, farewell, interruption
from asrcli.cli.resuming import advise
from asrcli.cli.stdout import offer_result, print_result
from asrcli.console import StderrConsole, clock, internal_error
from asrcli.errors import AsrError, OutputError
from asrcli.writers import render, render_lines, render_shared
from asrcli.writers.cues import cut_cues
from asrcli.writers.files import remove_drafts, shown, write_atomically

if TYPE_CHECKING:
    from asrcli.audio.sources import Source
    from asrcli.backends.base import Backend
    from asrcli.cli.work import Work
    from asrcli.options import Options
    from asrcli.pipeline import Result
    from asrcli.progress import BatchProgress
    from asrcli.transcript import Segment

MAX_LOSSES_SHOWN = 10
"""Of one recording; all of them stand in its JSON, or are shown if the user wants to hear more."""


class Batch:
    """Transcribes recordings and takes care of what becomes of each.

    Args:
        work: what there is to do.
        console: where it is told.
        arguments: the command line, for saying how to go on after a stop; None if it is unknown.
    """

    def __init__(
        self, work: Work, console: StderrConsole, *, arguments: Sequence[str] | None = None
    ) -> None:
        self._work = work
        self._console = console
        self._arguments = arguments
        self._failures: list[str] = []  # a line each; a recording may have several
        self._num_taken = 0
        self._num_failed = 0  # recordings, wholly or in part
        self._num_missing = 0  # those of them that lack a result
        self._written: set[Path] = set()
        self._is_first_on_stdout = True
        # Text on standard output appears as it is understood; other formats need all of it.
        self._streams = all(
            [output.format for output in outputs] == ["text"] and outputs[0].path is None
            for outputs in work.plan.outputs
        )
        self._streamed: Source | None = None  # whose text has begun to appear
        self._is_stopped = False

    def run(self, backend: Backend, options: Options) -> int:
        """Transcribe all; returns how many failed, wholly or in part."""
        from asrcli.progress import BatchProgress, measure

        with BatchProgress(self._console, len(self._work.sources)) as progress:

            def stop() -> None:
                self._stop(progress)

            with farewell(stop):
                if self._console.is_live:
                    measure(self._work.sources, progress, self._work.reading)
                try:
                    duration = self._take_all(backend, options, progress)
                except Interrupted:
                    stop()
                    raise
        self._sum_up(duration, progress)
        return self._num_failed

    def sum_up_nothing(self) -> None:
        """Say that there was nothing to do, all results being complete."""
        if self._work.num_files > 1:
            self._console.note(self._count())
        for source in self._work.skipped if self._work.num_files == 1 else ():
            self._console.note(f"{source.name}: skipped, its results are complete")

    def _take_all(self, backend: Backend, options: Options, progress: BatchProgress) -> float:
        """Take every result as it comes; returns the seconds of audio in them."""
        from asrcli.pipeline import transcribe_sources

        duration = 0.0
        results = transcribe_sources(
            self._work.sources,
            backend,
            options,
            reading=self._work.reading,
            progress=progress,
            on_segments=self._stream if self._streams else None,
        )
        for index, result in enumerate(results):
            progress.finish(result.source)
            self._take(index, result)
            self._num_taken += 1
            duration += result.transcript.duration if result.transcript else 0.0
        return duration

    def _take(self, index: int, result: Result) -> None:
        """Write a result, or say what went wrong with it."""
        num_failures = len(self._failures)
        try:
            if result.transcript is None:
                raise result.error or AsrError(f"{result.source.name}: no result")
            self._write(index, result)
        except AsrError as error:
            self._fail(error)
        except Exception as error:  # a fault of ours in one file: the others go on
            if interrupted := interruption():
                raise interrupted from error
            if self._console.verbose:
                self._console.rich.print_exception()
            self._fail(AsrError(f"{result.source.name}: {internal_error(error)}"))
        self._num_missing += len(self._failures) > num_failures
        # Losses have been told; what is there of the recording has been written.
        self._failures += [f"{result.source.name}: {line}" for line in result.damage[:1]]
        self._num_failed += len(self._failures) > num_failures

    def _fail(self, error: AsrError) -> None:
        self._failures.append(str(error))
        self._console.error(error)

    def _write(self, index: int, result: Result) -> None:
        transcript, source = result.transcript, result.source
        assert transcript is not None
        outputs = self._work.plan.outputs[index]
        targets = []
        for output in outputs:
            if output.path is None:
                self._print(result, output.format)
                continue
            try:
                replaced = self._write_file(output.path, render(transcript, output.format))
            except OutputError as error:  # another of its files may have better luck
                self._fail(error)
                continue
            self._written.add(output.path)
            targets.append(f"{shown(output.path)}{' (replaced)' if replaced else ''}")
        self._tell_warnings(result, transcript.warnings)
        if not transcript.segments:
            self._console.note(f"{source.name}: no speech")
        if targets:
            counted = _counted(result, {output.format for output in outputs})
            self._console.line(f"{source.name} → {', '.join(targets)}  {counted}")

    def _tell_warnings(self, result: Result, warnings: Sequence[str]) -> None:
        """Losses are errors, which are told however quiet the user wants it."""
        name, losses = result.source.name, frozenset(result.damage)
        num_losses = 0
        for warning in warnings:
            if warning not in losses:
                self._console.warn(f"{name}: {warning}")
                continue
            num_losses += 1
            if num_losses <= MAX_LOSSES_SHOWN or self._console.verbose:
                self._console.error(AsrError(f"{name}: {warning}"))
        num_more = num_losses - MAX_LOSSES_SHOWN
        if num_more > 0 and not self._console.verbose:
            hint = "--verbose shows them, and JSON (-f json) holds them"
            self._console.error(AsrError(f"{name}: {num_more} more losses", hint=hint))

    def _write_file(self, path: Path, text: str) -> bool:
        """Write a result to its place, or else to standard output: hours of work may be in it.

        Raises:
            OutputError: it is not in its place.
        """
        try:
            return write_atomically(path, text)
        except OutputError as error:
            if not text:
                raise
            # Of several results, each is told apart as head and tail do with files.
            head = f"==> {shown(path)} <==\n" if len(self._work.plan.paths) > 1 else ""
            where = "standard output has it instead"
            if not offer_result(head + text):
                where = "standard output cannot take it either"
            raise OutputError(f"{error}; {where}", hint=error.hint) from error

    def _stream(self, source: Source, segments: tuple[Segment, ...]) -> None:
        """Print what is final of a text while the rest is still being transcribed."""
        text = render_lines(segments)
        if not text:
            return
        if source is not self._streamed and not self._is_first_on_stdout:
            text = f"\n{text}"
        self._streamed, self._is_first_on_stdout = source, False
        print_result(text, source.name)

    def _print(self, result: Result, format: str) -> None:
        assert result.transcript is not None
        if self._streams:
            return  # it has appeared
        if self._work.plan.shares_stdout:
            text = render_shared(
                result.transcript,
                format,
                source_name=_path_as_given(result.source),
                is_first=self._is_first_on_stdout,
            )
        else:
            text = render(result.transcript, format)
        if text:
            self._is_first_on_stdout = False
            print_result(text, result.source.name)

    def _stop(self, progress: BatchProgress) -> None:
        """Clear up, and say how far it came and how to go on."""
        progress.stop()
        remove_drafts()
        if self._work.num_files > 1 and not self._is_stopped:
            self._is_stopped = True
            self._console.note(f"stopped: {self._count()}")
            self._say_how_to_go_on()

    def _sum_up(self, duration: float, progress: BatchProgress) -> None:
        """A line for the whole batch, and one for each failure if there were others beside it."""
        if self._work.num_files == 1:
            return
        speed = duration / progress.elapsed if progress.elapsed else 0.0
        line = (
            f"{self._count()} · "
            f"{clock(duration)} of audio in {clock(progress.elapsed)} · {speed:.0f}× real time"
        )
        if self._failures:
            self._console.print(line)
        elif self._work.skipped:
            self._console.note(line)
        else:
            self._console.line(line)
        for failure in self._failures:
            self._console.print(f"  {failure}")
        if self._num_missing and self._num_missing < len(self._work.sources):
            self._say_how_to_go_on()

    def _count(self) -> str:
        """What became of the files so far: "36 of 40 files done, 3 skipped, 1 failed"."""
        parts = [f"{self._num_taken - self._num_failed} of {self._work.num_files} files done"]
        if self._work.skipped:
            parts.append(f"{len(self._work.skipped)} skipped")
        if self._num_failed:
            parts.append(f"{self._num_failed} failed")
        return ", ".join(parts)

    def _say_how_to_go_on(self) -> None:
        """Give the command for the rest, where there is one."""
        if self._arguments is None:
            return
        left = (
            index
            for index, outputs in enumerate(self._work.plan.outputs)
            if any(output.path not in self._written for output in outputs)
        )
        if advice := advise(self._work, left, self._arguments):
            self._console.hint(advice)


def _path_as_given(source: Source) -> str:
    """What programs can open; the name is for people, with what cannot be shown left out."""
    return source.name if source.path is None else str(source.path)


def _counted(result: Result, formats: set[str]) -> str:
    """How much there is in a result: its cues where it was written as subtitles alone."""
    transcript = result.transcript
    assert transcript is not None
    if formats <= {"srt", "vtt"}:
        number, what = len(cut_cues(transcript.segments)), "cue"
    else:
        number, what = len(transcript.segments), "segment"
    return f"{clock(transcript.duration)} of audio, {number} {what}{'' if number == 1 else 's'}"
