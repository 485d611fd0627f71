"""Any sampling rate to the one that the models take, in blocks of even size."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import soxr
from numpy.typing import NDArray

from asrcli.audio.channels import MonoChunk

_QUALITY = "VHQ"


def resample(chunks: Iterable[MonoChunk], sampling_rate: int) -> Iterator[NDArray[np.float32]]:
    """Bring (sampling rate, float32 [num_samples]) chunks to `sampling_rate`.

    The output does not depend on where the chunks are cut, and audio that has the rate already
    passes untouched. Where the rate changes on the way, a new conversion begins.
    """
    stream: soxr.ResampleStream | None = None
    rate_in = sampling_rate
    for rate, samples in chunks:
        if rate != rate_in:
            if stream is not None:
                yield _drain(stream)
            stream, rate_in = _open_stream(rate, sampling_rate), rate
        yield samples if stream is None else stream.resample_chunk(samples)
    if stream is not None:
        yield _drain(stream)


def regroup(pieces: Iterable[NDArray[np.float32]], size: int) -> Iterator[NDArray[np.float32]]:
    """Cut a stream of samples anew into contiguous blocks of `size`; the last may be shorter."""
    waiting: list[NDArray[np.float32]] = []
    num_waiting = 0
    for piece in pieces:
        waiting.append(piece)
        num_waiting += len(piece)
        if num_waiting < size:
            continue
        joined = np.concatenate(waiting)
        num_whole = len(joined) // size * size
        for start in range(0, num_whole, size):
            yield joined[start : start + size].copy()
        waiting, num_waiting = [joined[num_whole:]], len(joined) - num_whole
    if num_waiting:
        yield np.concatenate(waiting)


def _open_stream(rate_in: int, rate_out: int) -> soxr.ResampleStream | None:
    if rate_in == rate_out:
        return None
    return soxr.ResampleStream(rate_in, rate_out, 1, dtype="float32", quality=_QUALITY)


def _drain(stream: soxr.ResampleStream) -> NDArray[np.float32]:
    rest: NDArray[np.float32] = stream.resample_chunk(np.zeros(0, np.float32), last=True)
    return rest
