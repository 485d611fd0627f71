"""Where the time of a run goes, and what was done in it: added up over all threads."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

STAGES = ("audio", "voice", "features", "encoder", "prefill", "decode", "sampling")
"""Decoding of audio, voice detection and cutting, features; and, one after the other in the
engine's thread: the encoder, prompts, steps of the decoder, choice of ids."""

_Item = TypeVar("_Item")


class Stages:
    """Seconds by stage, and counts of what was done; safe from any thread.

    A stage within another one is taken from the outer one's time, so that nothing counts twice.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._here = threading.local()
        self.reset()

    def reset(self) -> None:
        """Begin anew."""
        with self._lock:
            self._seconds = dict.fromkeys(STAGES, 0.0)
            self._counts: Counter[str] = Counter()

    @property
    def seconds(self) -> dict[str, float]:
        """By stage, in the order of ``STAGES``."""
        with self._lock:
            return dict(self._seconds)

    @property
    def counts(self) -> dict[str, int]:
        """How much was done of each kind."""
        with self._lock:
            return dict(self._counts)

    @contextmanager
    def measure(self, stage: str) -> Iterator[None]:
        """Add the time until the end of the block to a stage."""
        within: list[float] = self._here.__dict__.setdefault("within", [])
        within.append(0.0)
        begin = time.perf_counter()
        try:
            yield
        finally:
            duration = time.perf_counter() - begin
            with self._lock:
                self._seconds[stage] += duration - within.pop()
            if within:
                within[-1] += duration

    def watch(self, stage: str, items: Iterable[_Item]) -> Iterator[_Item]:
        """The items, with the time that each takes to come added to a stage."""
        iterator = iter(items)
        while True:
            with self.measure(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    def count(self, **numbers: int) -> None:
        """Add to what was done."""
        with self._lock:
            self._counts.update(numbers)
