"""From segments to cues: what is on the screen from when to when.

One cue a segment. Lines are laid out here, and nowhere else, once they have a width.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from asrcli.transcript import Segment
from asrcli.writers.text import split_lines
from asrcli.writers.times import to_milliseconds

_CONTROLS = re.compile("[\x00-\x08\x0e-\x1b\x1f\x7f]")  # players stop at them, or show boxes


@dataclass(frozen=True, slots=True)
class Cue:
    """Text on the screen; ``start`` < ``end``, both in whole milliseconds.

    Attributes:
        lines: at least one, none of them blank, without surrounding white space or line breaks.
    """

    start: int
    end: int
    lines: tuple[str, ...]


def cut_cues(segments: Iterable[Segment]) -> list[Cue]:
    """The cues of segments in order of time; segments without text have none.

    Each starts at least a millisecond after the one before and ends at least a millisecond after
    its own start. None is still there when the next one starts: the earlier gives way.
    """
    drafts = [Cue(*_span(segment), _lines(segment.text)) for segment in segments]
    cues: list[Cue] = []
    for draft in (draft for draft in drafts if draft.lines):
        start = draft.start
        if cues:
            start = max(start, cues[-1].start + 1)
            cues[-1] = Cue(cues[-1].start, min(cues[-1].end, start), cues[-1].lines)
        cues.append(Cue(start, max(draft.end, start + 1), draft.lines))
    return cues


def _span(segment: Segment) -> tuple[int, int]:
    return to_milliseconds(segment.start), to_milliseconds(segment.end)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(split_lines(_CONTROLS.sub("", text)))
