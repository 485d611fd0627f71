"""What the first bytes of a recording tell, beyond its format."""

from __future__ import annotations

import struct

from asrcli.audio.streams import ByteStream

_MAX_PEEK = 1 << 22
_TEXT = frozenset(range(32, 127)) | {9, 10, 12, 13}
_KNOWN = {
    b"%PDF": "it is a PDF document",
    b"PK\x03\x04": "it is a ZIP archive",
    b"\x1f\x8b": "it is a gzip archive",
    b"7z\xbc\xaf": "it is a 7z archive",
    b"\x7fELF": "it is a program",
    b"version https://git-lfs": "it is a Git LFS pointer; the file itself was not fetched",
}
_MP4_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"pnot", b"uuid", b"styp")


def describe(head: bytes) -> str | None:
    """Say what a file that is no recording is, as far as its first bytes tell."""
    for magic, what in _KNOWN.items():
        if head.startswith(magic):
            return what
    if head[4:8] == b"ftyp":
        return "it is MP4 without a usable index: cut short, or never finished"
    try:
        letters = head.decode("utf-8", "strict")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not just a letter that is cut in two
            return None
        letters = head[: error.start].decode("utf-8")
    if all(letter.isprintable() or ord(letter) in _TEXT for letter in letters):
        return "it is text"
    return None


def has_index_at_end(stream: ByteStream) -> bool:
    """Whether this is MP4 or QuickTime whose audio comes before the index that explains it."""
    offset = 0
    while offset < _MAX_PEEK:
        head = stream.peek(offset + 16)[offset:]
        if len(head) < 8 or (offset == 0 and head[4:8] not in _MP4_BOXES):
            return False
        (size,), kind = struct.unpack(">I", head[:4]), head[4:8]
        if kind in (b"moov", b"mdat"):
            return bool(kind == b"mdat")
        if size == 1 and len(head) == 16:
            (size,) = struct.unpack(">Q", head[8:16])
        if size < 8:
            return False
        offset += size
    return True
