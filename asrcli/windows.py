"""Windows: how a recording is cut for a model, and how the pieces come together again.

Every rule about seams lives here. ``cut`` covers a recording with windows that neither overlap nor
leave a gap, ``halve`` cuts one of them once more; ``stitch`` is the inverse for what the model said
in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.transcript import MIN_SEGMENT_DURATION, ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from asrcli.transcript import Segment

SEARCH_DURATION = 5.0  # s before the end of a full window in which the quietest place is sought
QUIET_DURATION = 0.1  # s: the stretch whose energy is compared


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A cut of a recording, short enough for the model.

    Attributes:
        recording_id: which recording it belongs to, unique within the process.
        index: position among the recording's windows, from 0.
        samples: float32 [num_samples], 16 kHz mono.
        start, end: seconds from the start of the recording.
    """

    recording_id: int
    index: int
    samples: NDArray[np.float32]
    start: float
    end: float


class Cutter:
    """Cuts blocks of audio, as they come, into windows of at most ``max_duration`` seconds.

    A window is cut only when more audio is at hand than it can hold, in the middle of the quietest
    100 ms of its last 5 s. Positions are counted in samples, so no window's time drifts.
    """

    def __init__(self, recording_id: int, *, max_duration: float = 30.0) -> None:
        self._recording_id = recording_id
        self._max_samples = round(max_duration * SAMPLING_RATE)
        self._search_samples = round(min(SEARCH_DURATION, max_duration / 2) * SAMPLING_RATE)
        self._blocks: list[NDArray[np.float32]] = []
        self._num_pending = 0
        self._position = 0
        self._index = 0

    @property
    def num_samples(self) -> int:
        """Samples taken in so far."""
        return self._position + self._num_pending

    def add(self, block: NDArray[np.float32]) -> list[Window]:
        """Take in a block (float32 [n]) and give the windows that are now complete."""
        self._blocks.append(block)
        self._num_pending += len(block)
        if self._num_pending <= self._max_samples:
            return []
        pending = np.concatenate(self._blocks)
        windows = []
        while len(pending) > self._max_samples:
            length = self._quietest_cut(pending[: self._max_samples])
            windows.append(self._window(pending[:length].copy()))
            pending = pending[length:]
        self._blocks, self._num_pending = [pending], len(pending)
        return windows

    def finish(self) -> list[Window]:
        """Give what is left as the last window; nothing if there is nothing."""
        if not self._num_pending:
            return []
        pending = np.concatenate(self._blocks)
        self._blocks, self._num_pending = [], 0
        return [self._window(pending)]

    def _window(self, samples: NDArray[np.float32]) -> Window:
        start = self._position
        self._position += len(samples)
        self._index += 1
        return Window(
            recording_id=self._recording_id,
            index=self._index - 1,
            samples=samples,
            start=start / SAMPLING_RATE,
            end=self._position / SAMPLING_RATE,
        )

    def _quietest_cut(self, samples: NDArray[np.float32]) -> int:
        """Where to cut a full window, as a sample index."""
        return _quietest(samples, len(samples) - self._search_samples, len(samples))


def cut(
    blocks: Iterable[NDArray[np.float32]], *, recording_id: int, max_duration: float = 30.0
) -> Iterator[Window]:
    """Cut a recording, given as blocks of 16 kHz mono float32, into windows; lazily."""
    cutter = Cutter(recording_id, max_duration=max_duration)
    for block in blocks:
        yield from cutter.add(block)
    yield from cutter.finish()


def halve(window: Window) -> tuple[Window, Window]:
    """Cut a window in two, in the quietest place of its middle third."""
    num_samples = len(window.samples)
    middle = _quietest(window.samples, num_samples // 3, num_samples - num_samples // 3)
    seam = window.start + middle / SAMPLING_RATE
    return (
        replace(window, samples=window.samples[:middle], end=seam),
        replace(window, samples=window.samples[middle:], start=seam),
    )


def _quietest(samples: NDArray[np.float32], begin: int, end: int) -> int:
    """The middle of the quietest stretch between two places, as a sample index."""
    width = min(round(QUIET_DURATION * SAMPLING_RATE), end - begin)
    energy = np.cumsum(np.square(samples[begin:end], dtype=np.float64))
    stretch_energy = energy[width - 1 :] - np.concatenate(([0.0], energy[:-width]))
    # Of equally quiet places (digital silence) the last one wastes the least of a window.
    last_minimum = len(stretch_energy) - 1 - int(np.argmin(stretch_energy[::-1]))
    return begin + last_minimum + width // 2


def stitch(pieces: Iterable[Sequence[Segment]]) -> tuple[str, tuple[Segment, ...]]:
    """Join what the model said in the windows of one recording, in their order.

    Returns:
        The text and the segments, numbered anew. Times never go back: a segment that would begin
        before the one ahead of it has ended is made to begin there, and one of which that leaves
        nothing joins the one ahead.
    """
    segments: list[Segment] = []
    for segment in (segment for piece in pieces for segment in piece):
        start = max(segment.start, segments[-1].end) if segments else segment.start
        if segments and segment.end - start < MIN_SEGMENT_DURATION - ROUNDING:
            segments[-1] = _join(segments[-1], segment)
        else:
            segments.append(replace(segment, id=len(segments), start=start))
    return join_texts(segment.text for segment in segments), tuple(segments)


def _join(first: Segment, second: Segment) -> Segment:
    """A segment that says what both say, in the time of both."""
    return replace(
        first,
        end=max(first.end, second.end),
        text=join_texts([first.text, second.text]),
        tokens=first.tokens + second.tokens,
        words=first.words + second.words,
    )


def join_texts(texts: Iterable[str]) -> str:
    """Join texts with a space between them, but none where both sides are Han or kana."""
    joined = ""
    for text in (text.strip() for text in texts):
        if joined and text and not (_unspaced(joined[-1]) and _unspaced(text[0])):
            joined += " "
        joined += text
    return joined


def _unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without spaces between words."""
    code = ord(character)
    return (
        0x2E80 <= code <= 0x30FF  # Han radicals, CJK punctuation, hiragana, katakana
        or 0x31F0 <= code <= 0x31FF  # katakana extensions
        or 0x3400 <= code <= 0x9FFF  # Han
        or 0xF900 <= code <= 0xFAFF  # Han compatibility forms
        or 0xFF01 <= code <= 0xFF9F  # full-width punctuation, half-width katakana
        or 0x20000 <= code <= 0x3FFFF  # Han extensions
    )
