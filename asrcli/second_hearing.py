"""A second hearing for short windows that the model was not sure of.

Whisper learned from cuts of 30 s, in which speech seldom begins with the first sample. A short clip
that does so is heard less well, and a moment of silence in front often settles it. So a short,
doubtful window is transcribed once more behind such a silence, and the text that the model itself
finds likelier is kept.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.windows import MIN_SEGMENT_DURATION, Window

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.transcript import Segment

DOUBTFUL_LOGPROB = -0.4  # mean log-probability below which a text is not trusted at once
MAX_DURATION = 10.0  # s; longer windows have context of their own
LEAD_DURATION = 0.2  # s of silence in front


def is_doubtful(recognition: Recognition, window: Window) -> bool:
    """Whether a window is worth a second hearing: short, with a text that is not too likely."""
    if not recognition.segments or window.end - window.start > MAX_DURATION:
        return False
    return _logprob(recognition) < DOUBTFUL_LOGPROB


def lead_in(window: Window) -> Window:
    """The window behind a moment of silence; its start moves, so that its times stay true."""
    lead = np.zeros(round(LEAD_DURATION * SAMPLING_RATE), dtype=np.float32)
    samples = np.concatenate([lead, window.samples])
    return replace(window, samples=samples, start=window.start - LEAD_DURATION)


def choose(first: Recognition, second: Recognition, window: Window) -> Recognition:
    """The likelier of two hearings, none of its times before the window's start."""
    if not second.segments or _logprob(second) <= _logprob(first):
        return first
    return replace(second, segments=tuple(_move_in(s, window) for s in second.segments))


def _move_in(segment: Segment, window: Window) -> Segment:
    """The segment without the part that lies in the silence before the window."""
    start = max(segment.start, window.start)
    return replace(segment, start=start, end=max(segment.end, start + MIN_SEGMENT_DURATION))


def _logprob(recognition: Recognition) -> float:
    """Mean log-probability of a window's text: all its segments state the same."""
    value = recognition.segments[0].avg_logprob
    return 0.0 if value is None else value
