from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrcli.transcript import Segment, Transcript, Word
from asrcli.writers import load_json, render, render_json_line
from tests.writers.transcripts import NOTHING, make, of_segments

FULL = Transcript(
    text="Good morning. 안녕하세요.",
    language="en",
    task="transcribe",
    duration=12.34,
    segments=(
        Segment(
            id=0,
            start=0.0,
            end=1.25,
            text="Good morning.",
            tokens=(50364, 2205, 2446, 13),
            avg_logprob=-0.25,
            no_speech_prob=0.001953,
            compression_ratio=0.8125,
            temperature=0.2,
            language="en",
            words=(
                Word(word="Good", start=0.0, end=0.5, probability=0.987654),
                Word(word=" morning.", start=0.5, end=1.25),
            ),
        ),
        Segment(id=1, start=1.5, end=3.0, text='안녕하세요. "\\ \n</>'),
    ),
    model="whisper:base",
    warnings=("0:10 to 0:12 could not be read",),
)


def test_keys_are_the_fields_in_their_order() -> None:
    value = json.loads(render(FULL, "json"))
    assert list(value) == [field.name for field in dataclasses.fields(Transcript)]
    assert list(value["segments"][0]) == [field.name for field in dataclasses.fields(Segment)]
    assert list(value["segments"][0]["words"][0]) == ["word", "start", "end", "probability"]


def test_whole_text() -> None:
    small = make((0, 1.5, "어"))
    segment = dataclasses.replace(small.segments[0], tokens=(1, 22, 333))
    assert render(dataclasses.replace(small, segments=(segment,)), "json") == (
        """{
  "text": "어",
  "language": "en",
  "task": "transcribe",
  "duration": 1.5,
  "segments": [
    {
      "id": 0,
      "start": 0.0,
      "end": 1.5,
      "text": "어",
      "tokens": [1, 22, 333],
      "avg_logprob": null,
      "no_speech_prob": null,
      "compression_ratio": null,
      "temperature": 0.0,
      "language": null,
      "words": []
    }
  ],
  "model": "whisper:base",
  "warnings": [],
  "retries": []
}
"""
    )


def test_no_speech() -> None:
    value = json.loads(render(NOTHING, "json"))
    assert value["text"] == ""
    assert value["segments"] == []


def test_reads_back() -> None:
    assert load_json(render(FULL, "json")) == FULL
    assert load_json(render_json_line(FULL, "a.wav")) == FULL
    assert load_json(render(NOTHING, "json")) == NOTHING


def test_line_has_the_file_first_and_no_line_break() -> None:
    line = render_json_line(FULL, "talks/강의 1.mp3")
    assert line.startswith('{"file": "talks/강의 1.mp3", "text": ')
    assert line.endswith("}\n")
    assert len(line.splitlines()) == 1


def test_line_with_separators_that_python_takes_for_line_breaks() -> None:
    line = render_json_line(make((0, 1, "a\u2028b\x85c")), "x\ny.wav")
    assert line.count("\n") == 1
    assert json.loads(line)["file"] == "x\ny.wav"
    assert load_json(line).segments[0].text == "a\u2028b\x85c"


def test_name_that_is_not_utf8() -> None:
    name = b"caf\xe9.wav".decode("utf-8", "surrogateescape")
    line = render_json_line(NOTHING, name)
    assert json.loads(line.encode("utf-8"))["file"] == name


def test_numbers_are_rounded_as_in_subtitles() -> None:
    segment = Segment(
        id=0,
        start=-0.01,
        end=0.99962345,
        text="a",
        avg_logprob=-0.123456789,
        temperature=0.30000000000000004,
    )
    value = json.loads(render(of_segments([segment]), "json"))["segments"][0]
    assert value["start"] == 0.0
    assert value["end"] == 1.0
    assert value["avg_logprob"] == -0.123457
    assert value["temperature"] == 0.3


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_an_unknown_number_is_null(number: float) -> None:
    text = render(
        of_segments([Segment(id=0, start=0, end=1, text="a", avg_logprob=number)]), "json"
    )
    assert json.loads(text)["segments"][0]["avg_logprob"] is None


@pytest.mark.parametrize("number", [math.nan, math.inf])
def test_an_unknown_time_is_refused(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        render(of_segments([Segment(id=0, start=0, end=number, text="a")]), "json")


def test_text_that_looks_like_a_list_of_numbers_stays() -> None:
    text = "[\n  1,\n  2\n] and [ 3,  4 ]"
    assert load_json(render(make((0, 1, text)), "json")).segments[0].text == text


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "3", '"text"', "{}", '{"text": ""}', "NaN"]
)
def test_what_is_no_transcript(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        load_json(text)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_half_a_file_is_no_transcript(share: float) -> None:
    text = render(FULL, "json")
    with pytest.raises(ValueError, match=r"."):
        load_json(text[: int(len(text) * share)])


@pytest.mark.parametrize(
    "change",
    [
        {"segments": [{"id": 0}]},
        {"segments": [3]},
        {"segments": {"id": 0}},
        {"segments": None},
        {"duration": math.nan},
    ],
)
def test_a_wrong_inside_is_no_transcript(change: dict[str, Any]) -> None:
    value = json.loads(render(FULL, "json"))
    with pytest.raises(ValueError, match="no transcript"):
        load_json(json.dumps({**value, **change}))


def test_unknown_keys_are_skipped() -> None:
    value = json.loads(render(FULL, "json"))
    value["segments"][0]["speaker"] = "A"
    assert load_json(json.dumps({**value, "future": [1, {"a": 2}]})) == FULL


_texts = st.text(max_size=30)
_times = st.integers(0, 10**9).map(lambda milliseconds: milliseconds / 1000)
_numbers = st.none() | st.integers(-(10**8), 10**8).map(lambda millionths: millionths / 10**6)
_words = st.builds(Word, word=_texts, start=_times, end=_times, probability=_numbers)
_segments = st.builds(
    Segment,
    id=st.integers(0, 10**6),
    start=_times,
    end=_times,
    text=_texts,
    tokens=st.lists(st.integers(0, 200_000), max_size=5).map(tuple),
    avg_logprob=_numbers,
    no_speech_prob=_numbers,
    compression_ratio=_numbers,
    temperature=st.just(0.2),
    language=st.none() | st.just("ko"),
    words=st.lists(_words, max_size=3).map(tuple),
)


@settings(deadline=None)
@given(st.lists(_segments, max_size=4), _texts, st.lists(_texts, max_size=2))
def test_any_transcript_reads_back(segments: list[Segment], text: str, warnings: list[str]) -> None:
    transcript = dataclasses.replace(
        of_segments(segments), text=text, warnings=tuple(warnings), language=None
    )
    assert load_json(render(transcript, "json")) == transcript
    assert load_json(render_json_line(transcript, text)) == transcript
    assert render(transcript, "json").encode("utf-8")
