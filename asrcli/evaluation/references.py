"""What was said in recordings: text files beside them or in a folder, or a manifest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asrcli.audio.sources import Source, printable
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.manifests import Manifest, Row, read_manifest
from asrcli.evaluation.texts import places_for, read_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What is said in a recording.

    Attributes:
        source: the recording.
        text: what is said; "" is nothing.
        path: the file that the text was read from.
        language: ISO 639 code, where a manifest tells it.
    """

    source: Source
    text: str
    path: Path
    language: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The references of recordings, in their order; each recording is here or in ``failures``."""

    found: tuple[Reference, ...]
    failures: tuple[AsrError, ...] = ()
    warnings: tuple[str, ...] = ()


def find_references(sources: Sequence[Source] | None, place: Path | None) -> References:
    """The reference of each recording.

    Args:
        sources: the recordings; None takes all that a manifest names.
        place: a folder with the same tree of .txt files, or a manifest; None is beside the
            recordings.

    Raises:
        UsageError: the place is missing or cannot be read, or nothing says which recordings.
    """
    if place is not None and not os.path.exists(place):  # noqa: PTH110
        raise UsageError(f"{printable(place)}: no such file or folder")
    if place is None or os.path.isdir(place):  # noqa: PTH112
        if sources is None:
            raise UsageError(
                "nothing says which recordings are meant", hint="name files or folders of audio"
            )
        return _read_each(sources, place)
    manifest = read_manifest(place)
    return _look_up(_sources(manifest) if sources is None else sources, manifest)


def _read_each(sources: Iterable[Source], folder: Path | None) -> References:
    found: list[Reference] = []
    failures: list[AsrError] = []
    for source in sources:
        try:
            path = _text_file(source, folder)
            found.append(Reference(source=source, text=read_text(path), path=path))
        except AsrError as error:
            failures.append(error)
    return References(found=tuple(found), failures=tuple(failures))


def _text_file(source: Source, folder: Path | None) -> Path:
    recording = source.path if folder is None else folder / source.relative
    if recording is None:
        raise AsrError(f"{source.name}: has no reference beside it", hint="name a file")
    places = list(places_for(recording, ".txt"))
    for path in places:
        if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for a name too long
            return path
    raise AsrError(f"{source.name}: no reference ({printable(places[0])} is missing)")


def _sources(manifest: Manifest) -> list[Source]:
    """The recordings of a manifest, each once."""
    sources: dict[str, Source] = {}
    for row in manifest.rows:
        path = _path(manifest, row)
        inside = not Path(row.audio).is_absolute() and ".." not in Path(row.audio).parts
        relative = Path(row.audio) if inside else Path(path.name)
        sources.setdefault(os.path.realpath(path), Source(printable(path), path, relative))
    return list(sources.values())


def _look_up(sources: Iterable[Source], manifest: Manifest) -> References:
    rows: dict[str, list[Row]] = {}
    for row in manifest.rows:
        rows.setdefault(os.path.realpath(_path(manifest, row)), []).append(row)
    found: list[Reference] = []
    failures: list[AsrError] = []
    name = printable(manifest.path)
    for source in sources:
        own = rows.get(os.path.realpath(source.path), []) if source.path else []
        if not own:
            failures.append(AsrError(f"{source.name}: no reference (not in {name})"))
            continue
        first = own[0]
        other = next((row for row in own if row.text.strip() != first.text.strip()), None)
        if other is not None:
            lines = f"lines {first.line} and {other.line}"
            failures.append(AsrError(f"{source.name}: two references ({lines} of {name})"))
            continue
        language = next((row.language for row in own if row.language), None)
        found.append(
            Reference(source=source, text=first.text, path=manifest.path, language=language)
        )
    return References(found=tuple(found), failures=tuple(failures), warnings=manifest.warnings)


def _path(manifest: Manifest, row: Row) -> Path:
    return manifest.path.parent / row.audio
