"""The seam of two windows where speech had to be cut without a pause: one text made of two.

Both windows hold the last seconds before the cut. What the first begins to say there it cannot end,
and a model likes to end it in its own words: the second hears it whole. What the first has begun
earlier, the second hears the end of: where their words agree, the text goes over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.words import find_words, split_words

if TYPE_CHECKING:
    from asrcli.transcript import Segment

MAX_DROPPED = 3  # words at either edge that may have been heard wrongly
MAX_SHARED = 24  # words that are sought in both texts
MIN_WORDS = 3  # that agree; fewer may by chance, unless they are long or at the very edges:
MIN_LETTERS = 2  # and one more for each word that is dropped
MIN_SHARED = 0.7  # s; in less there may be no word that both heard
LATENESS = 0.2  # s that a segment's time may be early
MISMATCH_COST = 0.5  # of a word that agrees
DROP_COST = 0.25
SURPRISE_COST = 0.15  # for each word more or less than the time has room for
BETWEEN = " ,;:.!?…-–—、。，；：！？"  # what may stand between two words


def find_overlap(
    first: Sequence[str], second: Sequence[str], num_expected: float
) -> tuple[int, int] | None:
    """Where the words of two texts go over into one another.

    Args:
        first, second: their words; the end of the first and the start of the second overlap.
        num_expected: words that are said in the overlap, about.

    Returns:
        How many words to leave out at the end of the first and at the start of the second; None
        where they do not agree.
    """
    best: tuple[float, int, int] | None = None
    for num_after in range(min(MAX_DROPPED, len(first)) + 1):
        end = len(first) - num_after
        for num_before in range(min(MAX_DROPPED, len(second)) + 1):
            for num_shared in range(1, min(MAX_SHARED, end, len(second) - num_before) + 1):
                one = first[end - num_shared : end]
                other = second[num_before : num_before + num_shared]
                if one[-1] != other[-1]:
                    continue
                same = [word for word, heard in zip(one, other, strict=True) if word == heard]
                num_letters = sum(map(len, same))
                if len(same) < MIN_WORDS and num_letters < MIN_LETTERS + num_after + num_before:
                    continue
                score = (
                    len(same)
                    - MISMATCH_COST * (num_shared - len(same))
                    - DROP_COST * (num_after + num_before)
                    - SURPRISE_COST * abs(num_shared + num_after - num_expected)
                )
                if best is None or score > best[0]:
                    best = score, num_after, num_before + num_shared
    return None if best is None or best[0] <= 0 else best[1:]


def sew(
    said: Sequence[Segment], piece: Sequence[Segment], start: float
) -> tuple[list[Segment], list[Segment], bool]:
    """Join what two windows heard, the second from ``start`` (s) on.

    Args:
        said: the last segments that were said, with what the first window heard behind ``start``.
        piece: what the second window heard.

    Returns:
        These segments anew, what follows them, and whether that is sure: otherwise all is there
        that either heard, and some of it may be there twice.
    """
    earlier = [segment for segment in said if segment.start < start - LATENESS]
    if not earlier:
        return earlier, list(piece), True
    joined = _join(earlier, piece, start)
    if joined is None and earlier[-1].end - start < MIN_SHARED:
        joined = earlier, list(piece)
    joined = joined or _join(said, piece, start)  # the second may have missed its start
    return (*joined, True) if joined is not None else (list(said), list(piece), False)


def _join(
    said: Sequence[Segment], piece: Sequence[Segment], start: float
) -> tuple[list[Segment], list[Segment]] | None:
    """Both texts, each up to or from where their words agree; None where they do not."""
    last = said[-1]
    num_expected = max(0.0, last.end - start) * _rate(said)
    heard = split_words(" ".join(segment.text for segment in piece))
    overlap = find_overlap(_last_words(said), heard, num_expected)
    num_last = len(find_words(last.text))
    if overlap is None or overlap[0] >= num_last:
        return None
    num_after, num_before = overlap
    place = find_words(last.text)[num_last - num_after - 1][1]
    mark = _mark_behind(piece, num_before)
    if num_after or mark is not None:  # how the second goes on, not how the first broke off
        last = replace(last, text=last.text[:place] + (mark or ""), tokens=())
    return [*said[:-1], last], without_first_words(piece, num_before)


def without_first_words(segments: Sequence[Segment], num_words: int) -> list[Segment]:
    """Segments without so many of their first words."""
    kept = []
    for segment in segments:
        ends = [end for _, end in find_words(segment.text)]
        if 0 < num_words < len(ends):
            text = segment.text[ends[num_words - 1] :].lstrip(BETWEEN)
            kept.append(replace(segment, text=text, tokens=()))
        elif num_words <= 0:
            kept.append(segment)
        num_words -= len(ends)
    return kept


def without_last_words(segments: Sequence[Segment], num_words: int) -> list[Segment]:
    """Segments without so many of their last words."""
    kept: list[Segment] = []
    for segment in reversed(segments):
        ends = [end for _, end in find_words(segment.text)]
        if 0 < num_words < len(ends):
            text = segment.text[: ends[-num_words - 1]]
            kept.append(replace(segment, text=text, tokens=()))
        elif num_words <= 0:
            kept.append(segment)
        num_words -= len(ends)
    return kept[::-1]


def _mark_behind(segments: Sequence[Segment], num_words: int) -> str | None:
    """The punctuation behind the last of so many words, as the text that goes on there has it;
    None where that text ends with the word, and so does not go on."""
    text = " ".join(segment.text for segment in segments)
    words = find_words(text)
    if num_words >= len(words):
        return None
    behind = text[words[num_words - 1][1] :]
    return behind[: len(behind) - len(behind.lstrip(BETWEEN))].strip()


def _last_words(segments: Sequence[Segment]) -> list[str]:
    """Words of the last segments, as many as could be in an overlap."""
    words: list[str] = []
    for segment in reversed(segments):
        words = split_words(segment.text) + words
        if len(words) > MAX_SHARED + MAX_DROPPED:
            break
    return words


def _rate(segments: Sequence[Segment]) -> float:
    """Words a second, in the last segments."""
    few = segments[-3:]
    num_words = sum(len(split_words(segment.text)) for segment in few)
    return num_words / max(1.0, few[-1].end - few[0].start) if few else 0.0
