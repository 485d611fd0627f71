"""Samples that are no numbers, or none that a recording could hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import Notes

# Times full scale (24 dB above it). Neither a hot mix nor a codec's overshoot gets there; damaged
# audio does, and one such burst would drown all speech in the same window.
MAX_LEVEL = 16.0
# From so much (s) on, a word may be gone with them.
_WORD = 0.1


def clean(chunks: Iterable[Chunk], notes: Notes) -> Iterator[Chunk]:
    """Put 0 for NaN, infinity and what is beyond MAX_LEVEL; at the end, say how much there was.

    One NaN would spread over the whole recording in resampling. Values that are a little beyond
    full scale are left alone.
    """
    num_bad = 0
    duration = 0.0
    try:
        for sampling_rate, samples in chunks:
            bad = ~(np.abs(samples) <= MAX_LEVEL)
            if bad.any():
                num_bad += int(bad.sum())
                duration += float(bad.any(axis=1).sum()) / sampling_rate
                samples = np.where(bad, np.float32(0), samples)
            yield sampling_rate, samples
    finally:
        if num_bad:
            _tell(num_bad, duration, notes)


def _tell(num_bad: int, duration: float, notes: Notes) -> None:
    were = "sample was" if num_bad == 1 else "samples were"
    line = f"{num_bad} {were} not a number or far beyond full scale; taken as 0"
    if duration < _WORD:
        notes.warn(line)
    else:
        notes.lose(f"{line} ({duration:.1f} s)")
