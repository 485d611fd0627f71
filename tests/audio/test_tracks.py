"""Media with several audio tracks."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asrcli.audio.reading import AudioReader, RawFormat, open_audio
from asrcli.errors import AudioError, UsageError
from tests.audio.fixtures import (
    RATE,
    noise,
    open_pipe,
    pcm16,
    read,
    read_file,
    source_of,
    tone,
    wav,
)
from tests.audio.media import CONTAINER_RATE, Track, write_media

TONES = (300.0, 700.0, 1900.0)
LANGUAGES = ("deu", "eng", "fra")


def three(*, default: int, num_tracks: int = 3) -> list[Track]:
    """Tracks that can be told apart by their tones; the one numbered `default` is marked so."""
    return [
        Track(
            tone(1.5, rate=CONTAINER_RATE, frequency=TONES[index]),
            language=LANGUAGES[index],
            title=None if index == 0 else f"Title {index + 1}",
            is_default=index + 1 == default,
        )
        for index in range(num_tracks)
    ]


def frequency(reader: AudioReader) -> float:
    samples = read(reader)[RATE // 4 : RATE + RATE // 4]
    return float(np.abs(np.fft.rfft(samples)).argmax())


@pytest.fixture(params=["x.mkv", "x.mp4"])
def media(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    name: str = request.param
    return write_media(tmp_path / name, three(default=2), picture_start=0.0)


@pytest.mark.parametrize("track", [1, 2, 3])
def test_tracks_are_counted_from_one_in_the_order_of_the_file(media: Path, track: int) -> None:
    reader = open_audio(source_of(media), track=track)
    assert frequency(reader) == TONES[track - 1]
    assert reader.warnings == []
    piped = open_pipe(media.read_bytes(), track=track)
    assert frequency(piped) == TONES[track - 1]
    assert piped.warnings == []


def test_without_a_choice_the_one_that_is_taken_is_named(media: Path) -> None:
    for reader in (open_audio(source_of(media)), open_pipe(media.read_bytes())):
        line = "audio track 2 of 3 (eng, Title 2) was taken; --track chooses another"
        assert reader.warnings == [line]
        assert frequency(reader) == TONES[1]
        assert reader.warnings == [line] and reader.damage == []


@pytest.mark.parametrize("name", ["x.mkv", "x.mp4"])
def test_the_mark_of_the_file_decides(tmp_path: Path, name: str) -> None:
    path = write_media(tmp_path / name, three(default=1, num_tracks=2))
    reader = open_audio(source_of(path))
    assert frequency(reader) == TONES[0]
    assert reader.warnings == ["audio track 1 of 2 (deu) was taken; --track chooses another"]


def test_what_has_no_name_is_told_by_its_kind(tmp_path: Path) -> None:
    tracks = [Track(tone(1.5, rate=CONTAINER_RATE, frequency=f)) for f in TONES[:2]]
    path = write_media(tmp_path / "x.mkv", tracks)
    reader = open_audio(source_of(path))
    read(reader)
    assert reader.warnings == ["audio track 1 of 2 (aac, mono) was taken; --track chooses another"]


def test_a_track_that_is_not_there(media: Path) -> None:
    for name in (media.name, "stdin"):
        with pytest.raises(AudioError) as caught:
            if name == "stdin":
                open_pipe(media.read_bytes(), track=4)
            else:
                open_audio(source_of(media), track=4)
        assert str(caught.value) == f"{name}: has 3 audio tracks, not 4"
        assert caught.value.hint == (
            "track 1 is deu, aac, mono; 2 is eng, Title 2, aac, mono; 3 is fra, Title 3, aac, mono"
        )


def test_a_title_cannot_break_the_line(tmp_path: Path) -> None:
    tracks = [Track(tone(0.5, rate=CONTAINER_RATE), title=f"a\nb\x1b[2J{'x' * 99}")] * 2
    path = write_media(tmp_path / "x.mkv", tracks)
    with open_audio(source_of(path)) as reader:
        [line] = reader.warnings
    assert line.isprintable() and len(line) < 120


@pytest.mark.parametrize("track", [0, -1])
def test_no_track_has_such_a_number(tmp_path: Path, track: int) -> None:
    with pytest.raises(UsageError, match=f"^audio track {track} cannot be meant$"):
        open_audio(source_of(tmp_path / "x.wav"), track=track)


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "AIFF", "OGG", "MP3"])
def test_plain_formats_have_one(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    soundfile.write(path, noise(1), RATE, format=kind)
    expected, reader = read_file(path)
    assert reader.warnings == []
    np.testing.assert_array_equal(read(open_audio(source_of(path), track=1)), expected)
    with pytest.raises(AudioError, match=r"^x: has 1 audio track, not 2$"):
        open_audio(source_of(path), track=2)
    with pytest.raises(AudioError, match=r"^stdin: has 1 audio track, not 2$"):
        open_pipe(path.read_bytes(), track=2)


def test_raw_audio_has_one(tmp_path: Path) -> None:
    data = pcm16(noise(1))
    assert len(read(open_pipe(data, raw=RawFormat(), track=1))) == RATE
    with pytest.raises(AudioError, match=r"^stdin: has 1 audio track, not 2$"):
        open_pipe(data, raw=RawFormat(), track=2)


def test_a_coded_wav_has_one(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    soundfile.write(path, noise(1), RATE, subtype="IMA_ADPCM")
    with pytest.raises(AudioError, match=r"^x\.wav: has 1 audio track, not 2$"):
        open_audio(source_of(path), track=2)


def test_a_video_without_sound_has_none(tmp_path: Path) -> None:
    path = write_media(tmp_path / "v.mp4", [], picture_start=0.0)
    with pytest.raises(AudioError, match=r"^v\.mp4: no audio stream$"):
        open_audio(source_of(path), track=2)


def test_nothing_is_left_open_by_a_wrong_number(media: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(wav(pcm16(noise(1))))
    before = sorted(Path("/dev/fd").iterdir())
    for path in (media, tmp_path / "plain"):
        with pytest.raises(AudioError):
            open_audio(source_of(path), track=9)
        with pytest.raises(AudioError):
            open_pipe(path.read_bytes(), track=9)
    assert sorted(Path("/dev/fd").iterdir()) == before
