"""The header of a WAV file (RIFF, RIFX, RF64, BW64), read forward, its sizes doubted.

Layout: Microsoft's "Multimedia Programming Interface and Data Specifications 1.0"; EBU Tech 3306
for RF64. The sizes lie often: programs that write to a pipe cannot go back and fill them in.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from asrcli.audio.pcm import PcmLayout
from asrcli.audio.streams import ByteStream

MAGICS = (b"RIFF", b"RIFX", b"RF64", b"BW64")

_EXTENSIBLE = 0xFFFE
_MAX_CHUNK_ON_PIPE = 1 << 24
# Sizes that mean "not known": ffmpeg and many others fill in all ones, SoX and its like something
# just below 2 GiB. Zero may be meant; what follows it tells.
_ALL_ONES = 0xFFFFFF00
_NEAR_2_GIB = range(0x7FFF0000, 0x80000000)


class DamagedHeaderError(Exception):
    """What is wrong with the header, in a few words."""


@dataclass(frozen=True, slots=True)
class WaveHeader:
    """What a WAV header says of the audio.

    Attributes:
        tag: the codec's number, the one inside for WAVE_FORMAT_EXTENSIBLE.
        layout: how the samples lie; None where they are coded.
        num_bytes: size of the audio as stated; None where the header does not know.
        bytes_per_second: as stated, for the length of coded audio.
    """

    tag: int
    layout: PcmLayout | None
    num_bytes: int | None
    bytes_per_second: int


def is_wave(head: bytes) -> bool:
    """Whether a file that begins so (12 bytes or more) is WAV."""
    return head.startswith(MAGICS) and head[8:12] == b"WAVE"


def read_header(stream: ByteStream) -> WaveHeader:
    """Read up to the first sample.

    Raises:
        DamagedHeaderError: there is no way to tell where or what the samples are.
    """
    order = ">" if stream.peek(4) == b"RIFX" else "<"
    stream.skip(12)
    fmt: bytes | None = None
    long_size: int | None = None
    while True:
        head = _read_exactly(stream, 8)
        if len(head) < 8:
            raise DamagedHeaderError("no audio data" if fmt else "no format and no audio data")
        name, size = struct.unpack(f"{order}4sI", head)
        if name == b"data":
            break
        body = _read_exactly(stream, min(size, 64)) if name in (b"fmt ", b"ds64") else b""
        if name == b"fmt ":
            fmt = body
        elif name == b"ds64" and len(body) >= 16:
            (long_size,) = struct.unpack_from(f"{order}Q", body, 8)
        if size > _MAX_CHUNK_ON_PIPE and not stream.can_seek:
            raise DamagedHeaderError(f"{size} bytes before the audio data")
        stream.skip(size - len(body) + (size & 1))
    if fmt is None:
        raise DamagedHeaderError("audio data before its format")
    if size == 0xFFFFFFFF and long_size:
        return _interpret(fmt, order, long_size)
    return _interpret(fmt, order, None if _is_unknown(size) else size)


def goes_on(stream: ByteStream, stated: int) -> bool:
    """Whether there is audio behind the `stated` bytes of it: bytes that are no further chunk."""
    following = stream.peek(9)
    if len(following) < 8 or following[:3] in (b"TAG", b"ID3"):
        return False
    num_left = stream.num_left
    # Behind an odd number of bytes there should be one to fill up, and often is not.
    offsets = (0, 1) if stated & 1 else (0,)
    return not any(_is_chunk(following[offset : offset + 8], num_left) for offset in offsets)


def _is_chunk(head: bytes, num_left: int | None) -> bool:
    if len(head) < 8:
        return True
    if not all(32 <= byte < 127 for byte in head[:4]):
        return False
    sizes = struct.unpack("<I", head[4:]) + struct.unpack(">I", head[4:])
    # A pad byte may be missing at the very end.
    limit = _MAX_CHUNK_ON_PIPE if num_left is None else num_left - 8 + 1
    return bool(min(sizes) <= limit)


def _is_unknown(size: int) -> bool:
    return size >= _ALL_ONES or size in _NEAR_2_GIB


def _interpret(fmt: bytes, order: str, num_bytes: int | None) -> WaveHeader:
    if len(fmt) < 14:
        raise DamagedHeaderError(f"its format takes {len(fmt)} bytes, too few")
    tag, num_channels, rate, per_second, block_size = struct.unpack_from(f"{order}HHIIH", fmt)
    bits = struct.unpack_from(f"{order}H", fmt, 14)[0] if len(fmt) >= 16 else 8
    if tag == _EXTENSIBLE and len(fmt) >= 26:
        (tag,) = struct.unpack_from(f"{order}H", fmt, 24)
    if num_channels == 0:
        raise DamagedHeaderError("it states no channels")
    if rate == 0:
        raise DamagedHeaderError("it states a sampling rate of 0 Hz")
    width = max(block_size // num_channels, (bits + 7) // 8)
    sample_format = _sample_format(tag, width, order)
    layout = None
    if sample_format is not None:
        layout = PcmLayout(sample_format, rate, num_channels, num_bytes)
    return WaveHeader(tag, layout, num_bytes, per_second)


def _sample_format(tag: int, width: int, order: str) -> str | None:
    end = "le" if order == "<" else "be"
    plain = {
        (1, 1): "u8",
        (1, 2): f"s16{end}",
        (1, 3): f"s24{end}",
        (1, 4): f"s32{end}",
        (3, 4): f"f32{end}",
        (3, 8): f"f64{end}",
        (6, 1): "alaw",
        (7, 1): "mulaw",
    }
    return plain.get((tag, width))


def _read_exactly(stream: ByteStream, num_bytes: int) -> bytes:
    data = stream.peek(num_bytes)
    stream.skip(len(data))
    return data
