"""How a run behaves as a program: what it says, where it looks, what it is told (B39, B41, B44)."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.checkpoints.recordings import unseen_utterances
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.runs import SAMPLES, asr, environment, write_wave
from tests.writers.parsers import read_srt

NUM_FILES = 20
MAX_SECONDS = 5.0  # in which a missing model is told, on a machine that does nothing else
# Python runs this module of its own accord as it starts.
NO_NETWORK = """
import socket

def refuse(*arguments, **settings):
    raise AssertionError(f"network: {arguments}")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.create_connection = refuse
"""


@pytest.fixture(scope="module")
def digits(speech_bank: SpeechBank, place: Path) -> list[Path]:
    said = unseen_utterances(speech_bank, NUM_FILES, seed=31)
    return [
        write_wave(place / "in" / f"{number:02}.wav", each.samples)
        for number, each in enumerate(said)
    ]


@pytest.mark.parametrize("family", ["whisper", "qwen", "glm"])
def test_standard_output_holds_the_result_and_nothing_else(
    family: str, digits: list[Path], models: dict[str, str]
) -> None:
    for name in ("srt", "json"):
        outcome = asr("transcribe", digits[0], "-m", models[family], "-f", name)
        assert outcome.code == 0
        assert outcome.err.startswith(f"{models[family]} · cpu · ")
        assert len(outcome.err.splitlines()) == 1
        if name == "srt":
            assert read_srt(outcome.out)
        else:
            assert json.loads(outcome.out)["segments"]


@pytest.mark.parametrize("family", ["qwen", "glm"])
def test_twenty_files_say_little(
    family: str, digits: list[Path], models: dict[str, str], tmp_path: Path
) -> None:
    outcome = asr("transcribe", *digits, "-m", models[family], "-f", "srt", "-o", tmp_path)
    assert (outcome.code, outcome.out) == (0, "")
    assert len(list(tmp_path.glob("*.srt"))) == NUM_FILES
    (header,) = outcome.err.splitlines()
    assert header.startswith(f"{models[family]} · cpu · ")
    assert "\r" not in outcome.err
    assert "\x1b" not in outcome.err


def offline(place: Path) -> dict[str, str]:
    """Settings of a process that fails as soon as it reaches for the network."""
    place.mkdir(exist_ok=True)
    (place / "sitecustomize.py").write_text(NO_NETWORK)
    return {"PYTHONPATH": f"{place}:{environment()['PYTHONPATH']}"}


@pytest.mark.parametrize("switch", [{}, {"HF_HUB_OFFLINE": "1"}], ids=["online", "offline"])
@pytest.mark.parametrize("family", ["whisper", "qwen"])
def test_what_is_on_the_machine_needs_no_network(
    family: str,
    switch: dict[str, str],
    digits: list[Path],
    models: dict[str, str],
    tmp_path: Path,
) -> None:
    settings = offline(tmp_path / "site") | switch
    outcome = asr("transcribe", digits[0], "-m", models[family], data=None, **settings)
    assert outcome.code == 0
    assert outcome.out
    assert len(outcome.err.splitlines()) == 1


def test_the_network_is_watched(tmp_path: Path, digits: list[Path]) -> None:
    """A model that has to be fetched does reach for it, so the test above could fail."""
    settings = offline(tmp_path / "site") | {"ASR_CACHE": str(tmp_path), "HF_HOME": str(tmp_path)}
    outcome = asr("transcribe", digits[0], "-m", "nobody/has-this", data=None, **settings)
    assert outcome.code == 1
    assert "network: " in outcome.err


def test_a_missing_model_is_told_at_once(tmp_path: Path, digits: list[Path]) -> None:
    settings = {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    asr("--version")  # the first run of a program reads it from the disk
    begun = time.monotonic()
    asr("--version")
    usual = time.monotonic() - begun
    begun = time.monotonic()
    outcome = asr("transcribe", digits[0], "-m", "nobody/has-this", data=None, **settings)
    assert time.monotonic() - begun < MAX_SECONDS * max(1.0, usual)
    assert (outcome.code, outcome.out) == (1, "")
    error, *hints = outcome.err.splitlines()
    assert error.startswith("error: ")
    assert "nobody/has-this" in error
    assert all(line.startswith("hint: ") for line in hints)


def test_spellings_of_a_language_give_one_result(models: dict[str, str]) -> None:
    path = SAMPLES / "korean-espeak.flac"
    plain = ("transcribe", path, "-m", models["whisper"], "-f", "json")
    first = asr(*plain, "-l", "ko-KR")
    second = asr(*plain, ASR_LANGUAGE="한국어")
    assert (first.code, second.code) == (0, 0)
    assert first.out == second.out
    assert json.loads(first.out)["language"] == "ko"


@pytest.mark.parametrize("language", ["zh-TW", "zh-Hans", "Traditional Chinese"])
def test_a_script_that_no_model_can_be_told_is_mentioned(
    language: str, digits: list[Path], models: dict[str, str]
) -> None:
    outcome = asr("transcribe", digits[0], "-m", models["qwen"], "-l", language)
    assert outcome.code in (0, 2)
    assert "script" in outcome.err


def test_a_name_that_begins_with_a_dash(
    digits: list[Path], models: dict[str, str], tmp_path: Path
) -> None:
    """Bare, behind -- and with its folder."""
    (tmp_path / "-dash.wav").write_bytes(digits[0].read_bytes())
    plain = asr("transcribe", digits[0], "-q", "-m", models["qwen"]).out
    assert plain
    for arguments in (["-dash.wav"], ["--", "-dash.wav"], ["./-dash.wav"]):
        command = [sys.executable, "-m", "asrcli", "transcribe", "-q", "-m", models["qwen"]]
        result = subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment(), capture_output=True, text=True
        )
        assert (result.returncode, result.stderr) == (0, "")
        assert result.stdout == plain
