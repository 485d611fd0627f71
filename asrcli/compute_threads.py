"""One team of compute threads in a process: that of the engine.

Every thread that computes gets a team of its own from OpenMP, as large as the machine. Once all
teams together are more threads than there are cores, GNU's library no longer has them wait for
their next piece of work but sends them to sleep after each, and waking them takes longer than most
pieces do: a decode step took 1.5 to 2 times as long. So whoever computes beside the engine does it
in his own thread alone, or leaves before the engine starts.

Meanwhile the engine leaves him a core. All members of a team have to be there at the end of each of
its thousand pieces of work a window: with one of them waiting for a core, the first window of a run
took eight times as long. (Sums are taken in the same order, whatever the size of the team.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_Result = TypeVar("_Result")

_team = threading.local()
_beside_engine: set[int] = set()  # threads that compute alone at the moment


@contextmanager
def one_thread() -> Iterator[None]:
    """What torch computes inside, it computes in the thread at hand."""
    import torch

    num_threads = torch.get_num_threads()
    thread = threading.get_ident()
    is_outermost = thread not in _beside_engine
    torch.set_num_threads(1)
    _beside_engine.add(thread)
    try:
        yield
    finally:
        if is_outermost:
            _beside_engine.discard(thread)
        torch.set_num_threads(num_threads)


def lead_team(num_threads: int) -> None:
    """Have the thread at hand compute with so many threads, whatever others have set for them."""
    import torch

    torch.set_num_threads(num_threads)
    _team.num_threads = num_threads


def give_way() -> None:
    """Have the team of the thread at hand, if it leads one, leave a core to each that computes
    alone: before every larger piece of work."""
    import torch

    num_threads: int | None = getattr(_team, "num_threads", None)
    if num_threads is None:
        return
    num_left = max(1, num_threads - len(_beside_engine))
    if torch.get_num_threads() != num_left:
        torch.set_num_threads(num_left)


def in_passing(work: Callable[[], _Result]) -> _Result:
    """The result of work that is done with all cores, in a thread that takes its team along."""
    with ThreadPoolExecutor(1, thread_name_prefix="asr-passing") as executor:
        return executor.submit(work).result()
