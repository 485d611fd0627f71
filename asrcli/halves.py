"""A window whose text came to no end is heard again in two pieces: when, and what comes of it.

A text that only the bound on its length ends has left words out behind it, or runs in circles. In
the halves there is less to say, and the circle seldom comes back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.backends.base import Recognition
from asrcli.windows import halve

if TYPE_CHECKING:
    from asrcli.windows import Window

_WHAT_HAPPENED = {"loop": "the text ran in circles", "unfinished": "the text came to no end"}
MIN_DURATION = 2.0  # s; a window that is shorter has no halves worth hearing

__all__ = ["can_halve", "halve", "join", "unfinished"]


def can_halve(window: Window) -> bool:
    """Whether a window is long enough to be cut in two."""
    return window.end - window.start >= MIN_DURATION


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


def join(first: Recognition, second: Recognition) -> Recognition:
    """What was recognised in both halves."""
    return Recognition(
        segments=first.segments + second.segments,
        language=first.language or second.language,
        warnings=first.warnings + second.warnings,
        losses=first.losses + second.losses,
        retries=first.retries + second.retries,
    )
