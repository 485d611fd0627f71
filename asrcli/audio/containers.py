"""Compressed audio and all video, through PyAV (FFmpeg's libraries).

Good audio stays at its true time: where packets are missing or cannot be decoded, silence stands
for them, and a note says where.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import Notes
from asrcli.audio.streams import ByteStream
from asrcli.audio.timeline import Timeline

# Formats that state a length, in their header or on their last page, rather than have it guessed
# from their size.
_STATED_LENGTH = frozenset(
    {"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "ogg", "flac", "asf", "avi"}
    | {"aiff", "au", "caf", "w64"}
)
# Formats that hold nothing but packets of audio.
_PACKETS_ONLY = frozenset({"aac"})
# Two statements of a length that are this close (s) are the same statement.
_AGREEING = 0.5
# Errors in a row from the container after which its rest is given up.
_MAX_FAULTS = 8

_FULL_SCALE = {"u1": 2.0**7, "i2": 2.0**15, "i4": 2.0**31, "i8": 2.0**63}


class UnreadableContainerError(Exception):
    """Why a file cannot be opened as audio or video."""


class NoAudioStreamError(Exception):
    """The file is audio or video, and has no audio stream."""


class UndecodableAudioError(Exception):
    """The codec is unknown, or none of the audio could be decoded."""


class ContainerDecoder:
    """Decodes the best audio stream of a file or pipe.

    Args:
        stream: at its start.
        stated: length (s) that the header states, where this is known better outside.
        padding: samples to leave out, counted from the first.

    Raises:
        UnreadableContainerError, NoAudioStreamError, UndecodableAudioError: see there.
    """

    def __init__(
        self,
        stream: ByteStream,
        notes: Notes,
        *,
        stated: float | None = None,
        padding: range | None = None,
    ) -> None:
        self._bytes = stream
        self._padding = padding or range(0)
        num_bytes = stream.num_left
        self._container = _open(stream)
        self._stream = self._pick_stream()
        name, start, length = _facts(self._container)
        self.duration: float | None = stated if length is None else length
        if stated is None or (self.duration and abs(self.duration - stated) < _AGREEING):
            # What FFmpeg makes of the header is finer: it leaves out the codec's padding.
            stated = self.duration if stated or name in _STATED_LENGTH else None
        self._stated = stated
        self._num_bytes = num_bytes if name in _PACKETS_ONLY else None
        self._timeline = Timeline(name, start, notes)

    def chunks(self) -> Iterator[Chunk]:
        """Yield (sampling rate, float32 [num_samples, num_channels]).

        Raises:
            UndecodableAudioError: before anything was yielded.
        """
        return _leave_out(self._padding, self._decoded())

    def close(self) -> None:
        self._container.close()
        self._bytes.close()

    def _decoded(self) -> Iterator[Chunk]:
        timeline = self._timeline
        for packet in self._packets():
            for frame in self._decode(packet):
                yield from timeline.silence_before(frame)
                yield frame.sample_rate, _samples(frame)
                timeline.passed(frame)
        if timeline.num_faults and timeline.position == 0:
            codec = self._stream.codec_context.name
            raise UndecodableAudioError(f"damaged: none of its {codec} audio can be decoded")
        timeline.finish(self._stated, self._num_bytes)

    def _pick_stream(self) -> Any:
        stream = self._container.streams.best("audio")
        if stream is None:
            self._container.close()
            raise NoAudioStreamError
        if stream.codec_context is None:
            self._container.close()
            raise UndecodableAudioError("its audio codec is not known")
        return stream

    def _packets(self) -> Iterator[Any]:
        """Yield the packets of the audio stream; show the others to the timeline."""
        import av

        num_faults = 0
        while num_faults < _MAX_FAULTS:
            try:
                for packet in self._container.demux():
                    num_faults = 0
                    if packet.stream_index == self._stream.index:
                        yield packet
                    else:
                        self._timeline.saw(packet)
                return
            except av.FFmpegError:
                num_faults += 1
                self._timeline.fault(None)

    def _decode(self, packet: Any) -> list[Any]:
        import av

        try:
            frames: list[Any] = packet.decode()
        except av.FFmpegError:
            self._timeline.fault(packet)
            return []
        self._timeline.decoded(packet)
        return frames


def _open(stream: ByteStream) -> Any:
    import av

    av.logging.set_level(None)
    try:
        # The content may name other files or addresses (playlists do); none of them is opened.
        return av.open(
            stream.view(), metadata_errors="replace", options={"protocol_whitelist": "none"}
        )
    except av.InvalidDataError:
        raise UnreadableContainerError("no format that is known") from None
    except av.EOFError:
        raise UnreadableContainerError("it is damaged or cut short") from None
    except (av.FFmpegError, ValueError) as error:
        raise UnreadableContainerError(getattr(error, "strerror", None) or str(error)) from None


def _facts(container: Any) -> tuple[str, float | None, float | None]:
    """Give the format's name, where its clock begins and how long it is (s)."""
    start, length = container.start_time, container.duration
    return (
        container.format.name,
        None if start is None else start / 1_000_000,
        None if length is None else length / 1_000_000,
    )


def _leave_out(unwanted: range, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    start = 0
    for rate, samples in chunks:
        begin, end = max(unwanted.start - start, 0), max(unwanted.stop - start, 0)
        start += len(samples)
        if unwanted and begin < len(samples):
            samples = np.concatenate([samples[:begin], samples[end:]])
        yield rate, samples


def _samples(frame: Any) -> NDArray[np.float32]:
    """Give a frame's samples as float32 [num_samples, num_channels], full scale at 1.0."""
    stored = frame.to_ndarray()
    stored = stored.T if frame.format.is_planar else stored.reshape(-1, frame.layout.nb_channels)
    kind = stored.dtype.str[1:]
    with np.errstate(over="ignore", invalid="ignore"):
        samples: NDArray[np.float32] = stored.astype(np.float32)
    if kind == "u1":
        samples -= 128
    if kind in _FULL_SCALE:
        samples *= np.float32(1.0 / _FULL_SCALE[kind])
    return samples
