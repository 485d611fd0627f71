"""What was said in recordings: text files beside them or in a folder, or a manifest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from asrcli.audio.sources import Source, printable
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.manifests import Manifest, Row, read_manifest
from asrcli.evaluation.texts import TextFiles, matches, names_for, read_text, texts_below


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What is said in a recording.

    Attributes:
        source: the recording.
        text: what is said; "" is nothing.
        path: the file that the text was read from.
        language: ISO 639 code, where a manifest tells it.
        duration: seconds that the text is of, where a manifest tells them.
    """

    source: Source
    text: str
    path: Path
    language: str | None = None
    duration: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class References:
    """The references of recordings, in their order; each recording is here or in ``failures``.

    Attributes:
        found: recordings and what is said in them.
        failures: why there is no reference for a recording.
        warnings: lines about what was not understood.
        inputs: the recordings and the files of references, readable or not.
    """

    found: tuple[Reference, ...]
    failures: tuple[AsrError, ...] = ()
    warnings: tuple[str, ...] = ()
    inputs: tuple[Path, ...] = ()


def find_references(
    sources: Sequence[Source] | None, place: Path | None, *, patterns: Sequence[str] = ()
) -> References:
    """The reference of each recording.

    Args:
        sources: the recordings; None takes all that a manifest names.
        place: a folder with the same tree of .txt files, or a manifest; None is beside the
            recordings.
        patterns: which of the recordings that a manifest names; see ``texts.matches``.

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
    return _look_up(_sources(manifest, patterns) if sources is None else sources, manifest)


def references_in(folder: Path, patterns: Sequence[str] = ()) -> References:
    """The texts of a folder, and of those in it, as references to recordings of their names.

    These need not be anywhere: it is for transcripts that are there already.

    Args:
        folder: what is searched for .txt files.
        patterns: which of them, with or without their suffix; see ``texts.matches``.

    Raises:
        UsageError: there are none, or a folder cannot be looked into.
    """
    texts: dict[Path, list[Path]] = {}
    for text in texts_below(folder):
        stem = text.with_suffix("")
        if matches(stem, patterns) or matches(text, patterns):
            texts.setdefault(stem, []).append(folder / text)
    if not texts:
        hint = "--references takes a folder of .txt files or a manifest"
        if patterns:
            hint = _mismatch(patterns)
        raise UsageError(f"{printable(folder)}: no .txt files in this folder", hint=hint)
    found: list[Reference] = []
    failures: list[AsrError] = []
    for stem, (path, *others) in texts.items():
        source = Source(printable(stem), folder / stem, stem)
        try:
            if others:
                what = f"{printable(path)} and {printable(others[0])}"
                raise AsrError(f"{source.name}: two references ({what})")
            found.append(Reference(source=source, text=read_text(path), path=path))
        except AsrError as error:
            failures.append(error)
    return References(
        found=tuple(found),
        failures=tuple(failures),
        inputs=tuple(path for paths in texts.values() for path in paths),
    )


def _mismatch(patterns: Sequence[str]) -> str:
    return f"nothing there matches {' or '.join(patterns)}"


def _read_each(sources: Iterable[Source], folder: Path | None) -> References:
    files = TextFiles()
    found: list[Reference] = []
    failures: list[AsrError] = []
    inputs: list[Path] = []
    for source in sources:
        inputs += [source.path] if source.path else []
        try:
            path = _text_file(source, folder, files)
            inputs.append(path)
            found.append(Reference(source=source, text=read_text(path), path=path))
        except AsrError as error:
            failures.append(error)
    return References(found=tuple(found), failures=tuple(failures), inputs=tuple(inputs))


def _text_file(source: Source, folder: Path | None, files: TextFiles) -> Path:
    recording = source.path if folder is None else folder / source.relative
    if recording is None:
        raise AsrError(f"{source.name}: has no reference beside it", hint="name a file")
    places = [recording.parent / f"{name}.txt" for name in names_for(recording)]
    path = next(filter(None, map(files.find, places)), None)
    if path is None:
        raise AsrError(f"{source.name}: no reference ({printable(places[0])} is missing)")
    return path


def _sources(manifest: Manifest, patterns: Sequence[str]) -> list[Source]:
    """The recordings of a manifest that fit the patterns, each once."""
    sources: dict[str, Source] = {}
    for row in manifest.rows:
        path = _path(manifest, row)
        inside = not Path(row.audio).is_absolute() and ".." not in Path(row.audio).parts
        relative = Path(row.audio) if inside else Path(path.name)
        if matches(relative, patterns):
            sources.setdefault(os.path.realpath(path), Source(printable(path), path, relative))
    if not sources:
        raise UsageError(
            f"{printable(manifest.path)}: none of its recordings is meant", hint=_mismatch(patterns)
        )
    return list(sources.values())


def _look_up(sources: Iterable[Source], manifest: Manifest) -> References:
    rows: dict[str, list[Row]] = {}
    for row in manifest.rows:
        rows.setdefault(os.path.realpath(_path(manifest, row)), []).append(row)
    found: list[Reference] = []
    failures: list[AsrError] = []
    name = printable(manifest.path)
    inputs = [manifest.path]
    for source in sources:
        inputs += [source.path] if source.path else []
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
        found.append(
            Reference(
                source=source,
                text=first.text,
                path=manifest.path,
                language=next((row.language for row in own if row.language), None),
                duration=None if first.offset else first.duration,
            )
        )
    return References(
        found=tuple(found),
        failures=tuple(failures),
        warnings=manifest.warnings,
        inputs=tuple(inputs),
    )


def _path(manifest: Manifest, row: Row) -> Path:
    return manifest.path.parent / row.audio
