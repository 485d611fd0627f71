"""Containers with several streams, each with a beginning, a language and a title of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

CONTAINER_RATE = 48_000
_FRAMES_PER_SECOND = 5


@dataclass(frozen=True)
class Track:
    """Mono audio; `start` is the time (s) of its first sample on the container's clock.

    A start below zero hides what lies before zero behind an edit list, where there are such.
    """

    samples: NDArray[np.float64]
    start: float = 0.0
    language: str | None = None
    title: str | None = None
    is_default: bool = False
    codec: str = "aac"


def write_media(
    path: Path,
    tracks: Sequence[Track],
    *,
    format_name: str | None = None,
    picture_start: float | None = None,
    picture_codec: str = "mpeg4",
    picture_duration: float = 3.0,
    rate: int = CONTAINER_RATE,
    options: dict[str, str] | None = None,
) -> Path:
    """Write `tracks` through PyAV, beside black frames where `picture_start` is given."""
    import av

    with av.open(str(path), "w", format=format_name, options=options or {}) as container:
        picture: Any = None
        if picture_start is not None:
            picture = container.add_stream(picture_codec, rate=_FRAMES_PER_SECOND)
            picture.width = picture.height = 64
            picture.pix_fmt = "yuv420p"
        streams = [_add_stream(container, track, rate) for track in tracks]
        packets: list[Any] = []
        if picture is not None:
            num_frames = round(_FRAMES_PER_SECOND * picture_duration)
            packets += _moved(_encode_black(picture, num_frames), picture_start or 0.0)
        for stream, track in zip(streams, tracks, strict=True):
            packets += _moved(_encode_audio(stream, track.samples, rate), track.start)
        packets.sort(key=lambda packet: float(packet.dts * packet.time_base))
        container.mux(packets)
    return path


def _add_stream(container: Any, track: Track, rate: int) -> Any:
    import av.stream

    stream = container.add_stream(track.codec, rate=rate, layout="mono")
    stream.bit_rate = 64_000
    if track.language is not None:
        stream.metadata["language"] = track.language
    if track.title is not None:
        stream.metadata["title"] = track.title
        stream.metadata["handler_name"] = track.title  # where MP4 has its titles
    disposition = av.stream.Disposition
    stream.disposition = disposition.default if track.is_default else disposition(0)
    return stream


def _encode_black(stream: Any, num_frames: int) -> Iterator[Any]:
    import av

    for index in range(num_frames):
        image = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        image.pts = index
        yield from stream.encode(image)
    yield from stream.encode(None)


def _encode_audio(stream: Any, samples: NDArray[np.float64], rate: int) -> Iterator[Any]:
    import av

    codec = stream.codec_context
    if not codec.is_open:
        codec.open()
    resampler = av.AudioResampler(codec.format.name, "mono", rate, frame_size=codec.frame_size or 0)
    for begin in range(0, len(samples), 1024):
        piece = samples[begin : begin + 1024].astype(np.float32)[None, :]
        frame = av.AudioFrame.from_ndarray(piece, format="fltp", layout="mono")
        frame.sample_rate = rate
        frame.pts = begin
        for converted in resampler.resample(frame):
            yield from stream.encode(converted)
    for converted in resampler.resample(None):
        yield from stream.encode(converted)
    yield from stream.encode(None)


def _moved(packets: Iterator[Any], seconds: float) -> Iterator[Any]:
    for packet in packets:
        offset = round(seconds / float(packet.time_base))
        packet.pts += offset
        packet.dts += offset
        yield packet
