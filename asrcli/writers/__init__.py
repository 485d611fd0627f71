"""Transcripts as text, JSON and subtitles: the formats, and the way from a transcript to each.

Every writer takes a whole ``Transcript`` and gives a ``str``. Where that goes is the matter of
``asrcli.writers.outputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from types import MappingProxyType

from asrcli.errors import UsageError
from asrcli.transcript import Transcript
from asrcli.writers.json import load_json, render_json, render_json_line
from asrcli.writers.subtitles import render_srt, render_vtt
from asrcli.writers.text import render_lines, render_text

__all__ = [
    "FORMATS",
    "SUFFIXES",
    "guess_format",
    "load_json",
    "render",
    "render_json_line",
    "render_lines",
    "render_shared",
    "resolve_format",
]

_WRITERS: Mapping[str, tuple[str, Callable[[Transcript], str]]] = {
    "text": (".txt", render_text),
    "json": (".json", render_json),
    "srt": (".srt", render_srt),
    "vtt": (".vtt", render_vtt),
}

FORMATS: tuple[str, ...] = tuple(_WRITERS)
"""The canonical names of the formats."""

SUFFIXES: Mapping[str, str] = MappingProxyType({name: row[0] for name, row in _WRITERS.items()})
"""Format to the suffix of its files, dot included."""


def resolve_format(name: str) -> str:
    """The canonical name of a format, given its name or its suffix in any case.

    Raises:
        UsageError: there is no such format; the hint lists what there is.
    """
    folded = name.strip().casefold().removeprefix(".")
    for format, suffix in SUFFIXES.items():
        if folded in (format, suffix[1:]):
            return format
    raise UsageError(f"format {name!r} is unknown", hint=f"one of: {', '.join(FORMATS)}")


def guess_format(path: str) -> str | None:
    """The format whose files end as ``path`` does; None where none does."""
    suffix = PurePath(path).suffix.casefold()
    return next((format for format, known in SUFFIXES.items() if known == suffix), None)


def render(transcript: Transcript, format: str) -> str:
    """The transcript in a format, as its file holds it: "" or lines that end in a line feed.

    Args:
        transcript: of one recording.
        format: one of ``FORMATS``.
    """
    return _WRITERS[format][1](transcript)


def render_shared(
    transcript: Transcript, format: str, *, source_name: str, is_first: bool = True
) -> str:
    """What one of several recordings adds to a stream that they share.

    JSON comes as one line for each. Texts have a blank line between them; recordings without
    speech add nothing to these.

    Args:
        transcript: of one recording.
        format: one of ``FORMATS``.
        source_name: the name of the recording, as the user knows it.
        is_first: whether nothing was written to the stream yet.
    """
    if format == "json":
        return render_json_line(transcript, source_name)
    text = render(transcript, format)
    return f"\n{text}" if text and not is_first else text
