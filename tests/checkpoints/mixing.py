"""Utterances out of recorded words and phrases: what the checkpoints are trained and tested on."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tests.checkpoints.speech_bank import SAMPLING_RATE, SpeechBank
from tests.checkpoints.vocabulary import DIGITS, WORDS, is_held_out

MAX_DURATION = 12.0  # s: the longest utterance that the checkpoints are trained on
_GAPS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.35)  # s between the words of a sequence
_PAUSES = (0.08, 0.3, 0.9)  # s between the sequences of a long utterance: short ones, long ones
_MIX_VOICES = 0.15  # share of sequences whose words come from several voices


@dataclass(frozen=True, slots=True)
class Utterance:
    """Something said: float32 [n] at 16 kHz, its words, its language (None: nothing is said)."""

    samples: NDArray[np.float32]
    words: tuple[str, ...]
    language: str | None

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def duration(self) -> float:
        return len(self.samples) / SAMPLING_RATE


class Mixer:
    """Makes utterances by chance; the same seed gives the same ones.

    Args:
        held_out: whether sequences come from those kept from training, or from the others.
    """

    def __init__(self, bank: SpeechBank, seed: int, *, held_out: bool) -> None:
        self._bank = bank
        self._held_out = held_out
        self._chance = random.Random(seed)
        self._noise = np.random.default_rng(seed)

    def sequence(self, language: str, num_words: int) -> Utterance:
        """Recorded words behind one another, with short gaps or none."""
        words = self._words(language, num_words)
        mixed = self._chance.random() < _MIX_VOICES
        voice = self._chance.choice(self._bank.voices(language))
        pace = self._chance.choice(_GAPS)
        pieces = []
        for word in words:
            if mixed:
                voice = self._chance.choice(self._bank.voices(language))
            take = self._chance.choice(self._bank.takes(language, voice, word))
            pieces.append(take.samples * self._chance.uniform(0.6, 1.0))
            pieces.append(silence(pace * self._chance.uniform(0.3, 1.3)))
        return Utterance(np.concatenate(pieces[:-1]).astype(np.float32), words, language)

    def phrase(self, language: str) -> Utterance:
        """Words that a voice said in one go."""
        take = self._chance.choice(self._bank.phrases[language])
        return Utterance(take.samples, tuple(take.text.split()), language)

    def long(self, language: str, duration: float) -> Utterance:
        """Sequences and phrases with pauses, as many as fit into ``duration`` seconds."""
        pieces: list[NDArray[np.float32]] = []
        words: tuple[str, ...] = ()
        num_samples = 0
        first = self._chance.randrange(len(_PAUSES) - 1)
        pauses = _PAUSES[first : first + 2]
        while True:
            more = self._short(language)
            pause = silence(self._chance.uniform(*pauses) if pieces else 0.0)
            num_samples += len(pause) + len(more.samples)
            if pieces and num_samples > duration * SAMPLING_RATE:
                return Utterance(np.concatenate(pieces), words, language)
            pieces += [pause, more.samples]
            words += more.words

    def stream(self, language: str, duration: float) -> Utterance:
        """Words of one voice without a pause, as many as fit into ``duration`` seconds."""
        voice = self._chance.choice(self._bank.voices(language))
        gaps = sorted(self._chance.choices((0.03, 0.06, 0.1, 0.15), k=2))
        vocabulary = DIGITS if language == "English" else WORDS[language]
        if self._chance.random() < 0.5:
            vocabulary = WORDS[language]
        pieces: list[NDArray[np.float32]] = []
        words: tuple[str, ...] = ()
        num_samples = 0
        while True:
            word = self._chance.choice(vocabulary)
            take = self._chance.choice(self._bank.takes(language, voice, word)).samples
            gap = silence(self._chance.uniform(*gaps))
            num_samples += len(take) + len(gap)
            if pieces and num_samples > duration * SAMPLING_RATE:
                return Utterance(np.concatenate(pieces), words, language)
            pieces += [take * np.float32(self._chance.uniform(0.7, 1.0)), gap]
            words += (word,)

    def nothing(self) -> Utterance:
        """Silence, or noise."""
        samples = silence(self._chance.uniform(0.3, MAX_DURATION / 2))
        return Utterance(self.noisy(samples, self._chance.choice((0, 1e-4, 1e-3, 6e-3))), (), None)

    def in_the_wild(self, utterance: Utterance) -> Utterance:
        """An utterance as a window may hold it: other speed, level, silence around it, noise.

        A sliver of another word may stand at either edge, where a cut ran close to it.
        """
        samples = utterance.samples
        if self._chance.random() < 0.5:
            positions = np.arange(0, len(samples) - 1, self._chance.uniform(0.94, 1.07))
            samples = np.interp(positions, np.arange(len(samples)), samples).astype(np.float32)
        room = max(0.0, MAX_DURATION - len(samples) / SAMPLING_RATE)
        around = [
            silence(self._chance.choice((0, 1)) * self._chance.uniform(0, min(0.6, room / 2)))
            for _ in "ab"
        ]
        samples = np.concatenate([self._sliver(), around[0], samples, around[1], self._sliver()])
        samples = samples * np.float32(10 ** self._chance.uniform(-1.0, 0.0))
        level = 10 ** self._chance.uniform(-4.5, -2.4) if self._chance.random() < 0.6 else 0.0
        return Utterance(self.noisy(samples, level), utterance.words, utterance.language)

    def noisy(self, samples: NDArray[np.float32], level: float) -> NDArray[np.float32]:
        """With white noise of a root mean square of ``level``."""
        noise = self._noise.standard_normal(len(samples), dtype=np.float32)
        return np.asarray(samples + noise * np.float32(level), np.float32)

    def _short(self, language: str) -> Utterance:
        if self._chance.random() < 0.4:
            return self.phrase(language)
        return self.sequence(language, self._chance.randint(1, 7))

    def _words(self, language: str, num_words: int) -> tuple[str, ...]:
        while True:
            words = tuple(self._chance.choice(WORDS[language]) for _ in range(num_words))
            if num_words == 1 or is_held_out(words) == self._held_out:
                return words

    def _sliver(self) -> NDArray[np.float32]:
        if self._chance.random() > 0.08:
            return silence(0)
        take = self._chance.choice(self._bank.recordings).samples
        length = round(self._chance.uniform(0.01, 0.06) * SAMPLING_RATE)
        return take[:length] if self._chance.random() < 0.5 else take[-length:]


def silence(duration: float) -> NDArray[np.float32]:
    """So many seconds of nothing."""
    return np.zeros(round(duration * SAMPLING_RATE), np.float32)
