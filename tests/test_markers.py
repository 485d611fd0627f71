"""Ten minutes with a word and a number now and then: each is there once, in order, at its time.

The real whisper-base hears flite say "Marker number 17" into silence and into noise.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from asrcli.evaluation.normalizers import normalize
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Segment
from tests.speech import RATE

DURATION = 600.0  # s
NUMBERS = range(11, 36)  # "one" would stay a word
SPACING = DURATION / len(NUMBERS)
MAX_ERROR = 0.5  # s that a start may be off
MAX_DRIFT = 0.15  # s between the mean errors of the first half and the second
NOISE_LEVEL = 0.003  # 30 dB below the voice

Samples = NDArray[np.float32]


def say(number: int, folder: Path) -> Samples:
    """A marker without the silence around it."""
    path = folder / "marker.wav"
    text = f"Marker number {number}."
    subprocess.run(["flite", "-voice", "slt", "-t", text, "-o", path], check=True)
    samples, rate = soundfile.read(path, dtype="float32")
    assert rate == RATE
    loud = np.flatnonzero(np.abs(samples) > 0.03 * np.abs(samples).max())
    return np.asarray(samples[loud[0] : loud[-1] + 1], np.float32)


def record(folder: Path, level: float) -> list[float]:
    """Write the recording; where its markers start, in s."""
    chance = np.random.default_rng(4)
    audio = (level * chance.standard_normal(round(DURATION * RATE))).astype(np.float32)
    starts = []
    for index, number in enumerate(NUMBERS):
        start = index * SPACING + float(chance.uniform(1.0, SPACING - 5.0))
        marker = say(number, folder)
        begin = round(start * RATE)
        audio[begin : begin + len(marker)] += marker
        starts.append(begin / RATE)
    soundfile.write(folder / "a.flac", np.clip(audio, -1, 1), RATE)
    return starts


def numbers(segment: Segment) -> list[int]:
    return [int(found) for found in re.findall(r"\d+", normalize(segment.text, "english"))]


@pytest.mark.slow
@pytest.mark.parametrize("level", [0.0, NOISE_LEVEL], ids=["silence", "noise"])
def test_every_marker_once_in_order_and_in_time(
    whisper_base: Recognizer, tmp_path: Path, level: float
) -> None:
    if shutil.which("flite") is None:  # a program of the system, which pip cannot install
        pytest.skip("flite is not installed")
    starts = record(tmp_path, level)
    transcript = whisper_base.transcribe(tmp_path / "a.flac", Options(language="en"))
    heard = [
        (number, segment.start) for segment in transcript.segments for number in numbers(segment)
    ]
    assert [number for number, _ in heard] == list(NUMBERS), transcript.text
    assert not transcript.warnings
    errors = np.array([found - start for (_, found), start in zip(heard, starts, strict=True)])
    assert np.abs(errors).max() <= MAX_ERROR
    half = len(NUMBERS) // 2
    assert abs(errors[:half].mean() - errors[half:].mean()) <= MAX_DRIFT
