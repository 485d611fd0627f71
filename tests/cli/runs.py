"""Runs of ``asr`` in a process of its own, and recordings for them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
import soundfile
from numpy.typing import NDArray

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
RATE = 16_000


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


def environment(**settings: str) -> dict[str, str]:
    """The process's own, without what the user has set for asr."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("ASR_") or k == "ASR_CACHE"}
    return kept | {"PYTHONPATH": str(ROOT)} | settings


def start(
    *arguments: str | Path, stdin: int | IO[bytes] = subprocess.DEVNULL, **settings: str
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "asrcli", *arguments],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**settings),
    )


def asr(*arguments: str | Path, data: bytes | None = None, **settings: str) -> Outcome:
    stdin = subprocess.DEVNULL if data is None else subprocess.PIPE
    with start(*arguments, stdin=stdin, **settings) as process:
        out, err = process.communicate(data, timeout=300)
    return Outcome(process.returncode, out.decode(), err.decode())


def speech(name: str = "english-slt") -> NDArray[np.float32]:
    """A sample at 16 kHz."""
    samples, rate = soundfile.read(SAMPLES / f"{name}.flac", dtype="float32")
    assert rate == RATE
    return np.asarray(samples, np.float32)


def write_wave(path: Path, samples: NDArray[np.float32], rate: int = RATE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:  # by handle: libsndfile takes no name that is not UTF-8
        soundfile.write(file, samples, rate, format="WAV", subtype="PCM_16")
    return path


def words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.lower()).split()
