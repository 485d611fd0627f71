from __future__ import annotations

import json

import pytest

from asrcli import writers
from asrcli.errors import UsageError
from asrcli.writers import FORMATS, SUFFIXES, guess_format, render_shared, resolve_format
from tests.writers.transcripts import NOTHING, make


def test_formats() -> None:
    assert FORMATS == ("text", "json", "srt", "vtt")
    assert dict(SUFFIXES) == {"text": ".txt", "json": ".json", "srt": ".srt", "vtt": ".vtt"}
    assert all(hasattr(writers, name) for name in writers.__all__)


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("text", "text"),
        ("txt", "text"),
        ("TXT", "text"),
        ("Json", "json"),
        (" SRT ", "srt"),
        (".vtt", "vtt"),
        ("VTT", "vtt"),
    ],
)
def test_names_of_formats(name: str, format: str) -> None:
    assert resolve_format(name) == format


@pytest.mark.parametrize("name", ["", "docx", "srt,vtt", "te xt", "..srt", "webvtt2"])
def test_unknown_format(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        resolve_format(name)
    assert str(caught.value) == f"format {name!r} is unknown"
    assert caught.value.hint == "one of: text, json, srt, vtt"


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("a.txt", "text"),
        ("x/a.b.SRT", "srt"),
        ("a.json", "json"),
        ("a.vtt", "vtt"),
        ("a", None),
        ("out/", None),
        (".srt", None),
        ("a.srt.bak", None),
    ],
)
def test_format_of_a_file(path: str, format: str | None) -> None:
    assert guess_format(path) == format


def test_several_texts_in_one_stream() -> None:
    first, second = make((0, 1, "one"), (1, 2, "two")), make((0, 1, "three"))
    shared = render_shared(first, "text", source_name="a.wav")
    shared += render_shared(NOTHING, "text", source_name="b.wav", is_first=False)
    shared += render_shared(second, "text", source_name="c.wav", is_first=False)
    assert shared == "one\ntwo\n\nthree\n"


def test_several_json_lines_in_one_stream() -> None:
    shared = render_shared(make((0, 1, "one")), "json", source_name="a.wav")
    shared += render_shared(NOTHING, "json", source_name="b.wav", is_first=False)
    lines = [json.loads(line) for line in shared.splitlines()]
    assert [(line["file"], line["text"]) for line in lines] == [("a.wav", "one"), ("b.wav", "")]
