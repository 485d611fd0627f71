"""What is told of a window that was heard more than once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.guards import find_fault, num_repeated, repeats, starts_with
from asrcli.transcript import ROUNDING, Retry, Segment
from asrcli.windows import without_first_words, without_last_words

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.windows import Window


_DOUBTS = {
    "unlikely": "the model is not sure of the text",
    "repetition": "the text repeats itself; some of it may be made up",
    "too much": "more text than can be said in that time; some of it may be made up",
}


def note(hearings: Sequence[Recognition], best: Recognition, window: Window) -> Recognition:
    """The best of several hearings, with what became of the others; a warning if none is good."""
    reason = find_fault(hearings[0])
    if reason is None or (len(hearings) == 1 and not best.losses):
        return best
    fault = find_fault(best)
    is_kept = fault == "repetition" and best is hearings[0]
    warnings = best.warnings
    if fault in _DOUBTS and not is_kept and not best.losses:
        warnings += (f"{window.start:.1f}-{window.end:.1f} s: {_DOUBTS[fault]}",)
    outcome = "resolved" if fault is None else "kept" if is_kept else "given up"
    outcome = outcome if best.segments else "silence"
    retry = _retry(window, reason, outcome, best)
    return replace(best, warnings=warnings, retries=(*hearings[0].retries, retry))


def note_second(
    first: Recognition, chosen: Recognition, window: Window, reason: str
) -> Recognition:
    """The one of two hearings that was chosen, with why there was a second."""
    outcome = "kept" if chosen is first else "resolved" if chosen.segments else "silence"
    return replace(chosen, retries=(*first.retries, _retry(window, reason, outcome, chosen)))


def note_halves(first: Recognition, both: Recognition, window: Window) -> Recognition:
    """What was recognised in the halves of a window, with what was wrong with it as a whole."""
    outcome = "given up" if both.losses else "resolved"
    retry = _retry(window, find_fault(first) or "unfinished", outcome, both)
    return replace(both, retries=(*first.retries, retry, *both.retries))


def note_unheard(best: Recognition, parts: Iterable[Window]) -> Recognition:
    """What was recognised, with a warning for each part that is speech and has no word."""
    for part in parts:
        best = _warned(best, part, "speech was detected here, but no words")
    return best


def note_parts(
    first: Recognition, heard: Iterable[Recognition], parts: Iterable[Window]
) -> Recognition:
    """What was recognised in a window, and in parts of it of which it had said nothing."""
    for recognition, part in zip(heard, parts, strict=True):
        first = _note_part(first, recognition, part)
    return first


def _note_part(first: Recognition, heard: Recognition, part: Window) -> Recognition:
    if not heard.segments:  # as its own warning says
        return replace(first, warnings=first.warnings + heard.warnings)
    before, after = _around(first, part)
    if _is_doubled(before, heard, after, part):
        return _warned(first, part, "the words beside it may have been said again here")
    segments = _between(before, heard, after, part)
    if not segments:
        return first
    outcome = "given up" if heard.losses else "resolved"
    return replace(
        first,
        segments=(*before.segments, *segments, *after.segments),
        warnings=first.warnings + heard.warnings,
        losses=first.losses + heard.losses,
        retries=(*first.retries, _retry(part, "unheard", outcome, heard), *heard.retries),
    )


def _around(first: Recognition, part: Window) -> tuple[Recognition, Recognition]:
    """What was recognised before a part of a window, and what behind it."""
    before = tuple(segment for segment in first.segments if segment.start < part.start)
    return replace(first, segments=before), replace(first, segments=first.segments[len(before) :])


def _is_doubled(before: Recognition, heard: Recognition, after: Recognition, part: Window) -> bool:
    """Whether the part, a breath of its own, says only what is said beside it: twice, or the text
    was whole and a time of it wrong."""
    return (not _is_one_breath_before(part) and repeats(before, heard)) or (
        not _is_one_breath_behind(part) and starts_with(after, heard)
    )


def _between(
    before: Recognition, heard: Recognition, after: Recognition, part: Window
) -> list[Segment]:
    """The part's own segments, without words that are the neighbours', whose times may be a bit
    off."""
    segments = list(heard.segments)
    if _is_one_breath_before(part):
        segments = without_first_words(segments, num_repeated(before, heard))
    if _is_one_breath_behind(part):
        remaining = replace(heard, segments=tuple(segments))
        segments = without_last_words(segments, num_repeated(remaining, after))
    return segments


def _is_one_breath_before(part: Window) -> bool:
    assert part.speech
    return part.speech[0][0] <= part.start + ROUNDING


def _is_one_breath_behind(part: Window) -> bool:
    assert part.speech
    return part.speech[-1][1] >= part.end - ROUNDING


def _warned(recognition: Recognition, window: Window, what: str) -> Recognition:
    line = f"{window.start:.1f}-{window.end:.1f} s: {what}"
    return replace(recognition, warnings=(*recognition.warnings, line))


def _retry(window: Window, reason: str, outcome: str, kept: Recognition) -> Retry:
    temperature = kept.segments[0].temperature if kept.segments else 0.0
    return Retry(
        start=round(window.start, 3),
        end=round(window.end, 3),
        reason=reason,
        outcome=outcome,
        temperature=temperature,
    )
