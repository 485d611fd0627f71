"""Strict readers of SubRip and WebVTT, written for the tests: each gives (start, end, text) rows.

Times are whole milliseconds. Anything that the formats do not allow is an AssertionError.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

Row = tuple[int, int, str]

_TIME = r"(\d{2,}):([0-5]\d):([0-5]\d)%s(\d{3})"


def read_srt(text: str) -> list[Row]:
    """By blocks: a block is a number, a line of times and lines of text, then a blank line."""
    assert "\r" not in text
    assert text == "" or text.endswith("\n")
    rows = []
    blocks = text.removesuffix("\n").split("\n\n") if text else []
    for number, block in enumerate(blocks, start=1):
        first, times, *lines = block.split("\n")
        assert first == str(number)
        rows.append((*_times(times, ","), _text(lines)))
    return rows


def read_vtt(text: str) -> list[Row]:
    """Line by line, as the state machine of the WebVTT standard reads."""
    lines = iter(text.split("\n"))
    assert next(lines) == "WEBVTT"
    assert next(lines) == ""
    rows = []
    for line in lines:
        if line == "":
            continue
        cue = []
        for following in lines:
            if following == "":
                break
            assert "-->" not in following
            cue.append(following)
        markup = _text(cue)
        assert not re.search(r"[<>]|&(?!amp;|lt;|gt;)", markup)
        rows.append((*_times(line, "."), html.unescape(markup)))
    return rows


def _times(line: str, mark: str) -> tuple[int, int]:
    time = _TIME % re.escape(mark)
    match = re.fullmatch(f"{time} --> {time}", line)
    assert match, line
    numbers = [int(group) for group in match.groups()]
    return _milliseconds(numbers[:4]), _milliseconds(numbers[4:])


def _milliseconds(numbers: Sequence[int]) -> int:
    hours, minutes, seconds, milliseconds = numbers
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + milliseconds


def _text(lines: list[str]) -> str:
    assert lines
    assert all(line.strip() for line in lines)
    assert "-->" not in "\n".join(lines)
    return "\n".join(lines)
