"""Which transcript is scored against which recording, and what is in it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from asrcli.audio.sources import Source, expand
from asrcli.errors import AsrError, UsageError
from asrcli.evaluation.matching import match
from asrcli.evaluation.references import Reference, find_references, references_in
from asrcli.evaluation.transcripts import Transcripts, find_transcripts, read_transcript
from asrcli.transcript import Segment, Transcript
from asrcli.writers import render, render_json_line


def write(folder: Path, *names: str) -> Path:
    """Files that hold their own names."""
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return folder


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Names of recordings, which nothing here opens, and references beside them."""
    names = ("a.wav", "b.mp3", "sub/c.d.flac", "a.txt", "b.txt", "sub/c.d.txt")
    return write(tmp_path / "talks", *names)


def references(talks: Path) -> list[Reference]:
    return list(find_references(expand([talks]), None).found)


def scored(transcripts: Transcripts) -> dict[str, str]:
    """What was understood, by the recordings' places."""
    return {str(ref.source.relative): hyp.text for ref, hyp in transcripts.found}


def complaints(transcripts: Transcripts) -> list[str]:
    return [str(error) for error in transcripts.failures]


def transcript() -> Transcript:
    segments = (
        Segment(id=0, start=0.0, end=1.0, text="Rock & roll,"),
        Segment(id=1, start=1.5, end=2.0, text="a < b"),
    )
    return Transcript(
        text="Rock & roll, a < b", language="en", task="transcribe", duration=2.5,
        segments=segments, model="tiny",
    )  # fmt: skip


def read_with(path: Path, **values: object) -> str:
    """What is said against our JSON with other values in it."""
    path.write_text(json.dumps(json.loads(render(transcript(), "json")) | values))
    with pytest.raises(AsrError) as refused:
        read_transcript(path)
    return str(refused.value)


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


@pytest.mark.parametrize("content", ["{}", "no JSON", "[1]", "[" * 200_000, "null"])
def test_json_of_others(tmp_path: Path, content: str) -> None:
    (tmp_path / "a.json").write_text(content)
    with pytest.raises(AsrError) as refused:
        read_transcript(tmp_path / "a.json")
    assert str(refused.value) == f"{tmp_path}/a.json: not the JSON that asr writes"


@pytest.mark.parametrize(
    ("key", "value", "trouble"),
    [
        ("text", None, "its text is none"),
        ("text", ["a"], "its text is none"),
        ("duration", "1", "its duration is no number of seconds"),
        ("duration", True, "its duration is no number of seconds"),
        ("duration", None, "its duration is no number of seconds"),
        ("duration", -1, "its duration is no number of seconds"),
        ("duration", 10**400, "its duration is no number of seconds"),
        ("language", 5, "its language or model is no text"),
        ("model", ["whisper"], "its language or model is no text"),
    ],
)
def test_json_with_values_of_the_wrong_kind(
    tmp_path: Path, key: str, value: object, trouble: str
) -> None:
    path = tmp_path / "a.json"
    assert read_with(path, **{key: value}) == f"{path}: not the JSON that asr writes ({trouble})"


