"""When a short window is heard again, and which of its texts is kept."""

from __future__ import annotations

import pytest
import torch

from asrcli.backends.base import Recognition
from asrcli.engine.request import Request, Sampling
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.second_hearing import choose, improve, is_doubtful, is_worth_it
from asrcli.transcript import Segment
from asrcli.words import split_words
from tests.cli.runs import SAMPLES


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
        (LIKELY, SURE, LIKELY),  # the same text: by how much is a matter of rounding
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


def _request(*, num_beams: int = 1, is_shortened: bool = True) -> Request:
    return Request(
        request_id=0,
        prompt_token_ids=(1,),
        input_features=torch.zeros(80, 4),
        sampling=Sampling(max_new_tokens=4, eos_token_ids=frozenset({0}), num_beams=num_beams),
        is_shortened=is_shortened,
        num_beams_in_doubt=5,
    )


@pytest.mark.parametrize(
    ("recognition", "is_shortened", "expected"),
    [
        (LIKELY, True, ("auto", 5)),  # over what is encoded already
        (LIKELY, False, ("full", 5)),
        (UNLIKELY, True, ("auto", 5)),
        (LOOP, True, ("full", 5)),  # it has failed: nothing is spared
        (NOTHING, True, ("full", 5)),
        (NOTHING, False, None),  # silence with the full context stays silence
        (SURE, True, None),
    ],
)
def test_how_a_doubtful_text_is_heard_again(
    recognition: Recognition, is_shortened: bool, expected: tuple[str, int] | None
) -> None:
    request = _request(is_shortened=is_shortened)
    assert is_worth_it(recognition, request, Options()) is (expected is not None)
    if expected is not None:
        better = improve(recognition, request, Options())
        assert (better.audio_context, better.beam_size) == expected
        assert better.language == "en"


@pytest.mark.parametrize(
    ("recognition", "is_shortened", "expected"),
    [
        (LIKELY, True, False),  # beams bear it out
        (UNLIKELY, True, False),
        (LOOP, True, True),
        (NOTHING, True, True),
        (UNLIKELY, False, False),  # nothing is left to try
        (LOOP, False, False),
    ],
)
def test_what_fails_with_beams_as_well_is_heard_with_all_of_the_context(
    recognition: Recognition, is_shortened: bool, expected: bool
) -> None:
    request = _request(num_beams=5, is_shortened=is_shortened)
    assert is_worth_it(recognition, request, Options()) is expected
    if expected:
        better = improve(recognition, request, Options())
        assert (better.audio_context, better.beam_size) == ("full", 5)


def test_without_fallback_or_in_full_there_are_no_more_beams() -> None:
    assert not is_worth_it(UNLIKELY, _request(is_shortened=False), Options(fallback=False))
    assert not is_worth_it(UNLIKELY, _request(is_shortened=False), Options(temperature=0.4))


def test_what_is_encoded_is_encoded_once(
    whisper_base: Recognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """4.4 s with a tenth of silence, and every sixth place up to 30 s; beams hear it."""
    monkeypatch.setattr("asrcli.second_hearing.DOUBTFUL_LOGPROB", 0.0)  # no text is above it
    whisper_base.stages.reset()
    transcript = whisper_base.transcribe(SAMPLES / "english-slt.flac", Options(language="en"))
    assert whisper_base.stages.counts["encoded_positions"] == 220 + 214
    assert [retry.reason for retry in transcript.retries] == ["doubtful"]
    expected = (SAMPLES / "english-slt.txt").read_text("utf-8")
    assert split_words(transcript.text) == split_words(expected)
