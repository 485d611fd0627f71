"""The guard of short windows: a text that is doubtful is heard again with the full context.

A model that was trained on 30 s may be given a short clip with only part of the silence behind it,
which takes half the time. It then fails now and then, and mostly says so: the text is unlikely, or
goes round in circles, or never ends. Such a window is transcribed again as the model was trained,
and the likelier of the two texts is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition

DOUBTFUL_LOGPROB = -0.4  # mean log-probability below which a text is not trusted at once
COMPRESSION_RATIO = 2.4  # above it a text repeats itself (openai/whisper)


def is_doubtful(recognition: Recognition) -> bool:
    """Whether a window is worth a second hearing."""
    return _has_failed(recognition) or _logprob(recognition) < DOUBTFUL_LOGPROB


def choose(first: Recognition, second: Recognition) -> Recognition:
    """The likelier of two hearings; the second, with its full context, where the first failed."""
    if _has_failed(first):
        return second
    if _has_failed(second) or _logprob(second) <= _logprob(first):
        return first
    return second


def _has_failed(recognition: Recognition) -> bool:
    """Whether there is no text, or one that goes round in circles or never came to an end."""
    if not recognition.segments or not recognition.ended:
        return True
    return (recognition.segments[0].compression_ratio or 0.0) > COMPRESSION_RATIO


def _logprob(recognition: Recognition) -> float:
    """Mean log-probability of a window's text: all its segments state the same."""
    value = recognition.segments[0].avg_logprob
    return 0.0 if value is None else value
