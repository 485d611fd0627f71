"""Circles that a row runs in, and what only looks like one."""

from __future__ import annotations

import random

import pytest

from asrcli.engine.loops import MAX_PERIOD, find_loop

ALL = 1000
SENTENCE = list(range(100, 130))


def test_a_word_over_and_over() -> None:
    assert find_loop([1, 2, 3] + [7] * 48, ALL) == 4
    assert find_loop([1, 2, 3] + [7] * 47, ALL) is None  # it may yet end


@pytest.mark.parametrize("period", [1, 2, 3, 7, 8, 30, MAX_PERIOD])
def test_any_period(period: int) -> None:
    chance = random.Random(period)
    said = [chance.randrange(ALL) for _ in range(20)]
    circle = [1001, *(chance.randrange(ALL) for _ in range(period - 1))]
    circle[0] = 999
    num_rounds = max(6, -(-48 // period))
    ids = said + circle * num_rounds
    assert find_loop(ids, ALL) == len(said) + period
    assert find_loop(ids[: len(said) + 5 * period], ALL) is None


def test_what_is_said_five_times_is_said_five_times() -> None:
    for num_ids in (8, 15, 30):
        phrase = SENTENCE[:num_ids]
        assert find_loop(phrase * 5, ALL) is None
        assert find_loop(phrase * 5 + phrase[:-1], ALL) is None
        assert find_loop(phrase * 6, ALL) == num_ids if num_ids * 6 >= 48 else True
        assert find_loop(phrase * 6 + [1], ALL) is None  # it has gone on


def test_numbers_with_many_zeros_are_none() -> None:
    assert find_loop([5, 6] + [0] * 24, ALL) is None


def test_times_between_do_not_hide_it() -> None:
    first_time = 500
    ids = [1, 2, 3]
    for number in range(7):
        ids += [first_time + 2 * number, *SENTENCE, first_time + 2 * number + 1]
    kept = find_loop(ids, first_time)
    assert kept is not None
    assert ids[:kept] == [1, 2, 3, 500, *SENTENCE]
    assert find_loop(ids, ALL) is None


def test_nothing_is_watched() -> None:
    assert find_loop([7] * 100, 0) is None
    assert find_loop([], ALL) is None


def test_random_ids_are_no_circle() -> None:
    chance = random.Random(0)
    for _ in range(50):
        ids = [chance.randrange(4) for _ in range(200)]
        assert find_loop(ids, ALL) is None
