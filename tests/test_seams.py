"""How the texts of two windows that overlap become one: no word lost, none twice."""

from __future__ import annotations

import pytest

from asrcli.transcript import Segment
from asrcli.windows import Stitcher
from asrcli.windows.seams import find_overlap, sew


def segments(*parts: tuple[float, float, str]) -> list[Segment]:
    return [
        Segment(id=0, start=start, end=end, text=text, tokens=(1, 2)) for start, end, text in parts
    ]


@pytest.mark.parametrize(
    ("first", "second", "num_expected", "expected"),
    [
        ("a cold wind and the str", "wind and the streets were", 4, (1, 3)),
        ("a cold wind and the", "old wind and the streets", 3, (0, 4)),
        ("a cold wind", "wind and the", 1, (0, 1)),
        ("he said no", "no way", 1, (0, 1)),  # a short word, but at both edges
        ("the cold in the streets", "cold and the streets were", 4, (0, 4)),  # one was misheard
        ("five five", "five five six", 2, (0, 2)),
        ("on the hill", "she bought the bread", 3, None),  # "the" says nothing
        ("left", "right", 1, None),
        ("", "right", 1, None),
        ("left", "", 1, None),
    ],
)
def test_where_two_texts_agree(
    first: str, second: str, num_expected: float, expected: tuple[int, int] | None
) -> None:
    assert find_overlap(first.split(), second.split(), num_expected) == expected


@pytest.mark.parametrize(
    ("said", "piece", "text"),
    [
        # The first breaks off within a word, the second begins within one.
        (
            segments((10, 30, " The weather was cold and the str.")),
            segments((28, 40, " -ther was cold and the streets were empty.")),
            "The weather was cold and the streets were empty.",
        ),
        # What the first begins behind the seam it makes up; the second hears it whole.
        (
            segments((10, 28.1, " We went to school."), (28.4, 30, " Then the doctor came.")),
            segments((28.2, 40, " The children walked home.")),
            "We went to school. The children walked home.",
        ),
        # The same, with the end of the sentence before heard twice.
        (
            segments((10, 29.2, " We went along to school."), (29.2, 30, " The.")),
            segments((28, 29.3, " long to school."), (29.3, 40, " The children came.")),
            "We went along to school. The children came.",
        ),
        # The second begins to listen too late: what the first heard stays.
        (
            segments((10, 29, " They came in."), (29, 29.9, " Seventeen.")),
            segments((28, 40, " The children walked.")),
            "They came in. Seventeen. The children walked.",
        ),
        # Punctuation is that of the text that goes on.
        (
            segments((10, 30, " It was cold.")),
            segments((28, 40, " was cold, and dark.")),
            "It was cold, and dark.",
        ),
        (
            segments((10, 30, "今天天气很")),
            segments((28, 40, "天气很好，明天见")),
            "今天天气很好，明天见",
        ),
    ],
)
def test_one_text_of_two(said: list[Segment], piece: list[Segment], text: str) -> None:
    stitcher = Stitcher()
    stitcher.add(said)
    stitcher.add(piece, (28.0, 30.0))
    stitcher.finish()
    assert stitcher.text == text
    times = [time for each in stitcher.segments for time in (each.start, each.end)]
    assert times == sorted(times)


def test_what_is_not_sure_is_told() -> None:
    stitcher = Stitcher()
    stitcher.add(segments((10, 30, "They came in.")))
    stitcher.add(segments((28, 40, "The children walked.")), (28.0, 30.0))
    assert stitcher.text == "They came in. The children walked."
    assert stitcher.warnings == ["30.0 s: cut within speech; words may be doubled there"]


@pytest.mark.parametrize(
    "piece", [[], segments((30.5, 40, "They came in.")), segments((28, 40, "They came in again."))]
)
def test_where_nothing_was_heard_in_the_overlap_nothing_is_taken_away(piece: list[Segment]) -> None:
    stitcher = Stitcher()
    stitcher.add(segments((10, 20, "They came in.")))
    stitcher.add(piece, (28.0, 30.0))
    assert stitcher.text == " ".join(["They came in.", *(each.text for each in piece)])
    assert stitcher.warnings == []


def test_what_was_told_is_final() -> None:
    """Segments that the next window may change are held back until it has come."""
    stitcher = Stitcher()
    first = segments((10, 20, "One."), (20, 26, "Two."), (26, 29, "Three for."), (29, 30, "Fur."))
    told = list(stitcher.add(first))
    assert [each.text for each in told] == ["One.", "Two."]
    told += stitcher.add(segments((28, 45, "Three four five."), (45, 50, "Six.")), (28.0, 30.0))
    told += stitcher.finish()
    assert [each.text for each in told] == [each.text for each in stitcher.segments]
    assert stitcher.text == "One. Two. Three four five. Six."


def test_ids_go_where_their_text_went() -> None:
    said = segments((10, 30, "It was cold"))
    kept, rest, is_sure = sew(said, segments((28, 40, "cold and dark")), 28.0)
    assert (kept[0].text, rest[0].text, is_sure) == ("It was cold", "and dark", True)
    assert rest[0].tokens == ()  # they say more than the text does
