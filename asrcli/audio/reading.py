"""Recordings as blocks of 16 kHz mono float32, whatever they are stored in.

The format is told from the content, never from the name. WAV and headerless PCM are read here, so
that sizes which lie can be doubted; libsndfile reads the other plain formats from files, and PyAV
what is compressed, all video, and every pipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from asrcli.audio import riff
from asrcli.audio.channels import Chunk, mix
from asrcli.audio.cleaning import clean
from asrcli.audio.containers import (
    ContainerDecoder,
    NoAudioStreamError,
    UndecodableAudioError,
    UnreadableContainerError,
)
from asrcli.audio.mp3 import read_length
from asrcli.audio.notes import Notes, clock
from asrcli.audio.pcm import SAMPLE_FORMATS, PcmDecoder, PcmLayout
from asrcli.audio.resampling import regroup, resample
from asrcli.audio.sniffing import describe, has_index_at_end, lacks_end_mark
from asrcli.audio.soundfiles import SoundfileDecoder, UnreadableFileError, is_plain
from asrcli.audio.sources import Source
from asrcli.audio.streams import ByteStream, open_stream
from asrcli.errors import AudioError, UsageError

SAMPLING_RATE = 16_000
BLOCK_SECONDS = 2.0

# Hz that can be meant and converted; beyond them a header is damaged.
_SAMPLING_RATES = range(100, 6_144_001)
_MAX_CHANNELS = 1024


@dataclass(frozen=True, slots=True)
class RawFormat:
    """Headerless PCM.

    Attributes:
        sample_format: u8, s8, or s16, s24, s32, f32, f64 with le or be, or mulaw, alaw.
        sampling_rate: in Hz.
        num_channels: samples of one instant, next to each other.

    Raises:
        UsageError: a value is unknown or out of range.
    """

    sample_format: str = "s16le"
    sampling_rate: int = SAMPLING_RATE
    num_channels: int = 1

    def __post_init__(self) -> None:
        if self.sample_format not in SAMPLE_FORMATS:
            raise UsageError(
                f"raw format {self.sample_format!r} is unknown",
                hint=f"one of: {', '.join(SAMPLE_FORMATS)}",
            )
        if self.sampling_rate not in _SAMPLING_RATES:
            raise UsageError(f"sampling rate {self.sampling_rate} Hz cannot be meant")
        if not 1 <= self.num_channels <= _MAX_CHANNELS:
            raise UsageError(f"{self.num_channels} channels cannot be meant")


class Decoder(Protocol):
    """What a format's reader gives: (sampling rate, float32 [num_samples, num_channels])."""

    @property
    def duration(self) -> float | None: ...

    def chunks(self) -> Iterator[Chunk]: ...

    def close(self) -> None: ...


class AudioReader:
    """One recording that is open. Use it as a context manager, or close it.

    Attributes:
        duration: seconds that the container states; None when unknown. For progress only.
        warnings: what to know about the audio, one line each, without the file's name; grows
            while blocks are read.
        damage: those of the warnings that mean that audio is lost.
    """

    def __init__(self, name: str, decoder: Decoder, notes: Notes) -> None:
        self._name = name
        self._decoder = decoder
        self._notes = notes
        self.duration = decoder.duration

    @property
    def warnings(self) -> list[str]:
        return self._notes.warnings

    @property
    def damage(self) -> list[str]:
        return self._notes.damage

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """Yield the audio once: float32 [num_samples] at 16 kHz, 2 s each but for the last.

        The file is closed at the end, or when the iterator is closed.

        Raises:
            AudioError: nothing can be decoded, or the header makes no sense.
        """
        try:
            clean_chunks = clean(self._checked_chunks(), self._notes)
            pieces = resample(mix(clean_chunks, self._notes), SAMPLING_RATE)
            yield from regroup(pieces, round(BLOCK_SECONDS * SAMPLING_RATE))
        except UndecodableAudioError as error:
            raise AudioError(f"{self._name}: {error}") from None
        finally:
            self.close()

    def close(self) -> None:
        """Release the file; standard input stays open."""
        self._decoder.close()

    def __enter__(self) -> AudioReader:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _checked_chunks(self) -> Iterator[Chunk]:
        position = 0.0
        try:
            for rate, samples in self._decoder.chunks():
                if rate not in _SAMPLING_RATES:
                    problem = f"damaged header: a sampling rate of {rate} Hz cannot be meant"
                    raise AudioError(f"{self._name}: {problem}")
                yield rate, samples
                position += len(samples) / rate
        except OSError as error:  # a fault of the disk or the network
            if position == 0:
                raise AudioError(f"{self._name}: {error.strerror or error}") from None
            self._notes.lose(f"reading stopped at {clock(position)}: {error.strerror or error}")


