"""Where references and transcripts are looked for, and what is said of those that are bad."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from asrcli.audio.sources import expand
from asrcli.errors import UsageError
from asrcli.evaluation.manifests import read_manifest
from asrcli.evaluation.references import Reference, References, find_references
from asrcli.evaluation.transcripts import find_transcripts, read_transcript
from asrcli.transcript import Segment, Transcript
from asrcli.writers import render, render_json_line


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Names of recordings; nothing here opens them."""
    for name in ("a.wav", "b.mp3", "sub/c.d.flac"):
        path = tmp_path / "talks" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    return tmp_path / "talks"


def texts(references: References) -> dict[str, str]:
    return {str(each.source.relative): each.text for each in references.found}


def complaints(references: References) -> list[str]:
    return [str(error) for error in references.failures]


def find(talks: Path, place: Path | None = None) -> References:
    return find_references(expand([talks]), place)


def test_beside_the_recordings(talks: Path) -> None:
    (talks / "a.txt").write_bytes(b"\xef\xbb\xbfone")
    (talks / "b.mp3.txt").write_text("two")
    (talks / "sub" / "c.d.txt").write_text("grün", "utf-8")
    assert texts(find(talks)) == {"a.wav": "one", "b.mp3": "two", "sub/c.d.flac": "grün"}


def test_one_that_is_missing_and_one_that_is_no_text(talks: Path) -> None:
    (talks / "a.txt").write_bytes("Grüße".encode("latin-1"))
    (talks / "sub" / "c.d.txt").write_text("")
    references = find(talks)
    assert texts(references) == {"sub/c.d.flac": ""}
    assert complaints(references) == [
        f"{talks}/a.txt: not UTF-8 text (byte 0xfc at 2)",
        f"{talks}/b.mp3: no reference ({talks}/b.txt is missing)",
    ]


def test_a_folder_with_the_same_tree(talks: Path, tmp_path: Path) -> None:
    for name in ("a.txt", "sub/c.d.txt"):
        path = tmp_path / "refs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(name)
    references = find(talks, tmp_path / "refs")
    assert texts(references) == {"a.wav": "a.txt", "sub/c.d.flac": "sub/c.d.txt"}
    assert complaints(references) == [
        f"{talks}/b.mp3: no reference ({tmp_path}/refs/b.txt is missing)"
    ]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.tsv", "audio\ttext\tlanguage\na.wav\tone\tGerman\nsub/c.d.flac\ttwo\t\n"),
        (
            "m.tsv",
            "\ufeffLocale\tPath\tSentence\r\nde-DE\ta.wav\tone\r\n\r\n\tsub/c.d.flac\ttwo\r\n",
        ),
        ("m.tsv", 'file\treference\tlang\n"a.wav"\t"one"\tde\nsub/../sub/c.d.flac\ttwo'),
        (
            "m.jsonl",
            '{"audio": "a.wav", "text": "one", "language": "ger"}\n\n'
            '{"audio_filepath": "sub/c.d.flac", "text": "two", "duration": 2.5}\n',
        ),
        (
            "m.json",
            '{"path": "a.wav", "transcript": "one", "lang": "deutsch"}\r\n'
            '{"audio": "FOLDER/sub/c.d.flac", "text": "two"}\n',
        ),
    ],
)
def test_manifests(talks: Path, name: str, content: str) -> None:
    manifest = talks / name
    manifest.write_text(content.replace("FOLDER", str(talks)), "utf-8", newline="")
    for references in (find_references(None, manifest), find(talks, manifest)):
        assert [each.text for each in references.found] == ["one", "two"]
        assert [each.language for each in references.found] == ["de", None]
        paths = [os.path.realpath(each.source.path or "") for each in references.found]
        assert paths == [str(talks / "a.wav"), str(talks / "sub/c.d.flac")]
    assert complaints(find_references(None, manifest)) == []
    assert complaints(find(talks, manifest)) == [f"{talks}/b.mp3: no reference (not in {manifest})"]


def test_quotes_within_a_text_stay(tmp_path: Path) -> None:
    manifest = tmp_path / "m.tsv"
    manifest.write_text('file\ttext\n1\t"Yes", he said\n2\t"He said ""yes"" twice"\n3\t"a" and "b"')
    assert [row.text for row in read_manifest(manifest).rows] == [
        '"Yes", he said',
        'He said "yes" twice',
        '"a" and "b"',
    ]


def test_a_recording_twice_in_a_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\na.wav\tone\nb.wav\ttwo\n./a.wav\tone \nb.wav\tthree\n")
    references = find_references(None, manifest)
    assert texts(references) == {"a.wav": "one"}
    assert complaints(references) == [
        f"{tmp_path}/b.wav: two references (lines 3 and 5 of {manifest})"
    ]


