"""asrcli's own cache folder, in which a folder is either whole or not there.

What is made here (converted wheels, built tokenizers) is written to a working folder beside its
place and moved there in one step. A run that is stopped leaves the working folder at most, and its
name can never be taken for a model.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_PARTIAL = ".partial-"
_MAX_AGE = 24 * 3600.0
"""Seconds after which a working folder is taken for the remains of a dead run."""


def cache_folder() -> Path:
    """``$ASR_CACHE``, or the user's cache folder of the system."""
    chosen = os.environ.get("ASR_CACHE")
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_cache_path

    return user_cache_path("asrcli")


@contextmanager
def working_folder(final: Path) -> Iterator[Path]:
    """An empty folder beside ``final``, removed at the end whatever happens."""
    final.parent.mkdir(parents=True, exist_ok=True)
    _remove_old(final.parent)
    work = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{final.name}-", dir=final.parent))
    try:
        yield work
    finally:
        shutil.rmtree(work, ignore_errors=True)


def publish(folder: Path, final: Path, is_whole: Callable[[Path], bool]) -> None:
    """Move ``folder`` to ``final`` in one step.

    Another process may have been faster: its folder stays if ``is_whole`` says so. One that is
    damaged is replaced.
    """
    for _ in range(3):
        try:
            folder.replace(final)
            return
        except OSError:
            if not final.exists():
                raise
        if is_whole(final):
            return
        _set_aside(final)
    raise OSError(f"{final} is held by another process")


def _set_aside(final: Path) -> None:
    aside = Path(tempfile.mkdtemp(prefix=f"{_PARTIAL}{final.name}-", dir=final.parent))
    try:
        final.replace(aside / "old")
    except FileNotFoundError:
        pass  # the other process has just set it aside as well
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _remove_old(folder: Path) -> None:
    for path in folder.glob(f"{_PARTIAL}*"):
        try:
            age = time.time() - path.stat().st_mtime
        except FileNotFoundError:
            continue
        if age > _MAX_AGE:
            shutil.rmtree(path, ignore_errors=True)
