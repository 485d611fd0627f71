"""How much memory a process has had at most; runs in other programs' processes as well."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_memory() -> int | None:
    """Bytes that this process has held at most; None where the system does not say.

    Linux hands the maximum of ``getrusage`` down to what a process starts, so its own list is read.
    """
    try:
        lines = Path("/proc/self/status").read_text("ascii", "replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
