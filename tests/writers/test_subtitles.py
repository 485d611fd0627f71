from __future__ import annotations

import itertools
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from asrcli.transcript import Transcript
from asrcli.writers import render
from tests.writers.parsers import read_srt, read_vtt
from tests.writers.transcripts import NOTHING, make

CHECKER = Path(__file__).parents[3] / "shared" / "cases" / "check_subtitles.py"

HOSTILE = (
    (-0.01, 0.9996, "R&D if a<b --> c"),
    (0.9996, 59.9996, "<i>x</i>"),
    (59.9996, 61, "blank\n\nline\r\n\r\n  inside \n"),
    (61, 62, "   \n"),
    (62, 62, "no length"),
    (62.0001, 62.0002, "less than a millisecond"),
    (61.5, 70, "start goes back"),
    (65, 66, "overlap"),
    (3599.9996, 3600, "2\n00:00:01,000 --> 00:00:02,000\nnot a cue"),
    (3600, 359999.9996, "안녕하세요\u2028\u2028&amp; ----> \x00\x1f\x85\x0c end"),
)


def test_srt() -> None:
    transcript = make((0, 0.9996, "Good morning."), (3599.9996, 359999.9996, "두 줄\n입니다."))
    assert render(transcript, "srt") == (
        "1\n00:00:00,000 --> 00:00:01,000\nGood morning.\n"
        "\n"
        "2\n01:00:00,000 --> 100:00:00,000\n두 줄\n입니다.\n"
    )


def test_vtt() -> None:
    transcript = make((0, 0.9996, "Good morning."), (3599.9996, 359999.9996, "두 줄\n입니다."))
    assert render(transcript, "vtt") == (
        "WEBVTT\n"
        "\n"
        "00:00:00.000 --> 00:00:01.000\nGood morning.\n"
        "\n"
        "01:00:00.000 --> 100:00:00.000\n두 줄\n입니다.\n"
    )


@pytest.mark.parametrize("transcript", [NOTHING, make((0, 1, " \n "))])
def test_no_speech(transcript: Transcript) -> None:
    assert render(transcript, "srt") == ""
    assert render(transcript, "vtt") == "WEBVTT\n"


@pytest.mark.parametrize(
    ("text", "srt", "vtt"),
    [
        ("R&D if a<b --> c", "R&D if a<b → c", "R&amp;D if a&lt;b --&gt; c"),
        ("<i>x</i>", "<i>x</i>", "&lt;i&gt;x&lt;/i&gt;"),
        ("a\n\n \nb\n", "a\nb", "a\nb"),
        ("&lt;", "&lt;", "&amp;lt;"),
        ("--->", "-→", "---&gt;"),
        ("a\x00b\x1fc", "abc", "abc"),
        ("a\r\nb\rc\u2029d", "a\nb\nc\nd", "a\nb\nc\nd"),
    ],
)
def test_text_of_a_cue(text: str, srt: str, vtt: str) -> None:
    transcript = make((0, 1, text))
    assert render(transcript, "srt") == f"1\n00:00:00,000 --> 00:00:01,000\n{srt}\n"
    assert render(transcript, "vtt") == f"WEBVTT\n\n00:00:00.000 --> 00:00:01.000\n{vtt}\n"


def test_numbers_are_consecutive_where_a_segment_has_no_text() -> None:
    transcript = make((0, 1, "a"), (1, 2, ""), (2, 3, "b"))
    assert read_srt(render(transcript, "srt")) == [(0, 1000, "a"), (2000, 3000, "b")]


@pytest.mark.parametrize(
    ("spans", "expected"),
    [
        ([(1, 1)], [(1000, 1001)]),
        ([(1, 0.5)], [(1000, 1001)]),
        ([(-2, -1)], [(0, 1)]),
        ([(0, 5), (4, 6)], [(0, 4000), (4000, 6000)]),
        ([(0, 5), (0, 6)], [(0, 1), (1, 6000)]),
        ([(3, 4), (2, 5)], [(3000, 3001), (3001, 5000)]),
        ([(3, 4), (1, 2)], [(3000, 3001), (3001, 3002)]),
        ([(0, 9), (1, 2), (3, 4)], [(0, 1000), (1000, 2000), (3000, 4000)]),
        ([(1, 1), (1, 1), (1, 1)], [(1000, 1001), (1001, 1002), (1002, 1003)]),
        ([(0, 1), (1, 2)], [(0, 1000), (1000, 2000)]),
    ],
)
def test_times_are_put_in_order(
    spans: list[tuple[float, float]], expected: list[tuple[int, int]]
) -> None:
    transcript = make(*((start, end, "x") for start, end in spans))
    assert [row[:2] for row in read_srt(render(transcript, "srt"))] == expected
    assert [row[:2] for row in read_vtt(render(transcript, "vtt"))] == expected


_spans = st.tuples(st.floats(-10, 4e5), st.floats(-10, 4e5))
_marks = st.sampled_from(["-->", "--", ">", "&", "&amp;", "<", "\n", "\n\n", "\r", " ", "1", "é"])
_texts = st.lists(_marks | st.text(max_size=5), max_size=6).map("".join)


@settings(deadline=None)
@given(st.lists(st.tuples(_spans, _texts), max_size=8))
def test_whatever_comes_reads_back(rows: list[tuple[tuple[float, float], str]]) -> None:
    transcript = make(*((*span, text) for span, text in rows))
    srt, vtt = (render(transcript, format) for format in ("srt", "vtt"))
    cues = read_vtt(vtt)
    assert read_srt(srt) == [(start, end, text.replace("-->", "→")) for start, end, text in cues]
    for (_, end, _), (start, _, _) in itertools.pairwise(cues):
        assert end <= start
    assert all(start < end for start, end, _ in cues)


@settings(deadline=None)
@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["C"])), max_size=8))
def test_words_are_those_of_the_text_format(texts: list[str]) -> None:
    transcript = make(*((index, index + 1, text) for index, text in enumerate(texts)))
    words = render(transcript, "text").split()
    assert [word for row in read_vtt(render(transcript, "vtt")) for word in row[2].split()] == words


@pytest.mark.parametrize("format", ["srt", "vtt"])
@pytest.mark.parametrize("rows", [(), HOSTILE])
def test_an_independent_checker_finds_no_fault(
    tmp_path: Path, format: str, rows: tuple[tuple[float, float, str], ...]
) -> None:
    if not CHECKER.is_file():
        pytest.skip("the checker of subtitles is not at hand")
    path = tmp_path / f"out.{format}"
    path.write_bytes(render(make(*rows), format).encode("utf-8"))
    command = [sys.executable, str(CHECKER), str(path), "360000"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.stdout.strip() == "ok"
