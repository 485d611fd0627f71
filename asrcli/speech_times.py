"""Times of segments, held against where somebody speaks.

A model that was given a pause along with the speech often lets a segment begin or end within it,
and one without times of its own gives those of the window. The voice detector hears finer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.transcript import MIN_SEGMENT_DURATION

if TYPE_CHECKING:
    from asrcli.transcript import Segment

MARGIN = 0.2  # s on either side of speech that may belong to it: soft consonants, breath


def fit_to_speech(
    segments: Sequence[Segment], speech: Sequence[tuple[float, float]] | None
) -> list[Segment]:
    """Move the ends of segments out of silence, inwards.

    Args:
        segments: of one window, in order.
        speech: (start, end) of its stretches of speech, s; None where they are not known.

    A segment in whose time nobody speaks keeps its times: it is the detector that is wrong there,
    or the model, and neither can be told here.
    """
    if speech is None:
        return list(segments)
    return [_fit(segment, speech) for segment in segments]


def _fit(segment: Segment, speech: Sequence[tuple[float, float]]) -> Segment:
    spoken = [(a, b) for a, b in speech if b > segment.start and a < segment.end]
    if not spoken:
        return segment
    start = max(segment.start, round(spoken[0][0] - MARGIN, 3))
    end = min(segment.end, round(spoken[-1][1] + MARGIN, 3))
    if end - start < MIN_SEGMENT_DURATION:
        return segment
    return replace(segment, start=start, end=end)
