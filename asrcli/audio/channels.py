"""Many channels to one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.notes import Notes

# Samples of all channels, shape [num_samples, num_channels], and their sampling rate.
Chunk = tuple[int, NDArray[np.float32]]
MonoChunk = tuple[int, NDArray[np.float32]]

# Seconds that are judged together, counted from the start of the recording, so that the choice
# does not depend on how the audio arrives.
STRETCH = 1.0

# Unrelated channels lose a factor of num_channels in power when they are averaged. Channels whose
# average keeps less than this share of even that work against each other (1 % for stereo).
_CANCELLING = 0.02
# Above this share they no longer do. The gap between the two keeps the choice from flapping.
_AGREEING = 0.5
# Mean power below which a stretch is silence and decides nothing (-80 dB of full scale).
_SILENCE = 1e-8


def gather(chunks: Iterable[Chunk], duration: float = STRETCH / 2) -> Iterator[Chunk]:
    """Join neighbours of one rate and number of channels to chunks of about so many seconds.

    A codec's frames last a few hundredths of a second, and every step behind costs as much for one
    of them as for half a second.
    """
    waiting: list[NDArray[np.float32]] = []
    kind, num_waiting = (0, 0), 0
    for sampling_rate, samples in chunks:
        if waiting and kind != (sampling_rate, samples.shape[1]):
            yield kind[0], np.concatenate(waiting)
            waiting, num_waiting = [], 0
        kind = (sampling_rate, samples.shape[1])
        waiting.append(samples)
        num_waiting += len(samples)
        if num_waiting >= duration * sampling_rate:
            yield sampling_rate, waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            waiting, num_waiting = [], 0
    if waiting:
        yield kind[0], np.concatenate(waiting)


def mix(chunks: Iterable[Chunk], notes: Notes) -> Iterator[MonoChunk]:
    """Average the channels; where they cancel each other, take the louder one and say so.

    Args:
        chunks: (sampling rate, float32 [num_samples, num_channels]); either may change on the way.
        notes: gets one line when channels cancel.

    Yields:
        (sampling rate, float32 [num_samples]), as many samples as came in.
    """
    mixer: _Mixer | None = None
    for sampling_rate, samples in chunks:
        shape = (sampling_rate, samples.shape[1])
        if mixer is None or mixer.shape != shape:
            if mixer is not None:
                yield from mixer.flush()
            mixer = _Mixer(shape, notes)
        yield from mixer.push(samples)
    if mixer is not None:
        yield from mixer.flush()


class _Mixer:
    """Mixes audio of one shape, stretch by stretch."""

    def __init__(self, shape: tuple[int, int], notes: Notes) -> None:
        self.shape = shape
        self._sampling_rate, self._num_channels = shape
        self._stretch_size = max(1, round(STRETCH * self._sampling_rate))
        self._notes = notes
        self._waiting: list[NDArray[np.float32]] = []
        self._num_waiting = 0
        self._channel: int | None = None  # the one that stands for all while they cancel

    def push(self, samples: NDArray[np.float32]) -> Iterator[MonoChunk]:
        if self._num_channels == 1:
            yield self._sampling_rate, samples[:, 0]
            return
        self._waiting.append(samples)
        self._num_waiting += len(samples)
        if self._num_waiting < self._stretch_size:
            return
        joined = np.concatenate(self._waiting)
        num_whole = len(joined) // self._stretch_size * self._stretch_size
        for start in range(0, num_whole, self._stretch_size):
            yield self._sampling_rate, self._mix(joined[start : start + self._stretch_size])
        self._waiting = [joined[num_whole:]]
        self._num_waiting = len(joined) - num_whole

    def flush(self) -> Iterator[MonoChunk]:
        if self._num_waiting:
            yield self._sampling_rate, self._mix(np.concatenate(self._waiting))
        self._waiting, self._num_waiting = [], 0

    def _mix(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        mean = samples.mean(axis=1, dtype=np.float64)
        powers = np.square(samples, dtype=np.float64).mean(axis=0)
        if powers.mean() > _SILENCE:
            kept = float(np.square(mean).mean() * self._num_channels / powers.mean())
            if self._channel is None and kept < _CANCELLING:
                self._channel = int(powers.argmax())
                self._say_once()
            elif self._channel is not None and kept > _AGREEING:
                self._channel = None
        mono = mean if self._channel is None else samples[:, self._channel]
        return np.ascontiguousarray(mono, dtype=np.float32)

    def _say_once(self) -> None:
        line = f"channels cancel each other; using channel {(self._channel or 0) + 1} alone"
        if not any(known.startswith("channels cancel") for known in self._notes.warnings):
            self._notes.warn(line)
