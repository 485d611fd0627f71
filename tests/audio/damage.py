"""Ways in which a recording can be spoilt, for hypothesis to combine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from hypothesis import strategies as st

from tests.audio.fixtures import RATE, encode, noise, pcm16, tone, wav
from tests.audio.media import CONTAINER_RATE, Track, write_media

_SECONDS = 1.5
# What libsndfile writes: name, format, subtype.
_PLAIN = [
    ("wav-24", "WAV", "PCM_24"),
    ("wav-float", "WAV", "FLOAT"),
    ("wav-mulaw", "WAV", "ULAW"),
    ("wav-adpcm", "WAV", "IMA_ADPCM"),
    ("wav-extensible", "WAVEX", "PCM_16"),
    ("rf64", "RF64", "PCM_16"),
    ("w64", "W64", "PCM_16"),
    ("aiff", "AIFF", "PCM_16"),
    ("au", "AU", "PCM_16"),
    ("caf", "CAF", "PCM_16"),
    ("nist", "NIST", "PCM_16"),
    ("flac", "FLAC", "PCM_16"),
    ("ogg", "OGG", "VORBIS"),
    ("mp3", "MP3", "MPEG_LAYER_III"),
]
# What PyAV writes: name, codec, format, sampling rate.
_CODED = [
    ("aac", "aac", "adts", RATE),
    ("m4a", "aac", "ipod", RATE),
    ("opus", "libopus", "ogg", CONTAINER_RATE),
    ("mp3-tagged", "libmp3lame", "mp3", RATE),
    ("ac3", "ac3", "ac3", CONTAINER_RATE),
    ("wma", "wmav2", "asf", CONTAINER_RATE),
    ("alac", "alac", "ipod", RATE),
    ("amr", "libopencore_amrnb", "amr", 8000),
    ("adpcm-mov", "adpcm_ima_qt", "mov", RATE),
]
# With a picture: name, codec of the sound, format, codec of the picture.
_FILMS = [
    ("mp4", "aac", "mp4", "mpeg4"),
    ("mkv", "flac", "matroska", "mpeg4"),
    ("webm", "libopus", "webm", "libvpx"),
    ("ts", "aac", "mpegts", "mpeg2video"),
    ("avi", "libmp3lame", "avi", "mpeg4"),
    ("flv", "libmp3lame", "flv", "flv1"),
    ("mpg", "mp2", "mpeg", "mpeg2video"),
]


def make_seeds(folder: Path) -> dict[str, bytes]:
    """Small good files of every kind that can be written here."""
    import av

    samples = noise(_SECONDS) + tone(_SECONDS)
    stereo = np.stack([samples, noise(_SECONDS, seed=1)], axis=1)
    seeds = {"wav": wav(pcm16(samples)), "wav-stereo": wav(pcm16(stereo), num_channels=2)}
    path = folder / "seed"
    for name, format_name, subtype in _PLAIN:
        soundfile.write(path, samples, RATE, format=format_name, subtype=subtype)
        seeds[name] = path.read_bytes()
    for name, codec, format_name, rate in _CODED:
        if codec in av.codecs_available:
            encode(
                path, noise(_SECONDS, rate=rate), codec=codec, format_name=format_name, rate=rate
            )
            seeds[name] = path.read_bytes()
    for name, codec, format_name, picture_codec in _FILMS:
        rate = 44_100 if name == "flv" else CONTAINER_RATE
        write_media(
            path,
            [Track(noise(_SECONDS, rate=rate, seed=seed), codec=codec) for seed in range(2)][
                : 1 if name in ("flv", "mpg") else 2
            ],
            rate=rate,
            format_name=format_name,
            picture_start=0.0,
            picture_codec=picture_codec,
            picture_duration=_SECONDS,
        )
        seeds[name] = path.read_bytes()
    return seeds


@dataclass(frozen=True)
class Edit:
    """One thing done to a file.

    Attributes:
        kind: one of LIGHT or HEAVY.
        place: where, as a share of the file; or, below zero, so many bytes from its beginning.
        length: how many bytes.
        value: a byte, for what needs one.
        other: name of the seed that bytes come from, for what needs one.
    """

    kind: str
    place: float
    length: int
    value: int
    other: str

    def apply(self, data: bytes, seeds: Mapping[str, bytes]) -> bytes:
        start = min(len(data), int(-self.place if self.place < 0 else self.place * len(data)))
        end = min(len(data), start + self.length)
        other = seeds[self.other]
        if self.kind == "flip":
            return data[:start] + bytes([self.value]) + data[start + 1 :]
        if self.kind == "fill":
            return data[:start] + bytes([self.value]) * (end - start) + data[end:]
        if self.kind == "junk":
            junk = np.random.default_rng(self.value).integers(0, 256, end - start, np.uint8)
            return data[:start] + junk.tobytes() + data[end:]
        if self.kind == "cut":
            return data[:start]
        if self.kind == "drop":
            return data[:start] + data[end:]
        if self.kind == "repeat":
            return data[:end] + data[start:end] * (1 + self.value % 5) + data[end:]
        if self.kind == "splice":
            return data[:start] + other[: self.length] + data[start:]
        if self.kind == "head":
            return other[: self.length] + data[start:]
        assert self.kind == "tail"
        return data[:start] + other[-self.length :]


# Most of a file outlives the first kinds, and seldom the others.
LIGHT = ("flip", "fill", "junk", "drop", "repeat")
HEAVY = ("cut", "splice", "head", "tail")


@dataclass(frozen=True)
class Damaged:
    """A good file, what is done to it, and how it is read."""

    seed: str
    edits: tuple[Edit, ...]
    is_pipe: bool
    track: int | None

    def make(self, seeds: Mapping[str, bytes]) -> bytes:
        data = seeds[self.seed]
        for edit in self.edits:
            data = edit.apply(data, seeds)
        return data


def damaged(names: list[str]) -> st.SearchStrategy[Damaged]:
    """Damaged files made of the seeds with these names; one edit in three hits the header."""
    header = st.integers(1, 256).map(lambda offset: -float(offset))
    anywhere = st.integers(0, 9999).map(lambda share: share / 10_000)
    edits = st.builds(
        Edit,
        kind=st.one_of(st.sampled_from(LIGHT), st.sampled_from(LIGHT), st.sampled_from(HEAVY)),
        place=st.one_of(header, anywhere, anywhere),
        length=st.one_of(st.integers(1, 16), st.integers(17, 1000), st.integers(1001, 10_000)),
        value=st.one_of(st.sampled_from([0, 1, 0x7F, 0x80, 0xFF]), st.integers(0, 255)),
        other=st.sampled_from(names),
    )
    return st.builds(
        Damaged,
        seed=st.sampled_from(names),
        edits=st.lists(edits, min_size=1, max_size=3).map(tuple),
        is_pipe=st.booleans(),
        track=st.sampled_from([None, None, None, None, None, None, 1, 2]),
    )
