"""Speak the samples: short clips with known words, in this folder, each with its text beside it.

    python samples/make_samples.py

NAME.flac is 16 kHz, mono, 16 bits; NAME.txt holds what is said. The sentences were written for this
project and the voices of flite and espeak-ng speak them, so that the clips are under the project's
own licence (Apache-2.0, see LICENSE). Needed are the commands ``flite`` and ``espeak-ng``; the
clips that are kept here were made with flite 2.2, espeak-ng 1.51, soxr 1.1 and libsndfile 1.2.2.
The same versions give the same bytes; others may read a word otherwise or pack it otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import soxr
from numpy.typing import NDArray

SAMPLING_RATE = 16_000  # Hz, what the models hear
FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Sample:
    """A clip to make: ``voice`` is a flite voice for English, else an espeak-ng voice."""

    name: str
    voice: str
    text: str
    words_per_minute: int = 150  # espeak-ng only


SAMPLES = (
    Sample(
        "english-slt",
        "slt",
        "The train to the coast leaves early in the morning. Please bring a warm coat.",
    ),
    Sample(
        "english-rms",
        "rms",
        "We planted three apple trees behind the old school.",
    ),
    Sample(
        "english-long-awb",
        "awb",
        "Last summer my sister and I walked along the river every evening. "
        "The water was low, the birds were quiet, and nobody else was there. "
        "When the rain came back in September, we stayed at home and read books.",
    ),
    Sample("german-espeak", "de+f2", "Guten Tag. Mein Name ist Anna. Das ist mein Haus.", 125),
    Sample("spanish-espeak", "es+f2", "Buenos días. Vivo en una casa grande con mi familia.", 125),
    Sample("japanese-espeak", "ja+f2", "おはようございます。ありがとうございます。", 100),
    Sample("korean-espeak", "ko+f2", "엄마, 아빠, 사랑해요. 안녕하세요.", 115),
)


def main() -> int:
    """Make every sample; the exit code is 1 where a command is missing or fails."""
    for sample in SAMPLES:
        try:
            samples = speak(sample)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{sample.name}: {error}", file=sys.stderr)
            return 1
        soundfile.write(FOLDER / f"{sample.name}.flac", samples, SAMPLING_RATE, subtype="PCM_16")
        (FOLDER / f"{sample.name}.txt").write_text(sample.text + "\n", encoding="utf-8")
        print(f"{sample.name}.flac  {len(samples) / SAMPLING_RATE:.2f} s")
    return 0


def speak(sample: Sample) -> NDArray[np.int16]:
    """The spoken text as int16 samples of 16 kHz, shape (num_samples,)."""
    with tempfile.TemporaryDirectory() as folder:
        wav = Path(folder) / "speech.wav"
        if sample.name.startswith("english"):
            command = ["flite", "-voice", sample.voice, "-t", sample.text, "-o", str(wav)]
        else:
            pace = str(sample.words_per_minute)
            command = ["espeak-ng", "-v", sample.voice, "-s", pace, "-w", str(wav), sample.text]
        subprocess.run(command, check=True)
        speech, rate = soundfile.read(wav, dtype="float64")
    resampled = soxr.resample(speech, rate, SAMPLING_RATE, quality="VHQ")
    samples: NDArray[np.int16] = np.rint(resampled * 32767).clip(-32768, 32767).astype(np.int16)
    return samples


if __name__ == "__main__":
    sys.exit(main())
