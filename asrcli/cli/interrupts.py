"""Ctrl-C and SIGTERM: leave at once, with what is finished intact and the terminal as it was."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

GRACE = 1.0
"""Seconds for leaving in good order. Reading a pipe, or a step of the model, may take longer."""

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_farewells: list[Callable[[], None]] = []
_received: list[int] = []  # the signal that this run has got


class Interrupted(BaseException):
    """The user, or the system, wants the run to end. No ``except Exception`` may hold it up."""

    def __init__(self, signal_number: int) -> None:
        super().__init__(signal_number)
        self.exit_code = 128 + signal_number


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise ``Interrupted`` here on SIGINT and SIGTERM; what they did before comes back at the end.

    One that the process was told to ignore, as ``nohup`` and shells' background jobs do, stays
    ignored. A second signal, or GRACE seconds, end the process without waiting for anything.
    """
    _received.clear()
    previous = {}
    for number in _SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            previous[number] = signal.signal(number, _interrupt)
    complain, sys.unraisablehook = sys.unraisablehook, _keep_quiet
    try:
        yield
    finally:
        sys.unraisablehook = complain
        for number, handler in previous.items():
            signal.signal(number, handler)


@contextmanager
def farewell(function: Callable[[], None]) -> Iterator[None]:
    """Have ``function`` called should the process end without unwinding."""
    _farewells.append(function)
    try:
        yield
    finally:
        _farewells.remove(function)


def interruption() -> Interrupted | None:
    """What the run was interrupted by, where that came out as another error.

    Other packages' code, as it is imported above all, turns every exception into one of its own.
    """
    return Interrupted(_received[0]) if _received else None


def _interrupt(number: int, frame: FrameType | None) -> None:
    interrupted = Interrupted(number)
    _received.append(number)
    if _is_importing(frame):
        _leave(interrupted.exit_code)
    for signal_number in _SIGNALS:
        signal.signal(signal_number, lambda *_: _leave(interrupted.exit_code))
    timer = threading.Timer(GRACE, _leave, args=(interrupted.exit_code,))
    timer.daemon = True
    timer.start()
    raise interrupted


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a module is being imported: compiled ones cannot pass an exception on, and abort."""
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _keep_quiet(unraisable: sys.UnraisableHookArgs) -> None:
    """Say nothing of an ``Interrupted`` that came up where nothing can be raised.

    It is lost there; GRACE sees to it that the process ends all the same.
    """
    if not isinstance(unraisable.exc_value, Interrupted):
        sys.__unraisablehook__(unraisable)


def _leave(exit_code: int) -> None:
    try:
        for function in _farewells:
            function()
    finally:
        os._exit(exit_code)
