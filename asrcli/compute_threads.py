"""One team of compute threads in a process: that of the engine.

Every thread that computes gets a team of its own from OpenMP, as large as the machine. Once all
teams together are more threads than there are cores, GNU's library no longer has them wait for
their next piece of work but sends them to sleep after each, and waking them takes longer than most
pieces do: a decode step took 1.5 to 2 times as long. So whoever computes beside the engine does it
in his own thread alone, or leaves before the engine starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

_Result = TypeVar("_Result")


@contextmanager
def one_thread() -> Iterator[None]:
    """What torch computes inside, it computes in the thread at hand."""
    import torch

    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(num_threads)


def in_passing(work: Callable[[], _Result]) -> _Result:
    """The result of work that is done with all cores, in a thread that takes its team along."""
    with ThreadPoolExecutor(1, thread_name_prefix="asr-passing") as executor:
        return executor.submit(work).result()
