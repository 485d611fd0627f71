"""Quiet, noisy and badly recorded speech keeps its words; nothing is heard behind it (B09, B29)."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.cases.results import Run, check, transcribe, word_error_rate
from tests.cases.sounds import RATE, Samples, beside, hum, louder, pink, silence, white
from tests.cli.runs import write_wave

pytestmark = pytest.mark.slow  # whisper-base, on minutes of audio

CHOSEN = (0, 1, 3)  # of the five sentences
TRAIL = 30.0  # s
ADDED = 0.3  # s behind the speech that a text may last: the detector's margin


def with_noise(kind: Callable[[float], Samples], ratio: float) -> Callable[[Samples], Samples]:
    def add(speech: Samples) -> Samples:
        noise = kind(1 + len(speech) / RATE)
        return beside(speech, noise[: len(speech)], ratio)

    return add


def followed_by_noise(speech: Samples) -> Samples:
    whole: Samples = np.concatenate([speech, silence(TRAIL)])
    return np.asarray(whole + white(len(whole) / RATE, 1.6e-3)[: len(whole)], np.float32)


def with_bad_samples(speech: Samples) -> Samples:
    spoilt: Samples = speech.copy()
    spoilt[1000:1010], spoilt[2000], spoilt[3000] = np.nan, np.inf, -np.inf
    return spoilt


KINDS: dict[str, Callable[[Samples], Samples]] = {
    "plain": lambda speech: speech,
    "-40dB": lambda speech: louder(speech, -40),
    "trail": lambda speech: np.concatenate([speech, silence(TRAIL)]),
    "lead": lambda speech: np.concatenate([silence(45.0), speech]),
    "noise-trail": followed_by_noise,
    "white+5dB": with_noise(lambda duration: white(duration, 1.0), 5),
    "pink+5dB": with_noise(lambda duration: pink(duration, 1.0), 5),
    "hum+5dB": with_noise(lambda duration: hum(duration, 50, 1.0), 5),
    "offset": lambda speech: 0.3 * speech + np.float32(0.05),
    "bad-samples": with_bad_samples,
    "great-offset": lambda speech: 0.3 * speech + np.float32(0.6),
}
MOST_ERRORS = {"white+5dB": 0.3, "pink+5dB": 0.3}
OTHERWISE = 0.1


@pytest.fixture(scope="module")
def run(place: Path, sentences: list[tuple[Samples, str]], models: dict[str, str]) -> Run:
    """Three sentences in every kind of trouble, all in one batch."""
    (place / "in").mkdir()
    for number in CHOSEN:
        for kind, change in KINDS.items():
            path = place / "in" / f"{number}{kind}.wav"
            samples = change(sentences[number][0])
            soundfile.write(path, samples.astype(np.float32), RATE, subtype="FLOAT")
    return transcribe([place / "in"], models["whisper"], place / "out")


def rate(run: Run, sentences: list[tuple[Samples, str]], kind: str) -> float:
    """Word error rate of a kind over its sentences, each for as much as the others."""
    rates = [word_error_rate(sentences[n][1], run.results[f"{n}{kind}"]) for n in CHOSEN]
    return statistics.mean(rates)


@pytest.mark.parametrize("kind", KINDS)
def test_the_words_are_there(run: Run, sentences: list[tuple[Samples, str]], kind: str) -> None:
    for number in CHOSEN:
        check(run.results[f"{number}{kind}"])
    found = rate(run, sentences, kind)
    print(f"{kind}: {found:.1%} of words wrong")
    assert found <= MOST_ERRORS.get(kind, OTHERWISE)


def test_quiet_speech_has_the_words_of_loud_speech(
    run: Run, sentences: list[tuple[Samples, str]]
) -> None:
    assert rate(run, sentences, "-40dB") <= rate(run, sentences, "plain") + 0.05


@pytest.mark.parametrize("kind", ["trail", "noise-trail"])
def test_nothing_comes_behind_the_speech(
    run: Run, sentences: list[tuple[Samples, str]], kind: str
) -> None:
    for number in CHOSEN:
        result, duration = run.results[f"{number}{kind}"], len(sentences[number][0]) / RATE
        assert result.segments[-1]["end"] <= duration + ADDED
        assert result.transcript["duration"] == pytest.approx(duration + TRAIL, abs=1e-3)


def test_speech_behind_silence_has_its_time(run: Run, sentences: list[tuple[Samples, str]]) -> None:
    for number in CHOSEN:
        late, plain = (run.results[f"{number}{kind}"].segments for kind in ("lead", "plain"))
        assert late[0]["start"] == pytest.approx(45.0 + plain[0]["start"], abs=0.5)
        assert late[-1]["end"] == pytest.approx(45.0 + plain[-1]["end"], abs=0.5)


def test_bad_samples_are_told(run: Run) -> None:
    for number in CHOSEN:
        assert run.results[f"{number}bad-samples"].transcript["warnings"] == [
            "12 samples were not a number or far beyond full scale; taken as 0"
        ]
    assert run.outcome.code == 0


def test_a_quiet_answer_to_a_loud_question(
    place: Path, sentences: list[tuple[Samples, str]], models: dict[str, str]
) -> None:
    """The detector hears the quiet one; the model may end behind the loud one."""
    for number, (first, second) in enumerate(((4, 0), (1, 2))):
        loud, quiet = sentences[first][0], louder(sentences[second][0], -30)
        write_wave(place / "two" / f"{number}.wav", np.concatenate([loud, silence(1.0), quiet]))
    run = transcribe([place / "two"], models["whisper"], place / "answers", "--dtype", "float32")
    for number, (first, second) in enumerate(((4, 0), (1, 2))):
        said = f"{sentences[first][1]} {sentences[second][1]}"
        assert word_error_rate(said, run.results[str(number)]) <= 0.3
