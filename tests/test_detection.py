from __future__ import annotations

import threading

import pytest

from asrcli import detection
from asrcli.detection import LanguageDetection

Started = list[tuple[str, str | None]]


def make() -> tuple[LanguageDetection[str], Started]:
    started: Started = []
    return LanguageDetection[str](lambda job, language: started.append((job, language))), started


def test_the_first_window_is_listened_to_and_the_others_are_held() -> None:
    languages, started = make()
    for job in "abc":
        languages.submit(1, job)
    assert started == [("a", None)]
    languages.heard(1, "de")
    assert started == [("a", None), ("b", "de"), ("c", "de")]
    languages.submit(1, "d")
    assert started[3:] == [("d", "de")]


def test_recordings_do_not_wait_for_each_other() -> None:
    languages, started = make()
    for number in (1, 2):
        languages.submit(number, f"{number}a")
        languages.submit(number, f"{number}b")
    assert started == [("1a", None), ("2a", None)]
    languages.heard(2, "ko")
    assert started[2:] == [("2b", "ko")]
    languages.heard(1, "en")
    assert started[3:] == [("1b", "en")]


def test_silence_first_leaves_it_to_the_next_window() -> None:
    languages, started = make()
    for job in "abcd":
        languages.submit(1, job)
    languages.heard(1, None)
    assert started == [("a", None), ("b", None)]
    languages.heard(1, None)
    assert started[2:] == [("c", None)]
    languages.heard(1, "fr")
    assert started[3:] == [("d", "fr")]


def test_silence_alone_and_then_another_window() -> None:
    languages, started = make()
    languages.submit(1, "a")
    languages.heard(1, None)
    languages.submit(1, "b")
    languages.submit(1, "c")
    assert started == [("a", None), ("b", None)]
    languages.heard(1, "es")
    assert started[2:] == [("c", "es")]


def test_the_first_answer_counts() -> None:
    languages, started = make()
    languages.submit(1, "a")
    languages.heard(1, "en")
    languages.heard(1, "de")
    languages.heard(1, None)
    languages.submit(1, "b")
    assert started == [("a", None), ("b", "en")]


def test_an_answer_about_nothing() -> None:
    languages, started = make()
    languages.heard(9, "en")
    languages.submit(9, "a")
    assert started == [("a", None)]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detection, "MAX_RECORDINGS", 10)
    languages, started = make()
    for number in range(5):  # these are never answered
        languages.submit(number, f"{number}a")
        languages.submit(number, f"{number}b")
    for number in range(5, 200):
        languages.submit(number, "x")
        languages.heard(number, "en")
        assert len(languages._recordings) <= 16
    started.clear()
    for number in range(5):  # what waits is not forgotten
        languages.heard(number, "de")
    assert started == [(f"{number}b", "de") for number in range(5)]


def test_a_job_may_answer_while_it_starts() -> None:
    started: Started = []

    def start(job: str, language: str | None) -> None:
        started.append((job, language))
        if language is None:
            languages.heard(1, "en")

    languages = LanguageDetection[str](start)
    for job in "abc":
        languages.submit(1, job)
    assert started == [("a", None), ("b", "en"), ("c", "en")]


def test_many_threads() -> None:
    """Each job is started once, and of each recording one at a time without a language."""
    num_recordings, num_jobs = 6, 40
    lock = threading.Lock()
    started: list[tuple[int, int, str | None]] = []
    listening: list[tuple[int, int]] = []

    def start(job: tuple[int, int], language: str | None) -> None:
        with lock:
            started.append((*job, language))
            if language is None:
                listening.append(job)

    languages = LanguageDetection[tuple[int, int]](start)
    finished = threading.Event()

    def submit(number: int) -> None:
        for job in range(num_jobs):
            languages.submit(number, (number, job))

    def answer() -> None:
        heard = dict.fromkeys(range(num_recordings), 0)
        while not finished.is_set() or listening:
            with lock:
                job = listening.pop() if listening else None
            if job is not None:
                number = job[0]
                heard[number] += 1
                languages.heard(number, "en" if heard[number] > 3 else None)

    answering = threading.Thread(target=answer)
    answering.start()
    threads = [threading.Thread(target=submit, args=(n,)) for n in range(num_recordings)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    finished.set()
    answering.join(30)
    assert not answering.is_alive()
    assert sorted(job[:2] for job in started) == [
        (number, job) for number in range(num_recordings) for job in range(num_jobs)
    ]
    for number in range(num_recordings):
        unknown = [job for job in started if job[0] == number and job[2] is None]
        assert len(unknown) == 4
