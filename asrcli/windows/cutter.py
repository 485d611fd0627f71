"""How a recording is cut: in its pauses, and where there is none in the quietest place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from asrcli.audio.reading import MIN_DURATION, SAMPLING_RATE
from asrcli.audio.speech import SpeechMap
from asrcli.audio.vad import FRAME_SAMPLES
from asrcli.windows.window import QUIET_DURATION, Window, find_quietest, find_seam

if TYPE_CHECKING:
    from numpy.typing import NDArray

PADDING = 0.3  # s of audio that a window keeps on either side of its speech
MAX_SILENCE = 3.0  # s; after a longer pause a new window begins, and most of the pause is left out
PAUSE_SEARCH = 10.0  # s before the end of a full window in which a pause is sought
GOOD_PAUSE = 0.6  # s; a longer one is no better place for a cut
LATENESS = 0.03  # s of pause that a place is worth for every second that it fills the window more
MIN_REST_SAMPLES = round(MIN_DURATION * SAMPLING_RATE)
SEARCH_DURATION = 5.0  # s before the end of a full window in which the quietest place is sought


class Cutter:
    """Cuts blocks of audio, as they come, into windows of at most ``max_duration`` seconds.

    Where probabilities of speech come along, a window begins and ends with speech and some padding,
    holds as much of it as it can, pauses and all, and is cut in a pause; what lies between windows
    is silent. A window without such a pause near its end, and every window where nobody has looked
    for speech, is cut in the longest hush of its last 5 s, and only when more audio is at hand than
    it can hold. Where there is none, it is cut in the quietest place, and the next window begins
    some time before that, so that each word is whole in one of the two. Positions are counted in
    samples, so no window's time drifts.

    Args:
        recording_id, first_index: what the windows are called.
        max_duration: seconds that a window can hold.
        position: where the audio begins, in samples from the start of the recording.
        listens: whether probabilities of speech come along.

    Attributes:
        silences: (start, end) in seconds of the recording of all that no window holds.
    """

    def __init__(
        self,
        recording_id: int,
        *,
        max_duration: float = 30.0,
        position: int = 0,
        first_index: int = 0,
        listens: bool = False,
    ) -> None:
        self._recording_id = recording_id
        self._max_samples = round(max_duration * SAMPLING_RATE)
        self._search_samples = round(min(SEARCH_DURATION, max_duration / 2) * SAMPLING_RATE)
        self._pause_search = round(min(PAUSE_SEARCH, max_duration / 2) * SAMPLING_RATE)
        self._map = SpeechMap() if listens else None
        self._origin = self._position = position
        self._blocks: list[NDArray[np.float32]] = []
        self._num_pending = 0
        self._index = first_index
        self._covered = position  # where the last window ends
        self.silences: list[tuple[float, float]] = []

    @property
    def end(self) -> int:
        """Where the audio taken in so far ends, in samples from the start of the recording."""
        return self._position + self._num_pending

    def add(self, block: NDArray[np.float32], probabilities: Iterable[float] = ()) -> list[Window]:
        """Take in a block (float32 [n]) and give the windows that are now complete.

        The probabilities, of frames of ``FRAME_SAMPLES``, may lag behind the audio.
        """
        self._blocks.append(block)
        self._num_pending += len(block)
        if self._map is not None:
            self._map.add(probabilities)
        elif self._num_pending <= self._max_samples:
            return []
        return list(self._windows(at_end=False))

    def finish(self, probabilities: Iterable[float] = ()) -> list[Window]:
        """Give what is left."""
        if self._map is not None:
            self._map.add(probabilities)
        windows = list(self._windows(at_end=True))
        self._skip_to(self.end)
        return windows

    def _windows(self, *, at_end: bool) -> Iterator[Window]:
        while (cut := self._next_cut(at_end)) is not None:
            yield self._take(*cut)

    def _next_cut(self, at_end: bool) -> tuple[int, int] | None:
        """Go to where the next window begins; give where it ends, and where the one behind it
        begins; None if that is still open."""
        padding = round(PADDING * SAMPLING_RATE)
        known = self.end if at_end or self._map is None else self._settled()
        stretches = self._stretches()
        if not stretches:
            self._skip_to(max(self._position, self.end if at_end else known - padding))
            return None
        self._skip_to(max(self._position, stretches[0][0] - padding))
        limit = self._position + self._max_samples
        for index, (_, last) in enumerate(stretches):
            is_last = index + 1 == len(stretches)
            pause_end = known if is_last else stretches[index + 1][0]
            if last > limit:
                return self._cut_full(stretches[: index + 1], limit)
            if at_end and is_last:
                return (min(limit, self.end, last + padding),) * 2
            if is_last and pause_end - last <= 2 * padding:
                return None  # speech may go on before it matters
            if pause_end - last > MAX_SILENCE * SAMPLING_RATE or pause_end > limit:
                return (min(limit, self._end_in_pause(last, pause_end)),) * 2
        return None

    def _settled(self) -> int:
        """Up to where it is known what is speech, in samples."""
        assert self._map is not None
        return min(self.end, self._origin + self._map.num_settled * FRAME_SAMPLES)

    def _stretches(self) -> list[tuple[int, int]]:
        """What is pending of speech, in samples; all of it where nobody has looked."""
        if self._map is None:
            return [(self._position, self.end)] if self._num_pending else []
        here = (self._position - self._origin) // FRAME_SAMPLES
        self._map.forget(here)
        found = []
        for first, last in self._map.stretches(here):
            begin = max(self._position, self._origin + first * FRAME_SAMPLES)
            end = min(self.end, self._origin + last * FRAME_SAMPLES)
            if begin < end:
                found.append((begin, end))
        return found

    def _end_in_pause(self, begin: int, end: int) -> int:
        """Where a window ends that is followed by a pause: some padding on, or in its middle."""
        padding = round(PADDING * SAMPLING_RATE)
        if end - begin > 2 * padding or begin >= end:
            return min(self.end, begin + padding)
        return self._quietest(begin, end)

    def _cut_full(self, stretches: list[tuple[int, int]], limit: int) -> tuple[int, int]:
        """Where a window ends that more speech follows than it can hold, and the next begins."""
        pauses = [(first[1], second[0]) for first, second in pairwise(stretches)]
        best, best_worth = None, QUIET_DURATION
        for begin, end in pauses:
            end = min(end, limit)
            missing = (limit - end) / SAMPLING_RATE
            worth = min(GOOD_PAUSE, (end - begin) / SAMPLING_RATE) - LATENESS * missing
            if begin >= limit - self._pause_search and worth > best_worth:
                best, best_worth = (begin, end), worth
        if best is not None:
            return (min(limit, self._end_in_pause(*best)),) * 2
        # What is left for the next window is never too short to hold a word.
        begin, end = limit - self._search_samples, limit - MIN_REST_SAMPLES
        first, second = find_seam(
            self._pending(), begin - self._position, end - self._position, self._max_samples // 4
        )
        return self._position + first, self._position + second

    def _quietest(self, begin: int, end: int) -> int:
        """The quietest place between two, in samples of the recording."""
        pending = self._pending()
        return self._position + find_quietest(pending, begin - self._position, end - self._position)

    def _pending(self) -> NDArray[np.float32]:
        """All that has been taken in and not given out."""
        if len(self._blocks) != 1:
            self._blocks = [np.concatenate([np.zeros(0, np.float32), *self._blocks])]
        return self._blocks[0]

    def _skip_to(self, position: int) -> None:
        """Leave out what is silent."""
        if position <= self._position:
            return
        begin = max(self._position, self._covered)
        if begin < position:
            self.silences.append((begin / SAMPLING_RATE, position / SAMPLING_RATE))
        self._drop(position)

    def _drop(self, position: int) -> None:
        rest = self._pending()[position - self._position :]
        self._position = position
        self._blocks, self._num_pending = [rest], len(rest)

    def _take(self, end: int, resume: int) -> Window:
        """Give out what is pending before ``end`` as a window, and go on at ``resume``."""
        start = self._position
        speech = None
        if self._map is not None:
            speech = tuple(
                (first / SAMPLING_RATE, min(last, end) / SAMPLING_RATE)
                for first, last in self._stretches()
                if first < end
            )
        samples = self._pending()[: end - start].copy()
        self._drop(resume)
        overlap, self._covered = max(0, self._covered - start) / SAMPLING_RATE, end
        self._index += 1
        return Window(
            recording_id=self._recording_id,
            index=self._index - 1,
            samples=samples,
            start=start / SAMPLING_RATE,
            end=end / SAMPLING_RATE,
            speech=speech,
            overlap=overlap,
        )


def cut(
    blocks: Iterable[NDArray[np.float32]], *, recording_id: int, max_duration: float = 30.0
) -> Iterator[Window]:
    """Cut a recording, given as blocks of 16 kHz mono float32, into windows; lazily."""
    cutter = Cutter(recording_id, max_duration=max_duration)
    for block in blocks:
        yield from cutter.add(block)
    yield from cutter.finish()
