"""Speech from flite and espeak-ng: needed to train and to make the test speech, not for tests."""

from __future__ import annotations

import io
import random
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

from tests.checkpoints.speech_bank import SAMPLING_RATE, Recording, SpeechBank
from tests.checkpoints.vocabulary import VOICES, WORDS, is_held_out

FLITE_PITCH = {"slt": 180, "awb": 125, "rms": 95}  # Hz, each voice's own
MAX_PHRASE_WORDS = 6


@dataclass(frozen=True, slots=True)
class Order:
    """One thing to say: speed is a factor for flite and words a minute for espeak-ng."""

    language: str
    program: str
    voice: str
    text: str
    speed: float
    pitch: int


def make_order(chance: random.Random, language: str, voice: tuple[str, str], text: str) -> Order:
    """How one voice says a text this time."""
    program, name = voice
    if program == "flite":
        speed = round(chance.uniform(0.85, 1.25), 2)  # duration_stretch
        pitch = round(FLITE_PITCH[name] * chance.uniform(0.88, 1.15))
    else:
        speed, pitch = chance.randint(130, 185), chance.randint(30, 70)
    return Order(language, program, name, text, speed, pitch)


def say(order: Order) -> Recording:
    """Speak, resample to 16 kHz, trim the silence, scale to 0.9 of full scale."""
    if order.program == "flite":
        samples, rate = _flite(order)
    else:
        command = ["espeak-ng", "-v", order.voice, "-s", str(int(order.speed))]
        command += ["-p", str(order.pitch), "--stdout", order.text]
        sound = subprocess.run(command, capture_output=True, check=True).stdout
        samples, rate = soundfile.read(io.BytesIO(sound), dtype="float32")
    if rate != SAMPLING_RATE:
        samples = soxr.resample(samples, rate, SAMPLING_RATE)
    return Recording(order.language, order.voice, order.text, _trim(samples))


def _flite(order: Order) -> tuple[NDArray[np.float32], int]:
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        command = ["flite", "-voice", order.voice, "-t", order.text, "-o", file.name]
        command += ["--setf", f"duration_stretch={order.speed}"]
        command += ["--setf", f"int_f0_target_mean={order.pitch}"]
        subprocess.run(command, capture_output=True, check=True)
        samples, rate = soundfile.read(Path(file.name), dtype="float32")
    return samples, rate


def _trim(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    loud = np.flatnonzero(np.abs(samples) > 0.02 * np.abs(samples).max())
    kept = samples[max(0, loud[0] - 320) : loud[-1] + 800]
    return np.asarray(kept / np.abs(kept).max() * 0.9, np.float32)


def make_bank(seed: int, *, takes: int, phrases: int, held_out: bool) -> SpeechBank:
    """Every word ``takes`` times by each voice of its language, and some phrases said in one go.

    Args:
        phrases: how many phrases for each voice.
        held_out: whether the phrases are among the sequences kept from training, or not.
    """
    chance = random.Random(seed)
    orders = []
    for language, words in WORDS.items():
        for voice in VOICES[language]:
            texts = [word for word in words for _ in range(takes)]
            texts += [" ".join(_phrase(chance, words, held_out)) for _ in range(phrases)]
            orders += [make_order(chance, language, voice, text) for text in texts]
    with ThreadPoolExecutor(2) as pool:
        return SpeechBank(list(pool.map(say, orders)))


def _phrase(chance: random.Random, words: Sequence[str], held_out: bool) -> list[str]:
    while True:
        phrase = [chance.choice(words) for _ in range(chance.randint(2, MAX_PHRASE_WORDS))]
        if is_held_out(phrase) == held_out:
            return phrase
