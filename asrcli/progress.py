"""How a batch of recordings gets on: one bar in seconds of audio, the files in work under it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from asrcli.audio.reading import open_audio
from asrcli.console import clock
from asrcli.errors import AsrError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asrcli.audio.reading import RawFormat
    from asrcli.audio.sources import Source
    from asrcli.console import StderrConsole

MAX_FILES_SHOWN = 3


@dataclass(slots=True)
class _File:
    duration: float | None = None
    done: float = 0.0
    is_open: bool = False


@dataclass(slots=True)
class BatchProgress:
    """Counts files and seconds of audio, and draws them while somebody watches.

    Attributes:
        console: where it is drawn.
        num_files: files in the batch.
        now: the clock, in seconds.
    """

    console: StderrConsole
    num_files: int
    now: Callable[[], float] = time.monotonic
    _files: dict[Source, _File] = field(default_factory=dict)
    _num_finished: int = 0
    _duration_finished: float = 0.0
    _started: float | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)
    _live: Live | None = None
    _spinner: Spinner = field(default_factory=lambda: Spinner("dots"))

    def __enter__(self) -> BatchProgress:
        self._started = self.now()
        if self.console.is_live:
            self._live = Live(
                get_renderable=self.render,
                console=self.console.rich,
                transient=True,
                refresh_per_second=8,
            )
            self._live.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._live is not None:
            self._live.stop()

    def expect(self, source: Source, duration: float | None) -> None:
        """Take note of how long a file says it is, ahead of its turn."""
        with self._lock:
            entry = self._files.setdefault(source, _File())
            if duration is not None and entry.duration is None:
                entry.duration = duration

    def begin(self, source: Source, duration: float | None) -> None:
        """A file was opened."""
        self.expect(source, duration)
        with self._lock:
            self._files[source].is_open = True

    def advance(self, source: Source, duration: float) -> None:
        """Further seconds of a file are done."""
        with self._lock:
            self._files[source].done += duration

    def finish(self, source: Source) -> None:
        """A file is done, well or not."""
        with self._lock:
            entry = self._files.pop(source, _File())
            self._num_finished += 1
            self._duration_finished += entry.done

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return 0.0 if self._started is None else self.now() - self._started

    @property
    def done(self) -> float:
        """Seconds of audio done."""
        with self._lock:
            return self._duration_finished + sum(entry.done for entry in self._files.values())

    @property
    def total(self) -> float | None:
        """Seconds of audio in the whole batch; None while a length is not known."""
        with self._lock:
            known = [entry.duration for entry in self._files.values()]
            if len(known) + self._num_finished < self.num_files:
                return None
            lengths = [length for length in known if length is not None]
            if len(lengths) < len(known):
                return None
            return max(self.done, self._duration_finished + sum(lengths))

    @property
    def speed(self) -> float:
        """Seconds of audio a second."""
        return self.done / self.elapsed if self.elapsed > 0 else 0.0

    def render(self) -> RenderableType:
        """The bar and the files under it."""
        with self._lock:
            grid = Table.grid(padding=(0, 1))
            for _ in range(4):
                grid.add_column(no_wrap=True)
            grid.add_row(self._spinner, self._count(), self._bar(), self._figures())
            in_work = [item for item in self._files.items() if item[1].is_open][:MAX_FILES_SHOWN]
            names = " · ".join(f"{source.name}  {clock(entry.done)}" for source, entry in in_work)
            stack = Table.grid()
            stack.add_row(grid)
            stack.add_row(Text(f"  {names}", style="dim", no_wrap=True, overflow="ellipsis"))
            return stack

    def _count(self) -> Text:
        plural = "s" if self.num_files != 1 else ""
        return Text(f"{self._num_finished}/{self.num_files} file{plural}")

    def _bar(self) -> ProgressBar:
        total = self.total
        return ProgressBar(
            total=total,
            completed=self.done,
            width=24,
            pulse=total is None,
            animation_time=self.now(),
        )

    def _figures(self) -> Text:
        total, speed = self.total, self.speed
        parts = [f"{clock(self.done)} of {clock(total)}" if total else clock(self.done)]
        if total:
            parts.insert(0, f"{100 * self.done / total:.0f}%")
        if speed:
            parts.append(f"{speed:.{0 if speed >= 10 else 1}f}× real time")
        if total and speed:
            parts.append(f"{clock((total - self.done) / speed)} left")
        return Text("  ".join(parts))


def measure(sources: Sequence[Source], progress: BatchProgress, raw: RawFormat | None) -> None:
    """Find out in the background how long the files say they are, for the bar's whole length."""

    def run() -> None:
        for source in sources:
            if source.path is None or not source.path.is_file():
                continue  # a pipe can be read only once
            try:
                with open_audio(source, raw=raw) as reader:
                    progress.expect(source, reader.duration)
            except (AsrError, OSError):
                continue  # its own turn will tell

    threading.Thread(target=run, name="asr-measure", daemon=True).start()
