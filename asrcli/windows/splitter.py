"""One recording's audio on its way to windows: voice detection and cutting, clip by clip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.audio.vad import VoiceStream, load_detector
from asrcli.windows.cutter import Cutter
from asrcli.windows.window import find_gaps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from asrcli.windows.window import Window


class Splitter:
    """Makes windows of blocks as they come, and accounts for every second.

    Args:
        recording_id: the recording's.
        max_duration: seconds that a window can hold.
        vad: whether what holds no speech is left out.

    Attributes:
        num_samples: where the audio taken in so far ends, from the start of the recording.
    """

    def __init__(self, recording_id: int, *, max_duration: float, vad: bool) -> None:
        self._recording_id = recording_id
        self._max_duration = max_duration
        self._vad = vad
        self._num_windows = 0
        self._spans: list[tuple[float, float]] = []
        self._wanted: list[tuple[float, float]] = []
        self.num_samples = 0

    def split(self, placed: Iterable[tuple[int, NDArray[np.float32]]]) -> Iterator[Window]:
        """Windows of blocks that come with their position in samples; a jump begins anew."""
        cutter: Cutter | None = None
        voice: VoiceStream | None = None
        for position, block in placed:
            if cutter is None or position != cutter.end:
                if cutter is not None:
                    yield from self._finish(cutter, voice)
                cutter, voice = self._begin(position)
            probabilities = voice.add(block) if voice is not None else ()
            windows = cutter.add(block, probabilities)
            self.num_samples = cutter.end
            yield from self._count(windows)
        if cutter is not None:
            yield from self._finish(cutter, voice)

    def unaccounted(self) -> list[tuple[float, float]]:
        """What was read, and is neither in a window nor silent, in seconds: nothing, ever."""
        return [gap for start, end in self._wanted for gap in find_gaps(self._spans, start, end)]

    def _begin(self, position: int) -> tuple[Cutter, VoiceStream | None]:
        voice = VoiceStream(load_detector()) if self._vad else None
        cutter = Cutter(
            self._recording_id,
            max_duration=self._max_duration,
            position=position,
            first_index=self._num_windows,
            listens=self._vad,
        )
        self._start = position / SAMPLING_RATE
        return cutter, voice

    def _finish(self, cutter: Cutter, voice: VoiceStream | None) -> list[Window]:
        windows = self._count(cutter.finish(voice.finish() if voice is not None else ()))
        self._spans += cutter.silences
        self._wanted.append((self._start, cutter.end / SAMPLING_RATE))
        return windows

    def _count(self, windows: list[Window]) -> list[Window]:
        self._num_windows += len(windows)
        self._spans += ((window.start, window.end) for window in windows)
        return windows
