"""Plain text: one line a segment."""

from __future__ import annotations

from asrcli.transcript import Transcript


def render_text(transcript: Transcript) -> str:
    """One line for each segment that has text; "" where nothing was said."""
    lines = (" ".join(split_lines(segment.text)) for segment in transcript.segments)
    return "".join(f"{line}\n" for line in lines if line)


def split_lines(text: str) -> list[str]:
    """The lines of a text, at any kind of line break, without outer white space and blank lines."""
    return [line for line in map(str.strip, text.splitlines()) if line]
