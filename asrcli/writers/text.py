"""Plain text: one line a segment."""

from __future__ import annotations

from collections.abc import Iterable

from asrcli.transcript import Segment, Transcript


def render_text(transcript: Transcript) -> str:
    """One line for each segment that has text; "" where nothing was said."""
    return render_lines(transcript.segments)


def render_lines(segments: Iterable[Segment]) -> str:
    """What some segments of a transcript add to its text."""
    lines = (" ".join(split_lines(segment.text)) for segment in segments)
    return "".join(f"{line}\n" for line in lines if line)


def split_lines(text: str) -> list[str]:
    """The lines of a text, at any kind of line break, without outer white space and blank lines."""
    return [line for line in map(str.strip, text.splitlines()) if line]
