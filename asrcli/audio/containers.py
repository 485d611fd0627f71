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
from asrcli.audio.tracks import UndecodableAudioError, pick_track

# Formats that state a length, in their header or on their last page, rather than have it guessed
# from their size.
_STATED_LENGTH = frozenset(
    {"mov,mp4,m4a,3gp,3g2,mj2", "matroska,webm", "ogg", "flac", "asf", "avi"}
    | {"aiff", "au", "caf", "w64"}
)
# Formats whose length is the time of their end, by a clock that need not begin at 0.
_LENGTH_FROM_ZERO = frozenset({"matroska,webm", "ogg", "asf"})
# Formats that state the length of every packet, so that the last one's tells where audio ends.
_EXACT_PACKETS = frozenset({"mov,mp4,m4a,3gp,3g2,mj2"})
# Formats that hold nothing but packets of audio.
_PACKETS_ONLY = frozenset({"aac"})
# Two statements of a length that are this close (s) are the same statement.
_AGREEING = 0.5
# MP4 states its length to within this (s).
_ROUNDED_BY = 0.002
# Errors in a row from the container after which its rest is given up.
_MAX_FAULTS = 8

# Planes that an FFmpeg frame holds pointers to in itself; for more it has a list elsewhere.
_MAX_POINTERS = 8
# FFmpeg's name for a format of samples: (numpy type, value of full scale)
_STORED = {
    "u8": ("u1", 2.0**7),
    "s16": ("i2", 2.0**15),
    "s32": ("i4", 2.0**31),
    "s64": ("i8", 2.0**63),
    "flt": ("f4", 1.0),
    "dbl": ("f8", 1.0),
}


class UnreadableContainerError(Exception):
    """Why a file cannot be opened as audio or video."""


class ContainerDecoder:
    """Decodes one audio track of a file or pipe.

    Args:
        stream: at its start.
        stated: length (s) that the header states, where this is known better outside.
        padding: samples to leave out, counted from the first.
        track: which audio track, counted from 1; None takes the best.

    Raises:
        UnreadableContainerError: see there.
        NoAudioStreamError, NoSuchTrackError, UndecodableAudioError: see there.
    """

    def __init__(
        self,
        stream: ByteStream,
        notes: Notes,
        *,
        stated: float | None = None,
        padding: range | None = None,
        track: int | None = None,
    ) -> None:
        self._bytes = stream
        self._padding = padding or range(0)
        num_bytes = stream.num_left
        self._container = _open(stream)
        try:
            self._stream = pick_track(self._container, track, notes)
        except BaseException:
            self._container.close()
            raise
        name, start, length = _facts(self._container)
        self.duration: float | None = stated if length is None else length
        if stated is None or (self.duration and abs(self.duration - stated) < _AGREEING):
            # What FFmpeg makes of the header is finer: it leaves out the codec's padding.
            stated = self.duration if stated or name in _STATED_LENGTH else None
        self._num_bytes = num_bytes if name in _PACKETS_ONLY else None
        self._timeline = Timeline(name, start, stated, notes)
        self._last_pts = _last_pts(self._stream) if name in _EXACT_PACKETS else None

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
        try:
            for packet in self._packets():
                for frame in self._decode(packet):
                    yield from timeline.silence_before(frame)
                    samples = _samples(frame)[: self._num_meant(frame, packet)]
                    yield frame.sample_rate, samples
                    timeline.passed(len(samples) / frame.sample_rate)
        except GeneratorExit:
            timeline.leave()
            raise
        if timeline.num_faults and timeline.position == 0:
            codec = self._stream.codec_context.name
            raise UndecodableAudioError(f"damaged: none of its {codec} audio can be decoded")
        timeline.finish(self._num_bytes)

    def _num_meant(self, frame: Any, packet: Any) -> int:
        """How many of a frame's samples are audio: MP4 says so of the last one by its packet."""
        if self._last_pts is None or packet.pts is None or not packet.duration:
            return int(frame.samples)
        if packet.pts + packet.duration < self._last_pts:
            return int(frame.samples)
        num_meant = round(float(packet.duration * packet.time_base) * frame.sample_rate)
        return int(min(frame.samples, num_meant))

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
            frames = [_packed(frame) for frame in packet.decode()]
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
    """Give the format's name, where its clock begins and how long it is (s).

    The clock begins with the first of the streams: what is common to all of them delays nothing.
    """
    name = container.format.name
    start = None if container.start_time is None else container.start_time / 1_000_000
    length = None if container.duration is None else container.duration / 1_000_000
    if name in _LENGTH_FROM_ZERO and start and length and 0 < start < length:
        length -= start
    return name, start, length


def _last_pts(stream: Any) -> int | None:
    """Give where the stream ends, in its own time base; None where its header does not say."""
    if stream.start_time is None or not stream.duration:
        return None
    # Edit lists round to milliseconds, and coarser.
    return int(stream.start_time + stream.duration - _ROUNDED_BY / stream.time_base)


def _leave_out(unwanted: range, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
    start = 0
    for rate, samples in chunks:
        begin, end = max(unwanted.start - start, 0), max(unwanted.stop - start, 0)
        start += len(samples)
        if unwanted and begin < len(samples):
            samples = np.concatenate([samples[:begin], samples[end:]])
        yield rate, samples


def _packed(frame: Any) -> Any:
    """Bring the channels of a frame that has many of them into one plane.

    PyAV takes what lies behind the pointers to eight and more planes for further ones, and dies of
    it when it reads them all, as its own conversion to an array does.
    """
    import av

    if not frame.format.is_planar or frame.layout.nb_channels <= _MAX_POINTERS:
        return frame
    (packed,) = av.AudioResampler(frame.format.packed.name).resample(frame)
    return packed


def _samples(frame: Any) -> NDArray[np.float32]:
    """Give a frame's samples as float32 [num_samples, num_channels], full scale at 1.0."""
    dtype, full_scale = _STORED[frame.format.packed.name]
    num_samples, num_channels = frame.samples, frame.layout.nb_channels
    if frame.format.is_planar:
        planes = frame.planes[:num_channels]  # there may be more of them: see `_packed`
        of_channels = [np.frombuffer(plane, dtype, num_samples) for plane in planes]
        stored = of_channels[0][:, None] if num_channels == 1 else np.stack(of_channels, axis=1)
    else:
        stored = np.frombuffer(frame.planes[0], dtype, num_samples * num_channels)
        stored = stored.reshape(num_samples, num_channels)
    with np.errstate(over="ignore", invalid="ignore"):
        samples: NDArray[np.float32] = stored.astype(np.float32)
    if dtype == "u1":
        samples -= 128
    if full_scale != 1.0:
        samples *= np.float32(1.0 / full_scale)
    return samples
