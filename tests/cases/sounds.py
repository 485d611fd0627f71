"""What the cases let the models hear: noises without a word, and speech in trouble."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

RATE = 16_000
NUM_HARMONICS = 11

Samples = NDArray[np.float32]


def silence(duration: float) -> Samples:
    """So many seconds of nothing."""
    return np.zeros(round(duration * RATE), np.float32)


def white(duration: float, level: float, *, seed: int = 1) -> Samples:
    """White noise of a root mean square of ``level``."""
    drawn = np.random.default_rng(seed).standard_normal(round(duration * RATE))
    return np.asarray(level * drawn, np.float32)


def pink(duration: float, level: float, *, seed: int = 1) -> Samples:
    """Noise with the same power in every octave, of a root mean square of ``level``."""
    spectrum = np.fft.rfft(white(duration, 1.0, seed=seed))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    return scaled(np.fft.irfft(spectrum, round(duration * RATE)), level)


def hum(duration: float, frequency: float, level: float) -> Samples:
    """The mains and its harmonics, of a root mean square of ``level``."""
    times = np.arange(round(duration * RATE)) / RATE
    harmonics = range(1, NUM_HARMONICS + 1)
    waves = [np.sin(2 * np.pi * frequency * k * times) / k for k in harmonics]
    return scaled(np.sum(waves, axis=0), level)


def tone(duration: float, frequency: float, level: float = 0.3) -> Samples:
    """A sine of amplitude ``level``."""
    times = np.arange(round(duration * RATE)) / RATE
    return np.asarray(level * np.sin(2 * np.pi * frequency * times), np.float32)


def clicks(duration: float, *, spacing: float = 0.5) -> Samples:
    """Single samples near full scale, at equal distances (s)."""
    samples = silence(duration)
    samples[:: round(spacing * RATE)] = 0.9
    return samples


def square(duration: float) -> Samples:
    """A square wave of full scale."""
    return np.sign(tone(duration, 100.0)).astype(np.float32)


def scaled(samples: NDArray[np.float64] | Samples, level: float) -> Samples:
    """Samples with a root mean square of ``level``."""
    return np.asarray(samples * (level / root_mean_square(samples)), np.float32)


def root_mean_square(samples: NDArray[np.float64] | Samples) -> float:
    return float(np.sqrt(np.square(samples, dtype=np.float64).mean()))


def beside(speech: Samples, noise: Samples, ratio: float) -> Samples:
    """Speech with a noise as long as it, ``ratio`` dB below it."""
    return speech + scaled(noise, root_mean_square(speech) * 10 ** (-ratio / 20))


def louder(samples: Samples, gain: float) -> Samples:
    """Samples made louder by ``gain`` dB."""
    return np.asarray(samples * 10 ** (gain / 20), np.float32)


def trimmed(speech: Samples) -> Samples:
    """Speech that ends with its last sound; of what is quiet before it, 50 ms stay."""
    power = np.convolve(np.square(speech, dtype=np.float64), np.full(160, 1 / 160), "same")
    (loud,) = np.nonzero(power > (float(np.abs(speech).max()) * 10 ** (-35 / 20)) ** 2)
    return speech[max(0, int(loud[0]) - 800) : int(loud[-1])]


def ending_at(pieces: Sequence[Samples], num_samples: int) -> Samples:
    """Pieces one behind the other with equal pauses before each; the last ends on the last sample.

    Raises:
        ValueError: they are longer than that.
    """
    room = num_samples - sum(len(piece) for piece in pieces)
    if room < 0:
        raise ValueError(f"{-room} samples too many")
    pause, more = divmod(room, len(pieces))
    joined = [np.zeros(more, np.float32)]
    for piece in pieces:
        joined += [np.zeros(pause, np.float32), piece]
    return np.concatenate(joined)
