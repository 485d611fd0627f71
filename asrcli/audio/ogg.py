"""How an Ogg file ends (RFC 3533): no header states its length, so only its end tells a loss.

A file that ends in the middle of a page, or of a packet, has lost audio. One whose last page is
whole but does not call itself the last may have, or it comes from a recorder that was switched off.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO, cast

from asrcli.audio.notes import clock
from asrcli.audio.streams import ByteStream

if TYPE_CHECKING:
    from asrcli.audio.channels import Chunk
    from asrcli.audio.notes import Notes
    from asrcli.audio.opening import Decoder

MAGIC = b"OggS"
MAX_PAGE = 27 + 255 + 255 * 255  # bytes: header, segment table, segments

_HEADER = 27
_VERSION, _FLAGS, _NUM_SEGMENTS = 4, 5, 26  # where they stand in the header
_LAST = 4  # flag of the page that ends a stream
_GOES_ON = 255  # a segment of this length is followed by more of its packet


class OggEnding:
    """Keeps the end of an Ogg file in view while others read it, and tells what it says.

    Args:
        stream: at its start.

    Attributes:
        stream: what is to be read in its place.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._pipe = None if stream.can_seek else _TailKeeper(stream)
        self.stream = stream
        if self._pipe is not None:
            self.stream = ByteStream(cast(BinaryIO, self._pipe), owned=True)

    def tell(self, position: float, notes: Notes) -> None:
        """Say what is missing, if anything is, once all was read: `position` seconds of audio."""
        if self._pipe is None:
            tail = self.stream.tail(2 * MAX_PAGE)
        elif self._pipe.is_at_end:
            tail = bytes(self._pipe.tail)
        else:
            return  # it was given up half way, and that has been told
        if is_cut(tail):
            notes.lose(f"the file ends at {clock(position)}, in the middle of its data")
        elif not has_end_mark(tail):
            notes.warn("the file has no end mark; it may have been cut short")


class OggDecoder:
    """Reads an Ogg file through another decoder, up to its end and with an eye on it."""

    def __init__(self, decoder: Decoder, ending: OggEnding, notes: Notes) -> None:
        self._decoder = decoder
        self._ending = ending
        self._notes = notes

    @property
    def duration(self) -> float | None:
        return self._decoder.duration

    def chunks(self) -> Iterator[Chunk]:
        """Yield (sampling rate, float32 [num_samples, num_channels])."""
        position = 0.0
        for rate, samples in self._decoder.chunks():
            yield rate, samples
            position += len(samples) / rate
        self._ending.tell(position, self._notes)

    def close(self) -> None:
        self._decoder.close()


def is_cut(tail: bytes) -> bool:
    """Whether a file with this end stops in the middle of a page or of a packet."""
    start, size = _last_page(tail)
    page, rest = tail[start : start + size], tail[start + size :]
    if len(page) < size:
        return True
    if rest and MAGIC.startswith(rest):
        return True  # the next page has its first bytes
    table = page[_HEADER : _HEADER + page[_NUM_SEGMENTS]] if page else b""
    return table.endswith(bytes([_GOES_ON]))


def has_end_mark(tail: bytes) -> bool:
    """Whether the last page says that it is the last."""
    start, _ = _last_page(tail)
    flags = tail[start + _FLAGS : start + _FLAGS + 1]
    return bool(flags and flags[0] & _LAST)


def _last_page(tail: bytes) -> tuple[int, int]:
    """Where the last page begins, and how many bytes it says it has; (end, 0) if there is none.

    Of a header that is not whole, what is there counts, and what is sure to follow.
    """
    start = tail.rfind(MAGIC)
    while start >= 0 and tail[start + _VERSION : start + _VERSION + 1].strip(b"\0"):
        start = tail.rfind(MAGIC, 0, start)  # these were letters in the audio
    if start < 0:
        return len(tail), 0
    if start + _HEADER > len(tail):
        return start, _HEADER
    size = _HEADER + tail[start + _NUM_SEGMENTS]
    return start, size + sum(tail[start + _HEADER : start + size])


class _TailKeeper:
    """A pipe that remembers the last bytes that came out of it.

    Attributes:
        tail: as many as the longest page has, or more.
        is_at_end: whether all was read.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self.tail = bytearray()
        self.is_at_end = False

    def read(self, num_bytes: int = 65536) -> bytes:
        data = self._stream.read(num_bytes)
        self.is_at_end = not data
        self.tail += data
        if len(self.tail) > 4 * MAX_PAGE:
            del self.tail[: -2 * MAX_PAGE]
        return data

    def seekable(self) -> bool:
        return False

    def close(self) -> None:
        self._stream.close()
