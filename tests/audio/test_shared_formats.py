"""Recordings of many kinds beside the repository, where they are at hand."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from asrcli.audio.reading import SAMPLING_RATE, RawFormat, open_audio
from asrcli.errors import AudioError
from tests.audio.fixtures import read, source_of

FOLDER = Path(__file__).parents[3] / "shared" / "audio"
PATTERNS = ["fmt-*", "derived/*", "broken-*", "*.raw", "*.sph", "en-an4-chan3.2chan.wav", "*.wma"]
PATHS = sorted({path for pattern in PATTERNS for path in FOLDER.glob(pattern)})

# What fails, with its one line.
FAILURES = {
    "broken-ps-bad.wav": "damaged WAV header: no audio data",
    "broken-ps-evil.wav": "damaged WAV header: no audio data",
    "fmt-aeneas-mono.empty.wav": "empty file",
    "fmt-aeneas-mono.invalid.wav": "damaged WAV header: no audio data",
    "derived/jfk-g722.g722": "not audio or video that can be read (no format that is known)",
}
# Where the manifest's number is not the length of the audio: a length guessed from the bit rate,
# a picture that goes on after the sound, a header that states what was cut off.
DURATIONS = {
    "fmt-p001.aac": 9.009,
    "derived/jfk-broken-header.mp3": 10.98,
    "derived/jfk-truncated.mp3": 5.511,
    "derived/jfk-wrong-ext.wav": 11.0,
    "derived/jfk-video.mp4": 11.006,
    "derived/jfk-video.mkv": 11.019,
    "derived/jfk-video.webm": 11.0,
    "broken-ps-null.wav": 0.0,
    "fmt-aeneas-mono.zero.wav": 0.0,
}
WARNINGS = {
    "derived/jfk-truncated.mp3": "the file ends at 0:05.5, its header says 0:11.0",
    "derived/jfk-truncated.wav": "the file ends at 0:05.5, its header says 0:11.0",
    "derived/jfk-antiphase.wav": "channels cancel each other; using channel 1 alone",
    "broken-ps-awful.wav": "too short to hold a word: 0.000 s of audio",
    "broken-ps-null.wav": "holds no audio",
    "fmt-aeneas-mono.zero.wav": "holds no audio",
    "fmt-p001.flac": "damaged from 0:09.0 on: the rest could not be decoded",
}


def manifest() -> dict[str, str]:
    with (FOLDER / "manifest.tsv").open(encoding="utf-8", newline="") as file:
        return {row["file"]: row["duration_s"] for row in csv.DictReader(file, delimiter="\t")}


@pytest.mark.skipif(not PATHS, reason="the recordings are not at hand")
@pytest.mark.parametrize("path", PATHS, ids=str)
def test_every_file_is_read_right_or_fails_with_one_line(path: Path) -> None:
    name = path.relative_to(FOLDER).as_posix()
    raw = RawFormat() if path.suffix == ".raw" else None
    if name in FAILURES:
        with pytest.raises(AudioError) as caught:
            open_audio(source_of(path), raw=raw)
        assert str(caught.value) == f"{path.name}: {FAILURES[name]}"
        return
    reader = open_audio(source_of(path), raw=raw)
    duration = len(read(reader)) / SAMPLING_RATE
    expected = DURATIONS.get(name) or float(manifest().get(name) or 0)
    # The manifest rounds to 0.01 s, and a codec's frame is at most 0.03 s here.
    assert duration == pytest.approx(expected, abs=0.03)
    assert reader.warnings == ([WARNINGS[name]] if name in WARNINGS else [])
