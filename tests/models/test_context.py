"""Hotwords, prompt and previous text, cut to what a model can take."""

from __future__ import annotations

from asrcli.models.context import fit_context
from asrcli.options import Options


def letters(text: str) -> list[int]:
    """An id for each letter."""
    return [ord(letter) for letter in text]


def fit(at_most: int, **options: str) -> str:
    return "".join(map(chr, fit_context(letters, Options(**options), at_most)))  # type: ignore[arg-type]


def test_all_of_it_where_it_fits() -> None:
    assert fit(99, hotwords="Ada", prompt="A talk.", previous_text="We met") == "Ada A talk. We met"
    assert fit(99) == ""


def test_the_start_is_cut_and_hotwords_stay() -> None:
    assert fit(8, prompt="abcdef", previous_text="ghijkl") == "f ghijkl"
    assert fit(8, hotwords="Ada", prompt="abcdef", previous_text="ghijkl") == "Adahijkl"


def test_hotwords_take_half_at_most() -> None:
    assert fit(8, hotwords="abcdefghijkl", previous_text="mnopqrst") == "abcdqrst"
    assert fit(8, hotwords="abcdefghijkl") == "abcd"