def test_one_odd_transcript_leaves_the_others(talks: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", "a.json", "b.txt", "sub/c.d.txt")
    read_with(out / "a.json", text=None)
    found = find_transcripts(references(talks), out)
    assert list(scored(found)) == ["b.mp3", "sub/c.d.flac"]
    assert complaints(found) == [f"{out}/a.json: not the JSON that asr writes (its text is none)"]


def test_halves_of_characters_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    values = json.loads(render(transcript(), "json"))
    odd = "a\ud800b"
    path.write_text(json.dumps(values | {"text": odd, "model": odd, "language": odd}))
    hypothesis = read_transcript(path)
    assert (hypothesis.text, hypothesis.model, hypothesis.language) == ("a?b", "a?b", "a?b")


def test_where_transcripts_lie(talks: Path, tmp_path: Path) -> None:
    """In the same tree, or in one that begins further down; JSON before anything else."""
    out = write(tmp_path / "out", "a.txt", "c.d.txt")
    (out / "a.json").write_text(render(transcript(), "json"))
    found = find_transcripts(references(talks), out)
    assert scored(found) == {"a.wav": "Rock & roll, a < b", "sub/c.d.flac": "c.d.txt"}
    assert complaints(found) == [f"{talks}/b.mp3: no transcript ({out}/b.txt is missing)"]
    assert found.note == (
        f"{talks}/sub/c.d.flac: {out}/c.d.txt is taken for its transcript, "
        "without the first folder of its path"
    )
    assert set(found.inputs) == {out / "a.txt", out / "a.json", out / "c.d.txt"}


def test_suffixes_in_capitals(talks: Path, tmp_path: Path) -> None:
    out = write(tmp_path / "out", "a.TXT", "b.Vtt", "sub/c.d.flac.SRT")
    cue = "WEBVTT\n\n00:01.000 --> 00:02.000\nheard\n"
    (out / "b.Vtt").write_text(cue)
    (out / "sub" / "c.d.flac.SRT").write_text(cue)
    found = find_transcripts(references(talks), out)
    assert scored(found) == {"a.wav": "a.TXT", "b.mp3": "heard", "sub/c.d.flac": "heard"}
    assert (found.failures, found.note) == ((), None)


def test_a_reference_is_no_transcript(talks: Path) -> None:
    """Neither of its own recording nor of another."""
    own = references(talks)
    (talks / "a.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nheard\n")
    write(talks, "sub/b.wav", "sub/b.wav.txt")
    own = references(talks)
    found = find_transcripts(own, talks)
    assert scored(found) == {"a.wav": "heard"}
    assert len(found.failures) == len(own) - 1 == 3


def test_exact_places_come_before_shortened_ones(tmp_path: Path) -> None:
    refs = write(tmp_path / "refs", "a/b.txt", "b.txt")
    out = write(tmp_path / "out", "b.txt")
    found = find_transcripts(references_in(refs).found, out)
    assert scored(found) == {"b": "b.txt"}
    assert complaints(found) == [f"a/b: no transcript of its own ({out}/b.txt is that of b)"]
    # Nor is another of its formats anybody else's.
    write(out, "b.srt")
    assert list(scored(find_transcripts(references_in(refs).found, out))) == ["b"]


def test_paths_are_shortened_by_one_number_of_folders(tmp_path: Path) -> None:
    refs = write(tmp_path / "refs", "x/y/a.txt", "x/y/b.txt", "x/z/b.txt", "x/c.txt")
    out = write(tmp_path / "out", "y/a.txt", "y/b.txt", "z/b.txt", "a.txt")
    found = find_transcripts(references_in(refs).found, out)
    assert scored(found) == {"x/y/a": "y/a.txt", "x/y/b": "y/b.txt", "x/z/b": "z/b.txt"}
    assert complaints(found) == [f"x/c: no transcript ({out}/x/c.txt is missing)"]
    assert found.note is not None
    assert found.note.endswith("without the first folder of its path, and 2 more likewise")
    flat = write(tmp_path / "flat", "a.txt", "b.txt", "c.txt")
    write(refs, "x/y/d.txt")
    write(flat, "d.txt")
    found = find_transcripts(references_in(refs).found, flat)
    # Two folders less find a and d; one less would find c alone. Whose b is cannot be told.
    assert scored(found) == {"x/y/a": "a.txt", "x/y/d": "d.txt"}
    assert complaints(found) == [
        f"x/c: no transcript ({flat}/x/c.txt is missing)",
        f"x/y/b: no transcript of its own ({flat}/b.txt may be that of x/z/b)",
        f"x/z/b: no transcript of its own ({flat}/b.txt may be that of x/y/b)",
    ]
    assert found.note is not None
    assert "without the first 2 folders of its path" in found.note


def test_a_transcript_that_may_be_of_either_is_given_to_none(tmp_path: Path) -> None:
    for name in ("x/a.wav", "y/a.wav"):
        write(tmp_path, name, f"{name[:-4]}.txt")
    out = write(tmp_path / "out", "a.txt")
    own = find_references(expand([tmp_path / "x", tmp_path / "y"]), None).found
    for pairs in (own, own[::-1]):
        found = find_transcripts(pairs, out)
        assert not found.found
        assert sorted(complaints(found)) == [
            f"{tmp_path}/{one}/a.wav: no transcript of its own ({out}/a.txt may be that of "
            f"{tmp_path}/{other}/a.wav)"
            for one, other in (("x", "y"), ("y", "x"))
        ]
    (only,) = find_transcripts(own[:1], out).found
    assert only[1].text == "a.txt"


def test_a_name_as_a_whole_comes_before_one_without_its_suffix(tmp_path: Path) -> None:
    refs = write(tmp_path / "refs", "a.txt", "a.wav.txt", "a.mp3.txt")
    out = write(tmp_path / "out", "a.txt", "a.wav.srt")
    found = find_transcripts(references_in(refs).found, out)
    assert scored(found) == {"a": "a.txt", "a.wav": ""}
    assert complaints(found) == [f"a.mp3: no transcript of its own ({out}/a.txt is that of a)"]


def test_a_disputed_transcript_is_nobody_elses(tmp_path: Path) -> None:
    refs = write(tmp_path / "refs", "a.wav.txt", "a.mp3.txt", "sub/a.txt")
    out = write(tmp_path / "out", "a.txt")
    found = find_transcripts(references_in(refs).found, out)
    assert not found.found
    assert len(found.failures) == 3


def test_two_names_that_look_the_same_are_two_recordings(tmp_path: Path) -> None:
    """Odd bytes are shown by one and the same character."""
    names = [os.fsdecode(b"\xfe/a.wav"), os.fsdecode(b"\xff/a.wav")]
    sources = [Source("\ufffd/a.wav", Path(name), Path(name)) for name in names]
    out = write(tmp_path / "out", "a.txt")
    matches = match(sources, out, ())
    assert not matches.paths
    assert [rival.other for rival in matches.rivals.values()] == sources[::-1]


def test_a_recording_without_a_name_has_no_transcript(tmp_path: Path) -> None:
    out = write(tmp_path / "out", "a.txt")
    write(tmp_path, "out.txt")
    assert not match([Source(".", tmp_path, Path())], out, ()).paths


def test_places_that_are_not_there() -> None:
    with pytest.raises(UsageError, match="nowhere: no such folder"):
        find_transcripts([], Path("nowhere"))
