from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from asrcli.audio.clips import Clip, ClipSelector, parse_clip
from asrcli.audio.reading import open_audio
from asrcli.errors import UsageError
from tests.audio.fixtures import RATE, noise, pcm16, source_of, wav


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("90-120", 90.0, 120.0),
        ("1:30-2:00", 90.0, 120.0),
        ("1:02:03.5-", 3723.5, None),
        ("1:30-end", 90.0, None),
        ("1:30-END", 90.0, None),
        ("-30", 0.0, 30.0),
        ("0-30", 0.0, 30.0),
        ("0-", 0.0, None),
        ("00:01:02,500-00:01:05,000", 62.5, 65.0),  # as subtitles write it
        ("75:00-76:30.25", 4500.0, 4590.25),
        (".5-1.", 0.5, 1.0),
        (" 1:30 - 2:00 ", 90.0, 120.0),
        ("1:30–2:00", 90.0, 120.0),
    ],
)
def test_times_as_people_write_them(text: str, start: float, end: float | None) -> None:
    assert parse_clip(text) == Clip(start, end)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "clip '' is no part of a recording"),
        ("-", "clip '-' is no part of a recording"),
        ("90", "clip '90' is no part of a recording"),
        ("a-b", "clip 'a-b': 'a' is no time"),
        ("1:60-2:30", "clip '1:60-2:30': '1:60' is no time"),
        ("1:60:00-2:00:00", "clip '1:60:00-2:00:00': '1:60:00' is no time"),
        ("1:2:3:4-", "clip '1:2:3:4-': '1:2:3:4' is no time"),
        ("--30", "clip '--30': '-30' is no time"),
        ("end-10", "clip 'end-10': 'end' is no time"),
        ("1e3-2e3", "clip '1e3-2e3': '1e3' is no time"),
        ("inf-", "clip 'inf-': 'inf' is no time"),
        ("٣-٤", "clip '٣-٤': '٣' is no time"),
        (f"{'9' * 400}-", f"clip '{'9' * 400}-': '{'9' * 400}' is no time"),
        ("10-10", "clip 0:10-0:10 ends before it begins"),
        ("2:00-1:30", "clip 2:00-1:30 ends before it begins"),
        ("1.00001-1.00002", "clip 0:01-0:01 ends before it begins"),
    ],
)
def test_what_cannot_be_meant(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_clip(text)
    assert str(caught.value) == message
    assert caught.value.hint is not None and "1:30-2:00" in caught.value.hint


@pytest.mark.parametrize("start", [-1.0, float("nan"), float("inf")])
def test_a_clip_begins_in_the_recording(start: float) -> None:
    with pytest.raises(UsageError, match="does not begin in the recording"):
        Clip(start)


@given(st.text(alphabet="0123456789:.,-end ", max_size=12))
def test_any_text_is_a_clip_or_an_error(text: str) -> None:
    try:
        clip = parse_clip(text)
    except UsageError as error:
        assert error.hint and "\n" not in str(error)
    else:
        assert parse_clip(str(clip)).first_sample == pytest.approx(clip.first_sample, abs=8)


def test_clips_are_written_as_they_are_read() -> None:
    written = ["0:09.5-1:30", "1:02:03.125-", "59:59.999-1:00:00"]
    assert [str(parse_clip(text)) for text in written] == written
    assert str(Clip(59.9996, 61)) == "1:00-1:01"


class Blocks:
    """A recording that counts what is taken from it; sample n has the value n."""

    def __init__(self, num_samples: int, size: int) -> None:
        self.num_taken = 0
        self.is_closed = False
        self._num_samples = num_samples
        self._size = size

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        return self

    def __next__(self) -> NDArray[np.float32]:
        start = self.num_taken
        if start >= self._num_samples:
            raise StopIteration
        self.num_taken = min(start + self._size, self._num_samples)
        return np.arange(start, self.num_taken, dtype=np.float32)

    def close(self) -> None:
        self.is_closed = True


def select(
    *texts: str, num_samples: int = 10 * RATE, size: int = 2 * RATE
) -> tuple[list[int], list[str]]:
    """The positions let through and what was missing; checks each piece's place."""
    selector = ClipSelector([parse_clip(text) for text in texts])
    positions: list[int] = []
    for position, samples in selector.select(Blocks(num_samples, size)):
        assert len(samples)
        np.testing.assert_array_equal(samples, np.arange(position, position + len(samples)))
        positions += range(position, position + len(samples))
    assert selector.num_selected == len(positions)
    return positions, selector.missing()


def between(start: float, end: float) -> list[int]:
    return list(range(round(start * RATE), round(end * RATE)))


def test_no_clips_are_everything() -> None:
    assert select() == (between(0, 10), [])


@pytest.mark.parametrize("size", [2 * RATE, 997, 20 * RATE])
def test_the_samples_inside_are_let_through_with_their_place(size: int) -> None:
    assert select("1.5-3.25", size=size) == (between(1.5, 3.25), [])
    assert select("9-", size=size) == (between(9, 10), [])
    assert select("-0.5", size=size) == (between(0, 0.5), [])
    assert select("2-4", size=size) == (between(2, 4), [])
    expected = between(1, 2) + between(5, 5.5) + between(8, 10)
    assert select("8-", "1-2", "5-5.5", size=size) == (expected, [])


def test_clips_that_overlap_or_touch_are_one() -> None:
    assert select("3-5", "1-3", "4-6", "1-2", "3-5") == (between(1, 6), [])
    assert select("4-", "1-5", "2-3") == (between(1, 10), [])


@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.one_of(st.none(), st.integers(1, 40))),
        min_size=1,
        max_size=6,
    ),
    st.integers(1, 50),
)
def test_every_sample_inside_comes_once(spans: list[tuple[int, int | None]], size: int) -> None:
    clips = [
        Clip(start / RATE, None if length is None else (start + length) / RATE)
        for start, length in spans
    ]
    selector = ClipSelector(clips)
    blocks = Blocks(50, size)
    positions = [int(value) for _, samples in selector.select(blocks) for value in samples]
    assert positions == [
        position
        for position in range(50)
        if any(
            start <= position and (length is None or position < start + length)
            for start, length in spans
        )
    ]
    ends = [50 if length is None else start + length for start, length in spans]
    assert blocks.num_taken < min(max(ends), 50) + size and blocks.is_closed


