"""Damaged recordings of every kind: audio comes out, or one line says why not.

Each is read in a process of its own, so that one that hangs, dies or eats up the memory is found,
and named by what was done to it.
"""

from __future__ import annotations

import json
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from asrcli.audio.cleaning import MAX_LEVEL
from tests.audio.damage import Damaged, damaged, make_seeds
from tests.audio.fuzz_worker import NAME

ROOT = Path(__file__).parents[2]
MAX_SECONDS = 10.0  # of computing
PATIENCE = 90.0  # s on the clock, on a machine that has other things to do
MAX_GROWTH = 400 << 20  # bytes
MAX_LOUDNESS = 1.5 * MAX_LEVEL  # resampling overshoots


class Worker:
    """The process that reads; begun anew where it was lost."""

    def __init__(self, good: bytes) -> None:
        self._good = good
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._peak = 0

    def read(self, data: bytes, is_pipe: bool, track: int | None) -> dict[str, Any]:
        """What the worker says of `data`; fails where it says nothing."""
        if self._process is None:
            self._process = self._start()
            self._peak = self._ask(self._process, self._good, False, None)["peak"]
        answer = self._ask(self._process, data, is_pipe, track)
        answer["growth"] = answer["peak"] - self._peak
        if answer["growth"] > MAX_GROWTH:  # a peak stays; the next file starts afresh
            self.stop()
        return answer

    def stderr(self) -> bytes:
        self._stderr.seek(0)
        return self._stderr.read()

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        self.stop()
        self._stderr.close()

    def _start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-W", "error", "-X", "faulthandler", "-m", "tests.audio.fuzz_worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._stderr,
            cwd=ROOT,
        )

    def _ask(
        self, process: subprocess.Popen[bytes], data: bytes, is_pipe: bool, track: int | None
    ) -> dict[str, Any]:
        assert process.stdin is not None and process.stdout is not None
        request = {"size": len(data), "is_pipe": is_pipe, "track": track}
        process.stdin.write(json.dumps(request).encode() + b"\n" + data)
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], PATIENCE)
        line = process.stdout.readline() if ready else b""
        if not line:
            self.stop()
            kind, last_words = "died" if ready else "hung", self.stderr()[-2000:].decode()
            return {"kind": kind, "error": last_words, "peak": 0, "seconds": 0.0}
        answer: dict[str, Any] = json.loads(line)
        return answer


@pytest.fixture(scope="module")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return make_seeds(tmp_path_factory.mktemp("seeds"))


@pytest.fixture(scope="module")
def worker(seeds: dict[str, bytes]) -> Iterator[Worker]:
    worker = Worker(seeds["mp4"])
    yield worker
    worker.close()


def check(answer: dict[str, Any]) -> None:
    """What must hold of any input whatever."""
    if "error" in answer:
        assert answer["kind"] == "AudioError", answer
        assert answer["error"].startswith(f"{NAME}: "), answer
        assert answer["error"].isprintable(), answer
        assert answer["hint"] is None or answer["hint"].isprintable(), answer
    else:
        assert answer["faults"] == [], answer
        assert answer["loudest"] <= MAX_LOUDNESS, answer
    assert answer["seconds"] < MAX_SECONDS, answer
    assert answer["growth"] <= MAX_GROWTH, answer


def test_the_seeds_are_good(seeds: dict[str, bytes], worker: Worker) -> None:
    assert len(seeds) >= 30
    for name, data in seeds.items():
        assert len(data) < 400_000, name
        for is_pipe in (False, True):
            answer = worker.read(data, is_pipe, None)
            check(answer)
            assert answer["num_samples"] == pytest.approx(24_000, abs=3000), name
            assert answer["damage"] == [], name


def run(worker: Worker, seeds: dict[str, bytes], num_examples: int, derandomize: bool) -> int:
    """Read so many damaged files; returns how many of them were still recordings."""
    num_readable = 0

    @settings(
        max_examples=num_examples,
        derandomize=derandomize,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(damaged(sorted(seeds)))
    def read(case: Damaged) -> None:
        nonlocal num_readable
        answer = worker.read(case.make(seeds), case.is_pipe, case.track)
        num_readable += "num_samples" in answer
        check(answer)

    read()
    assert worker.stderr() == b""
    return num_readable


def test_damaged_files(worker: Worker, seeds: dict[str, bytes]) -> None:
    # If all were refused, or none, it would be the damage that is at fault.
    assert 150 < run(worker, seeds, 600, derandomize=True) < 550


@pytest.mark.slow
def test_thousands_of_damaged_files(worker: Worker, seeds: dict[str, bytes]) -> None:
    assert 1500 < run(worker, seeds, 5000, derandomize=False) < 4500
