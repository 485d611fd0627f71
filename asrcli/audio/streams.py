"""Bytes of a file or of a pipe, with a look ahead that eats nothing."""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from typing import BinaryIO, cast

from asrcli.audio.sources import Source
from asrcli.errors import AudioError

_SPOOL_CHUNK = 1 << 20


class ByteStream:
    """Reads forward from a file or a pipe; a pipe gives its bytes as soon as they are there.

    Args:
        file: where the bytes come from.
        owned: whether `close` closes it (standard input is not ours to close).
    """

    def __init__(self, file: BinaryIO, *, owned: bool) -> None:
        self._file = file
        self._owned = owned
        self._head = b""
        self._kept: bytearray | None = None  # what a pipe gave since `remember`
        self._mark = 0  # where `remember` was called in what can seek
        self.can_seek = _can_seek(file)

    @property
    def num_left(self) -> int | None:
        """Bytes from here to the end; None for a pipe."""
        if not self.can_seek:
            return None
        here = self._file.tell()
        end = self._file.seek(0, io.SEEK_END)
        self._file.seek(here)
        return max(0, end - here) + len(self._head)

    def peek(self, num_bytes: int) -> bytes:
        """Give the next `num_bytes`, fewer only at the end, and leave them to be read."""
        while len(self._head) < num_bytes:
            more = self._take(num_bytes - len(self._head))
            if not more:
                break
            self._head += more
        return self._head[:num_bytes]

    def read(self, num_bytes: int = 65536) -> bytes:
        """Give what is at hand, at most `num_bytes`; waits for at least one; b"" is the end."""
        if self._head:
            data, self._head = self._head[:num_bytes], self._head[num_bytes:]
        else:
            data = self._take(num_bytes)
        if self._kept is not None:
            self._kept += data
        return data

    def tail(self, num_bytes: int) -> bytes:
        """Give the last `num_bytes` of what can seek; b"" for a pipe."""
        if not self.can_seek:
            return b""
        here = self._file.tell()
        size = self._file.seek(0, io.SEEK_END)
        self._file.seek(max(0, size - num_bytes))
        data = self._file.read(num_bytes)
        self._file.seek(here)
        return data

    def skip(self, num_bytes: int) -> None:
        """Pass over `num_bytes`, or to the end."""
        if self.can_seek and num_bytes > len(self._head):
            self._file.seek(num_bytes - len(self._head), io.SEEK_CUR)
            self._head = b""
            return
        while num_bytes > 0:
            data = self.read(min(num_bytes, 1 << 16))
            if not data:
                return
            num_bytes -= len(data)

    def remember(self) -> None:
        """Keep what is read from here on, until `replay` or `forget`."""
        if self.can_seek:
            self._mark = self._file.tell() - len(self._head)
        else:
            self._kept = bytearray()

    def replay(self) -> None:
        """Go back to where `remember` was called."""
        if self.can_seek:
            self._file.seek(self._mark)
            self._head = b""
        else:
            self._head = bytes(self._kept or b"") + self._head
            self._kept = None

    def forget(self) -> None:
        """Keep no more."""
        self._kept = None

    def view(self) -> ForwardView | SeekableView:
        """Give the stream the face that the decoding libraries expect of a file."""
        if not self.can_seek:
            return ForwardView(self)
        self._file.seek(0)
        self._head = b""
        return SeekableView(self._file)

    def spool(self) -> ByteStream:
        """Copy the rest of a pipe to a nameless temporary file and read from there."""
        copy = cast(BinaryIO, tempfile.TemporaryFile())  # noqa: SIM115 - closed by the stream
        try:
            shutil.copyfileobj(cast(BinaryIO, ForwardView(self)), copy, _SPOOL_CHUNK)
            copy.seek(0)
        except BaseException:
            copy.close()
            raise
        self.close()
        return ByteStream(copy, owned=True)

    def close(self) -> None:
        if self._owned:
            self._file.close()

    def _take(self, num_bytes: int) -> bytes:
        # read1 returns with what one system call gives; a raw file's read does so by itself.
        read = getattr(self._file, "read1", self._file.read)
        return cast(bytes, read(num_bytes) or b"")


class ForwardView:
    """A file that can only be read on; has no name, so nothing can be guessed from it."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream

    def read(self, num_bytes: int = 65536) -> bytes:
        return self._stream.read(num_bytes)


class SeekableView:
    """A file without its name, so that its format is told from its content."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, num_bytes: int = -1) -> bytes:
        return self._file.read(num_bytes)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a place; -1 where a damaged header sends us to one that no file has."""
        try:
            return self._file.seek(offset, whence)
        except (OSError, ValueError, OverflowError):
            return -1

    def tell(self) -> int:
        return self._file.tell()


def open_stream(source: Source, stdin: BinaryIO | None = None) -> ByteStream:
    """Open `source` for reading.

    Args:
        source: a file, a named pipe, a device such as /dev/fd/3, or standard input.
        stdin: stands in for standard input.

    Raises:
        AudioError: missing, a folder, or not permitted.
    """
    if source.path is None:
        if stdin is None and sys.stdin is None:
            raise AudioError(f"{source.name}: is closed")
        return ByteStream(stdin or sys.stdin.buffer, owned=False)
    try:
        return ByteStream(source.path.open("rb"), owned=True)
    except FileNotFoundError:
        raise AudioError(f"{source.name}: no such file") from None
    except IsADirectoryError:
        raise AudioError(f"{source.name}: is a folder") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise AudioError(f"{source.name}: {reason[:1].lower()}{reason[1:]}") from None


def _can_seek(file: BinaryIO) -> bool:
    """Whether `file` can go back to its start: no pipe, no device, not half read already."""
    try:
        if not file.seekable() or file.tell() != 0:
            return False
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
    except OSError:
        return False
    return size > 0
