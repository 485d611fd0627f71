"""Not a sample more or less, and what is short by the one rule that the reader states."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import soundfile

from asrcli.audio.reading import MIN_DURATION, open_audio
from asrcli.errors import AudioError
from tests.audio.fixtures import RATE, encode, noise, open_pipe, read, read_file, source_of, tone

LENGTHS = [round(29.9 * RATE), 30 * RATE, 30 * RATE + 1, round(60.05 * RATE)]
# name: (PyAV's codec and format, or libsndfile's format alone)
KINDS = {
    "wav": (None, "WAV"),
    "flac": (None, "FLAC"),
    "flac-container": ("flac", "flac"),
    "mp3": (None, "MP3"),  # FFmpeg's own writer states some lengths wrong
    "m4a": ("aac", "ipod"),
    "ogg": (None, "OGG"),
    "opus": ("libopus", "ogg"),
    "webm": ("libopus", "webm"),
    "mka": ("flac", "matroska"),
}


def write(path: Path, kind: str, num_samples: int, rate: int) -> Path:
    codec, format_name = KINDS[kind]
    samples = noise(num_samples / RATE, rate=rate)
    if codec is None:
        soundfile.write(path, samples, rate, format=format_name)
        return path
    return encode(path, samples, codec=codec, rate=rate, format_name=format_name)


@pytest.mark.parametrize("num_samples", LENGTHS)
@pytest.mark.parametrize("kind", KINDS)
def test_as_many_samples_come_out_as_went_in(tmp_path: Path, kind: str, num_samples: int) -> None:
    rate = 48_000 if KINDS[kind][0] == "libopus" else RATE
    path = write(tmp_path / "x", kind, num_samples, rate)
    samples, reader = read_file(path)
    piped = open_pipe(path.read_bytes(), step=50_000)
    slack = 0 if rate == RATE else 1
    assert abs(len(samples) - num_samples) <= slack
    assert abs(len(read(piped)) - num_samples) <= slack
    assert reader.warnings == piped.warnings == []


@pytest.mark.parametrize("kind", ["wav", "flac", "mp3", "m4a"])
def test_resampling_costs_no_sample(tmp_path: Path, kind: str) -> None:
    for num_samples in LENGTHS[:3]:
        samples, _ = read_file(write(tmp_path / "x", kind, num_samples, 44_100))
        assert abs(len(samples) - num_samples) <= 1


@pytest.mark.parametrize("subtype", ["PCM_16", "ULAW", "ALAW"])
@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000])
def test_the_rate_of_the_header_is_believed(tmp_path: Path, rate: int, subtype: str) -> None:
    """Taken for 16 kHz, the tone would be another, and the length too."""
    path = tmp_path / "x.wav"
    soundfile.write(path, tone(3.3, rate=rate, frequency=1000), rate, subtype=subtype)
    samples, reader = read_file(path)
    assert abs(len(samples) - round(3.3 * RATE)) <= 1
    assert np.abs(np.fft.rfft(samples[RATE : 2 * RATE])).argmax() == 1000
    assert np.sqrt(2) * samples[RATE : 2 * RATE].std() == pytest.approx(0.5, rel=0.02)
    assert reader.warnings == []


@pytest.mark.parametrize("kind", ["wav", "flac", "mka", "m4a", "mp3"])
def test_the_last_sound_is_in_its_place(tmp_path: Path, kind: str) -> None:
    """A click in the last hundredth of a second, which a codec's delay must not push out."""
    codec, format_name = KINDS[kind]
    samples = np.zeros(30 * RATE + 1)
    samples[-160:] = 0.5 * np.sin(np.arange(160))
    path = tmp_path / "x"
    if codec is None:
        soundfile.write(path, samples, RATE, format=format_name)
    else:
        encode(path, samples, codec=codec, format_name=format_name)
    heard, _ = read_file(path)
    assert float(np.square(heard[-160:]).mean()) > 0.05
    assert float(np.square(heard[-1760:-320]).mean()) < 0.005


@pytest.mark.parametrize("kind", [*KINDS, "AIFF", "AU", "CAF", "W64", "RF64", "NIST"])
@pytest.mark.parametrize("num_samples", [100, 800, 1599])
def test_less_than_a_tenth_of_a_second(tmp_path: Path, kind: str, num_samples: int) -> None:
    path = tmp_path / "x"
    if kind in KINDS:
        write(path, kind, num_samples, 48_000 if KINDS[kind][0] == "libopus" else RATE)
    else:
        soundfile.write(path, noise(num_samples / RATE), RATE, format=kind)
    samples, reader = read_file(path)
    # Vorbis and Opus in WebM end with a whole block where there is but one.
    assert 0 <= len(samples) - num_samples <= (256 if kind in ("ogg", "webm") else 0)
    duration = len(samples) / RATE
    expected = [f"too short to hold a word: {int(duration * 1000) / 1000:.3f} s of audio"]
    assert reader.warnings == (expected if duration < MIN_DURATION else [])
    assert reader.damage == []


@pytest.mark.parametrize("kind", ["WAV", "RF64", "W64", "AIFF", "AU", "CAF", "NIST", "OGG"])
def test_a_header_alone_is_a_recording_without_audio(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    soundfile.write(path, np.zeros(0), RATE, format=kind)
    samples, reader = read_file(path)
    piped = open_pipe(path.read_bytes())
    assert len(samples) == len(read(piped)) == 0
    assert reader.warnings == piped.warnings == ["holds no audio"]
    assert reader.damage == piped.damage == []


def test_a_flac_header_alone(tmp_path: Path) -> None:
    path = encode(tmp_path / "x.flac", np.zeros(0), codec="flac")
    samples, reader = read_file(path)
    assert len(samples) == 0 and reader.warnings == ["holds no audio"]


@pytest.mark.parametrize("kind", ["opus", "webm", "mka"])
def test_where_a_header_alone_cannot_be_told_from_a_file_cut_short(
    tmp_path: Path, kind: str
) -> None:
    path = write(tmp_path / "x", kind, 0, 48_000)
    with pytest.raises(AudioError, match=r"^x: not audio or .* \(it is damaged or cut short\)$"):
        open_audio(source_of(path))
