"""How what was said in windows comes together again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.transcript import MIN_SEGMENT_DURATION, ROUNDING
from asrcli.windows.seams import sew
from asrcli.windows.window import MAX_OVERLAP
from asrcli.words import is_unspaced

if TYPE_CHECKING:
    from asrcli.transcript import Segment


class Stitcher:
    """Joins what the model said in the windows of one recording, in their order.

    Segments are numbered anew. Times never go back: a segment that would begin before the one ahead
    of it has ended is made to begin there, and one of which that leaves nothing joins the one
    ahead. Where windows overlap, the one text goes over into the other. So a segment is final only
    some seconds later.

    Attributes:
        warnings: what a reader should know of the seams, one line each.
    """

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._num_told = 0
        self.warnings: list[str] = []

    def add(
        self, piece: Sequence[Segment], overlap: tuple[float, float] | None = None
    ) -> tuple[Segment, ...]:
        """Take in a window's segments; give those that have become final.

        Args:
            overlap: (start, end) in seconds of what the window before held as well.
        """
        if overlap is not None:
            piece = self._sew(piece, *overlap)
        segments = self._segments
        for segment in piece:
            start = max(segment.start, segments[-1].end) if segments else segment.start
            if segments and segment.end - start < MIN_SEGMENT_DURATION - ROUNDING:
                segments[-1] = _join(segments[-1], segment)
            else:
                segments.append(replace(segment, id=len(segments), start=start))
        return self._tell(max(self._num_told, self._num_final()))

    def _num_final(self) -> int:
        """Segments that the next one cannot change, nor a window that holds their end as well."""
        segments = self._segments
        if not segments:
            return 0
        begin = segments[-1].end - MAX_OVERLAP
        return next((n for n, s in enumerate(segments[:-1]) if s.end >= begin), len(segments) - 1)

    def _sew(self, piece: Sequence[Segment], start: float, end: float) -> Sequence[Segment]:
        """Give what is new in a window that begins with what was heard in the one before."""
        told, open_ = self._segments[: self._num_told], self._segments[self._num_told :]
        if not piece or not open_ or open_[-1].end <= start or piece[0].start >= end:
            return piece
        kept, rest, is_sure = sew(open_, piece, start)
        if not is_sure:
            self.warnings.append(f"{end:.1f} s: cut within speech; words may be doubled there")
        self._segments = told + kept
        return rest

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
        if joined and text and not (is_unspaced(joined[-1]) and is_unspaced(text[0])):
            joined += " "
        joined += text
    return joined
