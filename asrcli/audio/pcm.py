"""Samples stored as plain numbers, to float32."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import Notes, clock
from asrcli.audio.streams import ByteStream

# name: (bytes a sample, numpy type, value of full scale)
_PLAIN = {
    "s8": ("i1", 2.0**7),
    "s16le": ("<i2", 2.0**15),
    "s16be": (">i2", 2.0**15),
    "s32le": ("<i4", 2.0**31),
    "s32be": (">i4", 2.0**31),
    "f32le": ("<f4", 1.0),
    "f32be": (">f4", 1.0),
    "f64le": ("<f8", 1.0),
    "f64be": (">f8", 1.0),
}
SAMPLE_FORMATS = ("u8", *_PLAIN, "s24le", "s24be", "mulaw", "alaw")

# Seconds read in one go from a file; a pipe gives what it has.
_READ_SECONDS = 2.0


def sample_width(sample_format: str) -> int:
    """Give the bytes of one sample."""
    if sample_format in _PLAIN:
        return np.dtype(_PLAIN[sample_format][0]).itemsize
    return 3 if sample_format.startswith("s24") else 1


def to_float(data: bytes, sample_format: str) -> NDArray[np.float32]:
    """Convert whole samples to float32, full scale to 1.0."""
    if sample_format == "u8":
        return _scaled(np.frombuffer(data, np.uint8).astype(np.float32) - np.float32(128), 2.0**7)
    if sample_format in ("mulaw", "alaw"):
        table = _mulaw_table() if sample_format == "mulaw" else _alaw_table()
        return table.take(np.frombuffer(data, np.uint8))
    if sample_format in ("s24le", "s24be"):
        return _scaled(_widen_24_bit(data, sample_format), 2.0**31)
    dtype, full_scale = _PLAIN[sample_format]
    # A float64 beyond float32 becomes Inf, and there are numbers that are none: cleaned later.
    with np.errstate(over="ignore", invalid="ignore"):
        samples: NDArray[np.float32] = np.frombuffer(data, dtype).astype(np.float32)
        return _scaled(samples, full_scale)


@dataclass(frozen=True, slots=True)
class PcmLayout:
    """How samples lie in a stream of bytes.

    Attributes:
        sample_format: one of SAMPLE_FORMATS.
        sampling_rate: in Hz.
        num_channels: samples that belong to one instant, next to each other.
        num_bytes: how many bytes of samples there are, as the header states; None if it does not.
    """

    sample_format: str
    sampling_rate: int
    num_channels: int
    num_bytes: int | None = None

    @property
    def frame_size(self) -> int:
        """Bytes of one instant, all channels."""
        return sample_width(self.sample_format) * self.num_channels


class PcmDecoder:
    """Reads samples as they lie, to the stated end or as far as they really go.

    Args:
        stream: stands at the first sample.
        layout: how the samples lie.
        goes_on: told whether bytes behind the stated end are still audio; None stops at the end.
    """

    def __init__(
        self,
        stream: ByteStream,
        layout: PcmLayout,
        notes: Notes,
        goes_on: Callable[[ByteStream, int], bool] | None = None,
    ) -> None:
        self._stream = stream
        self._layout = layout
        self._notes = notes
        self._goes_on = goes_on
        present, stated = stream.num_left, layout.num_bytes
        # A stated size of zero tells nothing.
        known = (stated or None) if present is None else min(present, stated or present)
        self.duration = None if known is None else self._seconds(known)

    def chunks(self) -> Iterator[Chunk]:
        """Yield (sampling rate, float32 [num_samples, num_channels])."""
        layout = self._layout
        rest = b""
        for data in self._data():
            data = rest + data
            num_whole = len(data) // layout.frame_size * layout.frame_size
            rest = data[num_whole:]
            if num_whole:
                samples = to_float(data[:num_whole], layout.sample_format)
                yield layout.sampling_rate, samples.reshape(-1, layout.num_channels)

    def close(self) -> None:
        self._stream.close()

    def _data(self) -> Iterator[bytes]:
        stated = self._layout.num_bytes
        size = max(1, round(_READ_SECONDS * self._layout.sampling_rate)) * self._layout.frame_size
        num_read = 0
        while stated is None or num_read < stated or self._passes_end(stated):
            if stated is not None and num_read >= stated:
                stated = None
            data = self._stream.read(size if stated is None else min(size, stated - num_read))
            if not data:
                break
            num_read += len(data)
            yield data
        if stated is not None and self._seconds(stated - num_read) >= 0.01:
            self._notes.ends_early(self._seconds(num_read), self._seconds(stated))

    def _passes_end(self, stated: int) -> bool:
        if self._goes_on is None or not self._goes_on(self._stream, stated):
            return False
        num_left = self._stream.num_left
        # Nothing is stated by a size of zero, and a few bytes more are padding.
        if stated and (num_left is None or self._seconds(num_left) >= 0.1):
            end = clock(self._seconds(stated))
            self._notes.warn(
                f"the audio goes on after {end}, where its header ends it; all is read"
            )
        return True

    def _seconds(self, num_bytes: int) -> float:
        return num_bytes / self._layout.frame_size / self._layout.sampling_rate


def _scaled(samples: NDArray[np.float32], full_scale: float) -> NDArray[np.float32]:
    samples *= np.float32(1.0 / full_scale)  # a power of two: exact
    return samples


def _widen_24_bit(data: bytes, sample_format: str) -> NDArray[np.float32]:
    """Put three bytes into the upper part of a 32-bit number."""
    triples = np.frombuffer(data, np.uint8).reshape(-1, 3)
    if sample_format == "s24be":
        triples = triples[:, ::-1]
    wide = np.zeros((len(triples), 4), np.uint8)
    wide[:, 1:] = triples
    samples: NDArray[np.float32] = wide.view("<i4")[:, 0].astype(np.float32)
    return samples


def _mulaw_table() -> NDArray[np.float32]:
    """The 256 values of ITU-T G.711 µ-law: sign, three bits of exponent, four of mantissa."""
    code = ~np.arange(256, dtype=np.uint8)
    exponent, mantissa = (code >> 4 & 7).astype(int), (code & 15).astype(int)
    size = ((2 * mantissa + 33 << exponent) - 33) * 4
    values: NDArray[np.float32] = np.where(code & 128, -size, size).astype(np.float32)
    return _scaled(values, 2.0**15)


def _alaw_table() -> NDArray[np.float32]:
    """The 256 values of ITU-T G.711 A-law, whose even bits are stored inverted."""
    code = np.arange(256, dtype=np.uint8) ^ 0x55
    exponent, mantissa = (code >> 4 & 7).astype(int), (code & 15).astype(int)
    size = (
        np.where(exponent == 0, 2 * mantissa + 1, 2 * mantissa + 33 << np.maximum(exponent - 1, 0))
        * 8
    )
    values: NDArray[np.float32] = np.where(code & 128, size, -size).astype(np.float32)
    return _scaled(values, 2.0**15)
