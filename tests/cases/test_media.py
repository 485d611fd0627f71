"""One sentence in every kind of file through the command (B08, B22 to B25, B27, B30)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from tests.audio.fixtures import encode, pcm16, wav
from tests.cases.results import Run, check, transcribe, word_error_rate
from tests.cases.sounds import RATE, Samples, silence
from tests.cli.runs import asr, environment, write_wave

SPOKEN = 3  # of the five sentences
TELEPHONE = {"mulaw8k", "alaw8k", "pcm8", "sr8000"}
MORE_ERRORS = 0.1  # what 8 bits and 8 kHz may cost
JUNK = 16_000  # bytes: two seconds at 64 kbit/s


def by_soundfile(
    format_name: str, subtype: str, rate: int = RATE
) -> Callable[[Path, Samples], object]:
    def write(path: Path, samples: Samples) -> None:
        import soxr

        moved = samples if rate == RATE else soxr.resample(samples, RATE, rate)
        with path.open("wb") as file:
            soundfile.write(file, moved, rate, format=format_name, subtype=subtype)

    return write


def by_channels(*gains: Callable[[Samples], Samples]) -> Callable[[Path, Samples], object]:
    def write(path: Path, samples: Samples) -> None:
        mixed = np.stack([gain(samples) for gain in gains], axis=1)
        soundfile.write(path, mixed, RATE, subtype="PCM_16")

    return write


def with_sizes(stated: int | None, riff_size: int | None) -> Callable[[Path, Samples], object]:
    def write(path: Path, samples: Samples) -> None:
        path.write_bytes(wav(pcm16(samples.astype(np.float64)), stated=stated, riff_size=riff_size))

    return write


def by_codec(codec: str, format_name: str, **options: Any) -> Callable[[Path, Samples], object]:
    def write(path: Path, samples: Samples) -> None:
        coded = path.with_name("coded")
        encode(coded, samples.astype(np.float64), codec=codec, format_name=format_name, **options)
        coded.rename(path)  # whatever its name says

    return write


def as_is(samples: Samples) -> Samples:
    return samples


def muted(samples: Samples) -> Samples:
    return samples * 0


def inverted(samples: Samples) -> Samples:
    return -samples


def first_half(samples: Samples) -> Samples:
    return np.where(np.arange(len(samples)) < len(samples) // 2, samples, 0)


def second_half(samples: Samples) -> Samples:
    return samples - first_half(samples)


GOOD: dict[str, Callable[[Path, Samples], object]] = {
    "pcm16": by_soundfile("WAV", "PCM_16"),
    "pcm8": by_soundfile("WAV", "PCM_U8"),
    "pcm24": by_soundfile("WAV", "PCM_24"),
    "pcm32": by_soundfile("WAV", "PCM_32"),
    "f32": by_soundfile("WAV", "FLOAT"),
    "f64": by_soundfile("WAV", "DOUBLE"),
    "extensible": by_soundfile("WAVEX", "PCM_16"),
    "mulaw8k": by_soundfile("WAV", "ULAW", 8000),
    "alaw8k": by_soundfile("WAV", "ALAW", 8000),
    "sr8000": by_soundfile("WAV", "PCM_16", 8000),
    "sr11025": by_soundfile("WAV", "PCM_16", 11025),
    "sr22050": by_soundfile("WAV", "PCM_16", 22050),
    "sr44100": by_soundfile("WAV", "PCM_16", 44100),
    "sr48000": by_soundfile("WAV", "PCM_16", 48000),
    "stream-ffff": with_sizes(0xFFFFFFFF, 0xFFFFFFFF),
    "stream-zero": with_sizes(0, 0),
    "right-only": by_channels(muted, as_is),
    "turns": by_channels(first_half, second_half),
    "antiphase": by_channels(as_is, inverted),
    "centre-of-six": by_channels(muted, muted, as_is, muted, muted, muted),
    "mp4-named-wav": by_codec("aac", "mp4", video=True),
    "mp3-named-wav": by_codec("libmp3lame", "mp3"),
}


@pytest.fixture(scope="module")
def spoken(sentences: list[tuple[Samples, str]]) -> tuple[Samples, str]:
    return sentences[SPOKEN]


@pytest.fixture(scope="module")
def run(place: Path, spoken: tuple[Samples, str], models: dict[str, str]) -> Run:
    """The sentence in all kinds of files among bad ones that sort first."""
    folder = place / "in"
    folder.mkdir()
    for name, write in GOOD.items():
        write(folder / f"{name}.wav", spoken[0])
    (folder / "1_cut.wav").write_bytes((folder / "pcm16.wav").read_bytes()[:30])
    (folder / "2_empty.wav").touch()
    (folder / "3_text.mp3").write_text("not audio\n")
    write_silent_video(folder / "4_video.mp4")
    unknown = wav(pcm16(spoken[0].astype(np.float64)), tag=0x1234)
    (folder / "5_unknown.wav").write_bytes(unknown)
    (folder / "header-only.wav").write_bytes(wav(b""))
    for count in (1, 159, 800, 1599):
        write_wave(folder / f"short-{count}.wav", spoken[0][2000 : 2000 + count])
    return transcribe([folder], models["whisper"], place / "out")


def write_silent_video(path: Path) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("mpeg4", rate=5)
        stream.width = stream.height = 64
        stream.pix_fmt = "yuv420p"
        image = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
        container.mux(stream.encode(image))
        container.mux(stream.encode(None))


@pytest.mark.parametrize("name", GOOD)
def test_the_words_are_those_of_the_plain_file(
    run: Run, spoken: tuple[Samples, str], name: str
) -> None:
    result, plain = run.results[name], run.results["pcm16"]
    check(result)
    most = word_error_rate(spoken[1], plain) + (MORE_ERRORS if name in TELEPHONE else 0)
    assert word_error_rate(spoken[1], plain) <= 0.11
    assert word_error_rate(spoken[1], result) <= most + 1e-9
    frame = 0.13 if "named" in name else 2 / 8000  # what a codec adds, else a sample or two
    duration = len(spoken[0]) / RATE
    assert result.transcript["duration"] == pytest.approx(duration, abs=frame)


def test_channels_that_cancel_are_told(run: Run) -> None:
    (warning,) = run.results["antiphase"].transcript["warnings"]
    assert warning == "channels cancel each other; using channel 1 alone"


def test_each_failure_has_its_line_and_takes_nothing_with_it(run: Run) -> None:
    assert (run.outcome.code, run.outcome.out) == (1, "")
    lines = run.outcome.err.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    reasons = {Path(line.split(": ")[1]).name: line.split(": ", 2)[2] for line in errors}
    assert list(reasons) == [
        "1_cut.wav",
        "2_empty.wav",
        "3_text.mp3",
        "4_video.mp4",
        "5_unknown.wav",
    ]
    assert reasons["2_empty.wav"] == "empty file"
    assert reasons["4_video.mp4"] == "no audio stream"
    assert "text" in reasons["3_text.mp3"]
    assert "1234" in reasons["5_unknown.wav"] or "4660" in reasons["5_unknown.wav"]
    num_files = len(GOOD) + 10
    assert any(
        line.startswith(f"{num_files - 5} of {num_files} files done, 5 failed") for line in lines
    )
    assert "Traceback" not in run.outcome.err
    assert sum(line.startswith("whisper:base · ") for line in lines) == 1  # loaded once


@pytest.mark.parametrize("name", ["header-only", *(f"short-{n}" for n in (1, 159, 800, 1599))])
def test_what_is_too_short_has_no_words(run: Run, name: str) -> None:
    result = run.results[name]
    assert (result.text, result.segments) == ("", [])
    (warning,) = result.transcript["warnings"]
    assert "no audio" in warning if name == "header-only" else "too short to hold a word" in warning


def test_damage_in_the_middle_leaves_both_sides(
    sentences: list[tuple[Samples, str]], models: dict[str, str], tmp_path: Path
) -> None:
    pieces = [part for samples, _ in sentences for part in (samples, silence(1.0))]
    whole = encode(
        tmp_path / "whole.mp3", np.concatenate(pieces).astype(np.float64), codec="libmp3lame"
    )
    data = bytearray(whole.read_bytes())
    junk = np.random.default_rng(3).integers(0, 256, JUNK, dtype=np.uint8).tobytes()
    data[len(data) // 2 : len(data) // 2 + JUNK] = junk
    (tmp_path / "broken.mp3").write_bytes(bytes(data))
    inputs = [whole, tmp_path / "broken.mp3"]
    run = transcribe(inputs, models["whisper"], tmp_path / "out")
    broken, plain = run.results["broken"], run.results["whole"]
    assert run.outcome.code == 1
    assert any("broken.mp3: " in line and "0:1" in line for line in run.outcome.err.splitlines())
    for result in (broken, plain):
        check(result)
    assert broken.words[:10] == plain.words[:10]
    assert broken.words[-5:] == plain.words[-5:]
    assert broken.segments[-1]["end"] == pytest.approx(plain.segments[-1]["end"], abs=1.0)
    assert len(broken.words) >= 0.6 * len(plain.words)


def test_a_pipe_says_what_the_file_says(run: Run, place: Path, models: dict[str, str]) -> None:
    """Each kind alone, and three files in a loop whose list is on standard input."""
    for name in ("stream-ffff", "mp4-named-wav"):
        data = (place / "in" / f"{name}.wav").read_bytes()
        piped = asr("transcribe", "-", "-m", models["whisper"], "-f", "json", data=data)
        assert piped.code == 0
        assert json.loads(piped.out)["text"] == run.results[name].transcript["text"]
    script = (
        "while read -r file; do "
        f'{sys.executable} -m asrcli transcribe -q -m {models["qwen"]} "$file" -o "$file.txt"; done'
    )
    names = [place / "in" / f"{name}.wav" for name in ("pcm16", "f32", "sr8000")]
    subprocess.run(
        ["bash", "-c", script],
        input="".join(f"{name}\n" for name in names),
        text=True,
        env=environment(),
        check=True,
        timeout=300,
    )
    assert all(Path(f"{name}.txt").read_text() for name in names)


def test_an_empty_pipe_is_an_error_at_once(models: dict[str, str]) -> None:
    outcome = asr("transcribe", "-", "-m", models["whisper"], data=b"")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err == "error: stdin: empty input\n"
