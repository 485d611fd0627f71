"""From sources to a backend: each is read, split and submitted, a bounded number of windows ahead.

Where windows do not depend on each other, one thread feeds file after file. Where each is told what
was said before it, a file has only one window under way, so that many files are fed side by side
and the batch stays full all the same.
"""

from __future__ import annotations

import functools
import itertools
import queue
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Protocol

from asrcli.audio.clips import ClipSelector, selected_duration
from asrcli.audio.reading import MIN_DURATION, SAMPLING_RATE, open_audio
from asrcli.audio.sources import Reading, Source
from asrcli.backends.base import Backend, Recognition
from asrcli.compute_threads import one_thread
from asrcli.errors import AudioError
from asrcli.options import Options
from asrcli.stages import Stages
from asrcli.windows import Splitter, Window, join_texts

MAX_PREVIOUS = 200
"""Characters of what was said before that a window is told: two or three sentences. All that fits
into Whisper's prompt sways it to write its own oddities on and on: on a reading of 12 minutes
whisper-base has 10.9 % of words wrong with it, 3.5 % with this much or nothing."""
MIN_SAMPLES = round(MIN_DURATION * SAMPLING_RATE)
BURSTS = 4  # in which as many windows are fed as may be under way
STOP_DURATION = 1.0  # s that the reading may take to end once nobody wants more

_recording_ids = itertools.count()


class Progress(Protocol):
    """Hears how a batch gets on; called from several threads."""

    def begin(self, source: Source, duration: float | None) -> None:
        """A source was opened; ``duration`` (s) is what its header says."""

    def advance(self, source: Source, duration: float) -> None:
        """So many further seconds of it are done."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A window that was submitted: what will be recognised in it, and its time in s.

    Attributes:
        overlap: (start, end) of what the window before it holds as well; None where it is nothing.
    """

    future: Future[Recognition]
    start: float
    end: float
    overlap: tuple[float, float] | None = None


@dataclass(slots=True)
class Recording:
    """A source while it is being transcribed.

    Attributes:
        pending: its windows, in order, as they are submitted; None ends them.
        too_short: (start, end) in seconds of windows in which there is no room for a word.
        done: seconds of it that were transcribed, or silent.
        num_samples, warnings, damage, error: known once they have ended.
    """

    source: Source
    recording_id: int = field(default_factory=lambda: next(_recording_ids))
    pending: queue.SimpleQueue[Pending | None] = field(default_factory=queue.SimpleQueue)
    too_short: list[tuple[float, float]] = field(default_factory=list)
    done: float = 0.0
    num_samples: int = 0
    warnings: tuple[str, ...] = ()
    damage: tuple[str, ...] = ()
    error: Exception | None = None


