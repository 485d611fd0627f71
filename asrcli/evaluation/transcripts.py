"""Transcripts that are there already: text, JSON or subtitles, whoever made them."""

from __future__ import annotations

import html
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.audio.sources import Source, printable
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.matching import SUFFIXES, Matches, match
from asrcli.evaluation.references import Reference
from asrcli.evaluation.texts import encodable, names_for, read_text
from asrcli.writers import load_json

if TYPE_CHECKING:
    from asrcli.transcript import Transcript

MAX_DURATION = 1e9  # s, or thirty years: no recording is longer, and sums of it stay finite

_TAG = re.compile(r"<[^<>\n]*>|\{\\[^{}\n]*\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hypothesis:
    """What a transcript says; ``language``, ``duration`` (s) and ``model`` only if it tells."""

    text: str
    language: str | None = None
    duration: float | None = None
    model: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcripts:
    """The transcripts of recordings, in their order; each recording is here or in ``failures``.

    Attributes:
        found: references and what was understood.
        failures: why there is no transcript of a recording.
        inputs: the files that are transcripts of recordings, read or not.
        note: a line about how they were found, where that may surprise; else None.
    """

    found: tuple[tuple[Reference, Hypothesis], ...]
    failures: tuple[AsrError, ...] = ()
    inputs: tuple[Path, ...] = ()
    note: str | None = None


def find_transcripts(references: Sequence[Reference], folder: Path) -> Transcripts:
    """The transcript of each recording, and why there is none for the others.

    It lies under ``folder`` where the recording does in its own tree, or further up: see
    ``matching.match``.

    Raises:
        UsageError: there is no such folder.
    """
    if not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"{printable(folder)}: no such folder")
    sources = [reference.source for reference in references]
    matches = match(sources, folder, [reference.path for reference in references])
    found: list[tuple[Reference, Hypothesis]] = []
    failures: list[AsrError] = []
    for reference in references:
        try:
            path = matches.paths.get(reference.source)
            if path is None:
                raise _explain(reference.source, matches, folder)
            found.append((reference, read_transcript(path)))
        except AsrError as error:
            failures.append(error)
    return Transcripts(
        found=tuple(found),
        failures=tuple(failures),
        inputs=tuple(_all_formats(matches)),
        note=_note(matches),
    )


def read_transcript(path: Path) -> Hypothesis:
    """What a file says: asr's JSON, subtitles (.srt, .vtt) or text.

    Raises:
        AsrError: it cannot be read, or is not what its name says.
    """
    text = read_text(path)
    suffix = path.suffix.lower()
    if suffix != ".json":
        return Hypothesis(text=_words_of_cues(text) if suffix in (".srt", ".vtt") else text)
    complaint = f"{printable(path)}: not the JSON that asr writes"
    try:
        transcript = load_json(text)
    except (ValueError, RecursionError) as error:
        raise AsrError(complaint) from error
    trouble = _find_trouble(transcript)
    if trouble:
        raise AsrError(f"{complaint} ({trouble})")
    return Hypothesis(
        text=encodable(transcript.text),
        language=_encodable(transcript.language),
        duration=transcript.duration,
        model=_encodable(transcript.model),
    )


def _encodable(name: str | None) -> str | None:
    return None if name is None else encodable(name)


def _find_trouble(transcript: Transcript) -> str | None:
    """What is wrong with the values, which come from a file and may be of any type."""
    text: object = transcript.text
    duration: object = transcript.duration
    if not isinstance(text, str):
        return "its text is none"
    is_number = isinstance(duration, int | float) and not isinstance(duration, bool)
    if not is_number or not 0 <= transcript.duration <= MAX_DURATION:
        return "its duration is no number of seconds"
    names: tuple[object, ...] = (transcript.language, transcript.model)
    if not all(name is None or isinstance(name, str) for name in names):
        return "its language or model is no text"
    return None


def _explain(source: Source, matches: Matches, folder: Path) -> AsrError:
    rival = matches.rivals.get(source)
    if rival is None:
        stem = folder / source.relative.parent / names_for(source.relative)[0]
        return AsrError(f"{source.name}: no transcript ({printable(stem)}.txt is missing)")
    what = f"{printable(rival.path)} {'is' if rival.is_owner else 'may be'} that of"
    return AsrError(f"{source.name}: no transcript of its own ({what} {rival.other.name})")


def _all_formats(matches: Matches) -> Iterator[Path]:
    """The transcripts that were found, in every format in which they are there."""
    rivals = (rival.path for rival in matches.rivals.values())
    for path in (*matches.paths.values(), *rivals):
        others = (path.with_suffix(suffix) for suffix in SUFFIXES)
        yield from {path, *(other for other in others if os.path.isfile(other))}  # noqa: PTH113


def _note(matches: Matches) -> str | None:
    """Say so where transcripts were taken that do not lie where the recordings do."""
    if not matches.shortened:
        return None
    first, *others = matches.shortened
    number = "" if matches.num_dropped == 1 else f"{matches.num_dropped} "
    what = f"the first {number}folder{'s' if number else ''} of its path"
    more = f", and {len(others)} more likewise" if others else ""
    path = printable(matches.paths[first])
    return f"{first.name}: {path} is taken for its transcript, without {what}{more}"


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
