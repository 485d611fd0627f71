"""Transcripts that are there already: text, JSON or subtitles, whoever made them."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from asrcli.audio.sources import printable
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.references import Reference
from asrcli.evaluation.texts import places_for, read_text
from asrcli.writers import load_json

SUFFIXES = (".json", ".srt", ".vtt", ".txt")
"""Endings of transcripts, the one that tells the most first: it is taken if there are several."""

_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What a transcript says; ``language``, ``duration`` (s) and ``model`` only if it tells."""

    text: str
    language: str | None = None
    duration: float | None = None
    model: str | None = None


def find_transcripts(
    references: Iterable[Reference], folder: Path
) -> tuple[list[tuple[Reference, Hypothesis]], list[AsrError]]:
    """The transcript of each recording, and why there is none for the others.

    It lies under ``folder`` where the recording does in its own tree, or, as folders of results
    often begin further down, with the first folders of that path left out.

    Raises:
        UsageError: there is no such folder.
    """
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"{printable(folder)}: no such folder")
    found: list[tuple[Reference, Hypothesis]] = []
    failures: list[AsrError] = []
    owners: dict[str, str] = {}
    for reference in references:
        try:
            path = _find(reference, folder)
            owner = owners.setdefault(os.path.realpath(path), reference.source.name)
            if owner != reference.source.name:
                what = f"{printable(path)} is that of {owner}"
                raise AsrError(f"{reference.source.name}: no transcript of its own ({what})")
            found.append((reference, read_transcript(path)))
        except AsrError as error:
            failures.append(error)
    return found, failures


def read_transcript(path: Path) -> Hypothesis:
    """What a file says: asr's JSON, subtitles (.srt, .vtt) or text.

    Raises:
        AsrError: it cannot be read, or is not what its name says.
    """
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        try:
            transcript = load_json(text)
        except ValueError as error:
            raise AsrError(f"{printable(path)}: not the JSON that asr writes") from error
        return Hypothesis(
            text=transcript.text,
            language=transcript.language,
            duration=transcript.duration,
            model=transcript.model,
        )
    return Hypothesis(text=_words_of_cues(text) if suffix in (".srt", ".vtt") else text)


def _find(reference: Reference, folder: Path) -> Path:
    source = reference.source
    parts = source.relative.parts
    for start in range(len(parts)):
        recording = folder.joinpath(*parts[start:])
        for suffix in SUFFIXES:
            for path in places_for(recording, suffix):
                if os.path.isfile(path) and not _is_same(path, reference.path):  # noqa: PTH113
                    return path
    wanted = next(places_for(folder / source.relative, ".txt"))
    raise AsrError(f"{source.name}: no transcript ({printable(wanted)} is missing)")


def _is_same(path: Path, other: Path) -> bool:
    return os.path.realpath(path) == os.path.realpath(other)


def _words_of_cues(text: str) -> str:
    """The text of subtitles: what stands under a line with times, up to a blank line."""
    lines: list[str] = []
    is_inside = False
    for line in text.splitlines():
        if "-->" in line:
            is_inside = True
        elif not line.strip():
            is_inside = False
        elif is_inside:
            lines.append(html.unescape(_TAG.sub("", line)))
    return " ".join(lines)
