"""Hotwords, prompt and previous text, cut to what a model can take."""

from __future__ import annotations

from typing import Any

from asrcli.models.context import fit_context
from asrcli.options import Options


def letters(text: str) -> list[int]:
    """An id for each letter."""
    return [ord(letter) for letter in text]


def fit(at_most: int, **options: Any) -> str:
    return "".join(map(chr, fit_context(letters, Options(**options), at_most)))


def test_all_of_it_where_it_fits() -> None:
    assert fit(99, hotwords="Ada", prompt="A talk.", previous_text="We met") == "Ada A talk. We met"
    assert fit(99) == ""


def test_what_the_user_says_stays_in_every_window() -> None:
    assert fit(8, prompt="abcdef", previous_text="ghijkl") == "abcdefkl"
    assert fit(8, hotwords="Ada", prompt="abcd", previous_text="ghijkl") == "Ada abcd"


def test_the_start_is_cut() -> None:
    assert fit(4, prompt="abcdef") == "cdef"
    assert fit(4, hotwords="abcdef") == "cdef"


def test_hotwords_keep_half_of_the_room_or_what_the_prompt_leaves() -> None:
    assert fit(8, hotwords="abcdef", prompt="mnopqrst") == "cdefqrst"
    assert fit(8, hotwords="abcdefgh", prompt="mn") == "cdefghmn"


def test_room_is_kept_for_what_was_said_before_where_windows_are_to_be_told() -> None:
    told = {"hotwords": "abcdefghij", "condition_on_previous_text": True}
    assert fit(8, **told) == "efghij"
    assert fit(8, **told, previous_text="mnopqrst") == "efghijst"
