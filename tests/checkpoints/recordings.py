"""What tests let the tiny checkpoints listen to, and how they score what was understood."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass

import jiwer
import numpy as np
from numpy.typing import NDArray

from tests.checkpoints.mixing import Mixer, Utterance, silence
from tests.checkpoints.speech_bank import SAMPLING_RATE, SpeechBank
from tests.checkpoints.vocabulary import DIGITS

NOISE = 1e-3  # root mean square: -60 dB


@dataclass(frozen=True, slots=True)
class Recording:
    """A long recording of digit strings: float32 [n] at 16 kHz, and each string with its times."""

    samples: NDArray[np.float32]
    strings: tuple[tuple[str, ...], ...]
    times: tuple[tuple[float, float], ...]

    @property
    def duration(self) -> float:
        return len(self.samples) / SAMPLING_RATE

    @property
    def text(self) -> str:
        return " ".join(" ".join(string) for string in self.strings)


def unseen_utterances(
    bank: SpeechBank, count: int, *, languages: tuple[str, ...] = ("English",), seed: int = 101
) -> list[Utterance]:
    """Word sequences and phrases of at least two words, none of which was trained on."""
    mixer = Mixer(bank, seed, held_out=True)
    chance = random.Random(seed)
    utterances = []
    for _ in range(count):
        language = chance.choice(languages)
        said = (
            mixer.phrase(language)
            if chance.random() < 0.3
            else mixer.sequence(language, chance.randint(2, 8))
        )
        around = silence(0.1)
        samples = mixer.noisy(np.concatenate([around, said.samples, around]), NOISE)
        utterances.append(Utterance(samples, said.words, language))
    return utterances


def digit_strings(
    bank: SpeechBank,
    voice: str,
    *,
    duration: float,
    pauses: tuple[float, float],
    gaps: tuple[float, float],
    seed: int = 7,
) -> Recording:
    """Different strings of four to six digits, one behind the other.

    Args:
        duration: s, at least.
        pauses: shortest and longest silence (s) between strings.
        gaps: the same between the digits of a string.
    """
    chance = random.Random(seed)
    pieces = [silence(0.3)]
    strings: list[tuple[str, ...]] = []
    times = []
    position = len(pieces[0])
    while position < duration * SAMPLING_RATE:
        string = tuple(chance.choices(DIGITS, k=chance.randint(4, 6)))
        if string in strings:
            continue
        start = position
        for index, digit in enumerate(string):
            take = chance.choice(bank.takes("English", voice, digit)).samples
            gap = silence(chance.uniform(*(gaps if index + 1 < len(string) else pauses)))
            pieces += [take, gap]
            position += len(take) + len(gap)
        end = position - len(pieces[-1])
        strings.append(string)
        times.append((start / SAMPLING_RATE, end / SAMPLING_RATE))
    mixer = Mixer(bank, seed, held_out=True)
    samples = mixer.noisy(np.concatenate(pieces), NOISE)
    return Recording(samples, tuple(strings), tuple(times))


def word_error_rate(pairs: Iterable[tuple[str, str]]) -> float:
    """Of (reference, hypothesis) pairs, over all of their words; 0 to 1 and above."""
    references, hypotheses = zip(*pairs, strict=True)
    return float(jiwer.wer(list(references), list(hypotheses)))
