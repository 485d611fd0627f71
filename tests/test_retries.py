"""What is told of windows that were heard more than once, and how what lies behind is added."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from asrcli import retries
from asrcli.backends.base import Recognition
from asrcli.guards import echoes, num_repeated, says_again, sounds_alike
from asrcli.transcript import Retry, Segment
from asrcli.windows import Window, rest_of
from tests.speech import RATE, window_of


def heard(*texts: str, start: float = 60.0) -> Recognition:
    """Segments of one second each."""
    return Recognition(
        segments=tuple(
            Segment(id=0, start=start + number, end=start + number + 1, text=text, tokens=(1, 2))
            for number, text in enumerate(texts)
        )
    )


def rest(start: float, *speech: tuple[float, float], end: float = 70.0) -> Window:
    """What lies between two times in a window from 60 to 70 s."""
    window = replace(window_of(np.ones(10 * RATE, np.float32), start=60.0), speech=speech)
    found = rest_of(window, start, end)
    assert found is not None
    return found


def text(recognition: Recognition) -> list[str]:
    return [segment.text for segment in recognition.segments]


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("the lazy dog.", "Easy dog.", 2),  # from within a word
        ("the quick brown fox", "fox jumps over", 1),
        ("the quick brown fox", "Brown fox jumps over", 2),
        ("the quick brown fox", "jumps over", 0),
        ("今天天气很好", "很好", 2),
        ("今天天气很好", "好的明天见", 1),
        ("", "fox", 0),
        ("fox", "", 0),
    ],
)
def test_words_that_two_hearings_have_in_common(first: str, second: str, expected: int) -> None:
    assert num_repeated(heard(first), heard(second)) == expected


@pytest.mark.parametrize(
    ("behind", "expected"),
    [
        (("over it",), ["the brown fox", "over it"]),
        (("fox, jumps!",), ["the brown fox", "jumps!"]),
        (("Fox.", "It jumps."), ["the brown fox", "It jumps."]),
        (("brown fox",), ["the brown fox"]),
    ],
)
def test_what_goes_on_in_one_breath_is_not_doubled(
    behind: tuple[str, ...], expected: list[str]
) -> None:
    window = rest(62.0, (60.5, 65.0))
    noted = retries.note_parts(heard("the brown fox"), [heard(*behind, start=62.0)], [window])
    assert text(noted) == expected
    assert noted.warnings == ()
    reasons = [(retry.start, retry.end, retry.reason, retry.outcome) for retry in noted.retries]
    assert reasons == ([(62.0, 70.0, "unheard", "resolved")] if len(expected) > 1 else [])


def test_what_is_said_again_after_a_pause_is_told() -> None:
    """It may have been said twice, or its time may be wrong: the text cannot tell."""
    window = rest(62.0, (60.5, 62.0), (64.0, 66.0))
    noted = retries.note_parts(heard("I said stop"), [heard("Stop!", start=64.0)], [window])
    assert text(noted) == ["I said stop"]
    assert noted.warnings == ("63.7-70.0 s: the words beside it may have been said again here",)
    other = retries.note_parts(heard("I said stop"), [heard("stop it now", start=64.0)], [window])
    assert text(other) == ["I said stop", "stop it now"]  # after a pause nothing is cut off
    assert other.warnings == ()


def both_sides(first: str, last: str) -> Recognition:
    """A text with a gap from 61 to 67 s."""
    return replace(heard(first), segments=heard(first).segments + heard(last, start=67.0).segments)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (("jumps over",), ["the fox", "jumps over", "the dog"]),
        (("The fox jumps", "over the."), ["the fox", "jumps", "over", "the dog"]),
        (("over the dog",), ["the fox", "over", "the dog"]),
        (("fox", "the dog"), ["the fox", "the dog"]),
    ],
)
def test_what_was_left_out_in_the_middle_is_put_in_its_place(
    said: tuple[str, ...], expected: list[str]
) -> None:
    window = rest(61.0, (60.0, 69.0), end=67.0)
    first = both_sides("the fox", "the dog")
    noted = retries.note_parts(first, [heard(*said, start=62.0)], [window])
    assert text(noted) == expected
    assert [segment.start for segment in noted.segments] == sorted(
        segment.start for segment in noted.segments
    )
    reasons = [(retry.start, retry.end, retry.reason) for retry in noted.retries]
    assert reasons == ([(61.0, 67.0, "unheard")] if len(expected) > 2 else [])


@pytest.mark.parametrize("said", ["the fox", "the", "the dog"])
def test_the_words_beside_a_gap_said_again_in_it_are_told(said: str) -> None:
    window = rest(61.0, (63.0, 65.0), end=67.0)
    first = both_sides("the fox", "the dog")
    noted = retries.note_parts(first, [heard(said, start=63.0)], [window])
    assert noted.segments == first.segments
    assert noted.warnings == ("62.7-67.0 s: the words beside it may have been said again here",)


def test_speech_without_words_is_told() -> None:
    window = rest(60.0, (60.5, 63.0))
    noted = retries.note_unheard(Recognition(segments=()), [window])
    assert noted.warnings == ("60.2-70.0 s: speech was detected here, but no words",)


def test_a_second_hearing_is_noted() -> None:
    window = window_of(np.zeros(10 * RATE, np.float32), start=60.0)
    first, second, nothing = heard("one"), heard("two"), Recognition(segments=())
    outcomes = [
        retries.note_second(first, chosen, window, "echo").retries
        for chosen in (first, second, nothing)
    ]
    assert outcomes == [
        (Retry(start=60.0, end=70.0, reason="echo", outcome=outcome),)
        for outcome in ("kept", "resolved", "silence")
    ]


def test_earlier_notes_stay() -> None:
    window = window_of(np.zeros(10 * RATE, np.float32), start=60.0)
    echo = Retry(start=60.0, end=70.0, reason="echo", outcome="resolved")
    first = replace(heard("and and and"), fault="loop", retries=(echo,))
    warm, both = heard("and"), heard("and", "and")
    assert retries.note([first], first, window).retries == (echo,)
    noted = retries.note([first, warm], warm, window)
    assert [retry.reason for retry in noted.retries] == ["echo", "loop"]
    halves = retries.note_halves(first, both, window)
    assert [retry.reason for retry in halves.retries] == ["echo", "loop"]


@pytest.mark.parametrize(
    ("words", "hints", "expected"),
    [
        ("量子芯片超导", "量子 芯片 超导", True),
        ("東京と大阪", "東京大阪", True),
        ("今天天气很好", "量子 芯片 超导", False),
        ("นมัสการ", "ราคา", False),
        ("กรุงเทพ", "กรุงเทพ เชียงใหม่", True),
        ("नमस्ते", "नमस्ते दुनिया", True),
        ("zyxqorts", "zyxqort", True),
        ("a b c", "d e f", False),
    ],
)
def test_echoes_in_any_script(words: str, hints: str, expected: bool) -> None:
    assert echoes(heard(words), hints) is expected


def test_a_text_that_only_says_again_what_came_before() -> None:
    assert says_again(heard("of the House."), "This is the end of the house")
    assert not says_again(heard("of the house here"), "This is the end of the house")
    assert not says_again(heard("…"), "This is the end")
    assert not says_again(heard("the end"), "")


def test_long_texts_are_compared_word_by_word() -> None:
    words = [f"word{number}" for number in range(150)]
    assert sounds_alike(heard(" ".join(words)), heard(" ".join(words[:120])))
    assert not sounds_alike(heard(" ".join(words)), heard(" ".join(reversed(words))))
