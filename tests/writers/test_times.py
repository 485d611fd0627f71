from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrcli.writers.times import time_string, to_milliseconds

TIMES = [
    (0, "00:00:00,000"),
    (0.0004, "00:00:00,000"),
    (0.0006, "00:00:00,001"),
    (0.9996, "00:00:01,000"),
    (1.0, "00:00:01,000"),
    (59.9994, "00:00:59,999"),
    (59.9996, "00:01:00,000"),
    (3599.9996, "01:00:00,000"),
    (3600, "01:00:00,000"),
    (86399.9996, "24:00:00,000"),
    (359999.9994, "99:59:59,999"),
    (359999.9996, "100:00:00,000"),
    (3600000.5, "1000:00:00,500"),
    (-0.01, "00:00:00,000"),
    (-1007.3, "00:00:00,000"),
]


@pytest.mark.parametrize(("seconds", "expected"), TIMES)
def test_known_times(seconds: float, expected: str) -> None:
    assert time_string(to_milliseconds(seconds), ",") == expected
    assert time_string(to_milliseconds(seconds), ".") == expected.replace(",", ".")


@pytest.mark.parametrize("seconds", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_time(seconds: float) -> None:
    with pytest.raises((ValueError, OverflowError)):
        to_milliseconds(seconds)


@settings(deadline=None)
@given(st.floats(min_value=-1e5, max_value=1e7))
def test_string_reads_back_to_the_nearest_millisecond(seconds: float) -> None:
    text = time_string(to_milliseconds(seconds), ",")
    match = re.fullmatch(r"(\d{2,}):([0-5]\d):([0-5]\d),(\d{3})", text)
    assert match
    hours, minutes, whole, thousandths = (int(group) for group in match.groups())
    read = hours * 3600 + minutes * 60 + whole + thousandths / 1000
    assert abs(read - max(0.0, seconds)) <= 0.0005 + 1e-6


@settings(deadline=None)
@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_order_is_kept(first: float, second: float) -> None:
    earlier, later = sorted((first, second))
    assert to_milliseconds(earlier) <= to_milliseconds(later)
