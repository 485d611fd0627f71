"""Whether results that exist already are complete, so that a recording need not be done again.

Our own files are whole whenever they have their final name. But a file of that name may be another
program's, which opened it and was then stopped, so each is read to its end. Where there is doubt,
the answer is no: to do a recording again costs time, to pass over it costs its text.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from asrcli.writers.cues import cut_cues
from asrcli.writers.json import load_json

if TYPE_CHECKING:
    from asrcli.writers.outputs import Output

_SRT_TIMES = re.compile(r"\d+:\d\d:\d\d[,.]\d{1,3} +--> +\d+:\d\d:\d\d[,.]\d{1,3}( .*)?")
_VTT_TIMES = re.compile(r"(\d+:)?\d\d:\d\d\.\d{3}[ \t]+-->[ \t]+(\d+:)?\d\d:\d\d\.\d{3}([ \t].*)?")
_VTT_OTHERS = ("NOTE", "STYLE", "REGION")  # blocks that are no cues
_PROOF = frozenset({"json", "vtt"})
"""Formats whose files are never empty, and so can tell that a recording holds no speech."""


def are_complete(outputs: Sequence[Output], source: Path | None) -> bool:
    """Whether all results of a source are there, whole, of one mind and not older than it.

    A text or SubRip file that is empty is what silence gives, and also what a program leaves behind
    that was stopped before its first word. It counts if a JSON or WebVTT file among ``outputs``
    says that there is no speech; alone it does not.

    Args:
        outputs: the results of one source; one that goes to standard output is never there.
        source: the media; None, or what is no regular file, could be anything by now.
    """
    paths = [output.path for output in outputs if output.path is not None]
    if source is None or len(paths) < len(outputs) or not _are_current(paths, source):
        return False
    spoken = {output.format: _has_speech(path, output.format) for output, path in zip(
        outputs, paths, strict=True
    )}  # fmt: skip
    if None in spoken.values() or len(set(spoken.values())) != 1:
        return False
    return any(spoken.values()) or not _PROOF.isdisjoint(spoken)


def warnings_in(outputs: Sequence[Output]) -> list[str]:
    """What the JSON among complete results warns of, one line each: losses, and lesser things.

    No other format holds it.
    """
    for output in outputs:
        if output.format == "json" and output.path is not None:
            with contextlib.suppress(OSError, ValueError):
                warnings = load_json(output.path.read_text(encoding="utf-8-sig")).warnings
                if isinstance(warnings, tuple):  # other programs may keep other things there
                    return [str(line) for line in warnings]
    return []


def _are_current(paths: Sequence[Path], source: Path) -> bool:
    """Whether all are regular files, and no result was written before its source last changed."""
    try:
        changed, *written = (os.stat(path) for path in (source, *paths))  # noqa: PTH116
    except (OSError, ValueError):
        return False
    if not all(stat.S_ISREG(each.st_mode) for each in (changed, *written)):
        return False
    return all(each.st_mtime_ns >= changed.st_mtime_ns for each in written)


def _has_speech(path: Path, format: str) -> bool | None:
    """Whether a whole file holds any text; None where it is not whole, or not of its format."""
    try:
        text = path.read_text(encoding="utf-8-sig")  # of other programs, with a mark before it
        return _READERS[format](text)
    except (OSError, ValueError, OverflowError, RecursionError):
        return None


def _read_text(text: str) -> bool:
    _check(not text or text.endswith("\n"))
    return bool(text.strip())


def _read_json(text: str) -> bool:
    transcript = load_json(text)
    _check(isinstance(transcript.text, str) and isinstance(transcript.duration, int | float))
    for segment in transcript.segments:
        _check(isinstance(segment.text, str))
        _check(all(isinstance(time, int | float) for time in (segment.start, segment.end)))
    return bool(cut_cues(transcript.segments))


def _read_srt(text: str) -> bool:
    if not text:
        return False
    blocks = _blocks(text)
    for number, *lines in blocks:
        _check(number.strip().isdigit() and len(lines) >= 2)
        _check(_SRT_TIMES.fullmatch(lines[0].strip()))
    return True


def _read_vtt(text: str) -> bool:
    header, *blocks = _blocks(text)
    _check(header[0].split(maxsplit=1)[0] == "WEBVTT")
    has_speech = False
    for lines in blocks:
        if lines[0].startswith(_VTT_OTHERS):
            continue
        # A name may stand before the times.
        number = next((n for n, line in enumerate(lines[:2]) if _VTT_TIMES.fullmatch(line)), None)
        _check(number is not None and len(lines) > number + 1)
        has_speech = True
    return has_speech


def _blocks(text: str) -> list[list[str]]:
    """The lines between blank lines; at least one block, and the last line has its end."""
    _check(text.endswith("\n"))
    blocks = [block.splitlines() for block in re.split(r"\n[ \t]*(?:\n[ \t]*)+", text.strip())]
    _check(blocks[0])
    return blocks


def _check(condition: object) -> None:
    if not condition:
        raise ValueError


_READERS: Mapping[str, Callable[[str], bool]] = {
    "text": _read_text,
    "json": _read_json,
    "srt": _read_srt,
    "vtt": _read_vtt,
}
