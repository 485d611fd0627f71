from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from asrcli.writers import FORMATS, SUFFIXES, render
from asrcli.writers.completeness import are_complete, warnings_in
from asrcli.writers.outputs import Output
from tests.writers.transcripts import NOTHING, make

SPEECH = make((0.0, 1.5, "one two"), (2.0, 3.0, "tre & é"))


@pytest.fixture
def media(work: Path) -> Path:
    path = work / "a.wav"
    path.write_bytes(b"RIFF")
    os.utime(path, (1_000_000, 1_000_000))
    return path


def complete(media: Path, **texts: str) -> bool:
    """Whether results count, given their content by format."""
    outputs = []
    for format, text in texts.items():
        path = media.with_suffix(SUFFIXES[format])
        path.write_bytes(text.encode())
        outputs.append(Output(format, path))
    return are_complete(outputs, media)


@pytest.mark.parametrize("format", FORMATS)
def test_what_the_writers_write_is_complete(media: Path, format: str) -> None:
    assert complete(media, **{format: render(SPEECH, format)})
    assert complete(media, **{format: render(make((0.0, 1.0, "x")), format)})


@pytest.mark.parametrize("format", FORMATS)
def test_what_was_cut_off_is_not(media: Path, format: str) -> None:
    """At every place but between two lines of text, or two cues, where no reader could tell."""
    text = render(SPEECH, format)
    whole = [length for length in range(len(text)) if complete(media, **{format: text[:length]})]
    first = render(make((0.0, 1.5, "one two")), format)
    header = {"vtt": [len("WEBVTT\n"), len("WEBVTT\n\n")]}
    between = {"text": [len(first)], "json": [len(text) - 1]}
    assert whole == [
        *header.get(format, []),
        *between.get(format, [len(first), len(first) + 1]),
    ]


@pytest.mark.parametrize(
    ("format", "is_enough"), [("json", True), ("vtt", True), ("srt", False), ("text", False)]
)
def test_silence_alone(media: Path, format: str, is_enough: bool) -> None:
    """An empty file may be a stub that another program left, so it needs a witness."""
    assert complete(media, **{format: render(NOTHING, format)}) is is_enough


@pytest.mark.parametrize("witness", ["json", "vtt"])
@pytest.mark.parametrize("format", ["srt", "text"])
def test_silence_with_a_witness(media: Path, format: str, witness: str) -> None:
    assert complete(media, **{format: "", witness: render(NOTHING, witness)})
    assert not complete(media, **{format: "", witness: render(SPEECH, witness)})
    assert not complete(media, **{format: render(SPEECH, format), witness: ""})
    assert not complete(
        media, **{format: render(SPEECH, format), witness: render(NOTHING, witness)}
    )


def test_two_empty_files_are_no_witnesses(media: Path) -> None:
    assert not complete(media, srt="", text="")


def test_every_format_has_to_be_there(media: Path) -> None:
    texts = {format: render(SPEECH, format) for format in FORMATS}
    assert complete(media, **texts)
    outputs = [Output(format, media.with_suffix(SUFFIXES[format])) for format in FORMATS]
    for output in outputs:
        assert complete(media, **texts)
        assert output.path is not None
        output.path.unlink()
        assert not are_complete(outputs, media)


def test_results_that_are_older_than_their_source(media: Path) -> None:
    result = media.with_suffix(".srt")
    result.write_text(render(SPEECH, "srt"))
    outputs = [Output("srt", result)]
    for seconds, expected in ((999_999, False), (1_000_000, True), (1_000_001, True)):
        os.utime(result, (seconds, seconds))
        assert are_complete(outputs, media) is expected


def test_what_is_no_file(media: Path) -> None:
    result = media.with_suffix(".srt")
    outputs = [Output("srt", result)]
    result.mkdir()
    assert not are_complete(outputs, media)
    result.rmdir()
    (media.parent / "real.srt").write_text(render(SPEECH, "srt"))
    result.symlink_to("real.srt")
    assert are_complete(outputs, media)
    assert not are_complete(outputs, None)
    assert not are_complete(outputs, media.with_name("absent.wav"))
    os.mkfifo(media.with_name("pipe"))
    assert not are_complete(outputs, media.with_name("pipe"))
    assert not are_complete([*outputs, Output("text", None)], media)


@pytest.mark.parametrize(
    ("format", "text", "expected"),
    [
        ("srt", "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>Hi.</i>\r\n\r\n", True),
        ("srt", "7\n0:00:01.5 --> 0:00:02.5 X1:1\n-Hi.\n-Ho.\n\n\n\n9\n", False),
        ("srt", "Hi.\n", False),
        ("srt", "\n", False),
        ("srt", "1\n00:00:01,000 --> 00:00:02,000\n", False),
        ("vtt", "WEBVTT - a talk\nKind: x\n\nNOTE y\n\n00:01.000 --> 00:02.000\nHi\n", True),
        ("vtt", "WEBVTT\n\nintro\n00:00:01.000 --> 00:00:02.000 line:0\nHi\n", True),
        ("vtt", "WEBVTTX\n", False),
        ("vtt", "1\n00:00:01.000 --> 00:00:02.000\nHi\n", False),
        ("vtt", "WEBVTT\n\nHi.\n", False),
        ("text", "\n", False),
        ("text", "Hi.\r\n", True),
        ("json", "{}\n", False),
        ("json", "[]\n", False),
        ("json", "null", False),
        ("json", "[" * 100_000, False),
    ],
)
def test_what_others_wrote(media: Path, format: str, text: str, expected: bool) -> None:
    assert complete(media, **{format: text}) is expected


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"new": 1}, True),
        ({"text": 1}, False),
        ({"duration": "1"}, False),
        ({"segments": 1}, False),
        ({"segments": [1]}, False),
        ({"segments": [{"id": 0, "start": None, "end": 1, "text": ""}]}, False),
        ({"segments": [{"id": 0, "start": 0, "end": 1e999, "text": "x"}]}, False),
        ({"segments": [{"id": 0, "start": 0, "end": 1}]}, False),
        ({"segments": [{"id": 0, "start": 0, "end": 1, "text": "x"}]}, True),
    ],
)
def test_json_of_another_shape(media: Path, changes: dict[str, object], expected: bool) -> None:
    text = json.dumps(json.loads(render(NOTHING, "json")) | changes)
    assert complete(media, json=text) is expected


@pytest.mark.parametrize("format", FORMATS)
def test_bytes_that_are_not_utf8(media: Path, format: str) -> None:
    path = media.with_suffix(SUFFIXES[format])
    path.write_bytes(b"1\n00:00:01,000 --> 00:00:02,000\ncaf\xe9\n")
    assert not are_complete([Output(format, path)], media)


def test_warnings_are_found_in_json_alone(media: Path) -> None:
    outputs = [Output(format, media.with_suffix(SUFFIXES[format])) for format in ("srt", "json")]
    assert warnings_in(outputs) == []
    lines = ("damaged audio at 0:01.0-0:02.0", "holds no audio")
    text = render(dataclasses.replace(SPEECH, warnings=lines), "json")
    media.with_suffix(".srt").write_text(render(SPEECH, "srt"))
    media.with_suffix(".json").write_text(text)
    assert warnings_in(outputs) == list(lines)
    assert warnings_in(outputs[:1]) == []
    assert warnings_in([Output("json", None)]) == []
    for odd in (None, 7, "line", {"line": 1}):
        media.with_suffix(".json").write_text(json.dumps({**json.loads(text), "warnings": odd}))
        assert warnings_in(outputs) == []
    media.with_suffix(".json").write_text("[")
    assert warnings_in(outputs) == []
