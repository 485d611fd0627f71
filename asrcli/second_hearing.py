"""A text that is doubtful is heard again: with several beams, or with the full context as well.

A model that was trained on 30 s may be given a short clip with the silence behind it in short, and
may take the likeliest id each time, which both take a fraction of the time. It then fails now and
then, and mostly says so: the text is unlikely, or goes round in circles, or never ends. Beams over
what is encoded already cost little. Where the text has failed, the window is transcribed with no
expense spared. The likelier of two texts is kept each time.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli.guards import find_fault, mean_logprob

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.engine.request import Request
    from asrcli.options import Options

DOUBTFUL_LOGPROB = -0.3  # mean log-probability below which a text is not trusted at once


def is_worth_it(heard: Recognition, request: Request, options: Options) -> bool:
    """Whether a text is doubtful, and can be bettered.

    Silence that was found with the full context stays silence: beams find words in any noise.
    """
    if _has_more_beams(request, options):
        return is_doubtful(heard) and (request.is_shortened or bool(heard.segments))
    return request.is_shortened and _has_failed(heard)


def improve(heard: Recognition, request: Request, options: Options) -> Options:
    """How a window is heard again."""
    suffices = _has_more_beams(request, options) and not _has_failed(heard)
    return replace(
        options,
        language=heard.language,
        audio_context=options.audio_context if request.is_shortened and suffices else "full",
        beam_size=_num_beams(request, options),
    )


def _has_more_beams(request: Request, options: Options) -> bool:
    return _num_beams(request, options) > request.sampling.num_beams


def _num_beams(request: Request, options: Options) -> int:
    if options.temperature > 0 or not options.fallback:
        return options.beam_size
    return max(options.beam_size, request.num_beams_in_doubt)


def is_doubtful(recognition: Recognition) -> bool:
    """Whether a window is worth a second hearing."""
    return _has_failed(recognition) or mean_logprob(recognition) < DOUBTFUL_LOGPROB


def choose(first: Recognition, second: Recognition) -> Recognition:
    """The likelier of two hearings; the second, with its full context, where the first failed.

    The first where both heard the same: which of them is likelier then is a matter of rounding.
    """
    if _has_failed(first):
        return second
    if _has_failed(second) or _texts(second) == _texts(first):
        return first
    if mean_logprob(second) <= mean_logprob(first):
        return first
    return second


def _texts(recognition: Recognition) -> list[str]:
    return [segment.text for segment in recognition.segments]


def _has_failed(recognition: Recognition) -> bool:
    """Whether there is no text, or one that goes round in circles or never came to an end."""
    return not recognition.segments or find_fault(recognition) not in (None, "unlikely")
