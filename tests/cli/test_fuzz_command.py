"""Damaged files among good ones through the whole command: each is done, or named, or both."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundfile
from hypothesis import HealthCheck, Phase, given, settings

from tests.audio.damage import Damaged, damaged, make_seeds
from tests.audio.fuzz_worker import NAME
from tests.audio.test_fuzz_reader import Worker
from tests.checkpoints import GLM
from tests.checkpoints.mixing import Utterance
from tests.checkpoints.recordings import unseen_utterances, word_error_rate
from tests.checkpoints.speech_bank import SAMPLING_RATE, SpeechBank
from tests.cli.runs import Outcome, asr

GOOD_FORMATS = ("WAV", "FLAC", "OGG")
# Words that cannot be had from what is left of a file are named as well.
LOST_WORDS = "came to no end"


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_seeds(tmp_path_factory.mktemp("seeds"))


@pytest.fixture(scope="module")
def worker(seeds: dict[str, bytes]) -> Iterator[Worker]:
    worker = Worker(seeds["mp4"])
    yield worker
    worker.close()


@pytest.fixture(scope="module")
def utterances(speech_bank: SpeechBank) -> list[Utterance]:
    return unseen_utterances(speech_bank, len(GOOD_FORMATS), seed=55)


def draw(seeds: dict[str, bytes], count: int) -> list[bytes]:
    """So many damaged files, the same ones each time, and unlike one another."""
    drawn: list[Damaged] = []

    @settings(
        max_examples=20 * count,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(sorted(seeds)))
    def keep(case: Damaged) -> None:
        drawn.append(case)

    keep()
    different = list(dict.fromkeys(drawn))
    return [case.make(seeds) for case in different[:: len(different) // count][:count]]


def write_all(folder: Path, files: list[bytes], utterances: list[Utterance]) -> None:
    folder.mkdir()
    for number, data in enumerate(files):
        (folder / f"bad{number:03}.wav").write_bytes(data)
    for kind, utterance in zip(GOOD_FORMATS, utterances, strict=True):
        path = folder / f"good-{kind}.wav"  # whatever the name says
        soundfile.write(path, utterance.samples, SAMPLING_RATE, format=kind)


def check_good(out: Path, utterances: list[Utterance]) -> None:
    pairs = []
    for kind, utterance in zip(GOOD_FORMATS, utterances, strict=True):
        transcript = json.loads((out / f"good-{kind}.json").read_text())
        assert transcript["duration"] == pytest.approx(utterance.duration, abs=1e-3)
        pairs.append((utterance.text, transcript["text"]))
    assert word_error_rate(pairs) <= 0.3


def check_damaged(path: Path, data: bytes, out: Path, worker: Worker, outcome: Outcome) -> bool:
    """Compare with what the reader says of a file by itself; returns whether it is a failure."""
    known = worker.read(data, False, None)
    lines = outcome.err.splitlines()
    result = out / path.with_suffix(".json").name
    if "error" in known:
        assert f"error: {str(known['error']).replace(NAME, str(path), 1)}" in lines
        assert not result.exists()
        return True
    assert json.loads(result.read_text())["duration"] == pytest.approx(
        known["num_samples"] / SAMPLING_RATE, abs=1e-3
    )
    for line in known["damage"]:
        assert f"error: {path}: {line}" in lines
    lost = [line for line in lines if line.startswith(f"error: {path}: ") and LOST_WORDS in line]
    return bool(known["damage"] or lost)


@pytest.mark.parametrize("count", [10, pytest.param(100, marks=pytest.mark.slow)])
def test_damaged_files_among_good_ones(
    tmp_path: Path,
    seeds: dict[str, bytes],
    worker: Worker,
    utterances: list[Utterance],
    count: int,
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    files = draw(seeds, count)
    assert len(files) == count
    write_all(folder, files, utterances)
    outcome = asr("transcribe", folder, "-m", GLM, "-f", "json", "-o", out)
    assert "Traceback" not in outcome.err and "internal error" not in outcome.err
    assert outcome.out == ""
    check_good(out, utterances)
    failures = [
        path
        for path, data in zip(sorted(folder.glob("bad*")), files, strict=True)
        if check_damaged(path, data, out, worker, outcome)
    ]
    assert len(failures) >= count // 4
    summary = next(line for line in outcome.err.splitlines() if " files done" in line)
    num_files = count + len(GOOD_FORMATS)
    assert summary.startswith(
        f"{num_files - len(failures)} of {num_files} files done, {len(failures)} failed"
    )
    assert outcome.code == (1 if failures else 0)
    assert not list(tmp_path.rglob(".asr-*"))
