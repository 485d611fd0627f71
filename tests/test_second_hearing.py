"""When a short window is heard again, and which of its texts is kept."""

from __future__ import annotations

import pytest

from asrcli.backends.base import Recognition
from asrcli.second_hearing import choose, is_doubtful
from asrcli.transcript import Segment


def _heard(
    text: str, logprob: float | None, *, ratio: float = 1.2, fault: str | None = None
) -> Recognition:
    segment = Segment(
        id=0, start=0.0, end=1.0, text=text, avg_logprob=logprob, compression_ratio=ratio
    )
    return Recognition(segments=(segment,), language="en", fault=fault)


NOTHING = Recognition(segments=(), language="en")
SURE = _heard("there was a change now", -0.29)
LIKELY = _heard("there was a change now", -0.31)
UNLIKELY = _heard("they were the change now", -0.46)
LOOP = _heard("now now now now", -0.1, ratio=3.0)
ENDLESS = _heard("and then and then", -0.1, fault="unfinished")


@pytest.mark.parametrize(
    ("recognition", "expected"),
    [
        (SURE, False),
        (LIKELY, True),
        (LOOP, True),
        (ENDLESS, True),
        (NOTHING, True),
        (_heard("yes", None), False),  # a model that does not tell is believed
    ],
)
def test_what_is_heard_again(recognition: Recognition, expected: bool) -> None:
    assert is_doubtful(recognition) is expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (UNLIKELY, LIKELY, LIKELY),
        (LIKELY, UNLIKELY, LIKELY),
        (LIKELY, LOOP, LIKELY),  # likely as it is, a loop is no text
        (LIKELY, NOTHING, LIKELY),  # no word is lost
        (LOOP, UNLIKELY, UNLIKELY),
        (ENDLESS, UNLIKELY, UNLIKELY),
        (NOTHING, UNLIKELY, UNLIKELY),
        (NOTHING, NOTHING, NOTHING),
        (LOOP, NOTHING, NOTHING),  # the full context has the last word
    ],
)
def test_which_text_is_kept(first: Recognition, second: Recognition, expected: Recognition) -> None:
    assert choose(first, second) is expected
