"""Text files that belong to recordings: where they lie, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePath

from asrcli.audio.sources import MEDIA_SUFFIXES, Source, printable
from asrcli.errors import AsrError


def read_text(path: Path) -> str:
    """The text of a UTF-8 file, with or without a byte order mark.

    Raises:
        AsrError: it cannot be read, or is of another encoding.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise AsrError(f"{printable(path)}: cannot be read: {reason}") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise AsrError(
            f"{printable(path)}: not UTF-8 text (byte 0x{byte:02x} at {error.start})",
            hint="save it as UTF-8",
        ) from error


def without_media_suffix(name: str) -> str:
    """A file's name without its last suffix, if that is one of a recording."""
    suffix = PurePath(name).suffix
    return name[: -len(suffix)] if suffix.strip().lower() in MEDIA_SUFFIXES else name


def places_for(recording: Path, suffix: str) -> Iterator[Path]:
    """Where a text for a recording may lie, the likeliest first: a.txt, a.wav.txt."""
    for stem in dict.fromkeys((without_media_suffix(recording.name), recording.name)):
        yield recording.parent / f"{stem}{suffix}"


def sources_of_texts(folder: Path, suffix: str = ".txt") -> list[Source]:
    """The recordings that the texts of a folder, and of those in it, are about.

    They have the texts' names, less the suffix, and need not be anywhere.
    """
    found = sorted(path.relative_to(folder) for path in folder.rglob(f"*{suffix}"))
    stems = [path.with_name(path.name.removesuffix(suffix)) for path in found]
    return [Source(printable(stem), folder / stem, stem) for stem in stems]
