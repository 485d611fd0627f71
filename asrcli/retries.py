"""What is told of a window that was heard more than once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.guards import find_fault, num_repeated, repeats
from asrcli.transcript import ROUNDING, Retry
from asrcli.windows import without_first_words

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.windows import Window


_DOUBTS = {
    "unlikely": "the model is not sure of the text",
    "too much": "more text than can be said in that time; some of it may be made up",
}


def note(hearings: Sequence[Recognition], best: Recognition, window: Window) -> Recognition:
    """The best of several hearings, with what became of the others; a warning if none is good."""
    reason = find_fault(hearings[0])
    if reason is None or (len(hearings) == 1 and not best.losses):
        return best
    fault = find_fault(best)
    warnings = best.warnings
    if fault in _DOUBTS and not best.losses:
        warnings += (f"{window.start:.1f}-{window.end:.1f} s: {_DOUBTS[fault]}",)
    outcome = "resolved" if fault is None else "kept" if fault == "repetition" else "given up"
    outcome = outcome if best.segments else "silence"
    retry = _retry(window, reason, outcome, best)
    return replace(best, warnings=warnings, retries=(*hearings[0].retries, retry))


def note_second(
    first: Recognition, chosen: Recognition, window: Window, reason: str
) -> Recognition:
    """The one of two hearings that was chosen, with why there was a second."""
    outcome = "kept" if chosen is first else "resolved" if chosen.segments else "silence"
    return replace(chosen, retries=(_retry(window, reason, outcome, chosen),))


def note_halves(first: Recognition, both: Recognition, window: Window) -> Recognition:
    """What was recognised in the halves of a window, with what was wrong with it as a whole."""
    outcome = "given up" if both.losses else "resolved"
    retry = _retry(window, find_fault(first) or "unfinished", outcome, both)
    return replace(both, retries=(*first.retries, retry, *both.retries))


def note_unheard(best: Recognition, rest: Window) -> Recognition:
    """What was recognised, with a warning: of what is speech in ``rest`` there is no word."""
    return _warned(best, rest, "speech was detected here, but no words")


def note_rest(first: Recognition, behind: Recognition, rest: Window) -> Recognition:
    """What was recognised in a window, and behind where its text had come to an end too early."""
    if not behind.segments:  # as its own warning says
        return replace(first, warnings=first.warnings + behind.warnings)
    assert rest.speech
    if rest.speech[0][0] <= rest.start + ROUNDING:  # the same breath: the time may be a bit early
        segments = without_first_words(behind.segments, num_repeated(first, behind))
        behind = replace(behind, segments=tuple(segments))
        if not behind.segments:
            return first
    elif repeats(first, behind):  # said twice, or the text was whole and its last time wrong
        return _warned(first, rest, "the words before may have been said again here")
    outcome = "given up" if behind.losses else "resolved"
    return replace(
        first,
        segments=first.segments + behind.segments,
        warnings=first.warnings + behind.warnings,
        losses=first.losses + behind.losses,
        retries=(*first.retries, _retry(rest, "unheard", outcome, behind), *behind.retries),
    )


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
