"""What a process that was killed leaves behind, and what one at work does."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import BinaryIO

import pytest

from asrcli.audio.sources import expand
from asrcli.writers.files import draft_in, remove_drafts, remove_leftovers
from asrcli.writers.places import prepare
from tests.writers.plans import named, plan

ROOT = Path(__file__).parents[2]
WRITER = """
import sys
from pathlib import Path
from asrcli.writers.files import draft_in
with draft_in(Path(sys.argv[1])) as (draft, file):
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    sys.stdin.read()
"""


def test_only_drafts_of_the_dead_are_removed(work: Path) -> None:
    (work / "a.srt").write_text("old")
    (work / ".asr-mine.tmp").write_text("somebody's")
    command = [sys.executable, "-c", WRITER, str(work)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        (draft,) = (path for path in work.glob(".asr-*.tmp") if path.name != ".asr-mine.tmp")
        assert remove_leftovers(work) == 0
        assert draft.read_bytes() == b"half"
        process.kill()
    assert draft.exists()
    assert remove_leftovers(work) == 1
    assert sorted(path.name for path in work.iterdir()) == [".asr-mine.tmp", "a.srt"]
    assert remove_leftovers(work / "absent") == 0


def test_a_run_clears_the_folders_that_it_writes_to(work: Path) -> None:
    for folder in ("out", "other"):
        (work / folder).mkdir()
        (work / folder / ".asr-0123456789abcdef.tmp").write_text("half")
    prepare(plan(named("a.mp3"), "srt", output="out"))
    assert sorted(str(path.relative_to(work)) for path in work.rglob("*")) == [
        "other",
        "other/.asr-0123456789abcdef.tmp",
        "out",
    ]


def test_drafts_look_neither_like_media_nor_like_results(work: Path) -> None:
    (work / "a.wav").touch()
    with draft_in(work) as (draft, _):
        assert draft.suffix == ".tmp"
        assert [source.relative.name for source in expand([work])] == ["a.wav"]


def test_a_process_that_ends_without_unwinding_removes_its_own(work: Path) -> None:
    with draft_in(work) as (draft, file):
        file.write(b"half")
        remove_drafts()
        assert not draft.exists()
        remove_drafts()
    assert list(work.iterdir()) == []


def test_a_draft_that_was_taken_for_a_leftover_is_begun_anew(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another run may remove it in the instant before it is locked."""
    taken: list[str] = []

    def take_the_first(file: BinaryIO, operation: int) -> None:
        if not taken:
            taken.append(file.name)
            Path(file.name).unlink()

    monkeypatch.setattr(fcntl, "flock", take_the_first)
    with draft_in(work) as (draft, file):
        file.write(b"whole")
        file.flush()
        assert draft.read_bytes() == b"whole"
        assert [str(draft)] != taken
    assert list(work.iterdir()) == []
