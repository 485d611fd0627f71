"""Silence, noise and hum give no word in any format, and nothing fails (B09, B11)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tests.cases.conftest import FAMILIES
from tests.cases.results import Run, check, transcribe, word_error_rate
from tests.cases.sounds import RATE, Samples, clicks, hum, pink, silence, square, tone, white
from tests.cli.runs import asr, write_wave

NOTHING: dict[str, Samples] = {
    "silence": silence(60),
    "white-80dB": white(10, 1e-4),
    "white-60dB": white(10, 1e-3),
    "white-50dB": white(60, 3e-3),
    "white-30dB": white(10, 3e-2),
    "white-14dB": white(10, 0.2),
    "pink-60dB": pink(10, 1e-3),
    "pink-20dB": pink(10, 0.1),
    "hum-50Hz": hum(60, 50, 0.2),
    "hum-50Hz-quiet": hum(10, 50, 2e-3),
    "hum-and-noise": hum(10, 50, 0.02) + white(10, 3e-3),
    "sine-100Hz": tone(60, 100),
    "clicks": clicks(10),
    "square": square(10),
    "constant": np.full(10 * RATE, 0.9, np.float32),
    "beeps": tone(10, 1000) * (np.arange(10 * RATE) % RATE < 3200),
}
# As rich in harmonics as a voice: the voice detector takes their first moments for one.
BUZZES: dict[str, Samples] = {
    "buzz-60Hz": hum(20, 60, 0.25),
    "buzz-100Hz": hum(20, 100, 0.25),
    "buzz-120Hz": hum(20, 120, 0.25),
}


@pytest.fixture(scope="module", params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def run(
    family: str,
    models: dict[str, str],
    known_speech: dict[str, tuple[Samples, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    """All that says nothing in one batch with a recording that does."""
    folder = tmp_path_factory.mktemp(family)
    for name, samples in NOTHING.items():
        write_wave(folder / "in" / f"{name}.wav", samples)
    write_wave(folder / "in" / "speech.wav", known_speech[family][0])
    return transcribe([folder / "in"], models[family], folder / "out")


def test_nothing_has_failed(run: Run) -> None:
    assert (run.outcome.code, run.outcome.out) == (0, "")
    assert sorted(run.results) == sorted([*NOTHING, "speech"])
    _, *lines = run.outcome.err.splitlines()
    assert sorted(Path(line.removesuffix(": no speech")).stem for line in lines) == sorted(NOTHING)


@pytest.mark.parametrize("name", NOTHING)
def test_every_format_is_valid_and_empty(run: Run, name: str) -> None:
    result = run.results[name]
    assert (result.text, result.srt, result.vtt) == ("", "", "WEBVTT\n")
    transcript = result.transcript
    assert (transcript["text"], transcript["segments"], transcript["language"]) == ("", [], None)
    assert transcript["duration"] == len(NOTHING[name]) / RATE


def test_the_batch_goes_on(
    run: Run, family: str, known_speech: dict[str, tuple[Samples, str]]
) -> None:
    check(run.results["speech"])
    assert word_error_rate(known_speech[family][1], run.results["speech"]) <= 0.25


def test_a_buzz_is_no_voice(family: str, models: dict[str, str], tmp_path: Path) -> None:
    for name, samples in BUZZES.items():
        write_wave(tmp_path / f"{name}.wav", samples)
    outcome = asr("transcribe", tmp_path, "-m", models[family], "-f", "json", "-o", "-")
    assert outcome.code == 0
    rows = [json.loads(line) for line in outcome.out.splitlines()]
    assert [row["text"] for row in rows] == [""] * len(BUZZES)


@pytest.mark.parametrize("language", [None, "en"])
def test_one_file_on_standard_output(
    family: str, models: dict[str, str], language: str | None, tmp_path: Path
) -> None:
    if language and family == "glm":
        pytest.skip("the model cannot be told the language")
    path = write_wave(tmp_path / "a.wav", silence(5))
    options = () if language is None else ("--language", language)
    outcome = asr("transcribe", path, "-m", models[family], "-f", "srt", *options)
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.splitlines()[-1] == f"{path}: no speech"
