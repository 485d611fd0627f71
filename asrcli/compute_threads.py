"""One team of compute threads in a process: that of the engine.

Every thread that computes gets a team of its own from OpenMP, as large as the machine. Once all
teams together are more threads than there are cores, GNU's library no longer has them wait for
their next piece of work but sends them to sleep after each, and waking them takes longer than most
pieces do: a decode step took 1.5 to 2 times as long. So whoever computes beside the engine does it
in his own thread alone, or leaves before the engine starts.

Meanwhile the engine leaves him a core. All members of a team have to be there at the end of each of
its thousand pieces of work a window: with one of them waiting for a core, the first window of a run
took eight times as long. So whoever wants to compute beside the engine waits until it has come to
the end of its step and does with a core less, and until it is his turn: those that would take more
cores than the engine can spare come one after the other. Nobody waits for long, whatever the others
do. (Sums are taken in the same order, whatever the size of the team.)
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

PATIENCE = 0.3  # s to wait for a turn, and for a step to end

_Result = TypeVar("_Result")


@dataclass(slots=True)
class _Team:
    """The threads of one that leads a team: at most, and at the moment (0 while it waits)."""

    most: int
    in_use: int = 0

    def leave(self, num_cores: int) -> int:
        """Threads that it has if it leaves so many cores to others; one at least."""
        return max(1, self.most - num_cores)


_changed = threading.Condition()  # guards all that follows
_teams: dict[int, _Team] = {}  # by the thread that leads
_beside: set[int] = set()  # threads that compute alone at the moment
_waiting: deque[int] = deque()  # those that want to, in order


@contextmanager
def one_thread() -> Iterator[None]:
    """What torch computes inside, it computes in the thread at hand."""
    import torch

    num_threads = torch.get_num_threads()
    thread = threading.get_ident()
    is_outermost = thread not in _beside and thread not in _teams
    if is_outermost:
        _take_core(thread)
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)
        if is_outermost:
            with _changed:
                _beside.discard(thread)
                _changed.notify_all()


def _take_core(thread: int) -> None:
    """Wait for a turn, and for the teams to make room."""

    def is_my_turn() -> bool:
        if _waiting[0] != thread:
            return False
        return all(len(_beside) < max(1, team.most - 1) for team in _teams.values())

    def is_there_room() -> bool:
        return all(team.in_use <= team.leave(len(_beside)) for team in _teams.values())

    with _changed:
        _waiting.append(thread)
        _changed.wait_for(is_my_turn, PATIENCE)
        _waiting.remove(thread)
        _beside.add(thread)
        _changed.notify_all()
        _changed.wait_for(is_there_room, PATIENCE)


@contextmanager
def lead_team(num_threads: int) -> Iterator[None]:
    """Have the thread at hand compute with so many threads, whatever others have set for them; it
    says by ``give_way`` when it begins, and by ``rest`` when it waits."""
    import torch

    torch.set_num_threads(num_threads)
    thread = threading.get_ident()
    with _changed:
        _teams[thread] = _Team(num_threads)
    try:
        yield
    finally:
        with _changed:
            _teams.pop(thread, None)
            _changed.notify_all()


def give_way() -> None:
    """Have the team of the thread at hand, if it leads one, leave a core to each that computes
    alone: before every larger piece of work."""
    import torch

    with _changed:
        team = _teams.get(threading.get_ident())
        if team is None:
            return
        team.in_use = team.leave(len(_beside))
        _changed.notify_all()
    if torch.get_num_threads() != team.in_use:
        torch.set_num_threads(team.in_use)


def rest() -> None:
    """Say that the team of the thread at hand, if it leads one, has nothing to do for now."""
    with _changed:
        team = _teams.get(threading.get_ident())
        if team is not None:
            team.in_use = 0
            _changed.notify_all()


def in_passing(work: Callable[[], _Result]) -> _Result:
    """The result of work that is done with all cores, in a thread that takes its team along."""
    with ThreadPoolExecutor(1, thread_name_prefix="asr-passing") as executor:
        return executor.submit(work).result()
