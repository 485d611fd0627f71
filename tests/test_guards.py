"""Which texts are not good enough, and which of several is the best."""

from __future__ import annotations

import numpy as np
import pytest

from asrcli import retries
from asrcli.backends.base import Recognition
from asrcli.guards import (
    choose,
    echoes,
    find_fault,
    is_good_enough,
    next_temperature,
    sounds_alike,
    without_echoes,
)
from asrcli.transcript import Retry, Segment
from tests.speech import RATE, window_of


def heard(
    text: str = "there was a change",
    logprob: float | None = -0.2,
    *,
    ratio: float = 1.2,
    fault: str | None = None,
    temperature: float = 0.0,
) -> Recognition:
    segment = Segment(
        id=0,
        start=0.0,
        end=1.0,
        text=text,
        avg_logprob=logprob,
        compression_ratio=ratio,
        temperature=temperature,
    )
    return Recognition(segments=(segment,), language="en", fault=fault)


NOTHING = Recognition(segments=(), language="en")
GOOD = heard()
UNLIKELY = heard(logprob=-1.01)
REPEATED = heard("no way no way no way", -0.1, ratio=2.41)
LOOP = heard(logprob=-0.1, fault="loop")
UNFINISHED = heard(fault="unfinished")


@pytest.mark.parametrize(
    ("recognition", "fault"),
    [
        (GOOD, None),
        (heard(logprob=-1.0), None),
        (heard(logprob=None), None),  # a model that does not tell is believed
        (heard(ratio=2.4), None),
        (NOTHING, None),
        (UNLIKELY, "unlikely"),
        (REPEATED, "repetition"),
        (heard(ratio=2.5, logprob=-2.0), "repetition"),
        (LOOP, "loop"),
        (UNFINISHED, "unfinished"),
    ],
)
def test_faults(recognition: Recognition, fault: str | None) -> None:
    assert find_fault(recognition) == fault


@pytest.mark.parametrize(
    ("hearings", "expected"),
    [
        ([GOOD], True),
        ([UNLIKELY], False),
        ([UNLIKELY, GOOD], True),
        ([LOOP, UNLIKELY], False),
        ([LOOP, NOTHING], True),
        ([REPEATED, heard(logprob=-0.5)], True),
        ([REPEATED, heard(logprob=-0.7)], False),  # it was truly said, more likely
        ([REPEATED, NOTHING], False),
    ],
)
def test_what_may_stand(hearings: list[Recognition], expected: bool) -> None:
    assert is_good_enough(hearings) is expected


def test_the_best_is_chosen() -> None:
    warm = heard(logprob=-1.2, temperature=0.4)
    assert choose([UNLIKELY, GOOD]) is GOOD
    assert choose([UNLIKELY, warm]) is UNLIKELY
    assert choose([warm, UNLIKELY]) is UNLIKELY
    assert choose([LOOP, warm]) is warm  # it has an end
    assert choose([LOOP, UNFINISHED]) is LOOP  # neither has: the likelier one
    assert choose([REPEATED, heard(logprob=-0.7)]) is not None
    assert choose([REPEATED, UNLIKELY]) is REPEATED
    assert choose([UNLIKELY, NOTHING]) is NOTHING  # what ends in silence may be silence


def test_temperatures_rise_to_one() -> None:
    asked = [next_temperature([GOOD] * number, 0.0) for number in range(1, 7)]
    assert asked == [0.2, 0.4, 0.6, 0.8, 1.0, None]
    assert next_temperature([GOOD], 0.5) == 0.7
    assert next_temperature([GOOD], 1.0) is None


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("Zyxqort, flumbane.", "zyxqort flumbane krelvic", True),
        ("Zyxqort!", "Names: Zyxqort", True),
        ("the zyxqort", "zyxqort flumbane", False),
        ("zyxqort", "", False),
        ("…", "zyxqort", False),
        ("서울", "서울 부산", True),
    ],
)
def test_echoes_of_the_prompt(text: str, context: str, expected: bool) -> None:
    assert echoes(heard(text), context) is expected
    assert not echoes(NOTHING, context)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ("Kubernetes", "Cooper Netties.", True),
        ("Dashwood", "dash would", True),
        ("zyxqort flumbane krelvic", "Thank you.", False),
        ("zyxqort", "you", False),
    ],
)
def test_texts_that_sound_alike(first: str, second: str, expected: bool) -> None:
    assert sounds_alike(heard(first), heard(second)) is expected
    assert not sounds_alike(heard(first), NOTHING)


WINDOW = window_of(np.zeros(10 * RATE, np.float32), start=60.0)


def test_what_was_heard_at_once_needs_no_note() -> None:
    assert retries.note([GOOD], GOOD, WINDOW) is GOOD
    assert retries.note([UNLIKELY], UNLIKELY, WINDOW) is UNLIKELY  # as the user wanted it


def test_notes_of_retries() -> None:
    warm = heard(temperature=0.4)
    noted = retries.note([LOOP, UNLIKELY, warm], warm, WINDOW)
    assert noted.retries == (
        Retry(start=60.0, end=70.0, reason="loop", outcome="resolved", temperature=0.4),
    )
    assert noted.warnings == ()
    silent = retries.note([UNLIKELY, NOTHING], NOTHING, WINDOW)
    assert [retry.outcome for retry in silent.retries] == ["silence"]
    doubtful = retries.note([UNLIKELY, UNLIKELY], UNLIKELY, WINDOW)
    assert [retry.outcome for retry in doubtful.retries] == ["given up"]
    assert doubtful.warnings == ("60.0-70.0 s: the model is not sure of the text",)


def spans(
    *times: tuple[float, float], text: str = "I set a timer for five minutes."
) -> list[Segment]:
    return [Segment(id=0, start=start, end=end, text=text) for start, end in times]


@pytest.mark.parametrize(
    ("segments", "num_kept"),
    [
        (spans((2.0, 4.0), (4.0, 4.4), (4.4, 4.44), (4.44, 4.44)), 1),  # nobody speaks so fast
        (spans((2.0, 4.0), (4.0, 6.0), (6.0, 8.0)), 3),  # it was said three times
        (spans((2.0, 4.0)) + spans((4.0, 4.0), text="To bed."), 2),
        (spans((2.0, 4.0), (4.0, 4.2), text="No. No."), 2),
        (spans((2.0, 2.2)), 1),
        ([], 0),
    ],
)
def test_what_is_said_again_in_no_time_is_left_out(segments: list[Segment], num_kept: int) -> None:
    assert without_echoes(segments) == segments[:num_kept]
