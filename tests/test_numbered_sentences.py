"""Numbered sentences without a pause, begun at five offsets: wherever the cuts fall, each is there.

The real whisper-base hears flite, whose numbers tell at once what is lost or comes twice.
"""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from asrcli.evaluation.normalizers import normalize
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Transcript
from asrcli.writers import render
from tests.speech import RATE

BODIES = (
    "the children walked along the river to school",
    "she bought fresh bread and butter at the market",
    "a yellow bus stopped in front of the old library",
    "my brother plays the piano every evening after dinner",
    "we opened the window and looked at the mountains",
    "the doctor asked him to come back on Monday",
    "they painted the kitchen white and the door green",
)
NUM_SENTENCES = 40
OFFSETS = (0.0, 3.3, 7.9, 13.1, 21.7)  # s
MAX_PAUSE = 0.1  # s
QUIET = 0.02  # of the loudest 20 ms: what counts as a pause


def say(text: str, voice: str, folder: Path) -> NDArray[np.float32]:
    """A sentence without the silence around it, and with none over 0.1 s in it."""
    path = folder / "sentence.wav"
    subprocess.run(["flite", "-voice", voice, "-t", text, "-o", path], check=True)
    samples, rate = soundfile.read(path, dtype="float32")
    assert rate == RATE
    loudness = np.sqrt(np.convolve(np.square(samples), np.ones(320) / 320, "same"))
    places = np.flatnonzero(loudness > QUIET * loudness.max())
    gaps = np.diff(places, prepend=places[0])
    kept = [
        samples[place - min(gap, round(MAX_PAUSE * RATE)) + 1 : place + 1]
        for place, gap in zip(places[1:], gaps[1:], strict=True)
    ]
    return np.concatenate(kept)


@pytest.fixture(scope="module", params=["slt", "rms"])
def heard(
    request: pytest.FixtureRequest,
    whisper_base: Recognizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[Transcript]:
    """What is understood from each offset on."""
    if shutil.which("flite") is None:
        pytest.skip("flite is not installed")
    folder = tmp_path_factory.mktemp("numbered")
    speech = np.concatenate(
        [
            say(f"Item {number}: {BODIES[number % len(BODIES)]}.", request.param, folder)
            for number in range(1, NUM_SENTENCES + 1)
        ]
    )
    chance = np.random.default_rng(1)
    transcripts = []
    for offset in OFFSETS:
        lead = 1e-3 * chance.standard_normal(round(offset * RATE)).astype(np.float32)
        soundfile.write(folder / "a.flac", np.concatenate([lead, speech]), RATE)
        transcripts.append(whisper_base.transcribe(folder / "a.flac", Options(language="en")))
    return transcripts


def numbers(transcript: Transcript) -> list[int]:
    """Those of the sentences, which the model writes in digits after "Item"."""
    return [int(number) for number in re.findall(r"\d+", transcript.text)]


def body(transcript: Transcript) -> str:
    """The words beside the numbers."""
    return re.sub(r"\d+", " ", normalize(transcript.text, "english"))


@pytest.mark.slow
def test_every_sentence_once_and_in_order(heard: list[Transcript]) -> None:
    for transcript in heard:
        assert numbers(transcript) == list(range(1, NUM_SENTENCES + 1)), transcript.text


@pytest.mark.slow
def test_the_same_text_each_time(heard: list[Transcript]) -> None:
    """But for a word that is misheard now and then: what surrounds it in its window differs."""
    for first, second in itertools.combinations(heard, 2):
        found = jiwer.process_words(body(first), body(second))
        assert found.insertions + found.deletions <= 1
        assert found.wer <= 0.01


@pytest.mark.slow
def test_every_format_has_the_same_words(heard: list[Transcript]) -> None:
    for transcript in heard:
        expected = transcript.text.split()
        assert " ".join(segment.text for segment in transcript.segments).split() == expected
        assert render(transcript, "text").split() == expected
        for format in ("srt", "vtt"):
            lines = render(transcript, format).splitlines()
            texts = [line for line in lines if line and "-->" not in line and line != "WEBVTT"]
            texts = [line for line in texts if not re.fullmatch(r"\d+", line)]
            assert " ".join(texts).split() == expected
