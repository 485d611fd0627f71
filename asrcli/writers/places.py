"""Whether results can be written where they are to go, found out before any work.

``check_places`` looks, and changes nothing; ``prepare`` makes the folders and writes into each.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.errors import OutputError
from asrcli.writers.files import draft_in, explained, real_path, remove_leftovers, shown

if TYPE_CHECKING:
    from asrcli.writers.outputs import Plan

_ELSEWHERE = "name another place with -o"


def prepare(plan: Plan) -> None:
    """Create the folders that are missing and prove that every file of the plan can be written.

    Nothing but folders is left behind, and drafts of runs that were killed are gone. Files that
    are there already are left as they are.

    Raises:
        OutputError: one cannot; in one line that names it.
    """
    check_places(plan)
    for folder, name in _folders(plan).items():
        with explained(name, "cannot be created"):
            folder.mkdir(parents=True, exist_ok=True)
        remove_leftovers(folder)
        with explained(name, "cannot be written to"), draft_in(folder) as (_, proof):
            proof.write(b"\n")  # a byte needs room, which a name alone does not
            proof.flush()
    for path in plan.paths:  # once more, since a name can be looked up only in a folder that exists
        with explained(path, "cannot be written"):
            _check_target(path)


def check_places(plan: Plan) -> None:
    """Find what stands in the way of the plan's files, as far as looking tells.

    Raises:
        OutputError: one cannot be written; in one line that names it.
    """
    for folder, name in _folders(plan).items():
        _check_folder(folder, name)
    for path in plan.paths:
        with explained(path, "cannot be written"):
            _check_target(path)


def _folders(plan: Plan) -> dict[Path, Path]:
    """The folders that files will be written to, and how the user knows each."""
    return {real_path(path).parent: path.parent for path in plan.paths}


def _check_folder(folder: Path, name: Path) -> None:
    """Refuse a folder that cannot be written to, or cannot be created in the one above it."""
    if os.path.isdir(folder):  # noqa: PTH112 - Path's own questions raise for a name too long
        above, trouble = folder, "cannot be written to"
    elif os.path.isfile(folder):  # noqa: PTH113
        message = f"{shown(name)}: is a file, not a folder for results"
        raise OutputError(message, hint="name another with -o")
    else:
        above, trouble = _nearest(folder), "cannot be created"
    if not os.access(above, os.W_OK | os.X_OK):
        reason = "permission denied" if os.path.isdir(above) else "not a directory"  # noqa: PTH112
        raise OutputError(f"{shown(name)}: {trouble}: {reason}", hint=_ELSEWHERE)
    space = os.statvfs(above)
    if space.f_blocks and not (space.f_bfree if _is_superuser() else space.f_bavail):
        raise OutputError(f"{shown(name)}: {trouble}: no space left on device", hint=_ELSEWHERE)


def _nearest(folder: Path) -> Path:
    """The first that exists among the folders above."""
    return next(above for above in folder.absolute().parents if os.path.lexists(above))


def _is_superuser() -> bool:
    return os.geteuid() == 0


def _check_target(path: Path) -> None:
    """Refuse what cannot or should not be replaced. A missing file is fine; OSError if not.

    Renaming would replace a file without a look at its own permissions. Whoever took away the
    right to write it did not want that.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        # Where the folder is missing too, the system has not looked at the name yet.
        if len(os.fsencode(path.name)) > os.pathconf(_nearest(path), "PC_NAME_MAX"):
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG)) from None
        return
    if stat.S_ISDIR(mode):
        raise OutputError(f"{shown(path)}: is a folder", hint=_ELSEWHERE)
    if not stat.S_ISREG(mode):
        raise OutputError(f"{shown(path)}: is no regular file", hint="use -o - and redirect it")
    if not mode & 0o222 or not os.access(path, os.W_OK):
        raise OutputError(f"{shown(path)}: is write-protected", hint=_ELSEWHERE)
