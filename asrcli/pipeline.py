"""A batch of recordings, from sources to transcripts, on one page.

Each recording is read, cut and submitted window by window, in the order of the sources, a bounded
number of windows ahead of the model. What comes back is stitched together per recording. One that
fails takes nothing with it.
"""

from __future__ import annotations

import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from asrcli.audio.reading import SAMPLING_RATE, RawFormat, open_audio
from asrcli.audio.sources import Source, expand
from asrcli.backends.base import Backend, Recognition
from asrcli.errors import AsrError, UsageError
from asrcli.options import Options
from asrcli.transcript import Transcript
from asrcli.windows import Cutter, Window, stitch

MIN_DURATION = 0.1  # s; a recording shorter than this holds no word
STOP_DURATION = 1.0  # s that the reading may take to end once nobody wants more

_recording_ids = itertools.count()


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one source: a transcript or an error.

    Attributes:
        damage: what was lost of the audio or of its words, one line each; the transcript holds the
            rest.
    """

    source: Source
    transcript: Transcript | None = None
    error: Exception | None = None
    damage: tuple[str, ...] = ()


class Progress(Protocol):
    """Hears how a batch gets on; called from several threads."""

    def begin(self, source: Source, duration: float | None) -> None:
        """A source was opened; ``duration`` (s) is what its header says."""

    def advance(self, source: Source, duration: float) -> None:
        """So many further seconds of it are done."""


@dataclass(slots=True)
class _Recording:
    """A source while it is being transcribed."""

    source: Source
    recording_id: int = field(default_factory=lambda: next(_recording_ids))
    futures: list[Future[Recognition]] = field(default_factory=list)
    num_samples: int = 0
    warnings: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    error: Exception | None = None


def transcribe_sources(
    sources: Sequence[Source],
    backend: Backend,
    options: Options,
    *,
    raw: RawFormat | None = None,
    stdin: BinaryIO | None = None,
    progress: Progress | None = None,
) -> Iterator[Result]:
    """Transcribe recordings in one batch; results come in the order of the sources.

    Closing the iterator stops the reading; what was submitted is left to the backend.
    """
    feeder = _Feeder(backend, options, raw=raw, stdin=stdin, progress=progress)
    recordings: queue.Queue[_Recording] = queue.Queue()
    thread = threading.Thread(
        target=feeder.run, args=(sources, recordings), name="asr-feeder", daemon=True
    )
    thread.start()
    try:
        for _ in sources:
            yield _collect(recordings.get(), backend.name, options)
    finally:
        feeder.stop()
        # A read from a pipe that says nothing cannot be called off; the thread ends with it.
        thread.join(timeout=STOP_DURATION)


def transcribe_source(path: str | Path, backend: Backend, options: Options) -> Transcript:
    """Transcribe one recording.

    Raises:
        AsrError: it cannot be read or transcribed.
    """
    sources = expand([path])
    if len(sources) != 1:
        raise UsageError(
            f"{path}: holds {len(sources)} recordings, not one",
            hint="transcribe them one after the other, or all with: asr transcribe",
        )
    source = sources[0]
    (result,) = transcribe_sources(sources, backend, options)
    if result.transcript is None:
        raise result.error or AsrError(f"{source.name}: no result")
    return result.transcript


class _Feeder:
    """Reads, cuts and submits, at most ``max_in_flight`` windows ahead."""

    def __init__(
        self,
        backend: Backend,
        options: Options,
        *,
        raw: RawFormat | None,
        stdin: BinaryIO | None,
        progress: Progress | None,
    ) -> None:
        self._backend = backend
        self._options = options
        self._raw = raw
        self._stdin = stdin
        self._progress = progress
        self._permits = threading.Semaphore(backend.max_in_flight(options))
        self._stopped = False

    def run(self, sources: Sequence[Source], recordings: queue.Queue[_Recording]) -> None:
        """Feed all sources; each is handed on as soon as its audio has been read."""
        for source in sources:
            recording = _Recording(source)
            if not self._stopped:
                try:
                    self._feed(recording)
                except Exception as error:  # it belongs to this recording; the others go on
                    recording.error = error
            recordings.put(recording)

    def stop(self) -> None:
        """Submit nothing more."""
        self._stopped = True
        self._permits.release()

    def _feed(self, recording: _Recording) -> None:
        with open_audio(recording.source, raw=self._raw, stdin=self._stdin) as reader:
            if self._progress is not None:
                self._progress.begin(recording.source, reader.duration)
            max_duration = self._backend.window_duration(self._options)
            cutter = Cutter(recording.recording_id, max_duration=max_duration)
            for block in reader.blocks():
                for window in cutter.add(block):
                    self._submit(recording, window)
                if self._stopped:
                    return
            for window in cutter.finish():
                self._submit(recording, window)
            recording.num_samples = cutter.num_samples
            recording.warnings = tuple(reader.warnings)
            recording.damage = tuple(reader.damage)

    def _submit(self, recording: _Recording, window: Window) -> None:
        duration = window.end - window.start
        if duration < MIN_DURATION:  # only a whole recording can be that short
            return
        self._permits.acquire()
        if self._stopped:
            return
        future = self._backend.submit(window, self._options)
        recording.futures.append(future)
        future.add_done_callback(lambda _: self._finish(recording.source, duration))

    def _finish(self, source: Source, duration: float) -> None:
        self._permits.release()
        if self._progress is not None:
            self._progress.advance(source, duration)


def _collect(recording: _Recording, model: str, options: Options) -> Result:
    """Wait for a recording's windows and put them together."""
    if recording.error is not None:
        return Result(source=recording.source, error=recording.error)
    try:
        recognitions = [future.result() for future in recording.futures]
    except Exception as error:  # a window that fails is its recording's failure
        return Result(source=recording.source, error=error)
    losses = tuple(loss for recognition in recognitions for loss in recognition.losses)
    text, segments = stitch(recognition.segments for recognition in recognitions)
    spoken = (recognition.language for recognition in recognitions if recognition.segments)
    transcript = Transcript(
        text=text,
        language=options.language or next(spoken, None),
        task=options.task,
        duration=recording.num_samples / SAMPLING_RATE,
        segments=segments,
        model=model,
        warnings=(
            *recording.warnings,
            *(warning for recognition in recognitions for warning in recognition.warnings),
            *losses,
        ),
    )
    return Result(source=recording.source, transcript=transcript, damage=recording.damage + losses)
