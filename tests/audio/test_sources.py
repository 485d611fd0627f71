from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from asrcli.audio.sources import Source, expand
from asrcli.errors import UsageError


def touch(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def relatives(sources: list[Source]) -> list[str]:
    return [str(source.relative) for source in sources]


def test_a_file_named_by_itself_is_taken_whatever_its_ending(tmp_path: Path) -> None:
    touch(tmp_path, "notes.xyz")
    path = tmp_path / "notes.xyz"
    assert expand([path]) == [Source(str(path), path, Path("notes.xyz"))]


def test_a_missing_file_is_listed_so_that_the_others_go_on() -> None:
    assert expand(["no/such.wav"]) == [Source("no/such.wav", Path("no/such.wav"), Path("such.wav"))]


def test_a_folder_gives_its_media_sorted_with_its_tree(tmp_path: Path) -> None:
    touch(tmp_path, "y/a.wav", "x/a.wav", "UP.WAV", "b.Mp4", "notes.txt", "._a.wav", ".git/c.wav")
    sources = expand([str(tmp_path)])
    assert relatives(sources) == ["UP.WAV", "b.Mp4", "x/a.wav", "y/a.wav"]
    assert [source.path for source in sources] == [tmp_path / source.relative for source in sources]


def test_patterns_narrow_folders_only(tmp_path: Path) -> None:
    touch(tmp_path, "t/x/a.wav", "t/y/a.WAV", "t/y/b.mp3", "c.ogg")
    folder, file = tmp_path / "t", tmp_path / "c.ogg"
    assert relatives(expand([folder, file], patterns=["*.wav"])) == ["x/a.wav", "y/a.WAV", "c.ogg"]
    assert relatives(expand([folder], patterns=["Y/*", "x/?.wav"])) == [
        "x/a.wav",
        "y/a.WAV",
        "y/b.mp3",
    ]


def test_links_are_followed_without_loops_or_doubles(tmp_path: Path) -> None:
    touch(tmp_path, "t/a.wav", "t/x/b.wav", "outside/c.wav")
    (tmp_path / "t/x/loop").symlink_to("..")
    (tmp_path / "t/out").symlink_to(tmp_path / "outside")
    (tmp_path / "t/z.wav").symlink_to("a.wav")
    assert relatives(expand([tmp_path / "t"])) == ["a.wav", "out/c.wav", "x/b.wav"]


def test_the_same_file_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path, "a.wav")
    monkeypatch.chdir(tmp_path)
    assert len(expand(["a.wav", "./a.wav", tmp_path / "a.wav", "."])) == 1


def test_two_folders_may_give_equal_places(tmp_path: Path) -> None:
    touch(tmp_path, "x/a.wav", "y/a.wav")
    assert relatives(expand([tmp_path / "x", tmp_path / "y"])) == ["a.wav", "a.wav"]


def test_a_folder_without_media_is_named(tmp_path: Path) -> None:
    touch(tmp_path, "t/readme.txt")
    with pytest.raises(UsageError, match="t: no audio or video in this folder") as caught:
        expand([tmp_path / "t"])
    assert caught.value.hint is not None and ".wav" in caught.value.hint
    touch(tmp_path, "t/a.wav")
    with pytest.raises(UsageError) as caught:
        expand([tmp_path / "t"], patterns=["*.mp3"])
    assert caught.value.hint == "nothing there matches *.mp3"


def test_odd_names_pass_byte_for_byte(tmp_path: Path) -> None:
    names = [
        b"-dash.wav",
        b"[x] (y) & 'z' \"q\".wav",
        "한국어 ⚒️.wav".encode(),
        "cafe\u0301.wav".encode(),
        b"space.wav ",
        b"line\nbreak.wav",
        b"\xff\xfe.wav",
        b"n" * 200 + b".wav",
    ]
    for name in names:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + name)).write_bytes(b"")
    sources = expand([tmp_path])
    assert {os.fsencode(source.relative) for source in sources} == set(names)
    assert all(source.path is not None and source.path.exists() for source in sources)
    for source in sources:
        source.name.encode("utf-8")
        assert source.name.isprintable()


def test_brackets_never_glob(tmp_path: Path) -> None:
    touch(tmp_path, "[ab].wav", "a.wav")
    assert relatives(expand([tmp_path / "[ab].wav"])) == ["[ab].wav"]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert expand(["-", "-"]) == [Source("stdin", None, Path("stdin"))]


def test_a_terminal_is_refused_rather_than_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(UsageError, match="standard input is a terminal"):
        expand(["-"])


def test_an_empty_name_is_no_folder() -> None:
    with pytest.raises(UsageError, match="empty name"):
        expand([""])


def test_listing_files_loads_no_audio_library() -> None:
    script = (
        "import sys, asrcli.audio.sources;"
        "print(sorted({'av', 'numpy', 'soundfile', 'soxr', 'torch'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_a_folder_that_may_not_be_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below the one that was named it is one failure among files that go on."""
    for name in ("a.wav", "secret/b.wav", "z.wav"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    secret = tmp_path / "secret"
    scandir = os.scandir

    def refusing(path: Path) -> object:
        # Permissions would not keep root out.
        if path == secret:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    for patterns in ((), ("*.wav",)):
        paths = [source.path for source in expand([tmp_path], patterns=patterns)]
        assert paths == [tmp_path / "a.wav", secret, tmp_path / "z.wav"]
    with pytest.raises(UsageError, match=f"^{secret}: permission denied$"):
        expand([secret])
