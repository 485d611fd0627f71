"""A window of which no text will do is heard again in two pieces: when, and what comes of it.

A text that only the bound on its length ends has left words out behind it, or runs in circles. In
the halves there is less to say, and the circle seldom comes back. And where a model makes things up
from a window's first sound on, the second half begins with another one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.backends.base import Recognition
from asrcli.guards import UNENDED
from asrcli.windows import Stitcher, halve

if TYPE_CHECKING:
    from asrcli.windows import Window

_WHAT_HAPPENED = {"loop": "the text ran in circles", "unfinished": "the text came to no end"}
MIN_DURATION = 2.0  # s; a window that is shorter has no halves worth hearing
MIN_ENDED_DURATION = 10.0  # s; likewise where the text came to an end: a doubt, and no loss

__all__ = ["are_better", "can_halve", "halve", "join", "unfinished"]


def can_halve(window: Window, *, is_ended: bool) -> bool:
    """Whether a window is long enough to be cut in two."""
    return window.end - window.start >= (MIN_ENDED_DURATION if is_ended else MIN_DURATION)


def are_better(both: Recognition, best: Recognition) -> bool:
    """Whether what was recognised in the halves replaces the best text of the whole.

    A text that came to no end is always replaced; another one stays where neither half has one that
    is good enough.
    """
    if best.fault in UNENDED:
        return True
    given_up = [retry for retry in both.retries if retry.outcome == "given up"]
    return len(given_up) < 2


def unfinished(recognition: Recognition, window: Window) -> Recognition:
    """What was recognised, with a loss: its text came to no end.

    Raises:
        KeyError: it did.
    """
    assert recognition.fault is not None
    loss = (
        f"{window.start:.1f}-{window.end:.1f} s: {_WHAT_HAPPENED[recognition.fault]}; "
        "words may be missing or made up"
    )
    return replace(recognition, losses=(*recognition.losses, loss))


def join(halves: Sequence[Window], heard: Sequence[Recognition]) -> Recognition:
    """What was recognised in both halves: where both hold the same audio, once."""
    stitcher = Stitcher()
    first, second = heard
    stitcher.add(first.segments)
    seam = (halves[1].start, halves[0].end)
    stitcher.add(second.segments, seam if seam[0] < seam[1] else None)
    stitcher.finish()
    return Recognition(
        segments=stitcher.segments,
        language=first.language or second.language,
        warnings=(*first.warnings, *second.warnings, *stitcher.warnings),
        losses=first.losses + second.losses,
        retries=first.retries + second.retries,
    )
