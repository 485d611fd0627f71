"""The command line: one module a command. ``asrcli.cli.app`` holds them all."""

from __future__ import annotations

import os
import signal
import sys
from typing import NoReturn

SPIN_COUNT = "4000"  # of GNU OpenMP; alone on a machine as fast as its own 300000
NUM_PRIMITIVES = "64"  # that oneDNN keeps; as fast as its own 1024


def main() -> None:
    """Run ``asr`` and end with its exit code.

    0: all done; 1: some input failed; 2: wrong usage; 130 and 143: interrupted; 141: who read
    standard output has left.
    """
    _leave_on_signals()
    _wait_briefly()
    _keep_few_primitives()
    from asrcli.cli.running import run  # takes a while, in which people press Ctrl-C as well

    _leave(run(sys.argv[1:]))


def _wait_briefly() -> None:
    """Have torch's threads give up their cores soon where they wait for each other.

    GNU's OpenMP has them try for milliseconds. On a machine that has other things to do, the one
    that is waited for is then kept from its core by the one that waits.
    """
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN_COUNT)


def _keep_few_primitives() -> None:
    """Have torch's matrix kernels forget what they have prepared for sizes long past.

    oneDNN keeps a thousand of these. Windows have ever new lengths, a step needs some twenty, and
    with all of them memory would grow for as long as hundreds of windows come.
    """
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", NUM_PRIMITIVES)


def _leave(exit_code: int) -> NoReturn:
    """End the process; at once where it has loaded torch, to take which apart lasts over 0.5 s."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except (OSError, ValueError):
        sys.exit(exit_code)  # as Python does it, with whatever it has to say about the stream
    if "torch" in sys.modules:
        os._exit(exit_code)
    sys.exit(exit_code)


def _leave_on_signals() -> None:
    """End without a word on SIGINT and SIGTERM, until the work begins and once it is over.

    What the process was told to ignore stays ignored.
    """
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda received, _: os._exit(128 + received))