def open_audio(
    source: Source, *, raw: RawFormat | None = None, stdin: BinaryIO | None = None
) -> AudioReader:
    """Open a recording.

    Args:
        source: a file, a named pipe, or standard input.
        raw: how to read it where it has no header; the content is then not looked at.
        stdin: stands in for standard input.

    Raises:
        AudioError: missing, empty, without audio, or not audio or video that can be read. The
            message begins with the source's name.
    """
    stream = open_stream(source, stdin)
    notes = Notes()
    try:
        if raw is not None:
            decoder = _open_raw(source, stream, raw, notes)
        else:
            decoder = _open_by_content(source, stream, notes)
    except BaseException:
        stream.close()
        raise
    return AudioReader(source.name, decoder, notes)


def _open_raw(source: Source, stream: ByteStream, raw: RawFormat, notes: Notes) -> Decoder:
    _check_not_empty(source, stream)
    layout = PcmLayout(raw.sample_format, raw.sampling_rate, raw.num_channels)
    return PcmDecoder(stream, layout, notes)


def _check_not_empty(source: Source, stream: ByteStream) -> None:
    try:
        empty = not stream.peek(1)
    except OSError as error:
        raise AudioError(f"{source.name}: {error.strerror}") from None
    if empty:
        raise AudioError(f"{source.name}: empty {'file' if source.path else 'input'}")


def _open_by_content(source: Source, stream: ByteStream, notes: Notes) -> Decoder:
    _check_not_empty(source, stream)
    head = stream.peek(16)
    if riff.is_wave(head):
        return _open_wave(source, stream, notes)
    if is_plain(head):
        return _open_plain(source, stream, notes)
    return _open_container(source, stream, notes)


def _open_wave(source: Source, stream: ByteStream, notes: Notes) -> Decoder:
    stream.remember()
    try:
        header = riff.read_header(stream)
    except riff.DamagedHeaderError as error:
        complaint = f"{source.name}: damaged WAV header: {error}"
        return _open_elsewhere(stream, notes, complaint, stated=None)
    if header.layout is not None:
        stream.forget()
        return PcmDecoder(stream, header.layout, notes, riff.goes_on)
    stated = None
    if header.num_bytes and header.bytes_per_second:
        stated = header.num_bytes / header.bytes_per_second
    complaint = f"{source.name}: WAV codec tag 0x{header.tag:04x} is not known"
    return _open_elsewhere(stream, notes, complaint, stated=stated)


def _open_elsewhere(
    stream: ByteStream, notes: Notes, complaint: str, *, stated: float | None
) -> Decoder:
    """Let the libraries try a WAV file that is not plain; `complaint` is said if they fail."""
    stream.replay()
    try:
        return ContainerDecoder(stream, notes, stated=stated)
    except (UnreadableContainerError, NoAudioStreamError, UndecodableAudioError):
        if not stream.can_seek:
            raise AudioError(complaint) from None
    try:
        return SoundfileDecoder(stream, notes)
    except UnreadableFileError:
        raise AudioError(complaint) from None


def _open_plain(source: Source, stream: ByteStream, notes: Notes) -> Decoder:
    """Let libsndfile read what can seek; PyAV reads pipes, or knows better where that fails."""
    if stream.can_seek:
        try:
            return SoundfileDecoder(stream, notes)
        except UnreadableFileError:
            return _open_container(source, stream, notes)
    stream.remember()
    try:
        decoder = ContainerDecoder(stream, notes)
    except (UnreadableContainerError, NoAudioStreamError, UndecodableAudioError):
        # Some CAF files, for one, cannot be read without seeking.
        stream.replay()
        return _open_plain(source, stream.spool(), notes)
    stream.forget()
    return decoder


def _open_container(source: Source, stream: ByteStream, notes: Notes) -> Decoder:
    if not stream.can_seek and has_index_at_end(stream):
        stream = stream.spool()
    if lacks_end_mark(stream):
        notes.warn("the file has no end mark; it may have been cut short")
    description = describe(stream.peek(64))
    try:
        return _open_counted(stream, notes)
    except UnreadableContainerError as error:
        complaint = _not_readable(source, description, str(error))
    except NoAudioStreamError:
        complaint = AudioError(f"{source.name}: no audio stream")
    except UndecodableAudioError as error:
        complaint = AudioError(f"{source.name}: {error}")
    stream.close()
    raise complaint


def _open_counted(stream: ByteStream, notes: Notes) -> Decoder:
    """Open a container, with the length that an MP3's header frame counts."""
    length = read_length(stream)
    if length is None:
        return ContainerDecoder(stream, notes)
    # FFmpeg takes the padding off by itself where it can seek.
    padding = None if stream.can_seek else length.padding
    return ContainerDecoder(stream, notes, stated=length.duration, padding=padding)


def _not_readable(source: Source, description: str | None, reason: str) -> AudioError:
    hint = None
    if description is None:
        hint = "for PCM without a header: --raw s16le --sampling-rate 16000 --channels 1"
    line = f"{source.name}: not audio or video that can be read ({description or reason})"
    return AudioError(line, hint=hint)
