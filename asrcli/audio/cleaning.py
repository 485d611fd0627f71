"""Samples that are no numbers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import Notes


def clean(chunks: Iterable[Chunk], notes: Notes) -> Iterator[Chunk]:
    """Put 0 for NaN and infinity; at the end, say how many there were.

    One of them would spread over the whole recording in resampling. Values beyond full scale are
    left alone.
    """
    num_bad = 0
    try:
        for sampling_rate, samples in chunks:
            bad = ~np.isfinite(samples)
            if bad.any():
                num_bad += int(bad.sum())
                samples = np.where(bad, np.float32(0), samples)
            yield sampling_rate, samples
    finally:
        if num_bad:
            were = "sample was" if num_bad == 1 else "samples were"
            notes.warn(f"{num_bad} {were} not a number or infinite; taken as 0")
