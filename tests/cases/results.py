"""What a run of ``asr transcribe`` left behind: every format of every file, and how they agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jiwer

from tests.cli.runs import Outcome, asr, words
from tests.writers.parsers import Row, read_srt, read_vtt

SUFFIXES = {"text": ".txt", "srt": ".srt", "vtt": ".vtt", "json": ".json"}
MARKUP = ("<|", "|>", "<asr_text>", "language None", "\ufffd")


class Result(NamedTuple):
    """What was written of one recording, in four formats."""

    text: str
    srt: str
    vtt: str
    transcript: dict[str, Any]

    @property
    def words(self) -> list[str]:
        return words(self.text)

    @property
    def cues(self) -> list[Row]:
        return read_srt(self.srt)

    @property
    def segments(self) -> list[dict[str, Any]]:
        return list(self.transcript["segments"])


class Run(NamedTuple):
    """A run over many recordings: what it said, and its results by the stem of the file's name."""

    outcome: Outcome
    results: dict[str, Result]


def transcribe(inputs: Sequence[Path], model: str, out: Path, *options: str) -> Run:
    """Run ``asr transcribe`` in all formats, and read what it wrote."""
    formats = [part for name in SUFFIXES for part in ("-f", name)]
    outcome = asr("transcribe", *inputs, "-m", model, *formats, "-o", out, *options)
    found = sorted(path.name.removesuffix(".json") for path in out.glob("*.json"))
    return Run(outcome, {stem: _read(out, stem) for stem in found})


def _read(out: Path, stem: str) -> Result:
    text, srt, vtt, rendered = ((out / f"{stem}{s}").read_text() for s in SUFFIXES.values())
    return Result(text, srt, vtt, json.loads(rendered))


def check(result: Result) -> None:
    """All formats say the same words, and their times are those of one recording."""
    rows, duration = result.cues, result.transcript["duration"]
    assert rows == read_vtt(result.vtt)
    assert words(" ".join(text for _, _, text in rows)) == result.words
    assert words(result.transcript["text"]) == result.words
    assert words(" ".join(segment["text"] for segment in result.segments)) == result.words
    assert not any(mark in result.text for mark in MARKUP)
    edges = [0, *(time for start, end, _ in rows for time in (start, end))]
    assert edges == sorted(edges)
    assert all(start < end for start, end, _ in rows)
    assert edges[-1] <= round(duration * 1000) + 50
    times = [time for segment in result.segments for time in (segment["start"], segment["end"])]
    assert times == sorted(times)
    assert all(segment["start"] < segment["end"] for segment in result.segments)
    assert not times or 0 <= times[0] <= times[-1] <= duration + 0.002


def word_error_rate(reference: str, result: Result) -> float:
    """Of a result against what was said; 0 to 1 and above."""
    return float(jiwer.wer(_spelled(reference), _spelled(result.text)))


def _spelled(text: str) -> str:
    """Words as the references of the five sentences spell them."""
    return " ".join("mister" if word == "mr" else word for word in words(text))
