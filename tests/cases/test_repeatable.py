"""The same file gives the same text: whatever runs beside it, in either dtype, drawn or not.

B07: company, order and batch size. B29: half precision. B42: five runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest

from tests.cases.results import Run, transcribe, word_error_rate
from tests.cases.sounds import Samples, beside, silence, white
from tests.checkpoints.recordings import unseen_utterances
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.runs import write_wave

pytestmark = pytest.mark.slow  # whisper-base, on minutes of audio

EXACT = ("--dtype", "float32")
DRAWN = ("--temperature", "0.8")
BATCH_SIZES = (1, 3, 16)


def essence(run: Run) -> dict[str, Any]:
    """What was written but for the confidence, whose last place depends on the order of sums."""
    found: dict[str, Any] = {}
    for name, result in run.results.items():
        segments = [{**segment, "avg_logprob": None} for segment in result.segments]
        found[name] = result._replace(transcript={**result.transcript, "segments": segments})
    return found


def confidence(run: Run, name: str) -> list[float]:
    return [segment["avg_logprob"] for segment in run.results[name].segments]


def check_equal(run: Run, other: Run) -> None:
    """Two runs over the same recordings, or one over some of them, wrote the same."""
    others = essence(other)
    assert essence(run) == {name: others[name] for name in run.results}
    for name in run.results:
        assert confidence(run, name) == pytest.approx(confidence(other, name), abs=1e-4)


@pytest.fixture(scope="module")
def clips(place: Path, sentences: list[tuple[Samples, str]]) -> list[Path]:
    """Real speech of unequal length, with and without noise: 3 to 28 s, and some silence."""
    spoken = [samples for samples, _ in sentences]
    long = np.concatenate([part for samples in spoken for part in (samples, silence(0.3))])
    noisy = beside(spoken[0], white(8.0, 1.0)[: len(spoken[0])], 5)
    recordings = {"3s": spoken[1], "28s": long, "noisy": noisy, "5s": spoken[3], "none": silence(4)}
    return [write_wave(place / "in" / f"{n}.wav", samples) for n, samples in recordings.items()]


@pytest.fixture(scope="module")
def together(clips: list[Path], models: dict[str, str], place: Path) -> Run:
    return transcribe(clips, models["whisper"], place / "together", *EXACT)


@pytest.mark.parametrize("batch_size", BATCH_SIZES[:2])
def test_company_and_order_do_not_matter(
    clips: list[Path], together: Run, models: dict[str, str], tmp_path: Path, batch_size: int
) -> None:
    options = (*EXACT, "--batch-size", str(batch_size))
    run = transcribe(clips[::-1], models["whisper"], tmp_path, *options)
    assert set(run.results) == set(together.results)
    check_equal(run, together)
    assert len(together.results["28s"].words) > 60


def test_alone(clips: list[Path], together: Run, models: dict[str, str], tmp_path: Path) -> None:
    run = transcribe(clips[:1], models["whisper"], tmp_path, *EXACT)
    assert list(run.results) == ["3s"]
    check_equal(run, together)


def test_half_precision_agrees(
    clips: list[Path],
    together: Run,
    sentences: list[tuple[Samples, str]],
    models: dict[str, str],
    tmp_path: Path,
) -> None:
    run = transcribe(clips, models["whisper"], tmp_path, "--dtype", "bfloat16")
    assert run.outcome.code == 0
    whole = " ".join(text for _, text in sentences)
    coarse, exact = (word_error_rate(whole, each.results["28s"]) for each in (run, together))
    assert abs(coarse - exact) <= 0.015  # one word of the 71
    for name in ("3s", "5s"):
        assert run.results[name].words == together.results[name].words
    assert run.results["none"] == together.results["none"]


def test_drawn_texts_depend_on_the_seed_alone(
    clips: list[Path], models: dict[str, str], tmp_path: Path
) -> None:
    noisy = [path for path in clips if path.stem in ("noisy", "3s", "5s")]
    options = (*EXACT, *DRAWN)
    first = transcribe(noisy, models["whisper"], tmp_path / "1", *options)
    in_twos = (*options, "--batch-size", "2")
    second = transcribe(noisy[::-1], models["whisper"], tmp_path / "2", *in_twos)
    check_equal(first, second)
    assert {s["temperature"] for s in first.results["noisy"].segments} <= {0.8, 1.0}
    other = transcribe(noisy, models["whisper"], tmp_path / "3", *options, "--seed", "7")
    assert essence(other) != essence(first)


@pytest.mark.parametrize(("family", "num_runs"), [("qwen", 5), ("glm", 2)])
def test_five_runs_are_equal_to_the_byte(
    family: str, num_runs: int, models: dict[str, str], speech_bank: SpeechBank, tmp_path: Path
) -> None:
    """Drawing, with the default dtype; noise makes the draws matter."""
    path = tmp_path / "noisy.wav"
    (said,) = unseen_utterances(speech_bank, 1, seed=3)
    noise = white(1 + len(said.samples) / 16_000, 1.0)[: len(said.samples)]
    write_wave(path, beside(said.samples, noise, 10))
    written = []
    for number in range(num_runs):
        out = tmp_path / str(number)
        run = transcribe([path], models[family], out, *DRAWN)
        assert run.outcome.code == 0
        written.append({file.name: file.read_bytes() for file in out.iterdir()})
    assert written[0]["noisy.json"]
    assert all(each == written[0] for each in written)


@pytest.mark.parametrize("family", ["qwen", "glm"])
def test_company_of_the_tiny_models(
    family: str, models: dict[str, str], speech_bank: SpeechBank, tmp_path: Path
) -> None:
    said = unseen_utterances(speech_bank, 6, seed=8)
    paths = [
        write_wave(tmp_path / "in" / f"{number}.wav", each.samples)
        for number, each in enumerate(said)
    ]
    runs = []
    for size in BATCH_SIZES:
        options = (*EXACT, "--batch-size", str(size))
        runs.append(transcribe(paths, models[family], tmp_path / str(size), *options))
        paths = paths[1:] + paths[:1]
    texts = [{name: each.text for name, each in run.results.items()} for run in runs]
    assert texts[0] == texts[1] == texts[2]
    heard = [" ".join(runs[0].results[str(n)].words) for n in range(len(said))]
    assert jiwer.wer([each.text for each in said], heard) <= 0.15
