"""From a source's first bytes to the decoder that reads it.

The format is told from the content, never from the name. WAV and headerless PCM are read here, so
that sizes which lie can be doubted; libsndfile reads the other plain formats from files, and PyAV
what is compressed, all video, and every pipe.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from asrcli.audio import ogg, riff
from asrcli.audio.channels import Chunk
from asrcli.audio.containers import ContainerDecoder, UnreadableContainerError
from asrcli.audio.mp3 import read_length
from asrcli.audio.notes import Notes
from asrcli.audio.pcm import PcmDecoder, PcmLayout
from asrcli.audio.sniffing import describe, has_index_at_end
from asrcli.audio.soundfiles import SoundfileDecoder, UnreadableFileError, is_plain
from asrcli.audio.sources import Source
from asrcli.audio.streams import ByteStream
from asrcli.audio.tracks import (
    NoAudioStreamError,
    NoSuchTrackError,
    UndecodableAudioError,
    check_only_track,
)
from asrcli.errors import AudioError


class Decoder(Protocol):
    """What a format's reader gives: (sampling rate, float32 [num_samples, num_channels])."""

    @property
    def duration(self) -> float | None: ...

    def chunks(self) -> Iterator[Chunk]: ...

    def close(self) -> None: ...


def open_decoder(
    source: Source, stream: ByteStream, layout: PcmLayout | None, track: int | None, notes: Notes
) -> Decoder:
    """Find out what `stream`, at its start, holds, and who decodes it.

    Args:
        layout: how samples without a header lie; None where there is one.
        track: which audio track, counted from 1; None takes the best.

    Raises:
        AudioError: empty, without audio or the track, or nothing that can be read.
    """
    try:
        _check_not_empty(source, stream)
        if layout is not None:
            check_only_track(track)
            return PcmDecoder(stream, layout, notes)
        opener = _Opener(source, stream, track, notes)
        try:
            return opener.open()
        except BaseException:
            opener.close()
            raise
    except NoSuchTrackError as error:
        raise AudioError(f"{source.name}: {error}", hint=error.hint) from None
    except OSError as error:  # a fault of the disk or the network
        raise AudioError(f"{source.name}: {error.strerror or error}") from None


def _check_not_empty(source: Source, stream: ByteStream) -> None:
    if not stream.peek(1):
        raise AudioError(f"{source.name}: empty {'file' if source.path else 'input'}")


class _Opener:
    """Tries one way of reading after the other."""

    def __init__(self, source: Source, stream: ByteStream, track: int | None, notes: Notes) -> None:
        self._source = source
        self._stream = stream
        self._track = track
        self._notes = notes

    def open(self) -> Decoder:
        head = self._stream.peek(16)
        if riff.is_wave(head):
            return self._open_wave()
        if is_plain(head):
            return self._open_plain()
        return self._open_container()

    def close(self) -> None:
        """Release what was opened, where nothing comes of it."""
        self._stream.close()

    def _open_wave(self) -> Decoder:
        self._stream.remember()
        try:
            header = riff.read_header(self._stream)
        except riff.DamagedHeaderError as error:
            return self._open_odd_wave(f"damaged WAV header: {error}", stated=None)
        if header.layout is not None:
            self._stream.forget()
            check_only_track(self._track)
            return PcmDecoder(self._stream, header.layout, self._notes, riff.goes_on)
        stated = None
        if header.num_bytes and header.bytes_per_second:
            stated = header.num_bytes / header.bytes_per_second
        return self._open_odd_wave(f"WAV codec tag 0x{header.tag:04x} is not known", stated=stated)

    def _open_odd_wave(self, complaint: str, *, stated: float | None) -> Decoder:
        """Let the libraries try a WAV file that is not plain; `complaint` is said if they fail."""
        self._stream.replay()
        try:
            return self._container(stated=stated)
        except (UnreadableContainerError, NoAudioStreamError, UndecodableAudioError):
            if not self._stream.can_seek:
                raise AudioError(f"{self._source.name}: {complaint}") from None
        try:
            return self._soundfile()
        except UnreadableFileError:
            raise AudioError(f"{self._source.name}: {complaint}") from None

    def _open_plain(self) -> Decoder:
        """Let libsndfile read what can seek; PyAV reads pipes, or knows better where that fails."""
        if self._stream.can_seek:
            try:
                return self._soundfile()
            except UnreadableFileError:
                return self._open_container()
        self._stream.remember()
        try:
            decoder = self._container()
        except (UnreadableContainerError, NoAudioStreamError, UndecodableAudioError):
            # Some CAF files, for one, cannot be read without seeking.
            self._stream.replay()
            self._stream = self._stream.spool()
            return self._open_plain()
        self._stream.forget()
        return decoder

    def _open_container(self) -> Decoder:
        if not self._stream.can_seek and has_index_at_end(self._stream):
            self._stream = self._stream.spool()
        description = describe(self._stream.peek(64))
        try:
            if self._stream.peek(len(ogg.MAGIC)) == ogg.MAGIC:
                return self._open_ogg()
            return self._open_counted()
        except UnreadableContainerError as error:
            complaint = _not_readable(self._source, description, str(error))
        except NoAudioStreamError:
            complaint = AudioError(f"{self._source.name}: no audio stream")
        except UndecodableAudioError as error:
            complaint = AudioError(f"{self._source.name}: {error}")
        raise complaint

    def _open_ogg(self) -> Decoder:
        ending = ogg.OggEnding(self._stream)
        self._stream = ending.stream
        return ogg.OggDecoder(self._container(), ending, self._notes)

    def _open_counted(self) -> Decoder:
        """Open a container, with the length that an MP3's header frame counts."""
        length = read_length(self._stream)
        if length is None:
            return self._container()
        # FFmpeg takes the padding off by itself where it can seek.
        padding = None if self._stream.can_seek else length.padding
        return self._container(stated=length.duration, padding=padding)

    def _container(
        self, *, stated: float | None = None, padding: range | None = None
    ) -> ContainerDecoder:
        return ContainerDecoder(
            self._stream, self._notes, stated=stated, padding=padding, track=self._track
        )

    def _soundfile(self) -> SoundfileDecoder:
        decoder = SoundfileDecoder(self._stream, self._notes)
        check_only_track(self._track)
        return decoder


def _not_readable(source: Source, description: str | None, reason: str) -> AudioError:
    hint = None
    if description is None:
        hint = "for PCM without a header: --raw s16le --sampling-rate 16000 --channels 1"
    line = f"{source.name}: not audio or video that can be read ({description or reason})"
    return AudioError(line, hint=hint)
