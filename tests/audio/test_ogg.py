"""Ogg files that stop before their end: what a file says of it, a pipe says as well."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from asrcli.audio.ogg import has_end_mark, is_cut
from tests.audio.fixtures import RATE, noise, open_pipe, read, read_file
from tests.audio.test_containers import make

NO_END_MARK = "the file has no end mark; it may have been cut short"


def page_starts(data: bytes) -> list[int]:
    """Where the pages of a whole file begin, and where the last one ends."""
    starts = [0]
    while starts[-1] < len(data):
        start = starts[-1]
        assert data[start : start + 4] == b"OggS"
        table = data[start + 27 : start + 27 + data[start + 26]]
        starts.append(start + 27 + len(table) + sum(table))
    return starts


def page(*segments: int, flags: int = 0) -> bytes:
    header = b"OggS\0" + bytes([flags]) + bytes(20) + bytes([len(segments), *segments])
    return header + b"a" * sum(segments)


@pytest.fixture(scope="module", params=["vorbis", "libopus"])
def data(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """20 s of noise."""
    return make(tmp_path_factory.mktemp("ogg"), "x.ogg", request.param, noise(20)).read_bytes()


def told(path: Path, data: bytes) -> tuple[float, list[str], list[str]]:
    """Seconds of audio, warnings and damage: those of the file, which are those of a pipe."""
    samples, reader = read_file(path, data)
    for step in (997, 30_000):
        pipe = open_pipe(data, step=step)
        np.testing.assert_array_equal(read(pipe), samples)
        assert (pipe.warnings, pipe.damage) == (reader.warnings, reader.damage)
    return len(samples) / RATE, reader.warnings, reader.damage


def test_a_cut_anywhere_in_a_page_is_damage(tmp_path: Path, data: bytes) -> None:
    starts = page_starts(data)
    middle = starts[len(starts) * 6 // 10]
    # In the capture pattern, the header, the segment table, the audio, before the last byte.
    for size in (middle + 1, middle + 3, middle + 20, middle + 30, middle + 2000):
        seconds, warnings, damage = told(tmp_path / "x", data[:size])
        assert 10 < seconds < 14
        assert damage == [f"the file ends at 0:{seconds:04.1f}, in the middle of its data"]
        assert warnings == damage
    seconds, _, damage = told(tmp_path / "x", data[:-1])  # a page that calls itself the last
    assert seconds > 18
    assert damage == [f"the file ends at 0:{seconds:04.1f}, in the middle of its data"]


def test_a_whole_last_page_without_the_end_mark_is_a_warning(tmp_path: Path, data: bytes) -> None:
    """Recorders that are switched off leave it so."""
    starts = page_starts(data)
    seconds, warnings, damage = told(tmp_path / "x", data[: starts[len(starts) * 6 // 10]])
    assert 10 < seconds < 14
    assert (warnings, damage) == ([NO_END_MARK], [])


def test_a_whole_file_says_nothing(tmp_path: Path, data: bytes) -> None:
    for whole in (data, data + data, data + b"TAG" + bytes(125)):
        assert told(tmp_path / "x", whole)[1:] == ([], [])


def test_what_is_left_unread_is_not_judged(tmp_path: Path, data: bytes) -> None:
    cut = data[: len(data) * 6 // 10]
    (tmp_path / "x").write_bytes(cut)
    with open_pipe(cut) as reader:
        blocks: Any = reader.blocks()
        next(blocks)
        blocks.close()
    assert reader.warnings == []


@pytest.mark.parametrize(
    ("tail", "cut", "marked"),
    [
        (page(10) + page(255, 7, flags=4), False, True),
        (page(10) + page(255, 7), False, False),
        (page(10) + page(7, 255), True, False),  # the packet goes on
        (page(10, flags=4) + b"O", True, True),
        (page(10, flags=4) + b"junk", False, True),
        (page(10) + page(10, flags=4)[:-1], True, True),
        (page(10) + page(10, flags=4)[:5], True, False),
        (page(10) + page(250, flags=4)[:-9] + b"OggS\1abcd", False, True),  # letters by chance
        (b"", False, False),
        (b"no page", False, False),
    ],
)
def test_how_pages_end(tail: bytes, cut: bool, marked: bool) -> None:
    assert (is_cut(tail), has_end_mark(tail)) == (cut, marked)
    assert is_cut(page(9, flags=4) + tail) == cut  # what goes before changes nothing
