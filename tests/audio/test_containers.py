from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from asrcli.audio.reading import open_audio
from asrcli.errors import AudioError
from tests.audio.fixtures import (
    RATE,
    STDIN,
    Pipe,
    encode,
    noise,
    open_pipe,
    read,
    read_file,
    source_of,
    tone,
)


def beeps(seconds: float) -> NDArray[np.float64]:
    """A tone that is on in the first half of every second: its place can be told anywhere."""
    samples = tone(seconds)
    samples[np.arange(len(samples)) % RATE >= RATE // 2] = 0
    return samples


def level(samples: Any, second: float) -> float:
    """The power of 0.3 s around `second`."""
    middle = round(second * RATE)
    return float(np.square(samples[middle - 2400 : middle + 2400]).mean())


def assert_beeps(samples: Any, seconds: Any) -> None:
    for second in seconds:
        assert level(samples, second + 0.25) > 0.08, second
        assert level(samples, second + 0.75) < 0.01, second


def damaged(data: bytes, at: float = 0.5, num_bytes: int = 3000) -> bytes:
    junk = np.random.default_rng(0).integers(0, 256, num_bytes, dtype=np.uint8).tobytes()
    start = int(len(data) * at)
    return data[:start] + junk + data[start + num_bytes :]


KINDS = [
    ("x.mp3", "libmp3lame"),
    ("x.m4a", "aac"),
    ("x.aac", "aac"),
    ("x.mp4", "aac"),
    ("x.mka", "flac"),
    ("x.webm", "libopus"),
    ("x.ogg", "vorbis"),
    ("x.opus", "libopus"),
    ("x.flac", "flac"),
    ("x.ts", "aac"),
    ("x.ac3", "ac3"),
    ("x.wma", "wmav2"),
    ("x.mov", "pcm_s16be"),
]


def make(folder: Path, name: str, codec: str, samples: NDArray[np.float64], **options: Any) -> Path:
    if codec == "vorbis":  # PyAV's wheels have no encoder for it
        soundfile.write(folder / name, samples, RATE, format="OGG", subtype="VORBIS")
        return folder / name
    rate = 48_000 if codec in ("libopus", "ac3", "wmav2") else RATE
    if rate != RATE:
        samples = np.repeat(samples, rate // RATE)
    formats = {".m4a": "ipod", ".aac": "adts", ".opus": "ogg", ".mka": "matroska", ".ts": "mpegts"}
    format_name = formats.get(Path(name).suffix)
    return encode(
        folder / name, samples, codec=codec, rate=rate, format_name=format_name, **options
    )


@pytest.mark.parametrize(("name", "codec"), KINDS)
def test_formats_are_told_from_content_and_last_as_long(
    tmp_path: Path, name: str, codec: str
) -> None:
    path = make(tmp_path, name, codec, beeps(6))
    data = path.read_bytes()
    samples, reader = read_file(tmp_path / "named.wav", data)
    assert abs(len(samples) - 6 * RATE) <= 2048  # a frame, or two where the codec comes late
    assert_beeps(samples, range(6))
    assert reader.warnings == []
    piped = open_pipe(data, step=4000)
    np.testing.assert_array_equal(read(piped), samples)
    assert piped.warnings == []


@pytest.mark.parametrize(
    ("name", "codec"), [KINDS[0], KINDS[2], KINDS[4], KINDS[6], KINDS[8], KINDS[9]]
)
def test_pipes_are_read_while_they_are_written(tmp_path: Path, name: str, codec: str) -> None:
    data = make(tmp_path, name, codec, noise(60)).read_bytes()
    pipe = Pipe(data)
    with open_audio(STDIN, stdin=pipe) as reader:  # type: ignore[arg-type]
        next(reader.blocks())
    assert pipe.num_read < len(data) / 2


def test_an_index_at_the_front_is_streamed(tmp_path: Path) -> None:
    path = make(tmp_path, "x.m4a", "aac", noise(60), options={"movflags": "+faststart"})
    pipe = Pipe(path.read_bytes())
    with open_audio(STDIN, stdin=pipe) as reader:  # type: ignore[arg-type]
        next(reader.blocks())
    assert pipe.num_read < len(pipe.data) / 2


@pytest.mark.parametrize("name", ["x.mkv", "x.mp4"])
def test_audio_that_begins_late_in_a_video_keeps_its_time(tmp_path: Path, name: str) -> None:
    path = encode(tmp_path / name, beeps(3), codec="aac", start=2.0, video=True)
    samples, reader = read_file(path)
    assert abs(len(samples) - 5 * RATE) <= 2048
    assert level(samples, 0.25) == level(samples, 1.25) == 0
    assert_beeps(samples, [2, 3, 4])
    assert reader.warnings == []


def test_a_video_without_sound(tmp_path: Path) -> None:
    import av

    path = tmp_path / "v.mp4"
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        image = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(image))
        container.mux(stream.encode(None))
    with pytest.raises(AudioError, match=r"^v\.mp4: no audio stream$"):
        open_audio(source_of(path))


@pytest.mark.parametrize(
    ("name", "codec"), [KINDS[0], KINDS[1], KINDS[4], KINDS[7], KINDS[8], KINDS[9]]
)
def test_damage_is_told_and_the_rest_stays_in_its_place(
    tmp_path: Path, name: str, codec: str
) -> None:
    data = make(tmp_path, name, codec, beeps(20)).read_bytes()
    samples, reader = read_file(tmp_path / "x", damaged(data))
    assert abs(len(samples) - 20 * RATE) <= 2048
    assert_beeps(samples, [1, 2, 3, 16, 17, 18])
    assert len(reader.damage) == 1
    assert "audio at 0:" in reader.damage[0]


def test_lost_pages_of_ogg_vorbis_are_told(tmp_path: Path) -> None:
    """libsndfile, and FFmpeg by itself, say nothing of either."""
    data = make(tmp_path, "x.ogg", "vorbis", noise(20)).read_bytes()
    samples, reader = read_file(tmp_path / "x", damaged(data))
    assert len(samples) == 20 * RATE
    [line] = reader.damage
    assert line.startswith("missing audio at 0:")
    quiet = make(tmp_path, "x.ogg", "vorbis", beeps(20)).read_bytes()
    samples, reader = read_file(tmp_path / "x", damaged(quiet))
    assert len(samples) < 11 * RATE
    assert reader.damage == ["damaged from 0:10.0 on: the rest could not be decoded"]


def test_bytes_that_were_passed_over_without_a_time_are_owned_up_to(tmp_path: Path) -> None:
    data = make(tmp_path, "x.aac", "aac", noise(20)).read_bytes()
    samples, reader = read_file(tmp_path / "x", damaged(data))
    *_, last = reader.damage
    assert last.endswith("of damaged audio was passed over; times after it are early by as much")
    missing = 20 - len(samples) / RATE
    assert float(last.split()[1]) == pytest.approx(missing, abs=0.3)


@pytest.mark.parametrize(("name", "codec"), [KINDS[0], KINDS[4], KINDS[5], KINDS[8]])
def test_a_file_that_is_cut_short_says_so(tmp_path: Path, name: str, codec: str) -> None:
    data = make(tmp_path, name, codec, beeps(20)).read_bytes()
    samples, reader = read_file(tmp_path / "x", data[: len(data) * 6 // 10])
    [line] = reader.damage
    assert line.startswith("the file ends at 0:1") and line.endswith("its header says 0:20.0")
    assert 10 * RATE < len(samples) < 14 * RATE


def test_an_mp4_with_its_index_in_front_that_is_cut_short(tmp_path: Path) -> None:
    path = make(tmp_path, "x.m4a", "aac", beeps(20), options={"movflags": "+faststart"})
    data = path.read_bytes()
    _, reader = read_file(tmp_path / "x", data[: len(data) * 6 // 10])
    assert len(reader.damage) == 1
    assert reader.damage[0].startswith("the file ends at 0:1")


def test_an_mp4_that_lost_its_index(tmp_path: Path) -> None:
    data = make(tmp_path, "x.m4a", "aac", beeps(20)).read_bytes()
    (tmp_path / "cut.m4a").write_bytes(data[: len(data) * 6 // 10])
    with pytest.raises(AudioError, match="without a usable index"):
        open_audio(source_of(tmp_path / "cut.m4a"))


@pytest.mark.parametrize("kind", ["AIFF", "AU", "W64", "NIST"])
def test_plain_files_that_are_cut_short(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    soundfile.write(path, noise(20), RATE, format=kind, subtype="PCM_16")
    data = path.read_bytes()
    samples, reader = read_file(path, data[: len(data) // 2])
    assert len(samples) == pytest.approx(10 * RATE, abs=600)
    assert reader.damage == ["the file ends at 0:10.0, its header says 0:20.0"]


def test_chained_ogg_streams_are_all_read(tmp_path: Path) -> None:
    data = make(tmp_path, "x.opus", "libopus", beeps(5)).read_bytes()
    samples, reader = read_file(tmp_path / "x", data + data)
    assert len(samples) == pytest.approx(10 * RATE, abs=1024)
    assert_beeps(samples, range(9))
    assert reader.damage == []


def test_a_playlist_opens_nothing_else(tmp_path: Path) -> None:
    make(tmp_path, "secret.ts", "aac", beeps(3))
    playlist = (
        f"#EXTM3U\n#EXT-X-TARGETDURATION:3\n#EXTINF:3,\n{tmp_path}/secret.ts\n#EXT-X-ENDLIST\n"
    )
    (tmp_path / "x.m3u8").write_text(playlist)
    with pytest.raises(AudioError, match=r"^x\.m3u8: "):
        read(open_audio(source_of(tmp_path / "x.m3u8")))


def test_nothing_reaches_standard_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name, codec in (KINDS[0], KINDS[4], KINDS[6]):
        data = make(tmp_path, name, codec, noise(10)).read_bytes()
        capfd.readouterr()
        read_file(tmp_path / "x", damaged(data))
        assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "codec", "layout"),
    [
        ("x.m4a", "aac", "5.1"),
        ("x.m4a", "aac", "7.1"),
        ("x.opus", "libopus", "7.1"),
        ("x.flac", "flac", "7.1"),
        ("x.mkv", "wavpack", "hexadecagonal"),
    ],
)
def test_eight_channels_and_more(tmp_path: Path, name: str, codec: str, layout: str) -> None:
    """A tone in the first channel alone; PyAV's own conversion dies of eight planes."""
    path = encode_channels(tmp_path / name, tone(2, rate=48_000), codec=codec, layout=layout)
    num_channels = {"5.1": 6, "7.1": 8, "hexadecagonal": 16}[layout]
    samples, reader = read_file(path)
    assert len(samples) == pytest.approx(2 * RATE, abs=800)
    # Surround layouts may be written in another order, but there is one channel with sound.
    assert level(samples, 1.0) == pytest.approx(0.125 / num_channels**2, rel=0.1)
    assert reader.damage == []
    np.testing.assert_array_equal(read(open_pipe(path.read_bytes())), samples)


def encode_channels(path: Path, samples: NDArray[np.float64], *, codec: str, layout: str) -> Path:
    """Write `samples` at 48 kHz as the first channel; the others are silent."""
    import av

    with av.open(str(path), "w", format="ogg" if path.suffix == ".opus" else None) as container:
        stream: Any = container.add_stream(codec, rate=48_000, layout=layout)
        stream.codec_context.open()
        num_channels = stream.codec_context.layout.nb_channels
        resampler = av.AudioResampler(
            stream.codec_context.format.name,
            layout,
            48_000,
            frame_size=stream.codec_context.frame_size or 0,
        )
        interleaved = np.zeros((len(samples), num_channels), np.float32)
        interleaved[:, 0] = samples
        frame = av.AudioFrame.from_ndarray(interleaved.reshape(1, -1), format="flt", layout=layout)
        frame.sample_rate = 48_000
        for converted in [*resampler.resample(frame), *resampler.resample(None)]:
            container.mux(stream.encode(converted))
        container.mux(stream.encode(None))
    return path
