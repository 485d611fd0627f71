"""Where the time goes: nothing counts twice, in any thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest

from asrcli.stages import STAGES, Stages


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A clock that shows what its only item says."""
    now = [0.0]
    monkeypatch.setattr("asrcli.stages.time.perf_counter", lambda: now[0])
    return now


def used(stages: Stages) -> dict[str, float]:
    return {stage: seconds for stage, seconds in stages.seconds.items() if seconds}


def test_a_stage_within_another_is_taken_from_it(clock: list[float]) -> None:
    stages = Stages()
    with stages.measure("voice"):
        clock[0] += 1
        with stages.measure("audio"):
            clock[0] += 10
        clock[0] += 2
        with stages.measure("audio"):
            clock[0] += 20
    with stages.measure("encoder"):
        clock[0] += 100
    assert used(stages) == {"audio": 30, "voice": 3, "encoder": 100}
    assert tuple(stages.seconds) == STAGES


def test_what_fails_took_its_time_as_well(clock: list[float]) -> None:
    stages = Stages()
    with pytest.raises(ValueError, match="no"), stages.measure("decode"):
        clock[0] += 5
        raise ValueError("no")
    with stages.measure("decode"):
        clock[0] += 1
    assert used(stages) == {"decode": 6}


def test_time_between_items_is_not_theirs(clock: list[float]) -> None:
    stages = Stages()

    def blocks() -> Iterator[int]:
        for number in range(3):
            clock[0] += 1
            yield number
        clock[0] += 0.5

    def windows() -> Iterator[int]:
        for block in stages.watch("audio", blocks()):
            clock[0] += 10
            yield block

    for _ in stages.watch("voice", windows()):
        clock[0] += 100  # whoever takes the windows
    assert used(stages) == {"audio": 3.5, "voice": 30}


def test_threads_do_not_take_from_each_other() -> None:
    stages = Stages()
    inside, done = threading.Event(), threading.Event()

    def encode() -> None:
        with stages.measure("encoder"):
            inside.set()
            assert done.wait(10)

    thread = threading.Thread(target=encode)
    thread.start()
    assert inside.wait(10)
    with stages.measure("audio"):
        time.sleep(0.05)
    done.set()
    thread.join()
    assert stages.seconds["encoder"] >= stages.seconds["audio"] >= 0.05


def test_counts_add_up_until_reset(clock: list[float]) -> None:
    stages = Stages()
    stages.count(steps=1, tokens=16)
    stages.count(steps=1, tokens=4)
    assert stages.counts == {"steps": 2, "tokens": 20}
    stages.reset()
    assert stages.counts == {}
    assert used(stages) == {}
