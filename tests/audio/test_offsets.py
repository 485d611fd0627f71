"""Audio that begins later than the picture, or a clock that does not begin at zero."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from asrcli.audio.reading import AudioReader, open_audio
from tests.audio.fixtures import RATE, open_pipe, read, source_of
from tests.audio.media import CONTAINER_RATE, Track, write_media

HOURS = 36_000.0


class Kind(NamedTuple):
    name: str
    format_name: str
    codec: str
    picture_codec: str
    options: dict[str, str]


KINDS = [
    Kind("mkv", "matroska", "aac", "mpeg4", {}),
    Kind("webm", "webm", "libopus", "libvpx", {}),
    Kind("mp4", "mp4", "aac", "mpeg4", {}),
    Kind("fragments", "mp4", "aac", "mpeg4", {"movflags": "frag_keyframe+empty_moov"}),
    Kind("mov", "mov", "pcm_s16le", "mpeg4", {}),
    Kind("ts", "mpegts", "aac", "mpeg2video", {}),
    Kind("mpg", "mpeg", "mp2", "mpeg2video", {}),
]
EACH_KIND = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def clicks(*times: float, duration: float = 3.0) -> NDArray[np.float64]:
    """Silence with 10 ms of noise at each of the times (s)."""
    samples = np.zeros(round(duration * CONTAINER_RATE))
    for time in times:
        begin = round(time * CONTAINER_RATE)
        samples[begin : begin + 480] = np.random.default_rng(0).uniform(-0.8, 0.8, 480)
    return samples


def first_click(reader: AudioReader) -> float:
    """Seconds from the beginning to the first click."""
    samples = read(reader)
    return float(np.flatnonzero(np.abs(samples) > 0.2)[0]) / RATE


def assert_click_at(path: Path, expected: float, track: int | None = None) -> None:
    for reader in (
        open_audio(source_of(path), track=track),
        open_pipe(path.read_bytes(), step=4000, track=track),
    ):
        # A codec's delay of a frame is nothing that could be heard in a subtitle.
        assert first_click(reader) == pytest.approx(expected, abs=0.05)
        assert reader.damage == []


@EACH_KIND
@pytest.mark.parametrize(
    ("picture_start", "start", "expected"),
    [
        (0.0, 1.5, 2.5),
        (1.5, 0.0, 1.0),
        (1.5, 1.5, 1.0),
        (HOURS, HOURS, 1.0),
        (HOURS, HOURS + 1.5, 2.5),
        (HOURS + 1.5, HOURS, 1.0),
        (None, 1.5, 1.0),
        (None, HOURS, 1.0),
    ],
)
def test_what_is_common_to_all_streams_delays_nothing(
    tmp_path: Path, kind: Kind, picture_start: float | None, start: float, expected: float
) -> None:
    path = write_media(
        tmp_path / "x",
        [Track(clicks(1.0), start=start, codec=kind.codec)],
        format_name=kind.format_name,
        picture_start=picture_start,
        picture_codec=kind.picture_codec,
        options=kind.options,
    )
    assert_click_at(path, expected)


@pytest.mark.parametrize("name", ["x.mkv", "x.mp4"])
def test_each_track_has_its_own_beginning(tmp_path: Path, name: str) -> None:
    tracks = [Track(clicks(1.0), start=start, is_default=start == 2.0) for start in (0.0, 2.0, 0.7)]
    path = write_media(tmp_path / name, tracks, picture_start=0.0)
    for track, expected in ((None, 3.0), (1, 1.0), (2, 3.0), (3, 1.7)):
        assert_click_at(path, expected, track)


@pytest.mark.parametrize("name", ["x.mp4", "x.mov"])
def test_what_an_edit_list_cuts_off_is_not_heard(tmp_path: Path, name: str) -> None:
    """Half a second of the stored audio lies before the beginning of the film."""
    track = Track(clicks(0.2, 1.5), start=-0.5)
    path = write_media(tmp_path / name, [track], picture_start=0.0)
    assert_click_at(path, 1.0)
    reader = open_audio(source_of(path))
    assert len(read(reader)) == pytest.approx(2.5 * RATE, abs=1)


def test_a_pause_that_mp4_writes_as_a_long_packet_is_no_loss(tmp_path: Path) -> None:
    early, late = Track(clicks(0.5, duration=1.0)), Track(clicks(0.5, duration=1.0), start=4.0)
    path = tmp_path / "x.mp4"
    write_with_a_pause(path, early, late)
    reader = open_audio(source_of(path))
    samples = read(reader)
    heard = np.abs(samples) > 0.2
    assert np.flatnonzero(heard)[0] / RATE == pytest.approx(0.5, abs=0.05)
    assert np.flatnonzero(heard[RATE:])[0] / RATE == pytest.approx(3.5, abs=0.05)
    assert reader.warnings == []


def write_with_a_pause(path: Path, early: Track, late: Track) -> None:
    """One MP4 track out of the packets of two."""
    import av

    write_media(path.with_suffix(".1.mkv"), [early])
    write_media(path.with_suffix(".2.mkv"), [late])
    with av.open(str(path), "w") as container:
        stream = None
        for number in (1, 2):
            with av.open(str(path.with_suffix(f".{number}.mkv"))) as part:
                if stream is None:
                    stream = container.add_stream_from_template(part.streams.audio[0])
                for packet in part.demux(part.streams.audio[0]):
                    if packet.dts is not None:
                        packet.stream = stream
                        container.mux(packet)


def test_a_length_that_counts_from_zero_is_no_damage(tmp_path: Path) -> None:
    """Matroska's header says when the last packet ends, be the first at ten hours."""
    path = write_media(tmp_path / "x.mkv", [Track(clicks(1.0), start=HOURS)], picture_start=HOURS)
    reader = open_audio(source_of(path))
    assert reader.duration == pytest.approx(3.0, abs=0.1)
    read(reader)
    assert reader.warnings == []
    data = path.read_bytes()
    (tmp_path / "cut.mkv").write_bytes(data[: len(data) // 2])
    reader = open_audio(source_of(tmp_path / "cut.mkv"))
    read(reader)
    [line] = reader.damage
    assert line.startswith("the file ends at 0:01.") and line.endswith("its header says 0:03.0")


def test_an_ogg_stream_that_was_joined_late_is_no_damage(tmp_path: Path) -> None:
    """What is saved of a broadcast begins with the time that the broadcast had got to."""
    track = Track(clicks(1.0), start=HOURS, codec="libopus")
    path = write_media(tmp_path / "x.ogg", [track], format_name="ogg")
    assert_click_at(path, 1.0)
    with open_audio(source_of(path)) as reader:
        assert reader.duration == pytest.approx(3.0, abs=0.1)


def test_one_wrong_time_in_the_file_is_owned_up_to(tmp_path: Path) -> None:
    """A cluster of Matroska says that it begins 5 s later than it does."""
    path = write_media(tmp_path / "x.mkv", [Track(clicks(2.0, 7.0, 18.0, duration=20.0))])
    data = bytearray(path.read_bytes())
    cluster = data.index(b"\x1f\x43\xb6\x75", data.index(b"\x1f\x43\xb6\x75") + 4)
    place = data.index(b"\xe7\x82", cluster) + 2  # its time, in two bytes
    time = int.from_bytes(data[place : place + 2], "big")
    assert 4000 < time < 6000
    data[place : place + 2] = (time + 5000).to_bytes(2, "big")
    (tmp_path / "wrong.mkv").write_bytes(data)
    reader = open_audio(source_of(tmp_path / "wrong.mkv"))
    heard = np.flatnonzero(np.abs(read(reader)) > 0.2) / RATE
    times = heard[np.flatnonzero(np.diff(heard, prepend=-1.0) > 1.0)]
    np.testing.assert_allclose(times, [2.0, 12.0, 23.0], atol=0.05)
    missing, late = reader.damage
    assert missing.startswith("missing audio at 0:0") and missing.endswith("-0:10.0")
    assert late.startswith("a wrong time in the file put 5.0 s of silence at 0:05.0; times after")


def test_no_more_silence_than_the_file_is_long(tmp_path: Path) -> None:
    """A clock that jumps by most of an hour in a file of seconds is wrong."""
    parts = [Track(clicks(0.5, duration=1.0)), Track(clicks(0.5, duration=1.0), start=3000.0)]
    path = tmp_path / "x.mkv"
    write_with_a_pause(path, *parts)
    data = path.read_bytes()
    # The header's length, in place of the true 3001 s.
    place = data.index(b"\x44\x89\x88") + 3
    (tmp_path / "short.mkv").write_bytes(
        data[:place] + struct.pack(">d", 2000.0) + data[place + 8 :]
    )
    samples = read(open_audio(source_of(tmp_path / "short.mkv")))
    assert len(samples) == pytest.approx(2 * RATE, abs=4000)
    assert len(read(open_audio(source_of(path)))) == pytest.approx(3001 * RATE, abs=4000)
