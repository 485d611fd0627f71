"""Small recordings of many kinds, made on the spot."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.reading import AudioReader, RawFormat, open_audio
from asrcli.audio.sources import Source

RATE = 16_000


def tone(seconds: float, *, rate: int = RATE, frequency: float = 440.0) -> NDArray[np.float64]:
    """A sine of amplitude 0.5, float64 [num_samples]."""
    times = np.arange(round(seconds * rate)) / rate
    return 0.5 * np.sin(2 * np.pi * frequency * times)


def noise(seconds: float, *, rate: int = RATE, seed: int = 0) -> NDArray[np.float64]:
    """White noise at -20 dB, which no two stretches of are alike."""
    return 0.1 * np.random.default_rng(seed).standard_normal(round(seconds * rate))


def pcm16(samples: NDArray[np.float64]) -> bytes:
    return np.round(samples * 32767).astype("<i2").tobytes()


def wav(
    data: bytes,
    *,
    tag: int = 1,
    num_channels: int = 1,
    rate: int = RATE,
    bits: int = 16,
    stated: int | None = None,
    riff_size: int | None = None,
    before: bytes = b"",
    after: bytes = b"",
) -> bytes:
    """A WAV file whose sizes can be made to lie."""
    block = num_channels * bits // 8
    fmt = struct.pack("<HHIIHH", tag, num_channels, rate, rate * block, block, bits)
    size = len(data) if stated is None else stated
    body = b"WAVEfmt " + struct.pack("<I", len(fmt)) + fmt + before
    body += b"data" + struct.pack("<I", size) + data + after
    return b"RIFF" + struct.pack("<I", len(body) if riff_size is None else riff_size) + body


def chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body


def encode(
    path: Path,
    samples: NDArray[np.float64],
    *,
    codec: str,
    rate: int = RATE,
    format_name: str | None = None,
    start: float = 0.0,
    video: bool = False,
    options: dict[str, str] | None = None,
) -> Path:
    """Write mono `samples` through PyAV, `start` seconds late, with a black picture if wanted."""
    import av

    with av.open(str(path), "w", format=format_name, options=options or {}) as container:
        picture: Any = container.add_stream("mpeg4", rate=5) if video else None
        if picture is not None:
            picture.width = picture.height = 64
            picture.pix_fmt = "yuv420p"
        stream: Any = container.add_stream(codec, rate=rate, layout="mono")
        if picture is not None:
            for index in range(round(5 * (start + len(samples) / rate))):
                image = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
                image.pts = index
                container.mux(picture.encode(image))
            container.mux(picture.encode(None))
        stream.bit_rate = 64_000
        if not stream.codec_context.is_open:
            stream.codec_context.open()
        resampler = av.AudioResampler(
            stream.codec_context.format.name,
            "mono",
            rate,
            frame_size=stream.codec_context.frame_size or 0,
        )
        if not len(samples):
            container.start_encoding()
        for begin in range(0, len(samples), 1024):
            piece = samples[begin : begin + 1024].astype(np.float32)[None, :]
            frame = av.AudioFrame.from_ndarray(piece, format="fltp", layout="mono")
            frame.sample_rate = rate
            frame.pts = begin + round(start * rate)
            for converted in resampler.resample(frame):
                container.mux(stream.encode(converted))
        for converted in resampler.resample(None):
            container.mux(stream.encode(converted))
        container.mux(stream.encode(None))
    return path


class Pipe(io.RawIOBase):
    """Bytes that come a few at a time, and cannot be sought."""

    def __init__(self, data: bytes, step: int = 1000) -> None:
        self.data = data
        self.step = step
        self.num_read = 0

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        size = self.step if size < 0 else min(size, self.step)
        piece = self.data[self.num_read : self.num_read + size]
        self.num_read += len(piece)
        return piece


def source_of(path: Path) -> Source:
    return Source(path.name, path, Path(path.name))


STDIN = Source("stdin", None, Path("stdin"))


def open_pipe(
    data: bytes, *, raw: RawFormat | None = None, step: int = 1000, track: int | None = None
) -> AudioReader:
    return open_audio(STDIN, raw=raw, stdin=cast(BinaryIO, Pipe(data, step)), track=track)


def read(reader: AudioReader) -> NDArray[np.float32]:
    """All samples of a recording; checks what every block must be."""
    blocks = []
    with reader:
        for block in reader.blocks():
            assert block.dtype == np.float32 and block.ndim == 1
            assert block.flags.c_contiguous and len(block)
            blocks.append(block)
    return np.concatenate(blocks) if blocks else np.zeros(0, np.float32)


def read_file(path: Path, data: bytes | None = None, *, raw: RawFormat | None = None) -> Any:
    """(samples, reader) of the file, written first where `data` is given."""
    if data is not None:
        path.write_bytes(data)
    reader = open_audio(source_of(path), raw=raw)
    return read(reader), reader
