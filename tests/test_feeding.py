"""Windows are fed a bounded number ahead, and several at a time."""

from __future__ import annotations

import threading

from asrcli.feeding import BURSTS, Permits

MOST = 8


def test_as_many_as_there_are_and_then_in_bursts() -> None:
    permits = Permits(MOST)
    for _ in range(MOST):
        permits.acquire()
    taken: list[int] = []
    is_taken = threading.Semaphore(0)

    def take() -> None:
        for number in range(3):
            permits.acquire()
            taken.append(number)
            is_taken.release()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    at_once = MOST // BURSTS
    for _ in range(at_once - 1):
        permits.release()
    assert not is_taken.acquire(timeout=0.1)  # too few for a burst
    permits.release()
    for _ in range(at_once):
        assert is_taken.acquire(timeout=10)
    assert not is_taken.acquire(timeout=0.1)  # used up once more
    for _ in range(at_once):
        permits.release()
    thread.join(10)
    assert taken == [0, 1, 2]


def test_one_at_a_time() -> None:
    permits = Permits(1)
    for _ in range(3):
        permits.acquire()
        threading.Timer(0.05, permits.release).start()
    permits.acquire()


def test_nobody_is_held_up_at_the_end() -> None:
    permits = Permits(MOST)
    for _ in range(MOST):
        permits.acquire()

    def take() -> None:
        for _ in range(3):
            permits.acquire()

    thread = threading.Thread(target=take, daemon=True)
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    permits.end()
    thread.join(10)
    assert not thread.is_alive()
