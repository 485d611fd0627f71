"""What can be found wrong before a model is loaded, which takes seconds."""

from __future__ import annotations

import os
import re
import select
import sys
from collections.abc import Sequence
from io import BufferedReader
from typing import TYPE_CHECKING, cast

from asrcli.audio.sources import AS_IT_IS, Reading
from asrcli.errors import AsrError, AudioError, OutputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from asrcli.audio.sources import Source
    from asrcli.writers.outputs import Plan

_DEVICE = re.compile(r"auto|cpu|mps|cuda(:\d+)?")
_DTYPES = ("auto", "float32", "bfloat16", "float16", "int8")
_PATIENCE = 2.0  # s; a pipe that stays empty for longer is waited for while the model loads


def check_names(device: str, dtype: str) -> None:
    """Refuse what no machine has; whether this one has it, only torch can tell.

    Raises:
        UsageError: an unknown name.
    """
    if not _DEVICE.fullmatch(device):
        raise UsageError(
            f"device {device!r} is unknown", hint="one of: auto, cpu, cuda, cuda:N, mps"
        )
    if dtype not in _DTYPES:
        raise UsageError(f"dtype {dtype!r} is unknown", hint=f"one of: {', '.join(_DTYPES)}")


def check_stdout(plan: Plan) -> None:
    """Raise OutputError where results go to a standard output that is not there."""
    to_stdout = any(output.path is None for outputs in plan.outputs for output in outputs)
    if to_stdout and sys.stdout is None:
        raise OutputError("standard output is closed", hint="name a folder for results with -o")


def check_existing(*, skip_existing: bool, overwrite: bool) -> None:
    """Raise UsageError where what is there is to be both left and replaced."""
    if skip_existing and overwrite:
        raise UsageError(
            "--skip-existing leaves results that are there, and --overwrite replaces them",
            hint="give one of them",
        )


def errors_of_all(sources: Sequence[Source], reading: Reading = AS_IT_IS) -> list[AsrError]:
    """Why each of the sources cannot be read; nothing as soon as one can, or might."""
    errors = []
    for source in sources:
        error = why_unreadable(source, reading)
        if error is None:
            return []
        errors.append(error)
    return errors


def why_unreadable(source: Source, reading: Reading) -> AsrError | None:
    """Why a source cannot be read; None if it can, or might."""
    if source.path is None:
        return _why_stdin_is_unreadable(source.name)
    if _can_be_opened_only_once(source.path):
        return None
    from asrcli.audio.reading import open_audio

    try:
        open_audio(source, raw=reading.raw, track=reading.track).close()
    except AsrError as error:
        return error
    return None


def _can_be_opened_only_once(path: Path) -> bool:
    """Whether this is a pipe or a device. Path's own questions raise for a name too long."""
    is_there = os.path.exists(path)  # noqa: PTH110
    return is_there and not os.path.isfile(path) and not os.path.isdir(path)  # noqa: PTH112, PTH113


def _why_stdin_is_unreadable(name: str) -> AsrError | None:
    if sys.stdin is None:
        return AudioError(f"{name}: is closed")
    stdin = cast(BufferedReader, sys.stdin.buffer)
    try:
        ready, _, _ = select.select([stdin], [], [], _PATIENCE)
        if ready and not stdin.peek(1):
            return AudioError(f"{name}: empty input")
    except (OSError, ValueError) as error:
        return AudioError(f"{name}: {getattr(error, 'strerror', None) or error}")
    return None
