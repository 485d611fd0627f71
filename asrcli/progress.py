"""How a batch of recordings gets on: one bar in seconds of audio, the files in work under it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from asrcli.audio.clips import selected_duration
from asrcli.audio.reading import open_audio
from asrcli.audio.sources import AS_IT_IS, Reading, printable
from asrcli.console import clock, remaining
from asrcli.errors import AsrError

if TYPE_CHECKING:
    from rich.console import RenderableType

    from asrcli.audio.sources import Source
    from asrcli.console import StderrConsole

MAX_FILES_SHOWN = 3
MAX_BAR_WIDTH = 24
MIN_BAR_WIDTH = 8
FIRST_TO_GO = 1
"""Which of the figures is left out first where the terminal is narrow."""


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
        is_over: whether the batch has come to its end, or to that of its user's patience.
    """

    console: StderrConsole
    num_files: int
    now: Callable[[], float] = time.monotonic
    is_over: bool = False
    _files: dict[Source, _File] = field(default_factory=dict)
    _finished: set[Source] = field(default_factory=set)
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
        self.stop()

    def stop(self) -> None:
        """Clear what is drawn. Nothing more will be."""
        self.is_over = True
        if self._live is not None:
            self._live.stop()

    def expect(self, source: Source, duration: float | None) -> None:
        """Take note of how long a file says it is, ahead of its turn."""
        with self._lock:
            if source in self._finished:
                return  # the look ahead came too late
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
            entry = self._files.get(source)
            if entry is not None:  # one that failed half-way is finished before all of it is done
                entry.done += duration

    def finish(self, source: Source) -> None:
        """A file is done, well or not."""
        with self._lock:
            entry = self._files.pop(source, _File())
            self._finished.add(source)
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
            if len(known) + len(self._finished) < self.num_files:
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
        """The bar and the files under it, as wide as the terminal is."""
        width = self.console.rich.width
        with self._lock:
            return Group(self._bar_line(width), self._files_line(width))

    def _bar_line(self, width: int) -> Table:
        """Spinner, files, bar, figures; what does not fit is left out, the least telling first."""
        plural = "" if self.num_files == 1 else "s"
        count = f"{len(self._finished)}/{self.num_files} file{plural}"
        figures = self._figures()
        room = width - len("⠙ ") - len(f"{count} ") - 1  # the last column makes terminals wrap
        while len(figures) > 1 and room - len("  ".join(figures)) < MIN_BAR_WIDTH + 1:
            figures.pop(min(len(figures) - 1, FIRST_TO_GO))
        text = "  ".join(figures)
        line = Table.grid(padding=(0, 1))
        for _ in range(4):
            line.add_column(no_wrap=True, overflow="crop")
        bar_width = min(MAX_BAR_WIDTH, room - len(text) - 1)
        cells: list[RenderableType] = [self._spinner, Text(count), self._bar(bar_width), Text(text)]
        if bar_width < MIN_BAR_WIDTH:
            del cells[2]
        line.add_row(*cells)
        return line

    def _bar(self, width: int) -> ProgressBar:
        total = self.total
        return ProgressBar(
            total=total,
            completed=self.done,
            width=width,
            pulse=total is None,
            animation_time=self.now(),
        )

    def _figures(self) -> list[str]:
        """In the order in which they stand."""
        total, speed = self.total, self.speed
        if not total:
            figures = [clock(self.done)]
        else:
            share = min(100, int(100 * self.done / total))
            figures = [f"{share}%", f"{clock(self.done)} of {clock(total)}"]
        if speed:
            figures.append(f"{speed:.{0 if speed >= 10 else 1}f}× real time")
            if total:
                figures.append(f"{remaining((total - self.done) / speed)} left")
        return figures

    def _files_line(self, width: int) -> Text:
        """The first files in work, as many as fit, one of them at any rate."""
        in_work = [item for item in self._files.items() if item[1].is_open]
        line = Text("  ", style="dim", no_wrap=True, overflow="ellipsis")
        for number, (source, entry) in enumerate(in_work[:MAX_FILES_SHOWN]):
            part = f"{'' if number == 0 else ' · '}{source.relative.name}  {clock(entry.done)}"
            if number and line.cell_len + cell_len(part) >= width:
                break
            line.append(printable(part))
        line.truncate(width - 1, overflow="ellipsis")
        return line


def measure(
    sources: Sequence[Source],
    progress: BatchProgress,
    reading: Reading = AS_IT_IS,
) -> threading.Thread:
    """Find out in the background how long the files say they are, for the bar's whole length.

    Where only clips of them are transcribed, theirs is the length that counts.
    """

    def run() -> None:
        for source in sources:
            if progress.is_over:
                return
            if source.path is None or not os.path.isfile(source.path):  # noqa: PTH113
                continue  # a pipe can be read only once
            try:
                with open_audio(source, raw=reading.raw, track=reading.track) as reader:
                    progress.expect(source, selected_duration(reader.duration, reading.clips))
            except (AsrError, OSError):
                progress.expect(source, 0.0)  # its own turn will tell why

    thread = threading.Thread(target=run, name="asr-measure", daemon=True)
    thread.start()
    return thread