def test_an_unknown_language_is_told_once_and_not_used(tmp_path: Path) -> None:
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\tlanguage\na\tone\tnone\nb\ttwo\tnone\nc\t\ten\n")
    references = find_references(None, manifest)
    assert [each.language for each in references.found] == [None, None, "en"]
    assert references.warnings == (f"{manifest}: line 2: language 'none' is unknown",)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("m.tsv", b"sound\ttext\na\tb\n", "no column for the recordings"),
        ("m.tsv", b"file\twords\na\tb\n", "no column for the texts"),
        ("m.tsv", b"file\ttext\na\n", "line 2 has no text"),
        ("m.tsv", b"file\ttext\n\tone\n", "line 2 names no recording"),
        ("m.tsv", b"file\ttext\n", "names no recordings"),
        ("m.tsv", b"", "no column for the recordings"),
        ("m.tsv", b"file\ttext\na\t\xff\n", "not UTF-8 text (byte 0xff at 12)"),
        ("m.jsonl", b'\n{"audio": "a", "text": "b"\n', "line 2 is not JSON"),
        ("m.jsonl", b"[1]\n", "line 1 is not a JSON object"),
        ("m.jsonl", b'{"audio": "a", "text": 5}\n', "line 1 has no text"),
        ("m.jsonl", b'{"text": "b"}\n', "line 1 names no recording"),
        ("m.xlsx", b"", "is no folder, and not called .tsv or .jsonl"),
    ],
)
def test_bad_manifests(tmp_path: Path, name: str, content: bytes, complaint: str) -> None:
    manifest = tmp_path / name
    manifest.write_bytes(content)
    with pytest.raises(UsageError) as refused:
        find_references(None, manifest)
    assert str(refused.value) == f"{manifest}: {complaint}"


def test_places_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: no such file or folder"):
        find_references([], tmp_path / "nowhere")
    for place in (None, tmp_path):
        with pytest.raises(UsageError, match="nothing says which recordings are meant"):
            find_references(None, place)


def transcript() -> Transcript:
    segments = (
        Segment(id=0, start=0.0, end=1.0, text="Rock & roll,"),
        Segment(id=1, start=1.5, end=2.0, text="a < b"),
    )
    return Transcript(
        text="Rock & roll, a < b", language="en", task="transcribe", duration=2.5,
        segments=segments, model="tiny",
    )  # fmt: skip


@pytest.mark.parametrize("format", ["json", "srt", "vtt", "text"])
def test_transcripts_of_our_own(tmp_path: Path, format: str) -> None:
    suffix = "txt" if format == "text" else format
    path = tmp_path / f"a.{suffix}"
    path.write_text(render(transcript(), format), "utf-8")
    hypothesis = read_transcript(path)
    assert hypothesis.text.split() == transcript().text.split()
    known = ("en", 2.5, "tiny") if format == "json" else (None, None, None)
    assert (hypothesis.language, hypothesis.duration, hypothesis.model) == known


def test_transcripts_of_others(tmp_path: Path) -> None:
    path = tmp_path / "a.srt"
    path.write_text(
        "\ufeff1\r\n00:00:01,000 --> 00:00:02,000\r\n<i>One</i>\r\n{\\an8}two\r\n\r\n"
        "7\r\n00:00:03,000 --> 00:00:04,000\r\n1999\r\n",
        "utf-8",
        newline="",
    )
    assert read_transcript(path).text == "One two 1999"
    path = tmp_path / "a.vtt"
    path.write_text(
        "WEBVTT\n\nNOTE not this\nnor this\n\nintro\n00:01.000 --> 00:02.000 align:start\n"
        "<v Ann>One &amp;<00:01.500><c> two</c>\n"
    )
    assert read_transcript(path).text == "One & two"
    line = render_json_line(transcript(), "a.wav")
    (tmp_path / "a.json").write_text(line)
    assert read_transcript(tmp_path / "a.json").text == "Rock & roll, a < b"


def references(talks: Path) -> list[Reference]:
    for name in ("a.txt", "b.txt", "sub/c.d.txt"):
        (talks / name).write_text("reference")
    return list(find(talks).found)


def test_where_transcripts_lie(talks: Path, tmp_path: Path) -> None:
    """In the same tree, or in one that begins further down; JSON before anything else."""
    hypotheses = tmp_path / "hypotheses"
    hypotheses.mkdir()
    (hypotheses / "a.json").write_text(render(transcript(), "json"))
    (hypotheses / "a.txt").write_text("not this")
    (hypotheses / "c.d.txt").write_text("three")
    found, errors = find_transcripts(references(talks), hypotheses)
    assert [(str(ref.source.relative), hyp.text) for ref, hyp in found] == [
        ("a.wav", "Rock & roll, a < b"),
        ("sub/c.d.flac", "three"),
    ]
    assert [str(error) for error in errors] == [
        f"{talks}/b.mp3: no transcript ({hypotheses}/b.txt is missing)"
    ]


def test_a_reference_is_no_transcript_of_itself(talks: Path) -> None:
    own = references(talks)
    (talks / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nheard\n")
    found, errors = find_transcripts(own, talks)
    assert [hypothesis.text for _, hypothesis in found] == ["heard"]
    assert len(errors) == 2


def test_two_recordings_cannot_have_one_transcript(tmp_path: Path) -> None:
    for name in ("x/a.wav", "y/a.wav"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).touch()
        (tmp_path / name).with_suffix(".txt").write_text("reference")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt").write_text("heard")
    own = find_references(expand([tmp_path]), None).found
    found, errors = find_transcripts(own, tmp_path / "out")
    assert [ref.source.name for ref, _ in found] == [f"{tmp_path}/x/a.wav"]
    assert [str(error) for error in errors] == [
        f"{tmp_path}/y/a.wav: no transcript of its own ({tmp_path}/out/a.txt is that of "
        f"{tmp_path}/x/a.wav)"
    ]


@pytest.mark.parametrize("content", ["{}", "no JSON", json.dumps([1])])
def test_json_of_others(talks: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.json").write_text(content)
    found, errors = find_transcripts(references(talks)[:1], tmp_path / "out")
    assert not found
    assert [str(error) for error in errors] == [
        f"{tmp_path}/out/a.json: not the JSON that asr writes"
    ]
    with pytest.raises(UsageError, match="nowhere: no such folder"):
        find_transcripts([], tmp_path / "nowhere")
