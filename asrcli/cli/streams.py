"""The three standard streams, made fit for a run: UTF-8, and none whose loss could stop it."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def set_up_streams() -> None:
    """Do so for this process. Streams that are closed stay so: ``sys.stdin`` and others are None.

    Text is UTF-8 whatever the locale; names that are not UTF-8 must not stop a message.
    """
    _occupy_closed_descriptors()
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(_LastingFile(sys.stderr.fileno(), "w", closefd=False)),
            line_buffering=True,
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", newline="\n")


class _LastingFile(io.FileIO):
    """A file for messages, which are lost where they cannot be written: the work goes on."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data) or 0
        except OSError:
            return len(memoryview(data))


def _occupy_closed_descriptors() -> None:
    """Keep files from getting the number of a closed stream, which libraries write messages to."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
