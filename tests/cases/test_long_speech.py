"""Minutes of digit strings through the command: all of them once, in order, in every format.

B01: nothing ends at a window's length. B02: nor at a bound on ids. B03: nothing is lost where there
is no pause to cut in, and formats agree. B05: nor at the end. B14, B17: times are those of the
recording, in order. The tiny models hear them, in windows of a length that they know well.
"""

from __future__ import annotations

import bisect
from pathlib import Path

import jiwer
import numpy as np
import pytest

from tests.cases.results import Result, Run, check, transcribe
from tests.cases.sounds import RATE, Samples, silence
from tests.checkpoints.recordings import Recording, digit_strings
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.runs import write_wave

VOICE = "en-us+m3"
WINDOW = "8"  # s
APART = ((0.4, 0.9), (0.03, 0.1))  # s; pauses between strings, and gaps in them
DENSE = ((0.03, 0.06), (0.03, 0.06))  # s; no pause, so that every cut lies in speech
LENGTHS = (10, 29, 31, 61, 120)  # s
IN_A_WORD = (15, 30)  # s
MOST_ERRORS = 0.03


def until(recording: Recording, time: float) -> tuple[Samples, str]:
    """What is said before a time, up to the last sound of its last whole string."""
    count = bisect.bisect_right([end for _, end in recording.times], time)
    text = " ".join(" ".join(string) for string in recording.strings[:count])
    return recording.samples[: round(recording.times[count - 1][1] * RATE)], text


@pytest.fixture(scope="module")
def said(speech_bank: SpeechBank) -> dict[str, tuple[Samples, str]]:
    """Recordings by name, with what is said in them."""
    apart = digit_strings(speech_bank, VOICE, duration=125, pauses=APART[0], gaps=APART[1])
    dense = digit_strings(speech_bank, VOICE, duration=180, pauses=DENSE[0], gaps=DENSE[1], seed=3)
    found = {f"{length}s": until(apart, length) for length in LENGTHS}
    found["120s-and-silence"] = np.concatenate([found["120s"][0], silence(0.6)]), found["120s"][1]
    found["dense"] = until(dense, 1e6)
    for length in IN_A_WORD:
        found[f"cut-at-{length}s"] = dense.samples[: length * RATE], until(dense, length)[1]
    return found


@pytest.fixture(scope="module", params=["qwen", "glm"])
def run(
    request: pytest.FixtureRequest,
    said: dict[str, tuple[Samples, str]],
    models: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Run:
    place = tmp_path_factory.mktemp(str(request.param))
    for name, (samples, _) in said.items():
        write_wave(place / "in" / f"{name}.wav", samples)
    return transcribe([place / "in"], models[request.param], place / "out", "--window", WINDOW)


def check_words(result: Result, text: str) -> None:
    """All that was said is there, once and in order, up to the last word."""
    found = jiwer.process_words(text, " ".join(result.words))
    assert found.wer <= MOST_ERRORS
    for piece in found.alignments[0]:
        length = max(
            piece.ref_end_idx - piece.ref_start_idx, piece.hyp_end_idx - piece.hyp_start_idx
        )
        assert piece.type == "equal" or length <= 2  # a string has four words or more
    assert result.words[-1] == text.split()[-1]


def test_nothing_has_failed(run: Run, said: dict[str, tuple[Samples, str]]) -> None:
    assert (run.outcome.code, run.outcome.out) == (0, "")
    assert set(run.results) == set(said)
    assert len(run.outcome.err.splitlines()) == 1  # the model's
    assert all(result.transcript["warnings"] == [] for result in run.results.values())


@pytest.mark.parametrize("name", [*(f"{length}s" for length in LENGTHS), "120s-and-silence"])
def test_every_string_once_and_in_order(
    run: Run, said: dict[str, tuple[Samples, str]], name: str
) -> None:
    samples, text = said[name]
    check(run.results[name])
    check_words(run.results[name], text)
    assert run.results[name].transcript["duration"] == pytest.approx(len(samples) / RATE, abs=0.1)


def test_silence_at_the_end_changes_nothing(run: Run) -> None:
    assert run.results["120s-and-silence"].words == run.results["120s"].words


def test_dense_speech_is_whole(run: Run, said: dict[str, tuple[Samples, str]]) -> None:
    samples, text = said["dense"]
    result = run.results["dense"]
    check(result)
    check_words(result, text)
    assert result.cues[-1][1] / 1000 >= 0.9 * len(samples) / RATE


@pytest.mark.parametrize("length", IN_A_WORD)
def test_a_recording_that_ends_in_a_word(
    run: Run, said: dict[str, tuple[Samples, str]], length: int
) -> None:
    """What is left of the last string may be heard or not; all before it is."""
    result = run.results[f"cut-at-{length}s"]
    check(result)
    assert result.transcript["duration"] == length
    whole = said[f"cut-at-{length}s"][1].split()
    rest = " ".join(result.words[: len(whole)])
    assert jiwer.wer(" ".join(whole), rest) <= 0.1
    assert len(whole) <= len(result.words) <= len(whole) + 6


@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen", "glm"])
def test_half_an_hour_of_dense_speech(
    family: str, models: dict[str, str], speech_bank: SpeechBank, tmp_path: Path
) -> None:
    long = digit_strings(speech_bank, VOICE, duration=1800, pauses=DENSE[0], gaps=DENSE[1], seed=4)
    path = write_wave(tmp_path / "long.wav", long.samples)
    run = transcribe([path], models[family], tmp_path / "out", "--window", WINDOW)
    assert run.outcome.code == 0
    check(run.results["long"])
    check_words(run.results["long"], long.text)
    assert run.results["long"].cues[-1][1] / 1000 >= 0.9 * long.duration
