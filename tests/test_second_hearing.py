"""A second hearing: when it is worth it, what it hears, and which text is kept."""

from __future__ import annotations

import numpy as np
import pytest

from asrcli import second_hearing
from asrcli.backends.base import Recognition
from asrcli.transcript import Segment
from asrcli.windows import Window


def _window(duration: float, start: float = 0.0) -> Window:
    samples = np.full(round(duration * 16_000), 0.5, dtype=np.float32)
    return Window(recording_id=0, index=0, samples=samples, start=start, end=start + duration)


def _recognition(text: str, logprob: float | None, start: float = 0.0) -> Recognition:
    segment = Segment(id=0, start=start, end=start + 1.0, text=text, avg_logprob=logprob)
    return Recognition(segments=(segment,), language="en")


@pytest.mark.parametrize(
    ("logprob", "duration", "expected"),
    [
        (-0.41, 3.0, True),
        (-0.39, 3.0, False),
        (-0.41, 10.1, False),  # long enough to have context of its own
        (None, 3.0, False),  # a model that does not tell is believed
    ],
)
def test_only_short_and_doubtful_windows_are_heard_again(
    logprob: float | None, duration: float, expected: bool
) -> None:
    recognition = _recognition("yes", logprob)
    assert second_hearing.is_doubtful(recognition, _window(duration)) is expected


def test_silence_is_not_heard_again() -> None:
    assert not second_hearing.is_doubtful(Recognition(segments=()), _window(3.0))


def test_lead_in_puts_silence_in_front_and_keeps_times_true() -> None:
    window = _window(3.0, start=60.0)
    again = second_hearing.lead_in(window)
    assert again.start == pytest.approx(59.8)
    assert again.end == window.end
    assert len(again.samples) == 3200 + len(window.samples)
    assert not again.samples[:3200].any()
    np.testing.assert_array_equal(again.samples[3200:], window.samples)


def test_the_likelier_text_is_kept_and_begins_with_the_window() -> None:
    window = _window(3.0, start=60.0)
    first = _recognition("they were the change now", -0.46, start=60.0)
    second = _recognition("there was a change now", -0.39, start=59.8)
    kept = second_hearing.choose(first, second, window)
    assert [(s.text, s.start, s.end) for s in kept.segments] == [
        ("there was a change now", 60.0, 60.8)
    ]
    assert second_hearing.choose(second, first, window).segments[0].text == second.segments[0].text
    assert second_hearing.choose(first, Recognition(segments=()), window) is first
