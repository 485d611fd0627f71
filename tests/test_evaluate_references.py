"""Where references and transcripts are looked for, and what is said of those that are bad."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from asrcli.audio.sources import expand
from asrcli.errors import UsageError
from asrcli.evaluation.manifests import read_manifest
from asrcli.evaluation.references import References, find_references, references_in
from asrcli.writers.outputs import MEDIA_SUFFIXES


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


def test_suffixes_in_capitals(talks: Path, tmp_path: Path) -> None:
    (talks / "a.TXT").write_text("one")
    (talks / "b.mp3.Txt").write_text("two")
    (talks / "sub" / "c.d.tXT").mkdir()
    assert texts(find(talks)) == {"a.wav": "one", "b.mp3": "two"}
    assert texts(references_in(talks)) == {"a": "one", "b.mp3": "two"}
    (talks / "a.txt").write_text("the usual name comes first")
    assert texts(find(talks))["a.wav"] == "the usual name comes first"


def test_every_suffix_that_results_take_the_place_of(tmp_path: Path) -> None:
    (tmp_path / "refs").mkdir()
    (tmp_path / "media").mkdir()
    for suffix in MEDIA_SUFFIXES:
        (tmp_path / "media" / f"talk{suffix[1:]}{suffix}").touch()
        (tmp_path / "refs" / f"talk{suffix[1:]}.txt").touch()
    recordings = [str(path) for path in (tmp_path / "media").iterdir()]
    references = find_references(expand(recordings), tmp_path / "refs")
    assert (len(references.found), references.failures) == (len(MEDIA_SUFFIXES), ())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Texts, and what is none."""
    for name in ("b.wav.txt", "sub/a.txt", "m.tsv", "sub/.a.txt", ".hidden/c.txt", "notes.md"):
        path = tmp_path / "refs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    (tmp_path / "refs" / "folder.txt").mkdir()
    return tmp_path / "refs"


def test_texts_without_recordings(folder: Path) -> None:
    references = references_in(folder)
    assert texts(references) == {"b.wav": "b.wav.txt", "sub/a": "sub/a.txt"}
    assert [each.source.path for each in references.found] == [folder / "b.wav", folder / "sub/a"]
    assert references.inputs == (folder / "b.wav.txt", folder / "sub/a.txt")


def test_each_text_is_that_of_its_own_name(folder: Path) -> None:
    (folder / "b.txt").write_text("another")
    assert texts(references_in(folder)) == {
        "b": "another",
        "b.wav": "b.wav.txt",
        "sub/a": "sub/a.txt",
    }


def test_two_texts_of_one_name(folder: Path) -> None:
    (folder / "sub" / "a.TXT").write_text("another")
    references = references_in(folder)
    assert texts(references) == {"b.wav": "b.wav.txt"}
    assert complaints(references) == [
        f"sub/a: two references ({folder}/sub/a.TXT and {folder}/sub/a.txt)"
    ]


def test_folders_that_are_linked_to(folder: Path) -> None:
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "again").symlink_to(folder / "sub")
    assert list(texts(references_in(folder))) == ["again/a", "b.wav", "sub/a"]


def test_patterns_on_texts(folder: Path) -> None:
    for pattern, names in (
        ("*.WAV", ["b.wav"]),
        ("sub/*", ["sub/a"]),
        ("a", ["sub/a"]),
        ("?.txt", ["sub/a"]),
    ):
        assert list(texts(references_in(folder, [pattern]))) == names
    with pytest.raises(UsageError, match=r"no \.txt files in this folder") as refused:
        references_in(folder, ["*.mp3", "c*"])
    assert refused.value.hint == "nothing there matches *.mp3 or c*"