class Permits:
    """Bounds how many windows are under way, and has those that follow come several at a time.

    Reading takes a core from the engine for as long as it goes on. One window now and one then
    would have the engine do with a core less in half of its steps, and leave that idle meanwhile.

    Args:
        most: windows under way.
    """

    def __init__(self, most: int) -> None:
        self._changed = threading.Condition()
        self._num_free = most
        self._at_once = max(1, most // BURSTS)
        self._is_used_up = False
        self._has_ended = False

    def acquire(self) -> None:
        """Take one, if need be once some have come back."""
        with self._changed:
            while self._is_used_up and self._num_free < self._at_once and not self._has_ended:
                self._changed.wait()
            self._num_free -= 1
            self._is_used_up = self._num_free <= 0

    def release(self) -> None:
        """Give one back."""
        with self._changed:
            self._num_free += 1
            self._changed.notify_all()

    def end(self) -> None:
        """Hold nobody up any more."""
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()


class Feeder:
    """Reads, splits and submits, at most ``max_in_flight`` windows ahead.

    Args:
        stages: where the time goes.

    Attributes:
        recordings: one for each source, in their order.
    """

    def __init__(
        self,
        sources: Sequence[Source],
        backend: Backend,
        options: Options,
        reading: Reading,
        progress: Progress | None,
        stages: Stages | None = None,
    ) -> None:
        self.recordings = [Recording(source) for source in sources]
        self._backend = backend
        self._options = options
        self._reading = reading
        self._progress = progress
        self._stages = stages or Stages()
        num_windows = backend.max_in_flight(options)
        self._permits = Permits(num_windows)
        self._stopped = False
        self._waiting = iter(self.recordings)
        self._lock = threading.Lock()
        num_threads = min(num_windows, len(sources)) if options.condition_on_previous_text else 1
        self._threads = [
            threading.Thread(target=self._run, name="asr-feeder", daemon=True)
            for _ in range(num_threads)
        ]

    def start(self) -> None:
        """Begin to read."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Submit nothing more."""
        self._stopped = True
        self._permits.end()
        # A read from a pipe that says nothing cannot be called off; the thread ends with it.
        for thread in self._threads:
            thread.join(timeout=STOP_DURATION)

    def _run(self) -> None:
        """Feed one source after the other."""
        while (recording := self._next()) is not None:
            if not self._stopped:
                try:
                    self._feed(recording)
                except Exception as error:  # it belongs to this recording; the others go on
                    recording.error = error
            recording.pending.put(None)

    def _next(self) -> Recording | None:
        with self._lock:
            return next(self._waiting, None)

    def _feed(self, recording: Recording) -> None:
        how = self._reading
        with open_audio(recording.source, raw=how.raw, stdin=how.stdin, track=how.track) as reader:
            if self._progress is not None:
                duration = selected_duration(reader.duration, how.clips)
                self._progress.begin(recording.source, duration)
            selector = ClipSelector(how.clips)
            splitter = Splitter(
                recording.recording_id,
                max_duration=self._backend.window_duration(self._options),
                vad=self._options.vad,
            )
            blocks = self._stages.watch("audio", selector.select(reader.blocks()))
            windows = self._stages.watch("voice", splitter.split(blocks))
            self._submit_all(recording, windows)
            if self._stopped:
                return
            missing = selector.missing()
            if missing and not selector.num_selected:
                raise AudioError(f"{recording.source.name}: {missing[0]}")
            recording.num_samples = splitter.num_samples
            losses = (*missing, *map(_unaccounted, splitter.unaccounted()))
            is_brief = selector.num_read < MIN_SAMPLES  # all of it, as the reader has said
            too_short = () if is_brief else map(_say_too_short, recording.too_short)
            recording.warnings = (*reader.warnings, *losses, *too_short)
            recording.damage = (*reader.damage, *losses)
            end = splitter.num_samples / SAMPLING_RATE
            self._credit(recording, end, end)

    def _submit_all(self, recording: Recording, windows: Iterator[Window]) -> None:
        previous = ""
        # Whoever waits for a pipe computes nothing meanwhile.
        path = recording.source.path
        if path is not None and path.is_file():
            windows = _in_one_thread(windows)
        for window in windows:
            if len(window.samples) < MIN_SAMPLES:
                recording.too_short.append((window.start, window.end))
                continue
            options = replace(self._options, previous_text=previous or None)
            future = self._submit(recording, window, options)
            if self._stopped:
                return
            if self._options.condition_on_previous_text and future is not None:
                previous = _carry_on(previous, future)

    def _submit(
        self, recording: Recording, window: Window, options: Options
    ) -> Future[Recognition] | None:
        self._permits.acquire()
        if self._stopped:
            return None
        future = self._backend.submit(window, options)
        shared = (window.start, window.start + window.overlap) if window.overlap else None
        recording.pending.put(Pending(future, window.start, window.end, shared))
        # A future keeps what it calls when it is done: the times, so that the samples can go.
        finish = functools.partial(self._finish, recording, window.start, window.end)
        future.add_done_callback(finish)
        return future

    def _finish(self, recording: Recording, start: float, end: float, _: object) -> None:
        self._permits.release()
        self._credit(recording, start, end)

    def _credit(self, recording: Recording, start: float, end: float) -> None:
        """Report a recording as done up to a time; silence before it counts as well."""
        with self._lock:
            begin = start if self._reading.clips else recording.done
            duration = end - max(begin, recording.done)
            recording.done = max(recording.done, end)
        if self._progress is not None and duration > 0:
            self._progress.advance(recording.source, duration)


def _in_one_thread(windows: Iterator[Window]) -> Iterator[Window]:
    while True:
        with one_thread():
            window = next(windows, None)
        if window is None:
            return
        yield window


def _carry_on(previous: str, future: Future[Recognition]) -> str:
    """What the next window is told. After a text that had a fault at first, nothing: it would
    carry that on and on (openai/whisper)."""
    if future.exception() is not None:  # as will be told of its window
        return ""
    heard = future.result()
    if any(retry.reason != "doubtful" for retry in heard.retries):
        return ""
    return _last_words(join_texts([previous, *(segment.text for segment in heard.segments)]))


def _last_words(text: str) -> str:
    """The end of a text, in whole words where there are spaces between them."""
    if len(text) <= MAX_PREVIOUS:
        return text
    end = text[-MAX_PREVIOUS - 1 :]
    return end[end.find(" ", 0, MAX_PREVIOUS // 4) + 1 :][-MAX_PREVIOUS:]


def _say_too_short(span: tuple[float, float]) -> str:
    return f"{span[0]:.2f}-{span[1]:.2f} s: too short to hold a word"


def _unaccounted(span: tuple[float, float]) -> str:
    return f"{span[0]:.1f}-{span[1]:.1f} s: was not transcribed"
