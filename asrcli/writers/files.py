"""Files of results: written whole or not at all.

A text is written under a temporary name first, so that a file with its final name is always whole,
whatever ends the process. What a process that was killed left behind is cleared away by the next.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from asrcli.errors import OutputError

_DRAFT = re.compile(r"\.asr-[0-9a-f]{16}\.tmp")
_NO_SYNC = frozenset({errno.EINVAL, errno.ENOSYS, errno.ENOTSUP})
_drafts: set[Path] = set()  # of this process, under their temporary names


def write_atomically(path: Path, text: str) -> bool:
    """Write a whole text file, or nothing.

    The text is written as UTF-8 under a hidden name in the same folder and then renamed. Line feeds
    stay as they are; permissions are those of any new file. A link is followed, and the file that
    it points to is replaced.

    Returns:
        Whether there was a file of that name, which is now gone.

    Raises:
        OutputError: it cannot be written, for example since the disk is full. What was at ``path``
            before is still there, and nothing else is.
    """
    target = real_path(path)
    with explained(path, "cannot be written"), draft_in(target.parent) as (draft, file):
        file.write(text.encode("utf-8", errors="replace"))
        _reach_disk(file)
        replaces = target.exists()
        draft.replace(target)
    return replaces


@contextlib.contextmanager
def draft_in(folder: Path) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file under a hidden name, which is gone on the way out unless it was renamed.

    The name is short whatever the target's is, as file systems bound the length of names, and
    neither media nor results have such names.
    """
    path, file = _begin(folder)
    try:
        with file:
            yield path, file
    finally:
        path.unlink(missing_ok=True)
        _drafts.discard(path)


def _begin(folder: Path) -> tuple[Path, BinaryIO]:
    """A new draft, locked to tell other runs that somebody is at work here."""
    path = folder / f".asr-{secrets.token_hex(8)}.tmp"
    _drafts.add(path)
    file = path.open("xb")
    # Not every file system has locks; where there are none, nobody takes it for a leftover either.
    with contextlib.suppress(OSError):
        fcntl.flock(file, fcntl.LOCK_EX)
    if path.exists():
        return path, file
    # Another run took it for a leftover, in the instant before it was locked.
    file.close()
    _drafts.discard(path)
    return _begin(folder)


def remove_drafts() -> None:
    """Remove what this process has begun to write, should it end without unwinding."""
    for path in tuple(_drafts):
        with contextlib.suppress(OSError):
            path.unlink()


def remove_leftovers(folder: Path) -> int:
    """Remove drafts of processes that were killed; returns how many there were.

    What another process is writing at this moment is left alone.
    """
    num_removed = 0
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for name in [entry.name for entry in entries if _DRAFT.fullmatch(entry.name)]:
            num_removed += _remove_if_left(folder / name)
    return num_removed


def _remove_if_left(path: Path) -> bool:
    with contextlib.suppress(OSError), path.open("r+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
        return True
    return False


def _reach_disk(file: BinaryIO) -> None:
    """Have the bytes on the disk before the name is: after a power cut there is all or nothing."""
    file.flush()
    try:
        os.fsync(file.fileno())
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise


@contextlib.contextmanager
def explained(path: Path, trouble: str) -> Iterator[None]:
    """Turn an OSError into an OutputError about ``path``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"{shown(path)}: {trouble}: {reason}") from error


def real_path(path: Path) -> Path:
    """The file itself where ``path`` is a link to it."""
    return Path(os.path.realpath(path))


def shown(name: str | Path) -> str:
    """A name that any terminal can print on one line; what it cannot is escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))
