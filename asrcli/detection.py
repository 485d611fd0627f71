"""Which language a recording is in: its first window with speech tells, the others wait for it."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Job = TypeVar("Job")

MAX_RECORDINGS = 10_000  # languages that are remembered; a server meets recordings without end


@dataclass(slots=True)
class _Recording(Generic[Job]):
    language: str | None = None
    is_listening: bool = False
    held: deque[Job] = field(default_factory=deque)


class LanguageDetection(Generic[Job]):
    """Lets one window of a recording through to be listened to, and holds the rest until then.

    Args:
        start: called with (job, language); without a language the job is to call ``heard``, once,
            as soon as it knows one or knows that it will not.
    """

    def __init__(self, start: Callable[[Job, str | None], None]) -> None:
        self._start = start
        self._lock = threading.Lock()
        self._recordings: OrderedDict[int, _Recording[Job]] = OrderedDict()

    def submit(self, recording_id: int, job: Job) -> None:
        """Start a job now, or as soon as its recording's language is known."""
        with self._lock:
            recording = self._recordings.setdefault(recording_id, _Recording())
            self._recordings.move_to_end(recording_id)
            self._forget_old()
            if recording.is_listening:
                recording.held.append(job)
                return
            recording.is_listening = recording.language is None
        self._start(job, recording.language)

    def heard(self, recording_id: int, language: str | None) -> None:
        """Take note of a recording's language; None leaves it to the next window."""
        with self._lock:
            recording = self._recordings.get(recording_id)
            if recording is None or recording.language is not None:
                return
            recording.language = language
            released = list(recording.held) if language else list(recording.held)[:1]
            for _ in released:
                recording.held.popleft()
            recording.is_listening = language is None and bool(released)
        for job in released:
            self._start(job, language)

    def close(self) -> list[Job]:
        """Start nothing more; gives the jobs that were still held."""
        with self._lock:
            held = [job for recording in self._recordings.values() for job in recording.held]
            self._recordings.clear()
        return held

    def _forget_old(self) -> None:
        for recording_id in list(self._recordings)[
            : max(0, len(self._recordings) - MAX_RECORDINGS)
        ]:
            if not self._recordings[recording_id].is_listening:
                del self._recordings[recording_id]
