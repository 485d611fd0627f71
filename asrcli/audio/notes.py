"""What a reader has to say about a recording: remarks, and audio that is lost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# Damage closer together than this (s) is one stretch to a reader of the message.
_MERGE_WITHIN = 1.0


def clock(seconds: float) -> str:
    """Write a time for people: 0:05.5, 1:12.3, 1:02:03.4."""
    return _write_tenths(round(max(0.0, seconds) * 10))


def span(start: float, end: float) -> str:
    """Write a stretch of time (s), rounded outward so that it is never empty: 1:12.3-1:12.9."""
    first = math.floor(start * 10 + 1e-6)
    last = max(first + 1, math.ceil(end * 10 - 1e-6))
    return f"{_write_tenths(first)}-{_write_tenths(last)}"


def _write_tenths(tenths: int) -> str:
    minutes, tenths = divmod(tenths, 600)
    hours, minutes = divmod(minutes, 60)
    head = f"{hours}:{minutes:02d}" if hours else f"{minutes}"
    return f"{head}:{tenths // 10:02d}.{tenths % 10}"


@dataclass(slots=True)
class Notes:
    """Lines about one recording, in the order in which they came up, without its name.

    Attributes:
        warnings: every line.
        damage: those of them that mean that audio is lost.
    """

    warnings: list[str] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)

    def warn(self, line: str) -> None:
        """Add a remark that costs no audio."""
        self.warnings.append(line)

    def lose(self, line: str) -> None:
        """Add a line that says which audio is lost."""
        self.warnings.append(line)
        self.damage.append(line)

    def ends_early(self, end: float, stated: float) -> None:
        """Say that the recording ends (s) before the length that its header states (s)."""
        self.lose(f"the file ends at {clock(end)}, its header says {clock(stated)}")


class DamagedStretches:
    """Turns single faults into stretches of time, those that are near each other into one."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._stretch: tuple[str, float, float] | None = None

    def add(self, kind: str, start: float, end: float) -> None:
        """Note that audio from `start` to `end` (s) is, say, "damaged" or "missing"."""
        if self._stretch is not None:
            first_kind, first_start, last_end = self._stretch
            if start - last_end < _MERGE_WITHIN:
                self._stretch = (first_kind, first_start, max(end, last_end))
                return
            self.finish()
        self._stretch = (kind, start, end)

    def settle(self, position: float) -> None:
        """Say what is known once good audio has gone on long enough after it (s)."""
        if self._stretch is not None and position - self._stretch[2] >= _MERGE_WITHIN:
            self.finish()

    def finish(self) -> None:
        """Say the rest."""
        if self._stretch is not None:
            kind, start, end = self._stretch
            self._stretch = None
            self._notes.lose(f"{kind} audio at {span(start, end)}")
