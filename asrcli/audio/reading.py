"""Recordings as blocks of 16 kHz mono float32, whatever they are stored in.

One rule for what is short: an input of 0 bytes is an error ("empty file"). Whatever has a valid
header is a recording, and all its samples are given out to the last one, be there none at all. One
of less than MIN_DURATION gets a warning that says so; that is no error and no damage. Only where a
header alone cannot be told from a file that was cut short (Matroska, Opus) is it an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.channels import Chunk, gather, mix
from asrcli.audio.cleaning import clean
from asrcli.audio.notes import Notes, clock
from asrcli.audio.opening import Decoder, open_decoder
from asrcli.audio.pcm import SAMPLE_FORMATS, PcmLayout
from asrcli.audio.resampling import regroup, resample
from asrcli.audio.sources import Source
from asrcli.audio.streams import open_stream
from asrcli.audio.tracks import UndecodableAudioError
from asrcli.errors import AudioError, UsageError

SAMPLING_RATE = 16_000
BLOCK_SECONDS = 2.0
MIN_DURATION = 0.1  # s; a recording shorter than this holds no word

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
            clean_chunks = clean(gather(self._checked_chunks()), self._notes)
            pieces = resample(mix(clean_chunks, self._notes), SAMPLING_RATE)
            num_samples = 0
            for block in regroup(pieces, round(BLOCK_SECONDS * SAMPLING_RATE)):
                num_samples += len(block)
                yield block
            self._check_length(num_samples / SAMPLING_RATE)
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

    def _check_length(self, duration: float) -> None:
        if duration == 0:
            self._notes.warn("holds no audio")
        elif duration < MIN_DURATION:
            length = f"{int(duration * 1000) / 1000:.3f}"  # never rounded up to what is enough
            self._notes.warn(f"too short to hold a word: {length} s of audio")

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
    source: Source,
    *,
    raw: RawFormat | None = None,
    stdin: BinaryIO | None = None,
    track: int | None = None,
) -> AudioReader:
    """Open a recording.

    Args:
        source: a file, a named pipe, or standard input.
        raw: how to read it where it has no header; the content is then not looked at.
        stdin: stands in for standard input.
        track: which of the file's audio tracks, counted from 1; None takes the best, and where
            there are several, a warning names it.

    Raises:
        UsageError: no track can have this number.
        AudioError: missing, empty, without audio or the track, or not audio or video that can be
            read. The message begins with the source's name.
    """
    if track is not None and track < 1:
        raise UsageError(f"audio track {track} cannot be meant", hint="tracks are counted from 1")
    layout = None
    if raw is not None:
        layout = PcmLayout(raw.sample_format, raw.sampling_rate, raw.num_channels)
    stream = open_stream(source, stdin)
    notes = Notes()
    try:
        decoder = open_decoder(source, stream, layout, track, notes)
    except BaseException:
        stream.close()
        raise
    return AudioReader(source.name, decoder, notes)
