"""Stretches of speech out of probabilities."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asrcli.audio.speech import MIN_PAUSE, MIN_SPEECH, OFF, ON, SpeechMap

YES, NEARLY, NO = 0.9, 0.4, 0.1


def stretches(*probabilities: float) -> list[tuple[int, int]]:
    found = SpeechMap()
    found.add((*probabilities, *[NO] * 5))
    return found.stretches(0)


@pytest.mark.parametrize(
    ("probabilities", "expected"),
    [
        ([NO] * 9, []),
        ([NO, NO, YES, YES, YES, NO], [(2, 5)]),
        ([YES, YES, NO, NO, NO], []),  # a click
        ([NEARLY] * 9, []),  # never sure
        ([NEARLY, NEARLY, YES, NEARLY, NEARLY], [(0, 5)]),  # it begins and ends softly
        ([YES] * 4 + [NO] * 2 + [YES] * 4, [(0, 10)]),  # a stop consonant
        ([YES] * 4 + [NO] * 3 + [YES] * 4, [(0, 4), (7, 11)]),
        ([YES] * 4 + [NO] * 2 + [YES] * 2, [(0, 4)]),
    ],
)
def test_stretches(probabilities: list[float], expected: list[tuple[int, int]]) -> None:
    assert stretches(*probabilities) == expected


def test_what_goes_on_is_there_as_soon_as_it_is_sure() -> None:
    found = SpeechMap()
    found.add([NO, NO, NEARLY, NEARLY])
    assert (found.stretches(0), found.num_settled) == ([], 2)
    found.add([YES])
    assert (found.stretches(0), found.num_settled) == ([(2, 5)], 5)
    found.add([YES, NO])
    assert (found.stretches(0), found.num_settled) == ([(2, 6)], 7)


def test_forgets_what_lies_behind() -> None:
    found = SpeechMap()
    found.add([YES] * 5 + [NO] * 5 + [YES] * 5 + [NO])
    found.forget(7)
    assert found.stretches(0) == [(10, 15)]
    assert found.stretches(15) == []


@given(
    st.lists(st.sampled_from([YES, NEARLY, NO]), max_size=60),
    st.integers(1, 7),
)
def test_as_they_come_or_all_at_once(probabilities: list[float], size: int) -> None:
    once, bit_by_bit = SpeechMap(), SpeechMap()
    once.add(probabilities)
    for begin in range(0, len(probabilities), size):
        bit_by_bit.add(probabilities[begin : begin + size])
    found = bit_by_bit.stretches(0)
    assert found == once.stretches(0)
    assert all(end - begin >= MIN_SPEECH for begin, end in found)
    assert all(b - a >= MIN_PAUSE for (_, a), (b, _) in itertools.pairwise(found))
    assert all(max(probabilities[begin:end]) >= ON for begin, end in found)
    assert all(probabilities[begin] >= OFF for begin, _ in found)
