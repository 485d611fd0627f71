"""How what was said in windows comes together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.transcript import MIN_SEGMENT_DURATION, ROUNDING

if TYPE_CHECKING:
    from asrcli.transcript import Segment


class Stitcher:
    """Joins what the model said in the windows of one recording, in their order.

    Segments are numbered anew. Times never go back: a segment that would begin before the one ahead
    of it has ended is made to begin there, and one of which that leaves nothing joins the one
    ahead. So a segment is final only when the next one has come.
    """

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._num_told = 0

    def add(self, piece: Sequence[Segment]) -> tuple[Segment, ...]:
        """Take in a window's segments; give those that have become final."""
        segments = self._segments
        for segment in piece:
            start = max(segment.start, segments[-1].end) if segments else segment.start
            if segments and segment.end - start < MIN_SEGMENT_DURATION - ROUNDING:
                segments[-1] = _join(segments[-1], segment)
            else:
                segments.append(replace(segment, id=len(segments), start=start))
        return self._tell(max(self._num_told, len(segments) - 1))

    def finish(self) -> tuple[Segment, ...]:
        """Give the rest."""
        return self._tell(len(self._segments))

    @property
    def text(self) -> str:
        """The whole text."""
        return join_texts(segment.text for segment in self._segments)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """All segments."""
        return tuple(self._segments)

    def _tell(self, num_final: int) -> tuple[Segment, ...]:
        told, self._num_told = self._num_told, num_final
        return tuple(self._segments[told:num_final])


def stitch(pieces: Iterable[Sequence[Segment]]) -> tuple[str, tuple[Segment, ...]]:
    """The text and the segments of a recording whose windows are all there."""
    stitcher = Stitcher()
    for piece in pieces:
        stitcher.add(piece)
    return stitcher.text, stitcher.segments


def _join(first: Segment, second: Segment) -> Segment:
    """A segment that says what both say, in the time of both."""
    return replace(
        first,
        end=max(first.end, second.end),
        text=join_texts([first.text, second.text]),
        tokens=first.tokens + second.tokens,
        words=first.words + second.words,
    )


def join_texts(texts: Iterable[str]) -> str:
    """Join texts with a space between them, but none where both sides are Han or kana."""
    joined = ""
    for text in (text.strip() for text in texts):
        if joined and text and not (_unspaced(joined[-1]) and _unspaced(text[0])):
            joined += " "
        joined += text
    return joined


def _unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    code = ord(character)
    return (
        0x2E80 <= code <= 0x30FF  # Han radicals, CJK punctuation, hiragana, katakana
        or 0x31F0 <= code <= 0x31FF  # katakana extensions
        or 0x3400 <= code <= 0x9FFF  # Han
        or 0xF900 <= code <= 0xFAFF  # Han compatibility forms
        or 0xFF01 <= code <= 0xFF9F  # full-width punctuation, half-width katakana
        or 0x20000 <= code <= 0x3FFFF  # Han extensions
    )
