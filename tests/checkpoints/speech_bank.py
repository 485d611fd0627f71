"""Recorded words and phrases, on disk as one Vorbis file and a table of what is where in it."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
from numpy.typing import NDArray

SAMPLING_RATE = 16000
_SPACING = 800  # samples of silence between recordings on disk
_COLUMNS = ("start", "end", "language", "voice", "text")


@dataclass(frozen=True, slots=True)
class Recording:
    """One voice saying one text once; samples are float32 [n] at 16 kHz."""

    language: str
    voice: str
    text: str
    samples: NDArray[np.float32]


class SpeechBank:
    """Recordings, found by language, voice and word; phrases (several words) apart."""

    def __init__(self, recordings: Iterable[Recording]) -> None:
        self.recordings = list(recordings)
        self.phrases: dict[str, list[Recording]] = {}
        self._words: dict[tuple[str, str], dict[str, list[Recording]]] = {}
        for recording in self.recordings:
            if " " in recording.text:
                self.phrases.setdefault(recording.language, []).append(recording)
            else:
                takes = self._words.setdefault((recording.language, recording.voice), {})
                takes.setdefault(recording.text, []).append(recording)

    def voices(self, language: str) -> list[str]:
        """Who speaks a language."""
        return sorted(voice for spoken, voice in self._words if spoken == language)

    def takes(self, language: str, voice: str, word: str) -> list[Recording]:
        """All recordings of a word by a voice."""
        return self._words[language, voice][word]


def save_bank(bank: SpeechBank, sound: Path) -> None:
    """Write the recordings behind one another as Ogg Vorbis, and ``sound`` + ".tsv" beside it."""
    gap = np.zeros(_SPACING, np.float32)
    pieces, rows, position = [gap], [], _SPACING
    for recording in bank.recordings:
        end = position + len(recording.samples)
        rows.append((position, end, recording.language, recording.voice, recording.text))
        pieces += [recording.samples, gap]
        position = end + _SPACING
    # Piece by piece: libsndfile's Vorbis writer falls over on minutes at once.
    with soundfile.SoundFile(
        sound, "w", SAMPLING_RATE, 1, format="OGG", subtype="VORBIS", compression_level=0.5
    ) as file:
        for piece in pieces:
            file.write(piece)
    with _table(sound).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter="\t", lineterminator="\n")
        writer.writerow(_COLUMNS)
        writer.writerows(rows)


def load_bank(sound: Path) -> SpeechBank:
    """Read what ``save_bank`` wrote."""
    samples, rate = soundfile.read(sound, dtype="float32")
    assert rate == SAMPLING_RATE
    with _table(sound).open(newline="", encoding="utf-8") as file:
        return SpeechBank(
            Recording(
                row["language"], row["voice"], row["text"],
                samples[int(row["start"]) : int(row["end"])],
            )
            for row in csv.DictReader(file, delimiter="\t")
        )  # fmt: skip


def _table(sound: Path) -> Path:
    return sound.with_suffix(sound.suffix + ".tsv")
