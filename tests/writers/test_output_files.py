from __future__ import annotations

import contextlib
import os
import resource
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from asrcli.errors import OutputError
from asrcli.writers.files import shown, write_atomically
from asrcli.writers.places import check_places, prepare
from tests.writers.plans import found, named, plan

# prepare


def files_below(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir()}


def test_prepare_creates_folders_and_nothing_else(work: Path) -> None:
    (work / "out").mkdir()
    (work / "out" / "old.srt").write_text("old")
    prepare(plan(found("t", "x/y/a.wav", "old.wav"), "srt", output="out", any_folder=True))
    assert (work / "out/x/y").is_dir()
    assert files_below(work) == {"out/old.srt"}
    assert (work / "out/old.srt").read_text() == "old"


def test_prepare_of_stdout_does_nothing(work: Path) -> None:
    prepare(plan(named("a.mp3"), "srt"))
    assert list(work.iterdir()) == []


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
def test_a_folder_that_cannot_be_created() -> None:
    with pytest.raises(OutputError) as caught:
        prepare(plan(named("a.mp3"), "srt", output="/proc/x"))
    assert str(caught.value) == "/proc/x: cannot be created: no such file or directory"


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="there is no /proc")
def test_a_folder_where_nothing_can_be_created() -> None:
    with pytest.raises(OutputError, match=r"^/proc: cannot be written to: "):
        prepare(plan(named("a.mp3"), "srt", output="/proc"))


def test_a_file_where_the_folder_should_be(work: Path) -> None:
    (work / "out").write_text("mine")
    with pytest.raises(OutputError, match=r"^out: is a file, not a folder for results$"):
        prepare(plan(named("a.mp3"), "srt", output="out"))
    with pytest.raises(OutputError, match=r"^out/x: cannot be created: not a directory$"):
        prepare(plan(named("a.mp3"), "srt", output="out/x"))
    assert (work / "out").read_text() == "mine"


def test_a_folder_where_the_file_should_be(work: Path) -> None:
    (work / "out" / "a.srt").mkdir(parents=True)
    with pytest.raises(OutputError, match=r"^out/a\.srt: is a folder$"):
        prepare(plan(named("a.mp3"), "srt", output="out"))


def test_a_target_that_is_no_regular_file(work: Path) -> None:
    os.mkfifo(work / "a.srt")
    with pytest.raises(OutputError, match=r"^a\.srt: is no regular file$"):
        prepare(plan(named("a.mp3"), "srt", output="a.srt"))


def test_a_name_that_is_too_long(work: Path) -> None:
    long = "x" * 251 + ".mp3"
    with pytest.raises(OutputError, match=r"x\.json: cannot be written: file name too long$"):
        prepare(plan(named(long), "json", output="out"))
    with pytest.raises(OutputError, match="file name too long"):
        prepare(plan(named("a.mp3"), "json", output="y" * 300))


@pytest.fixture
def write_protected(work: Path) -> Iterator[Path]:
    folder = work / "locked"
    folder.mkdir()
    (folder / "a.srt").write_text("old")
    (folder / "a.srt").chmod(0o444)
    folder.chmod(0o555)
    if os.access(folder, os.W_OK):
        pytest.skip("the superuser may write everywhere")
    yield folder
    folder.chmod(0o755)


def test_a_write_protected_folder(write_protected: Path) -> None:
    with pytest.raises(OutputError, match=r"^locked: cannot be written to: permission denied$"):
        prepare(plan(named("a.mp3"), "srt", output="locked"))
    with pytest.raises(OutputError, match=r"^locked/new: cannot be created: permission denied$"):
        prepare(plan(named("a.mp3"), "srt", output="locked/new"))


def test_a_write_protected_file(write_protected: Path) -> None:
    write_protected.chmod(0o755)
    with pytest.raises(OutputError, match=r"^locked/a\.srt: is write-protected$"):
        prepare(plan(named("a.mp3"), "srt", output="locked"))
    assert (write_protected / "a.srt").read_text() == "old"


def test_a_file_that_nobody_may_write_is_not_replaced(work: Path) -> None:
    """Whoever took that right away meant it, whoever runs this: renaming would get round it."""
    (work / "a.srt").write_text("old")
    (work / "a.srt").chmod(0o444)
    with pytest.raises(OutputError, match=r"^a\.srt: is write-protected$"):
        prepare(plan(named("a.mp3"), "srt", output="a.srt"))
    assert (work / "a.srt").read_text() == "old"


