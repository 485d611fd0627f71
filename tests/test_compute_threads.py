"""The engine's team of compute threads is the only one."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import torch

from asrcli import cli, compute_threads
from asrcli.audio.vad import CONTEXT_SAMPLES, FRAME_SAMPLES, load_detector
from asrcli.compute_threads import PATIENCE, give_way, in_passing, lead_team, one_thread, rest
from asrcli.models.base import Checkpoint
from tests.cli.runs import SAMPLES

_COUNT = """
import os, sys, threading
import numpy, torch
from asrcli.options import Options
from asrcli.recognizer import Recognizer

def of_libraries():
    return len(os.listdir("/proc/self/task")) - threading.active_count()

before = of_libraries()
with Recognizer(sys.argv[1], device="cpu") as recognizer:
    for path in sys.argv[2:]:
        assert recognizer.transcribe(path).text
        print(of_libraries() - before, torch.get_num_threads())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_who_computes_beside_the_engine_has_no_team(base_checkpoint: Checkpoint) -> None:
    """Loading and features: with a second team, every step takes far longer."""
    files = [str(SAMPLES / f"{name}.flac") for name in ("english-slt", "german-espeak")]
    command = [sys.executable, "-c", _COUNT, str(base_checkpoint.path), *files]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    for line in run.stdout.splitlines():
        of_teams, num_threads = map(int, line.split())
        assert of_teams == num_threads - 1  # the engine's own thread is the first of its team


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_voice_detection_has_no_team() -> None:
    def count() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    def detect() -> int:
        before = count()
        load_detector()(np.zeros(CONTEXT_SAMPLES + 500 * FRAME_SAMPLES, np.float32), None)
        return count() - before

    assert in_passing(detect) == 0


def test_one_thread_is_given_back() -> None:
    num_threads = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), one_thread():
        assert torch.get_num_threads() == 1
        raise ZeroDivisionError
    assert torch.get_num_threads() == num_threads


def test_work_in_passing_is_done_in_another_thread_and_its_error_raised_here() -> None:
    assert in_passing(threading.get_ident) != threading.get_ident()
    with pytest.raises(ZeroDivisionError):
        in_passing(lambda: 1 / 0)


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("OTHER", "1", cli.SPIN_COUNT),
        ("OMP_WAIT_POLICY", "active", None),
        ("GOMP_SPINCOUNT", "infinity", "infinity"),
    ],
)
def test_threads_wait_briefly_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, expected: str | None
) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.setenv(name, "")  # so that it is put back afterwards
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, value)
    cli._wait_briefly()
    assert os.environ.get("GOMP_SPINCOUNT") == expected


@pytest.mark.parametrize(("value", "expected"), [(None, cli.NUM_PRIMITIVES), ("500", "500")])
def test_few_kernels_are_kept_unless_the_user_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, value: str | None, expected: str
) -> None:
    name = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
    monkeypatch.setenv(name, value or "")
    if value is None:
        monkeypatch.delenv(name)
    cli._keep_few_primitives()
    assert os.environ[name] == expected


@pytest.mark.usefixtures("no_other_team")
def test_a_team_leaves_a_core_to_each_that_computes_alone() -> None:
    begun, go_on = threading.Event(), threading.Event()

    def compute_alone() -> None:
        with one_thread(), one_thread():  # one thread, however deep
            begun.set()
            assert go_on.wait(10)

    def sizes() -> list[int]:
        found = []
        give_way()  # no team yet: nothing changes
        found.append(torch.get_num_threads())
        with lead_team(3):
            for num_beside in (0, 1, 0):
                helper = threading.Thread(target=compute_alone)
                if num_beside:
                    helper.start()
                    assert begun.wait(10)
                give_way()
                found.append(torch.get_num_threads())
                if num_beside:
                    go_on.set()
                    helper.join()
        with lead_team(1):
            go_on.clear()
            begun.clear()
            helper = threading.Thread(target=compute_alone)
            helper.start()
            assert begun.wait(10)
            give_way()
            found.append(torch.get_num_threads())  # never less than one
            go_on.set()
            helper.join()
        return found

    before = torch.get_num_threads()
    assert in_passing(sizes) == [before, 3, 2, 3, 1]


class Helper:
    """A thread that computes beside a team until it is told to end."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._compute)
        self._thread.start()

    def _compute(self) -> None:
        with one_thread():
            self.begun.set()
            assert self.go_on.wait(10)

    def end(self) -> None:
        self.go_on.set()
        self._thread.join()


SOON = PATIENCE / 3


@pytest.fixture
def no_other_team(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if no other test had left an engine running."""
    monkeypatch.setattr(compute_threads, "_teams", {})


@pytest.mark.usefixtures("no_other_team")
def test_who_computes_beside_a_team_waits_for_the_end_of_its_step() -> None:
    def lead() -> list[bool]:
        with lead_team(2):
            give_way()  # a step with both cores
            helper = Helper()
            found = [helper.begun.wait(SOON)]
            give_way()  # the next step, with one
            found.append(helper.begun.wait(10))
            helper.end()
            give_way()
            rest()  # nothing to do: nobody has to wait
            helper = Helper()
            found.append(helper.begun.wait(SOON))
            helper.end()
        return found

    assert in_passing(lead) == [False, True, True]


@pytest.mark.usefixtures("no_other_team")
def test_helpers_come_one_after_the_other_where_cores_are_few() -> None:
    def lead(num_threads: int) -> list[bool]:
        with lead_team(num_threads):
            helpers = [Helper()]
            assert helpers[0].begun.wait(10)
            helpers.append(Helper())
            found = [helpers[1].begun.wait(SOON)]
            helpers[0].end()
            found.append(helpers[1].begun.wait(10))
            helpers[1].end()
        return found

    assert in_passing(lambda: lead(2)) == [False, True]
    assert in_passing(lambda: lead(3)) == [True, True]


@pytest.mark.usefixtures("no_other_team")
def test_nobody_waits_for_long() -> None:
    """A step, or a look for speech in hours of silence, may last as long as it likes."""

    def lead() -> None:
        with lead_team(2):
            give_way()
            helpers = [Helper(), Helper()]
            for helper in helpers:
                assert helper.begun.wait(10)
            for helper in helpers:
                helper.end()

    in_passing(lead)


@pytest.mark.usefixtures("no_other_team")
def test_a_team_that_is_gone_holds_nobody_up() -> None:
    def lead() -> None:
        with lead_team(2):
            give_way()

    in_passing(lead)
    helper = Helper()
    assert helper.begun.wait(SOON)
    helper.end()
