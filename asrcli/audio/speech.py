"""Stretches of speech, from the detector's probabilities frame by frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

ON, OFF = 0.5, 0.35  # speech begins where its probability reaches the one, and ends below the other
MIN_SPEECH = 3  # frames of 32 ms; a click or a drop of rain is shorter than any word
MIN_PAUSE = 3  # frames; a stop consonant is silent for less


class SpeechMap:
    """Where speech begins and ends, in frames from the start; grows as probabilities come.

    Attributes:
        num_frames: how many are known.
    """

    def __init__(self) -> None:
        self.num_frames = 0
        self._stretches: list[tuple[int, int]] = []  # the last one may go on
        self._begin: int | None = None  # of what is heard now
        self._is_sure = False  # whether it is speech already, and not only nearly so

    def add(self, probabilities: Iterable[float]) -> None:
        """Take in the probabilities of the next frames."""
        for probability in probabilities:
            if probability >= OFF:
                if self._begin is None:
                    self._begin, self._is_sure = self.num_frames, False
                self._is_sure |= probability >= ON
            elif self._begin is not None:
                self._close(self.num_frames)
            self.num_frames += 1

    def stretches(self, begin: int) -> list[tuple[int, int]]:
        """Stretches of speech (first frame, frame behind the last) that end behind ``begin``.

        One that is still going on is among them as soon as it can be told to be speech.
        """
        found = list(self._stretches)
        if self._begin is not None and self._is_speech(self.num_frames):
            self._append(found, self._begin, self.num_frames)
        return [(first, last) for first, last in found if last > begin]

    @property
    def num_settled(self) -> int:
        """Frames up to here will stay speech, or no speech, whatever comes."""
        is_open = self._begin is not None and not self._is_speech(self.num_frames)
        return self._begin if is_open and self._begin is not None else self.num_frames

    def forget(self, begin: int) -> None:
        """Drop what ends before ``begin``."""
        self._stretches = [each for each in self._stretches if each[1] > begin]

    def _close(self, end: int) -> None:
        assert self._begin is not None
        if self._is_speech(end):
            self._append(self._stretches, self._begin, end)
        self._begin = None

    def _is_speech(self, end: int) -> bool:
        return self._begin is not None and self._is_sure and end - self._begin >= MIN_SPEECH

    @staticmethod
    def _append(stretches: list[tuple[int, int]], begin: int, end: int) -> None:
        """Add a stretch; one that follows the last at once belongs to it."""
        if stretches and begin - stretches[-1][1] < MIN_PAUSE:
            begin = stretches.pop()[0]
        stretches.append((begin, end))
