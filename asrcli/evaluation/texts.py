"""Text files that belong to recordings: where they lie, and what is in them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePath

from asrcli.audio.sources import printable
from asrcli.errors import AsrError, UsageError
from asrcli.writers.outputs import MEDIA_SUFFIXES


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


def encodable(text: str) -> str:
    """A text of JSON without halves of characters, which JSON can hold and nothing else."""
    return text.encode("utf-8", "replace").decode()


def without_media_suffix(name: str) -> str:
    """A file's name without its last suffix, if that is one that a result's takes the place of."""
    suffix = PurePath(name).suffix
    return name[: -len(suffix)] if suffix.strip().casefold() in MEDIA_SUFFIXES else name


def names_for(recording: PurePath) -> tuple[str, ...]:
    """What a text for a recording is called, less its suffix, the likeliest first: a, a.wav."""
    return tuple(dict.fromkeys((without_media_suffix(recording.name), recording.name)))


def matches(relative: PurePath, patterns: Sequence[str]) -> bool:
    """Whether a name, or a path below the folder, fits one of the patterns, in any case.

    Without patterns everything does.
    """
    names = (relative.name.lower(), relative.as_posix().lower())
    fits = (fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)
    return not patterns or any(fits)


class TextFiles:
    """Files by name, the suffix in any case; each folder is listed once."""

    def __init__(self) -> None:
        self._listings: dict[Path, dict[str, Path]] = {}

    def find(self, place: Path) -> Path | None:
        """The file at ``place``, or else one beside it that differs in the suffix's case alone."""
        if os.path.isfile(place):  # noqa: PTH113 - Path.is_file raises for a name too long
            return place
        folder = place.parent
        if folder not in self._listings:
            self._listings[folder] = _list_unusual(folder)
        return self._listings[folder].get(place.name)


def _list_unusual(folder: Path) -> dict[str, Path]:
    """The files whose suffixes have capital letters, by the names they would have without."""
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return {}  # what is not there, or is no folder, holds no text
    listing: dict[str, Path] = {}
    for name in names:
        usual = _with_usual_suffix(name)
        if usual != name and os.path.isfile(folder / name):  # noqa: PTH113
            listing.setdefault(usual, folder / name)
    return listing


def _with_usual_suffix(name: str) -> str:
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - PurePath refuses some names
    return stem + suffix.lower()


def texts_below(folder: Path, suffix: str = ".txt") -> list[Path]:
    """The texts of a folder and of those in it, sorted, relative to it; the suffix in any case.

    Hidden ones are left out, as they are with recordings.

    Raises:
        UsageError: a folder cannot be looked into.
    """
    return list(_walk(folder, Path(), suffix, frozenset()))


def _walk(root: Path, below: Path, suffix: str, parents: frozenset[str]) -> Iterator[Path]:
    """Yield texts; ``parents`` are the real paths of the folders above, as links may go round."""
    real = os.path.realpath(root / below)
    if real in parents:
        return
    try:
        names = sorted(os.listdir(root / below))  # noqa: PTH208
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"{printable(root / below)}: {reason}") from error
    for name in names:
        path = root / below / name
        if name.startswith("."):
            continue
        if os.path.isdir(path):  # noqa: PTH112
            yield from _walk(root, below / name, suffix, parents | {real})
        elif _with_usual_suffix(name).endswith(suffix) and os.path.isfile(path):  # noqa: PTH113
            yield below / name
