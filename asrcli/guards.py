"""What is wrong with a text, and which of several is the best: the guards behind every window.

Thresholds are those of openai/whisper, which Radford et al. 2022 chose for long recordings; they
hold for the other families as well, since they judge the text and not the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import lru_cache
from typing import TYPE_CHECKING

from asrcli.words import split_words

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.transcript import Segment

COMPRESSION_RATIO = 2.4  # above it a text repeats itself
LOGPROB = -1.0  # mean log-probability below which a text is unlikely
TEMPERATURE_STEP = 0.2
MAX_TEMPERATURE = 1.0
REPETITION_COST = 0.5  # of mean log-probability: what a text may lose and still replace one
ECHO_SHARE = 2 / 3  # of a text's words that are the prompt's
SAME_WORD = 0.7  # share of letters in common of a word and its misspelling
SAME_SOUND = 0.5  # share of letters in common that two hearings of one word have
MAX_SPELT = 100  # words of texts that are compared letter by letter
MAX_OVERLAP = 4  # words that two hearings which follow one another may have in common

LETTERS_PER_SECOND = 30  # of speech; the fastest speakers come to 25
LETTERS_BESIDES = 10

UNENDED = ("loop", "unfinished")


def find_fault(recognition: Recognition) -> str | None:
    """Why a text is not good enough, in the words of ``Retry.reason``; None if it is."""
    if recognition.fault is not None:
        return recognition.fault
    if not recognition.segments:
        return None
    if (recognition.segments[0].compression_ratio or 0.0) > COMPRESSION_RATIO:
        return "repetition"
    return "unlikely" if mean_logprob(recognition) < LOGPROB else None


def is_good_enough(hearings: Sequence[Recognition]) -> bool:
    """Whether the last of a window's hearings may stand.

    A phrase may truly have been said over and over. So one that repeats itself is replaced only by
    a text that is not much less likely: one that leaves true repetitions out would be.
    """
    first, last = hearings[0], hearings[-1]
    if find_fault(last) is not None:
        return False
    if last is first or find_fault(first) != "repetition":
        return True
    return bool(last.segments) and mean_logprob(last) >= mean_logprob(first) - REPETITION_COST


def is_settled(hearings: Sequence[Recognition], best: Recognition) -> bool:
    """Whether the best of a window's hearings may stand, good enough or not.

    What repeats itself may truly have been said like this, where no other hearing is as likely.
    """
    return is_good_enough(hearings) or (
        best is hearings[0] and find_fault(best) in (None, "repetition")
    )


def next_temperature(hearings: Sequence[Recognition], first: float) -> float | None:
    """At which temperature to hear a window again; None where it was heard at all of them."""
    temperature = round(first + TEMPERATURE_STEP * len(hearings), 3)
    return temperature if temperature <= MAX_TEMPERATURE else None


def choose(hearings: Sequence[Recognition]) -> Recognition:
    """The best of a window's hearings: one that came to an end, and the likeliest of these."""
    if is_good_enough(hearings):
        return hearings[-1]
    return max(hearings, key=_worth)


def echoes(recognition: Recognition, hints: str) -> bool:
    """Whether a text says little but words that the model was given, perhaps misspelt."""
    words, given = _words(recognition), _given_words(hints)
    num_others = 0
    for word in words:
        num_others += word not in given and not any(_is_like(word, other) for other in given)
        if len(words) - num_others < ECHO_SHARE * len(words):
            return False
    return bool(words)


def says_again(recognition: Recognition, previous: str) -> bool:
    """Whether a text only says once more what was said right before it."""
    words = _words(recognition)
    return bool(words) and split_words(previous)[-len(words) :] == words


def sounds_alike(first: Recognition, second: Recognition) -> bool:
    """Whether two texts may be two hearings of the same words."""
    one, other = _words(first), _words(second)
    if max(len(one), len(other)) > MAX_SPELT:  # letter by letter would take seconds
        return SequenceMatcher(None, one, other, autojunk=False).ratio() >= SAME_SOUND
    matcher = SequenceMatcher(None, "".join(one), "".join(other), autojunk=False)
    return matcher.ratio() >= SAME_SOUND


def num_repeated(first: Recognition, second: Recognition) -> int:
    """How many words at the start of a text say the end of another once more.

    The second was heard from about where the first ends, perhaps from within its last word, which
    may then have lost a sound.
    """
    said, words = _words(first), _words(second)
    tail = "".join(said[-len(words) :]) if words else ""
    if words and SequenceMatcher(None, tail, "".join(words), autojunk=False).ratio() >= SAME_WORD:
        return len(words)
    most = min(MAX_OVERLAP, len(said), len(words))
    return next((num for num in range(most, 0, -1) if said[-num:] == words[:num]), 0)


def is_too_much(text: str, duration: float) -> bool:
    """Whether nobody says so much in so many seconds of speech."""
    num_letters = sum(map(str.isalnum, text))
    return num_letters > LETTERS_BESIDES + LETTERS_PER_SECOND * duration


def say_too_much(segments: Sequence[Segment], speech: Sequence[tuple[float, float]] | None) -> bool:
    """Whether a window's text is more than can be said in its speech, or a segment's in its time.

    Words that a model makes up behind the last one that was said have no time to be said in.
    """
    if any(is_too_much(segment.text, segment.end - segment.start) for segment in segments):
        return True
    if speech is None:
        return False
    text = " ".join(segment.text for segment in segments)
    return is_too_much(text, sum(end - start for start, end in speech))


def has_words(text: str) -> bool:
    """Whether there is a letter or a digit: dots, notes and spaces say nothing."""
    return any(map(str.isalnum, text))


def repeats(first: Recognition, second: Recognition) -> bool:
    """Whether a text only says the last words of another once more."""
    words = _words(second)
    return bool(words) and _words(first)[-len(words) :] == words


def starts_with(first: Recognition, second: Recognition) -> bool:
    """Whether a text only says the first words of another."""
    words = _words(second)
    return bool(words) and _words(first)[: len(words)] == words


def without_echoes(segments: Sequence[Segment]) -> list[Segment]:
    """Segments less those that say the one before once more, and in no time at all.

    A text that has come to the end of the speech too early may fill up like this.
    """
    kept: list[Segment] = []
    for segment in segments:
        is_said_again = kept and split_words(segment.text) == split_words(kept[-1].text)
        if not (is_said_again and is_too_much(segment.text, segment.end - segment.start)):
            kept.append(segment)
    return kept


def mean_logprob(recognition: Recognition) -> float:
    """Mean log-probability of a window's text: all its segments state the same."""
    value = recognition.segments[0].avg_logprob if recognition.segments else None
    return 0.0 if value is None else value


def _worth(recognition: Recognition) -> tuple[bool, bool, float]:
    cost = REPETITION_COST if find_fault(recognition) == "repetition" else 0.0
    return (
        recognition.fault is None,
        bool(recognition.segments),
        mean_logprob(recognition) - cost,
    )


def _words(recognition: Recognition) -> list[str]:
    return split_words(" ".join(segment.text for segment in recognition.segments))


@lru_cache(maxsize=16)
def _given_words(hints: str) -> frozenset[str]:
    """The words of what all windows are told."""
    return frozenset(split_words(hints))


def _is_like(word: str, other: str) -> bool:
    """Whether two different words may be spellings of one."""
    shorter, longer = sorted((len(word), len(other)))
    if shorter == 1 or 2 * shorter < SAME_WORD * (shorter + longer):
        return False
    matcher = SequenceMatcher(None, word, other, autojunk=False)
    return matcher.quick_ratio() >= SAME_WORD and matcher.ratio() >= SAME_WORD
