"""From what stands on the command line to the list of recordings to read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from asrcli.errors import UsageError

if TYPE_CHECKING:
    from asrcli.audio.clips import Clip
    from asrcli.audio.reading import RawFormat

STANDARD_INPUT = "-"

# What a folder is searched for. A file that is named by itself is taken whatever its ending.
# ".raw" is left out: it says nothing of how the samples lie, and cameras call their pictures so.
_AUDIO_ENDINGS = """
    3ga 8svx aa3 aac aax ac3 adts aif aifc aiff alac amr ape au awb caf dsf dts eac3 f4a flac g722
    g723 g729 gsm m4a m4b m4p m4r mka mp1 mp2 mp3 mpa mpc mpega mpga nist oga ogg ogx oma opus ra
    rf64 snd sph spx tak tta voc w64 wav wave weba wma wv
"""
_VIDEO_ENDINGS = """
    3g2 3gp asf avi divx dv f4v flv m2t m2ts m2v m4v mkv mov mp4 mpe mpeg mpg mts mxf ogm ogv qt rm
    rmvb ts vob webm wmv wtv
"""
MEDIA_SUFFIXES = frozenset(f".{ending}" for ending in (_AUDIO_ENDINGS + _VIDEO_ENDINGS).split())


@dataclass(frozen=True, slots=True)
class Source:
    """One recording to read.

    Attributes:
        name: as the user knows it, made printable; standard input is "stdin".
        path: the file, byte for byte as it was given or found; None is standard input.
        relative: its place in a tree of results: relative to the folder that it was found in, the
            bare file name for a file given by itself, ``Path("stdin")`` for standard input.
    """

    name: str
    path: Path | None
    relative: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How recordings are read.

    Attributes:
        raw: as what PCM, where they have no header.
        stdin: stands in for standard input.
        clips: the parts that are wanted; none means all.
        track: which audio track, counted from 1; None takes the best.
    """

    raw: RawFormat | None = None
    stdin: BinaryIO | None = None
    clips: Sequence[Clip] = ()
    track: int | None = None


AS_IT_IS = Reading()
"""All of a recording, as its own header describes it."""


def expand(paths: Sequence[str | Path], *, patterns: Sequence[str] = ()) -> list[Source]:
    """List the recordings behind `paths`, each once, in the order given.

    Args:
        paths: files, folders (searched all the way down, in sorted order), "-" for standard input.
        patterns: shell patterns on the file name, or on its path below the folder, in any case;
            they narrow what folders give and leave files alone that are named by themselves.

    Raises:
        UsageError: a folder holds nothing to read, or standard input is a terminal.

    A missing file is listed: opening it fails, and the other files go on.
    """
    sources: list[Source] = []
    seen: set[str] = set()
    for path in paths:
        for source in _expand_one(path, patterns):
            key = STANDARD_INPUT if source.path is None else os.path.realpath(source.path)
            if key not in seen:
                seen.add(key)
                sources.append(source)
    return sources


def printable(path: str | Path) -> str:
    """Give `path` as text that can be shown on one line, odd bytes and control codes replaced."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )


def _expand_one(path: str | Path, patterns: Sequence[str]) -> list[Source]:
    if str(path) == STANDARD_INPUT:
        return [_standard_input()]
    if not str(path):
        raise UsageError("an input has an empty name")
    path = Path(path)
    if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for what may not be looked at
        return [Source(printable(path), path, Path(path.name))]
    found = [
        Source(printable(path / relative), path / relative, relative)
        for relative in _walk(path, Path(), frozenset())
        if _matches(relative, patterns) or os.path.isdir(path / relative)  # noqa: PTH112
    ]
    if not found:
        raise UsageError(
            f"{printable(path)}: no audio or video in this folder", hint=_hint(patterns)
        )
    return found


def _standard_input() -> Source:
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError(
            "standard input is a terminal, and audio is expected from it",
            hint="pipe audio in, or name a file",
        )
    return Source("stdin", None, Path("stdin"))


def _walk(root: Path, below: Path, parents: frozenset[str]) -> Iterator[Path]:
    """Yield the media below `root / below`, sorted, as paths relative to `root`.

    `parents` are the real paths of the folders above: a link to one of them would never end.
    """
    real = os.path.realpath(root / below)
    if real in parents:
        return
    try:
        entries = _entries(root / below)
    except OSError as error:
        if not below.parts:
            reason = (error.strerror or str(error)).lower()
            raise UsageError(f"{printable(root)}: {reason}") from None
        yield below  # opening it will fail as well, and tell why, and the other files go on
        return
    for entry in entries:
        if entry.name.startswith("."):
            continue
        if os.path.isdir(entry):  # noqa: PTH112 - a link that cannot be followed is none
            yield from _walk(root, below / entry.name, parents | {real})
        elif Path(entry.name).suffix.strip().lower() in MEDIA_SUFFIXES:
            yield below / entry.name


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: os.fsencode(entry.name))


def _matches(relative: Path, patterns: Sequence[str]) -> bool:
    if not patterns:
        return True
    names = (relative.name.lower(), relative.as_posix().lower())
    return any(fnmatchcase(name, pattern.lower()) for pattern in patterns for name in names)


def _hint(patterns: Sequence[str]) -> str:
    if patterns:
        return f"nothing there matches {' or '.join(patterns)}"
    return (
        "files are taken by their ending there (.wav, .mp3, .m4a, .mp4, …); name others one by one"
    )
