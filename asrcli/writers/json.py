"""JSON: all that is known of a recording, and the way back.

Keys have the names and the order of the fields in ``asrcli.transcript``, which are those of
OpenAI's ``verbose_json``.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

from asrcli.transcript import Retry, Segment, Transcript, Word
from asrcli.writers.times import to_milliseconds

T = TypeVar("T")

_TIMES = frozenset({"start", "end", "duration"})
_NUM_DECIMALS = 6  # of everything that is no time: more would be noise of the arithmetic
_ITEMS = {"segments": Segment, "words": Word, "retries": Retry}

# A line feed inside a string is escaped, so this finds none but true lists of numbers.
_NUMBER_LIST = re.compile(r"\[\n\s+(-?\d[-\d,.e\s]*)\n\s*\]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def render_json(transcript: Transcript) -> str:
    """The transcript as one indented object; ends with a line feed.

    Raises:
        ValueError: a time, which is never left out, is not finite.
    """
    text = json.dumps(_plain(transcript), ensure_ascii=False, indent=2, allow_nan=False)
    return _encodable(_NUMBER_LIST.sub(_on_one_line, text)) + "\n"


def render_json_line(transcript: Transcript, source_name: str) -> str:
    """The transcript in one line, with the name of its recording as "file" before everything else.

    Bytes of a name that are not UTF-8 become escaped surrogates, as Python reads and writes them.

    Raises:
        ValueError: a time, which is never left out, is not finite.
    """
    named = {"file": source_name, **_plain(transcript)}
    return _encodable(json.dumps(named, ensure_ascii=False, allow_nan=False)) + "\n"


def load_json(text: str) -> Transcript:
    """The transcript behind the text of ``render_json`` or ``render_json_line``.

    Keys that are unknown here are skipped, so that newer files can be read.

    Raises:
        ValueError: the text is no JSON, is cut short or lacks a field.
    """
    try:
        return _build(Transcript, json.loads(text, parse_constant=_refuse_constant))
    except (TypeError, AttributeError) as error:
        raise ValueError(f"this JSON is no transcript: {error}") from error


def _plain(value: Any, name: str = "") -> Any:
    """What ``json`` can write for the field called ``name``; numbers are rounded."""
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name), f.name) for f in fields(value)}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if name in _TIMES:
        # A time is never unknown: one that is not finite is left for allow_nan=False to refuse.
        return to_milliseconds(value) / 1000 if math.isfinite(value) else value
    if isinstance(value, float):
        return round(value, _NUM_DECIMALS) if math.isfinite(value) else None
    return value


def _build(kind: type[T], values: dict[str, Any]) -> T:
    arguments: dict[str, Any] = {}
    for field in fields(kind):  # type: ignore[arg-type]  # every kind here is a dataclass
        if field.name not in values:
            continue  # the default, or the TypeError of a missing argument
        value = values[field.name]
        if field.name in _ITEMS:
            value = [_build(_ITEMS[field.name], item) for item in value]
        arguments[field.name] = tuple(value) if isinstance(value, list) else value
    return kind(**arguments)


def _on_one_line(match: re.Match[str]) -> str:
    return "[" + " ".join(match[1].split()) + "]"


def _encodable(text: str) -> str:
    """JSON that UTF-8 can hold: lone surrogates, which only stand in strings, are escaped."""
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _refuse_constant(name: str) -> None:
    raise ValueError(f"this JSON is no transcript: it holds {name}")
