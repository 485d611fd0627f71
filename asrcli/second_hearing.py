"""The guard of short windows: a text that is doubtful is heard again with the full context.

A model that was trained on 30 s may be given a short clip with only part of the silence behind it,
which takes half the time. It then fails now and then, and mostly says so: the text is unlikely, or
goes round in circles, or never ends. Such a window is transcribed again as the model was trained,
and the likelier of the two texts is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from asrcli.guards import find_fault, mean_logprob

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition

DOUBTFUL_LOGPROB = -0.35  # mean log-probability below which a text is not trusted at once


def is_doubtful(recognition: Recognition) -> bool:
    """Whether a window is worth a second hearing."""
    return _has_failed(recognition) or mean_logprob(recognition) < DOUBTFUL_LOGPROB


def choose(first: Recognition, second: Recognition) -> Recognition:
    """The likelier of two hearings; the second, with its full context, where the first failed."""
    if _has_failed(first):
        return second
    if _has_failed(second) or mean_logprob(second) <= mean_logprob(first):
        return first
    return second


def _has_failed(recognition: Recognition) -> bool:
    """Whether there is no text, or one that goes round in circles or never came to an end."""
    return not recognition.segments or find_fault(recognition) not in (None, "unlikely")
