"""Parts of a recording: ``--clip 1:30-2:00``, with the times of the whole file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.notes import clock
from asrcli.audio.reading import SAMPLING_RATE
from asrcli.errors import UsageError

# Hours, minutes and seconds; without a colon, any number of seconds. A comma is what subtitles
# write for the point.
_TIME = re.compile(r"(?:(?:(\d{1,6}):)?(\d{1,6}):)?(\d{1,9}(?:[.,]\d*)?|[.,]\d+)", re.ASCII)
_BEHIND_ALL = "end"
_FORM = "START-END in seconds, M:SS or H:MM:SS, for instance 90-120, 1:30-2:00, 1:02:03.5- or -30"
# An end that is given in whole seconds may lie this much (s) behind the recording's.
_ROUNDED_BY = 1.0


@dataclass(frozen=True, slots=True)
class Clip:
    """A part of a recording.

    Attributes:
        start: seconds from the beginning of the file.
        end: the same; None is the end of the file.

    Raises:
        UsageError: it begins before the file does, or ends before it begins.
    """

    start: float
    end: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.start < math.inf:
            raise UsageError(f"clip {self} does not begin in the recording", hint=_FORM)
        if self.end is not None and not self.first_sample < _to_samples(self.end):
            raise UsageError(f"clip {self} ends before it begins", hint=_FORM)

    def __str__(self) -> str:
        return f"{_write(self.start)}-{'' if self.end is None else _write(self.end)}"

    @property
    def first_sample(self) -> int:
        """Position of the first sample at 16 kHz."""
        return _to_samples(self.start)

    @property
    def last_sample(self) -> int | None:
        """Position behind the last sample at 16 kHz; None for the end of the file."""
        return None if self.end is None else _to_samples(self.end)


def parse_clip(text: str) -> Clip:
    """Read ``START-END``; no start is that of the file, no end (or "end") its end.

    Times are seconds ("90", "90.5"), minutes and seconds ("1:30"), or hours, minutes and seconds
    ("1:02:03.5").

    Raises:
        UsageError: it is nothing of the kind, or no part of a recording.
    """
    start, dash, end = text.strip().replace("\N{EN DASH}", "-").partition("-")
    start, end = start.strip(), end.strip().lower()
    if not dash or not (start or end):
        raise UsageError(f"clip {text!r} is no part of a recording", hint=_FORM)
    return Clip(
        _read(start, text) if start else 0.0,
        None if end in ("", _BEHIND_ALL) else _read(end, text),
    )


class ClipSelector:
    """Lets through what lies inside clips, in the order of the recording, once.

    Args:
        clips: in any order; where they overlap or touch they are one. None at all is the whole
            recording.

    Attributes:
        num_read: samples of the recording that came by, in clips or between them.
        num_selected: samples that were let through.
    """

    def __init__(self, clips: Sequence[Clip]) -> None:
        self._clips = tuple(dict.fromkeys(clips))
        self._spans = _merge(self._clips or (Clip(0.0),))
        self.num_read = 0
        self.num_selected = 0

    def select(
        self, blocks: Iterator[NDArray[np.float32]]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Yield (position from the beginning of the file, float32 [num_samples]), at 16 kHz.

        Pieces of one clip follow one another without a gap. Nothing is taken from `blocks` behind
        the last clip's end; they are closed then.
        """
        try:
            last = self._spans[-1][1]
            for block in blocks:
                position = self.num_read
                self.num_read += len(block)
                yield from self._inside(position, block)
                if last is not None and self.num_read >= last:
                    return
        finally:
            close = getattr(blocks, "close", None)
            if close is not None:
                close()

    def missing(self) -> list[str]:
        """Say, once all was selected, which clips got less audio than was asked for, or none."""
        duration = self.num_read / SAMPLING_RATE
        lines = []
        for clip in self._clips:
            if clip.first_sample >= self.num_read:
                lines.append(f"clip {clip} lies behind the end of the audio ({clock(duration)})")
            elif clip.end is not None and clip.end - duration >= _ROUNDED_BY:
                lines.append(f"clip {clip} is cut short: the audio ends at {clock(duration)}")
        return lines

    def _inside(
        self, position: int, block: NDArray[np.float32]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        block_end = position + len(block)
        for start, end in self._spans:
            first = max(start, position)
            last = block_end if end is None else min(end, block_end)
            if first < last:
                self.num_selected += last - first
                yield first, block[first - position : last - position]


def selected_duration(duration: float | None, clips: Sequence[Clip]) -> float | None:
    """Seconds of a recording that lie in clips, each once; all of it where there are no clips."""
    if duration is None or not clips:
        return duration
    selected = reached = 0.0
    for clip in sorted(clips, key=lambda clip: clip.start):
        end = min(duration, duration if clip.end is None else clip.end)
        selected += max(0.0, end - max(reached, clip.start))
        reached = max(reached, end)
    return selected


def _merge(clips: Sequence[Clip]) -> list[tuple[int, int | None]]:
    """Give the clips' (first, behind the last) samples, sorted and apart from one another."""
    merged: list[tuple[int, int | None]] = []
    for clip in sorted(clips, key=lambda clip: clip.first_sample):
        start, end = clip.first_sample, clip.last_sample
        if merged:
            known_start, known_end = merged[-1]
            if known_end is None or start <= known_end:
                joined = None if known_end is None or end is None else max(known_end, end)
                merged[-1] = known_start, joined
                continue
        merged.append((start, end))
    return merged


def _read(time: str, text: str) -> float:
    match = _TIME.fullmatch(time)
    if match is None:
        raise UsageError(f"clip {text!r}: {time!r} is no time", hint=_FORM)
    hours, minutes, seconds = match[1], match[2], float(match[3].replace(",", "."))
    if (minutes and seconds >= 60) or (hours and int(minutes) >= 60):
        raise UsageError(f"clip {text!r}: {time!r} is no time", hint=_FORM)
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + seconds


def _write(seconds: float) -> str:
    """Write a time as people do: 0:09, 1:30, 1:02:03.5."""
    if not math.isfinite(seconds):
        return str(seconds)
    minutes, milliseconds = divmod(round(seconds * 1000), 60_000)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{head}:{milliseconds / 1000:06.3f}".rstrip("0").rstrip(".")


def _to_samples(seconds: float) -> int:
    return round(seconds * SAMPLING_RATE)
