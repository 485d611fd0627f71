from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from asrcli.audio.pcm import SAMPLE_FORMATS, to_float
from asrcli.audio.reading import RawFormat, open_audio
from asrcli.errors import UsageError
from tests.audio.fixtures import (
    RATE,
    chunk,
    noise,
    open_pipe,
    pcm16,
    read,
    read_file,
    source_of,
    tone,
    wav,
)

SPEECH = noise(3.3)
DATA = pcm16(SPEECH)
EXPECTED = np.frombuffer(DATA, "<i2").astype(np.float32) / 32768


def both(tmp_path: Path, data: bytes, **options: Any) -> tuple[Any, list[str]]:
    """Samples and warnings of `data`, which must be the same from a file and from a pipe."""
    samples, reader = read_file(tmp_path / "x", data, **options)
    for step in (997, 1 << 20):
        pipe = open_pipe(data, step=step, **options)
        np.testing.assert_array_equal(read(pipe), samples)
        assert pipe.warnings == reader.warnings and pipe.damage == reader.damage
    return samples, reader.warnings


def test_blocks_are_two_seconds(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(wav(DATA))
    with open_audio(source_of(tmp_path / "a.wav")) as reader:
        assert [len(block) for block in reader.blocks()] == [32_000, 20_800]
        assert reader.duration == pytest.approx(3.3)


@pytest.mark.parametrize(
    "sizes",
    [
        {},
        {"stated": 0, "riff_size": 0},
        {"stated": 0xFFFFFFFF, "riff_size": 0xFFFFFFFF},
        {"stated": 0x7FFFFFFF - 36},
        {"riff_size": 12},
        {"before": chunk(b"LIST", b"INFOISFT....")},
        {"after": chunk(b"LIST", b"INFOISFT....") + chunk(b"id3 ", b"12")},
        {"after": b"TAG" + b"\0" * 125},
    ],
)
def test_wav_sizes_are_doubted(tmp_path: Path, sizes: dict[str, Any]) -> None:
    samples, warnings = both(tmp_path, wav(DATA, **sizes))
    np.testing.assert_array_equal(samples, EXPECTED)
    assert warnings == []


def test_a_wav_that_is_cut_short_says_so(tmp_path: Path) -> None:
    samples, reader = read_file(tmp_path / "x", wav(DATA, stated=2 * len(DATA)))
    np.testing.assert_array_equal(samples, EXPECTED)
    assert reader.damage == ["the file ends at 0:03.3, its header says 0:06.6"]
    assert both(tmp_path, wav(DATA, stated=2 * len(DATA)))[1] == reader.damage


@pytest.mark.parametrize("stated", [len(DATA) // 2, len(DATA) // 2 - 1])
def test_audio_behind_the_stated_end_is_read(tmp_path: Path, stated: int) -> None:
    samples, warnings = both(tmp_path, wav(DATA, stated=stated))
    np.testing.assert_array_equal(samples, EXPECTED)
    [line] = warnings
    assert line.startswith("the audio goes on after 0:01.6") or "0:01.7" in line


def test_half_a_sample_at_the_end_is_dropped(tmp_path: Path) -> None:
    samples, warnings = both(tmp_path, wav(DATA + b"\1"))
    np.testing.assert_array_equal(samples, EXPECTED)
    assert warnings == []


def test_a_header_alone_is_no_error(tmp_path: Path) -> None:
    samples, warnings = both(tmp_path, wav(b""))
    assert len(samples) == 0 and warnings == ["holds no audio"]
    samples, warnings = both(tmp_path, wav(b"", after=chunk(b"LIST", b"INFOISFT....")))
    assert len(samples) == 0 and warnings == ["holds no audio"]


@pytest.mark.parametrize("num_samples", [1, 159, 800, 1599])
def test_very_short_files_are_whole(tmp_path: Path, num_samples: int) -> None:
    samples, warnings = both(tmp_path, wav(DATA[: 2 * num_samples]))
    np.testing.assert_array_equal(samples, EXPECTED[:num_samples])
    [line] = warnings
    assert line == f"too short to hold a word: {num_samples // 16 / 1000:.3f} s of audio"


def test_a_tenth_of_a_second_is_long_enough(tmp_path: Path) -> None:
    samples, warnings = both(tmp_path, wav(DATA[: 2 * 1600]))
    assert len(samples) == 1600 and warnings == []


@pytest.mark.parametrize(
    ("kind", "subtype", "tolerance"),
    [
        ("WAV", "PCM_U8", 2**-7),
        ("WAV", "PCM_24", 2**-22),
        ("WAV", "PCM_32", 2**-22),
        ("WAV", "FLOAT", 2**-22),
        ("WAV", "DOUBLE", 2**-22),
        ("WAV", "ULAW", 0.02),
        ("WAV", "ALAW", 0.02),
        ("WAV", "IMA_ADPCM", 0.1),
        ("WAV", "MS_ADPCM", 0.1),
        ("WAVEX", "PCM_24", 2**-22),
        ("RF64", "PCM_16", 2**-14),
        ("W64", "PCM_16", 2**-14),
        ("AIFF", "PCM_24", 2**-22),
        ("AU", "PCM_16", 2**-14),
        ("CAF", "FLOAT", 2**-22),
        ("NIST", "PCM_16", 2**-14),
        ("VOC", "PCM_16", 2**-14),
        ("FLAC", "PCM_24", 2**-22),
    ],
)
def test_plain_formats(tmp_path: Path, kind: str, subtype: str, tolerance: float) -> None:
    path = tmp_path / "misleading.mp3"
    # A slow tone: the ADPCM codecs follow it closely.
    expected = tone(2.5, rate=RATE, frequency=200)
    soundfile.write(path, expected, RATE, subtype=subtype, format=kind)
    samples, reader = read_file(path)
    # The codecs that work in whole blocks fill the last one up.
    assert 0 <= len(samples) - len(expected) <= (1024 if "ADPCM" in subtype else 0)
    begin = 32 if "ADPCM" in subtype else 0  # their step grows from nothing
    np.testing.assert_allclose(samples[begin : len(expected)], expected[begin:], atol=tolerance)
    assert reader.warnings == []
    piped = read(open_pipe(path.read_bytes()))
    np.testing.assert_allclose(piped, samples, atol=1e-6)


def test_the_logarithmic_codes_agree_with_libsndfile(tmp_path: Path) -> None:
    codes = bytes(range(256))
    for name, tag in (("alaw", 6), ("mulaw", 7)):
        path = tmp_path / f"{name}.wav"
        path.write_bytes(wav(codes, tag=tag, bits=8, rate=8000))
        expected, _ = soundfile.read(path, dtype="float32")
        np.testing.assert_array_equal(to_float(codes, name), expected)


def test_big_endian_wav(tmp_path: Path) -> None:
    big = np.frombuffer(DATA, "<i2").astype(">i2").tobytes()
    fmt = struct.pack(">HHIIHH", 1, 1, RATE, 2 * RATE, 2, 16)
    body = b"WAVEfmt " + struct.pack(">I", 16) + fmt + b"data" + struct.pack(">I", len(big)) + big
    samples, _ = both(tmp_path, b"RIFX" + struct.pack(">I", len(body)) + body)
    np.testing.assert_array_equal(samples, EXPECTED)


@pytest.mark.parametrize("sample_format", [name for name in SAMPLE_FORMATS if "law" not in name])
def test_raw_pcm(tmp_path: Path, sample_format: str) -> None:
    bits, big = int(sample_format.strip("usfble")), sample_format.endswith("be")
    stereo = np.stack([tone(1.5), tone(1.5) / 3], axis=1)
    if sample_format[0] == "f":
        data = stereo.astype(f"{'>' if big else '<'}f{bits // 8}").tobytes()
    elif bits == 24:
        wide = np.round(stereo * 2**23).astype(">i4" if big else "<i4")
        octets = wide.view(np.uint8).reshape(-1, 4)
        data = (octets[:, 1:] if big else octets[:, :3]).tobytes()
    elif sample_format == "u8":
        data = (np.round(stereo * 128) + 128).astype(np.uint8).tobytes()
    else:
        scaled = np.round(stereo * 2.0 ** (bits - 1))
        data = scaled.astype(f"{'>' if big else '<'}i{bits // 8}").tobytes()
    samples, _ = both(tmp_path, data, raw=RawFormat(sample_format, RATE, 2))
    tolerance = 2.0 ** -(min(bits, 24) - 1) if sample_format[0] != "f" else 1e-6
    np.testing.assert_allclose(samples, stereo.mean(axis=1), atol=tolerance)


def test_raw_pcm_is_not_looked_into(tmp_path: Path) -> None:
    data = wav(DATA)
    samples, _ = both(tmp_path, data, raw=RawFormat())
    assert len(samples) == len(data) // 2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (("s17le",), "raw format 's17le' is unknown"),
        (("s16le", 0), "sampling rate 0 Hz cannot be meant"),
        (("s16le", 16_000, 0), "0 channels cannot be meant"),
    ],
)
def test_raw_formats_are_checked(values: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        RawFormat(*values)


def test_numbers_that_are_none_are_cleaned(tmp_path: Path) -> None:
    samples = SPEECH.astype("<f4")
    samples[100:110], samples[200], samples[300] = np.nan, np.inf, 1.75
    out, warnings = both(tmp_path, wav(samples.tobytes(), tag=3, bits=32))
    assert warnings == ["11 samples were not a number or far beyond full scale; taken as 0"]
    assert out[105] == 0 and out[200] == 0 and out[300] == 1.75


def test_a_double_beyond_single_precision_is_cleaned(tmp_path: Path) -> None:
    out, warnings = both(
        tmp_path, wav(np.array([1e300, 0.5]).astype("<f8").tobytes(), tag=3, bits=64)
    )
    np.testing.assert_array_equal(out, [0, 0.5])
    assert warnings[0] == "1 sample was not a number or far beyond full scale; taken as 0"


def test_antiphase_stereo_keeps_its_words(tmp_path: Path) -> None:
    stereo = pcm16(np.stack([SPEECH, -SPEECH], axis=1))
    out, warnings = both(tmp_path, wav(stereo, num_channels=2))
    np.testing.assert_allclose(out, SPEECH, atol=2**-14)
    assert warnings == ["channels cancel each other; using channel 1 alone"]