def test_nothing_is_read_behind_the_last_clip() -> None:
    blocks = Blocks(100 * RATE, 2 * RATE)
    selector = ClipSelector([Clip(1, 2), Clip(3, 4)])
    assert sum(len(samples) for _, samples in selector.select(blocks)) == 2 * RATE
    assert blocks.num_taken == selector.num_read == 4 * RATE
    assert blocks.is_closed


def test_what_lies_behind_the_end_is_told() -> None:
    assert select("10:00-11:00") == (
        [],
        ["clip 10:00-11:00 lies behind the end of the audio (0:10.0)"],
    )
    assert select("10-") == ([], ["clip 0:10- lies behind the end of the audio (0:10.0)"])
    positions, lines = select("20-30", "8-12", "1-2")
    assert positions == between(1, 2) + between(8, 10)
    assert lines == [
        "clip 0:20-0:30 lies behind the end of the audio (0:10.0)",
        "clip 0:08-0:12 is cut short: the audio ends at 0:10.0",
    ]


def test_an_end_in_whole_seconds_may_round_up() -> None:
    assert select("0-10", num_samples=round(9.1 * RATE))[1] == []
    assert select("5-11", num_samples=10 * RATE)[1] == [
        "clip 0:05-0:11 is cut short: the audio ends at 0:10.0"
    ]


def test_a_recording_without_audio() -> None:
    assert select(num_samples=0) == ([], [])
    assert select("0-5", num_samples=0) == (
        [],
        ["clip 0:00-0:05 lies behind the end of the audio (0:00.0)"],
    )


def test_what_is_known_of_the_audio_before_the_end_of_a_clip_is_told(tmp_path: Path) -> None:
    """Of the rest of the file nothing is read, and so nothing is said."""
    samples = noise(30).astype("<f4")
    samples[100] = np.nan
    samples[RATE * 25 :] = np.inf
    path = tmp_path / "x.wav"
    path.write_bytes(wav(samples.tobytes(), tag=3, bits=32))
    with open_audio(source_of(path)) as reader:
        pieces = list(ClipSelector([Clip(1.0, 3.0)]).select(reader.blocks()))
        assert reader.warnings == ["1 sample was not a number or far beyond full scale; taken as 0"]
    np.testing.assert_array_equal(
        np.concatenate([piece for _, piece in pieces]), samples[RATE : 3 * RATE]
    )
    assert [position for position, _ in pieces] == [RATE, 2 * RATE]


def test_damage_before_the_end_of_a_clip_is_told(tmp_path: Path) -> None:
    from tests.audio.test_containers import damaged, make

    data = damaged(make(tmp_path, "x.flac", "flac", noise(20)).read_bytes(), num_bytes=30_000)
    path = tmp_path / "damaged"
    path.write_bytes(data)
    with open_audio(source_of(path)) as whole:
        for _ in whole.blocks():
            pass
    [line] = whole.damage
    with open_audio(source_of(path)) as reader:
        for _ in ClipSelector([Clip(0.0, 14.0)]).select(reader.blocks()):
            pass
        assert reader.damage == [line]
    with open_audio(source_of(path)) as reader:
        for _ in ClipSelector([Clip(0.0, 4.0)]).select(reader.blocks()):
            pass
        assert reader.damage == []


def test_sixteen_bit_samples_pass_untouched(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(wav(pcm16(noise(5))))
    with open_audio(source_of(path)) as reader:
        whole = np.concatenate(list(reader.blocks()))
    with open_audio(source_of(path)) as reader:
        pieces = list(ClipSelector([Clip(4.5), Clip(0.5, 1.0)]).select(reader.blocks()))
    for position, samples in pieces:
        np.testing.assert_array_equal(samples, whole[position : position + len(samples)])
