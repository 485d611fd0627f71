"""The command that goes on where a run was stopped."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

SKIP, REPLACE, END_OF_OPTIONS = "--skip-existing", "--overwrite", "--"


def command_to_go_on(arguments: Sequence[str]) -> str:
    """The same command with ``--skip-existing``, as it can be pasted into a shell.

    Args:
        arguments: of ``asr``, its own name left out.
    """
    place = arguments.index(END_OF_OPTIONS) if END_OF_OPTIONS in arguments else len(arguments)
    options = [argument for argument in arguments[:place] if argument != REPLACE]
    if SKIP not in options:
        options.append(SKIP)
    return " ".join(_quoted(argument) for argument in ("asr", *options, *arguments[place:]))


def _quoted(argument: str) -> str:
    """Quoted for a shell; bytes that no terminal can show are written as bash and others read."""
    if argument.isprintable():
        return shlex.quote(argument)
    escaped = "".join(_escaped(letter) for letter in argument)
    return f"$'{escaped}'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(letter))