def test_folders_without_texts(tmp_path: Path) -> None:
    (tmp_path / "m.tsv").write_text("file\ttext\na\tone\n")
    with pytest.raises(UsageError) as refused:
        references_in(tmp_path)
    assert str(refused.value) == f"{tmp_path}: no .txt files in this folder"
    assert refused.value.hint == "--references takes a folder of .txt files or a manifest"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: no such file or directory"):
        references_in(tmp_path / "nowhere")


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is closed to root")
def test_a_folder_that_cannot_be_looked_into(folder: Path) -> None:
    (folder / "sub").chmod(0o000)
    try:
        with pytest.raises(UsageError, match="refs/sub: permission denied"):
            references_in(folder)
    finally:
        (folder / "sub").chmod(0o755)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("m.jsonl", '{"audio": "a", "text": "b"}\n{"audio": "a\\u0000b", "text": "c"}\n'),
        ("m.tsv", "file\ttext\na\0b\tc\n"),
    ],
)
def test_names_that_no_file_can_have(tmp_path: Path, name: str, content: str) -> None:
    manifest = tmp_path / name
    manifest.write_text(content)
    with pytest.raises(UsageError) as refused:
        find_references(None, manifest)
    assert str(refused.value) == (f"{manifest}: line 2 names no file: its name holds a zero byte")


def test_odd_names_are_missing_files(tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    names = ["x" * 300, "\ud800.wav", ".", "..", "a/" * 3000, "~", "\n"]
    manifest.write_text("".join(json.dumps({"audio": name, "text": "t"}) + "\n" for name in names))
    assert len(find_references(None, manifest).found) == len(names)


def test_json_that_is_too_deep(tmp_path: Path) -> None:
    manifest = tmp_path / "m.jsonl"
    manifest.write_text("[" * 200_000)
    with pytest.raises(UsageError, match="line 1 is not JSON"):
        find_references(None, manifest)


@pytest.mark.parametrize("offset", ["12.5", '"12.5"'])
def test_parts_of_recordings_are_told_of_once(tmp_path: Path, offset: str) -> None:
    manifest = tmp_path / "m.jsonl"
    rows = [
        '{"audio_filepath": "a.wav", "text": "one", "duration": 3, "offset": 0}',
        '{"audio_filepath": "b.wav", "text": "two", "duration": 2.5, "offset": OFFSET}',
        '{"audio_filepath": "c.wav", "text": "three", "offset": OFFSET}',
    ]
    manifest.write_text("\n".join(rows).replace("OFFSET", offset))
    references = find_references(None, manifest)
    assert references.warnings == (
        f"{manifest}: line 2: the text is of what comes after 12.5 s, "
        "but all of a recording is compared",
    )
    assert [each.duration for each in references.found] == [3.0, None, None]


def test_offsets_in_a_table_and_those_that_are_none(tmp_path: Path) -> None:
    manifest = tmp_path / "m.tsv"
    manifest.write_text("path\ttext\toffset\tduration\na\tone\t\t5\nb\ttwo\tx\tnan\nc\t\t-1\n")
    references = find_references(None, manifest)
    assert references.warnings == ()
    assert [each.duration for each in references.found] == [5.0, None, None]


def test_patterns_on_a_manifest(tmp_path: Path) -> None:
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\na.wav\tone\nsub/b.MP3\ttwo\n/else/c.mp3\tthree\n")
    for patterns, said in (
        (["*.mp3"], ["two", "three"]),
        (["sub/*"], ["two"]),
        (["a.*", "c.*"], ["one", "three"]),
        ([], ["one", "two", "three"]),
    ):
        references = find_references(None, manifest, patterns=patterns)
        assert [each.text for each in references.found] == said
    with pytest.raises(UsageError, match="none of its recordings is meant") as refused:
        find_references(None, manifest, patterns=["*.flac"])
    assert refused.value.hint == "nothing there matches *.flac"


def test_inputs_are_all_files_that_a_report_must_not_replace(talks: Path, tmp_path: Path) -> None:
    (talks / "a.txt").write_bytes(b"\xff")
    media = [talks / "a.wav", talks / "b.mp3", talks / "sub/c.d.flac"]
    assert set(find(talks).inputs) == {*media, talks / "a.txt"}
    manifest = tmp_path / "m.tsv"
    manifest.write_text("file\ttext\ntalks/a.wav\tone\n")
    assert set(find(talks, manifest).inputs) == {*media, manifest}
