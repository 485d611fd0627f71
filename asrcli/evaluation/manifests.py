"""Manifests: which recording says what, in a table (.tsv) or in lines of JSON (.jsonl)."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asrcli.audio.sources import printable
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.texts import encodable, read_text
from asrcli.languages import resolve_language

AUDIO_NAMES = ("audio", "file", "path", "audio_filepath", "audio_path", "audio_file", "filename")
TEXT_NAMES = (
    "text",
    "reference",
    "sentence",
    "transcript",
    "transcription",
    "reference_transcript",
)
LANGUAGE_NAMES = ("language", "lang", "locale")
"""What columns and keys may be called, in any case; of several the first counts."""

NUMBER_NAMES = ("offset", "duration")
"""Which part of a recording a text is of, in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One recording of a manifest.

    Attributes:
        line: its number in the file, from 1.
        audio: the recording as the manifest names it, relative to the manifest's folder.
        text: what is said in it; "" is nothing.
        language: ISO 639 code; None if it is not told, or not known here.
        offset: seconds of the recording before what the text is of; 0 if it is not told.
        duration: seconds that the text is of; None if it is not told.
    """

    line: int
    audio: str
    text: str
    language: str | None = None
    offset: float = 0.0
    duration: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """A manifest as it was read; ``warnings`` are lines about what was not understood."""

    path: Path
    rows: tuple[Row, ...]
    warnings: tuple[str, ...] = ()


def read_manifest(path: Path) -> Manifest:
    """Read a table with a header and tabs, or one JSON object a line.

    Raises:
        UsageError: it is of neither kind, cannot be read, lacks a column or holds nothing.
    """
    readers = {".tsv": _table, ".jsonl": _objects, ".json": _objects}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise UsageError(
            f"{printable(path)}: is no folder, and not called .tsv or .jsonl",
            hint="--references takes a folder of .txt files or a manifest",
        )
    try:
        text = read_text(path)
    except AsrError as error:
        raise UsageError(str(error), hint=error.hint) from error
    rows: list[Row] = []
    unknown: dict[str, int] = {}  # languages, and the lines that name them first
    for line, values in reader(text, printable(path)):
        language = _value(values, LANGUAGE_NAMES)
        code = _code(language)
        if language and code is None:
            unknown.setdefault(language, line)
        rows.append(_row(line, values, code, printable(path)))
    if not rows:
        raise UsageError(f"{printable(path)}: names no recordings")
    warnings = [f"line {line}: language {name!r} is unknown" for name, line in unknown.items()]
    part = next((row for row in rows if row.offset), None)
    if part is not None:
        what = f"the text is of what comes after {part.offset:g} s"
        warnings.append(f"line {part.line}: {what}, but all of a recording is compared")
    named = tuple(f"{printable(path)}: {warning}" for warning in warnings)
    return Manifest(path=path, rows=tuple(rows), warnings=named)


def _row(line: int, values: Mapping[str, str], language: str | None, name: str) -> Row:
    audio, text = _value(values, AUDIO_NAMES), _value(values, TEXT_NAMES)
    if not audio:
        raise UsageError(f"{name}: line {line} names no recording", hint=_wanted(AUDIO_NAMES))
    if "\0" in audio:
        raise UsageError(f"{name}: line {line} names no file: its name holds a zero byte")
    if text is None:
        raise UsageError(f"{name}: line {line} has no text", hint=_wanted(TEXT_NAMES))
    offset, duration = (_seconds(values.get(number)) for number in NUMBER_NAMES)
    return Row(
        line=line,
        audio=audio,
        text=text,
        language=language,
        offset=offset or 0.0,
        duration=duration,
    )


def _table(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Lines with their numbers, cells by the names in the first line."""
    lines = text.replace("\r\n", "\n").split("\n")
    header = [_unquoted(cell).strip().lower() for cell in lines[0].split("\t")]
    for names, what in ((AUDIO_NAMES, "recordings"), (TEXT_NAMES, "texts")):
        if not set(names) & set(header):
            raise UsageError(f"{name}: no column for the {what}", hint=_wanted(names))
    for number, line in enumerate(lines[1:], start=2):
        if line.strip():
            yield number, dict(zip(header, map(_unquoted, line.split("\t")), strict=False))


def _unquoted(cell: str) -> str:
    """A cell without the quotes that spreadsheets put around it; quotes in a text stay."""
    inner = cell[1:-1].replace('""', "")
    if len(cell) >= 2 and cell[0] == cell[-1] == '"' and '"' not in inner:
        return cell[1:-1].replace('""', '"')
    return cell


def _objects(text: str, name: str) -> Iterator[tuple[int, dict[str, str]]]:
    """One JSON object a line, with the line's number; what is no text is left out."""
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            values: Any = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{name}: line {number} is not JSON", hint="one object a line"
            ) from error
        if not isinstance(values, dict):
            raise UsageError(f"{name}: line {number} is not a JSON object")
        yield number, dict(_texts(values))


def _texts(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of an object, and the numbers that are looked for, as a table would have them."""
    for key, value in values.items():
        name = key.lower()
        if isinstance(value, str):
            yield name, encodable(value)
        elif name in NUMBER_NAMES and isinstance(value, int | float):
            yield name, str(value)


def _value(values: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((values[name] for name in names if name in values), None)


def _seconds(number: str | None) -> float | None:
    """A number of seconds from 0 on; None for everything else."""
    try:
        seconds = float(number or "")
    except ValueError:
        return None
    return seconds if 0.0 <= seconds < math.inf else None


def _code(language: str | None) -> str | None:
    if not language:
        return None
    try:
        return resolve_language(language)
    except UsageError:
        return None


def _wanted(names: tuple[str, ...]) -> str:
    return f"it may be called {', '.join(names[:-1])} or {names[-1]}"
