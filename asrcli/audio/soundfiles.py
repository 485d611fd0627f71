"""Files through libsndfile: AIFF, AU, CAF, W64, SPHERE and other plain recordings.

Measured against PyAV on damaged and on piped files, it is not used for what is compressed. It gives
half of an MP3 with a bad frame, and an Ogg file less its lost pages, without a word; it refuses a
FLAC file for one bad frame, reads the first of chained Ogg streams only, cannot read from a pipe,
and its MP3 decoder writes to standard error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import soundfile

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import Notes
from asrcli.audio.streams import ByteStream

_MAGICS = (b"FORM", b".snd", b"dns.", b"caff", b"riff", b"NIST_1A", b"Creative Voice File")
_READ_SECONDS = 2.0
# libsndfile's report on a header whose size is not that of the file: "data : 704 (should be 42)".
_SIZES = re.compile(r": (\d+) \(should be (\d+)\)")
_SPHERE_COUNT = re.compile(rb"^sample_count -i (\d+)", re.MULTILINE)
# Sizes from here on mean "not known".
_UNKNOWN_SIZE = 0x7FFF0000


class UnreadableFileError(Exception):
    """libsndfile's reason for not reading a file."""


def is_plain(head: bytes) -> bool:
    """Whether a file that begins so is best read by libsndfile."""
    return head.startswith(_MAGICS)


class SoundfileDecoder:
    """Reads a file that can seek.

    Raises:
        UnreadableFileError: libsndfile does not know the format, or the header is damaged.
    """

    def __init__(self, stream: ByteStream, notes: Notes) -> None:
        self._stream = stream
        self._notes = notes
        self._head = stream.peek(1024)
        try:
            self._file = soundfile.SoundFile(stream.view())
        except (soundfile.SoundFileError, TypeError, ValueError) as error:
            raise UnreadableFileError(str(error)) from None
        self.duration = self._file.frames / self._file.samplerate

    def chunks(self) -> Iterator[Chunk]:
        """Yield (sampling rate, float32 [num_samples, num_channels])."""
        rate = self._file.samplerate
        num_read = 0
        size = max(1, round(_READ_SECONDS * rate))
        while len(samples := self._file.read(size, dtype="float32", always_2d=True)):
            num_read += len(samples)
            yield rate, samples
        stated = max(self._file.frames, self._stated_frames())
        if stated - num_read >= 0.01 * rate:
            self._notes.ends_early(num_read / rate, stated / rate)

    def close(self) -> None:
        self._file.close()
        self._stream.close()

    def _stated_frames(self) -> int:
        """Give the length that the header states, near enough to say how much is missing."""
        if count := _SPHERE_COUNT.search(self._head):
            return int(count[1])
        sizes = [
            (int(stated), int(present)) for stated, present in _SIZES.findall(self._file.extra_info)
        ]
        ratios = [
            stated / present for stated, present in sizes if present > 0 and stated < _UNKNOWN_SIZE
        ]
        return int(self._file.frames * max(ratios, default=1.0))
