"""Times of segments against where somebody speaks."""

from __future__ import annotations

import pytest

from asrcli.speech_times import fit_to_speech
from asrcli.transcript import Segment


def times(
    segments: list[tuple[float, float]], speech: list[tuple[float, float]] | None
) -> list[tuple[float, float]]:
    made = [Segment(id=i, start=a, end=b, text="x") for i, (a, b) in enumerate(segments)]
    return [(segment.start, segment.end) for segment in fit_to_speech(made, speech)]


@pytest.mark.parametrize(
    ("segment", "expected"),
    [
        ((10.0, 20.0), (11.8, 18.2)),  # a window's times come down to its speech
        ((12.5, 14.0), (12.5, 13.2)),
        ((13.5, 18.0), (15.8, 18.0)),
        ((11.9, 18.1), (11.9, 18.1)),  # inside the margin
        ((13.5, 15.5), (13.5, 15.5)),  # nobody speaks: left alone
        ((12.2, 12.4), (12.2, 12.4)),
        ((18.0, 25.0), (18.0, 25.0)),
    ],
)
def test_ends_leave_silence(segment: tuple[float, float], expected: tuple[float, float]) -> None:
    assert times([segment], [(12.0, 13.0), (16.0, 18.0)]) == [expected]


def test_unknown_speech_changes_nothing() -> None:
    assert times([(1.0, 2.0)], None) == [(1.0, 2.0)]
    assert times([(1.0, 2.0)], []) == [(1.0, 2.0)]


def test_order_stays() -> None:
    segments = [(0.0, 5.0), (5.0, 9.0), (9.0, 12.0)]
    found = times(segments, [(1.0, 2.0), (6.0, 7.0), (9.5, 11.0)])
    assert found == [(0.8, 2.2), (5.8, 7.2), (9.3, 11.2)]
