"""Words as they are compared, in scripts with spaces and without."""

from __future__ import annotations

import pytest

from asrcli.words import find_words, split_words


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("… ♪ –", []),
        (" The lazy  DOG. ", ["the", "lazy", "dog"]),
        ("don't, 3.5 km", ["don", "t", "3", "5", "km"]),
        ("Straße", ["strasse"]),
        ("나는 학교에 간다", ["나는", "학교에", "간다"]),
        ("今天天气，很好", ["今", "天", "天", "气", "很", "好"]),
        ("東京タワー", ["東", "京", "タ", "ワ", "ー"]),
        ("用GPU算3次", ["用", "gpu", "算", "3", "次"]),
        ("नमस्ते दुनिया", ["नमस्ते", "दुनिया"]),  # vowel signs are no ends of words
        ("สวัสดี", ["ส", "วั", "ส", "ดี"]),
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        ("\u0301 a", ["a"]),
    ],
)
def test_words(text: str, expected: list[str]) -> None:
    assert split_words(text) == expected


@pytest.mark.parametrize("text", ["The lazy, DOG. Yes", "今天很好。Yes", "सुनो ना", "ดี มาก!"])
def test_where_words_end(text: str) -> None:
    found = find_words(text)
    begin = 0
    for word, end in found:
        assert text[begin:end].casefold().endswith(word)
        begin = end
    assert split_words(text[begin:]) == []
    for number, (_, end) in enumerate(found, start=1):
        assert split_words(text[:end]) == [word for word, _ in found[:number]]