def test_looking_changes_nothing(work: Path) -> None:
    check_places(plan(found("t", "x/y/a.wav"), "srt", output="out", any_folder=True))
    assert list(work.iterdir()) == []
    with pytest.raises(OutputError, match="file name too long"):
        check_places(plan(named("x" * 251 + ".mp3"), "json", output="out/new"))
    with pytest.raises(OutputError, match="file name too long"):
        check_places(plan(named("a.mp3"), "json", output="y" * 300))
    (work / "file").write_text("mine")
    with pytest.raises(OutputError, match=r"^file: is a file, not a folder for results$"):
        check_places(plan(named("a.mp3"), "srt", output="file"))
    with pytest.raises(OutputError, match=r"^file/x: cannot be created: not a directory$"):
        check_places(plan(named("a.mp3"), "srt", output="file/x"))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 16 KiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=16k", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("mounting a disk takes rights that this process lacks")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_that_is_full_is_found_out_ahead(small_disk: Path) -> None:
    results = plan(named("a.mp3"), "srt", output=str(small_disk))
    prepare(results)
    fill(small_disk)
    for check in (prepare, check_places):
        with pytest.raises(OutputError, match=r"/disk: cannot be written to: no space left on dev"):
            check(results)
    with pytest.raises(OutputError, match=r"/new: cannot be created: no space left on device$"):
        prepare(plan(named("a.mp3"), "srt", output=str(small_disk / "new")))


def test_a_disk_that_gets_full(small_disk: Path) -> None:
    path = small_disk / "a.srt"
    write_atomically(path, "old")
    with pytest.raises(OutputError, match=r"a\.srt: cannot be written: no space left on device$"):
        write_atomically(path, "x" * 100_000)
    assert path.read_text() == "old"
    assert files_below(small_disk) == {"a.srt"}
    fill(small_disk)
    with pytest.raises(OutputError, match=r"a\.srt: cannot be written: no space left on device$"):
        write_atomically(path, "x")  # what fits into the buffer fails as it leaves it
    assert files_below(small_disk) == {"a.srt", "filling"}


def fill(disk: Path) -> None:
    with contextlib.suppress(OSError), (disk / "filling").open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


# write_atomically


def test_write_and_replace(work: Path) -> None:
    path = work / "a.srt"
    assert write_atomically(path, "어\nb\r\n") is False
    assert path.read_bytes() == "어\nb\r\n".encode()
    assert write_atomically(path, "") is True
    assert path.read_bytes() == b""
    assert files_below(work) == {"a.srt"}


def test_permissions_are_those_of_a_new_file(work: Path) -> None:
    for umask, mode in ((0o022, 0o644), (0o077, 0o600), (0o002, 0o664)):
        before = os.umask(umask)
        try:
            write_atomically(work / f"{mode:o}.txt", "x")
        finally:
            os.umask(before)
        assert stat.S_IMODE((work / f"{mode:o}.txt").stat().st_mode) == mode


@pytest.mark.parametrize("name", ["x" * 251 + ".srt", "한" * 83 + ".srt", "caf\udce9.srt", "-"])
def test_names_at_the_limits(work: Path, name: str) -> None:
    path = work / name
    write_atomically(path, "x")
    assert [os.fsencode(entry) for entry in os.listdir(work)] == [os.fsencode(name)]  # noqa: PTH208


def test_a_link_is_followed(work: Path) -> None:
    (work / "real.srt").write_text("old")
    (work / "link.srt").symlink_to("real.srt")
    assert write_atomically(work / "link.srt", "new") is True
    assert (work / "link.srt").is_symlink()
    assert (work / "real.srt").read_text() == "new"
    (work / "deep").mkdir()
    (work / "dangling.srt").symlink_to("deep/new.srt")
    assert write_atomically(work / "dangling.srt", "new") is False
    assert (work / "deep" / "new.srt").read_text() == "new"


def test_links_that_never_end(work: Path) -> None:
    (work / "a.srt").symlink_to("b.srt")
    (work / "b.srt").symlink_to("a.srt")
    with pytest.raises(OutputError, match=r"^a\.srt: cannot be written: too many levels"):
        prepare(plan(named("a.mp3"), "srt", output="a.srt"))


def test_a_full_disk_leaves_what_was_there(work: Path) -> None:
    """A bound on the size of files fails as a full disk does: after some bytes were written."""
    path = work / "a.srt"
    path.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OutputError, match=r"a\.srt: cannot be written: file too large$"):
            write_atomically(path, "x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_text() == "old"
    assert files_below(work) == {"a.srt"}


def test_a_folder_that_is_gone(work: Path) -> None:
    with pytest.raises(OutputError, match=r"^gone/a\.srt: cannot be written: no such file"):
        write_atomically(Path("gone/a.srt"), "x")


def test_a_folder_in_the_way(work: Path) -> None:
    (work / "a.srt").mkdir()
    with pytest.raises(OutputError, match=r"^a\.srt: cannot be written: is a directory$"):
        write_atomically(Path("a.srt"), "x")
    assert files_below(work) == set()


def test_an_interrupt_leaves_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> Path:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(work / "a.srt", "x")
    assert files_below(work) == set()


def test_text_that_utf8_cannot_hold_is_written_all_the_same(work: Path) -> None:
    write_atomically(work / "a.txt", "a\ud800b")
    assert (work / "a.txt").read_text(encoding="utf-8") == "a?b"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("한국어 é.wav", "한국어 é.wav"),
        ("a\nb\x1b[31m.wav", "a\\nb\\x1b[31m.wav"),
        ("caf\udce9", "caf\\udce9"),
    ],
)
def test_shown_names_fit_on_one_line_of_any_terminal(name: str, text: str) -> None:
    assert shown(name) == shown(Path(name)) == text
    assert text.encode("utf-8")
