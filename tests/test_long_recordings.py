"""Long recordings with the real whisper-base: what is said comes once, in order and in time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray
from transformers.models.whisper.english_normalizer import BasicTextNormalizer

from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Transcript
from tests.speech import RATE, Sentence, read

Samples = NDArray[np.float32]
normalise = BasicTextNormalizer()


def trimmed(samples: Samples) -> Samples:
    """A sentence without the silence around it."""
    loud = np.flatnonzero(np.abs(samples) > 0.05 * np.abs(samples).max())
    return samples[max(0, loud[0] - RATE // 20) : loud[-1] + RATE // 20]


def noise(num_samples: int, level: float, seed: int = 0) -> Samples:
    return np.asarray(np.random.default_rng(seed).standard_normal(num_samples) * level, np.float32)


@pytest.fixture(scope="module")
def spoken(speech: list[Sentence]) -> list[tuple[Samples, str]]:
    return [(trimmed(read(sentence.path)), sentence.text) for sentence in speech]


def transcribe(
    model: Recognizer, samples: Samples, folder: Path, options: Options | None = None
) -> Transcript:
    soundfile.write(folder / "a.flac", np.clip(samples, -1, 1), RATE)
    return model.transcribe(folder / "a.flac", options)


def longest_run(reference: str, found: str) -> int:
    """Words missing, or one too many, one behind the other."""
    alignment = jiwer.process_words(reference, found).alignments[0]
    return max(
        (
            max(chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx)
            for chunk in alignment
            if chunk.type in ("delete", "insert")
        ),
        default=0,
    )


def paste(
    spoken: Sequence[tuple[Samples, str]], starts: Sequence[float], duration: float, level: float
) -> tuple[Samples, str]:
    samples = noise(round(duration * RATE), level)
    texts = []
    for number, start in enumerate(starts):
        piece, text = spoken[number % len(spoken)]
        begin = round(start * RATE)
        samples[begin : begin + len(piece)] += piece
        texts.append(text)
    return samples, " ".join(texts)


@pytest.mark.parametrize(
    "level",
    [pytest.param(0.0, marks=pytest.mark.slow, id="silence"), pytest.param(3e-3, id="noise")],
)
def test_sentences_far_apart(
    whisper_base: Recognizer, spoken: list[tuple[Samples, str]], tmp_path: Path, level: float
) -> None:
    """Each once, in order, where it was said, however much silence or noise lies between."""
    starts = [3.0, 41.7, 55.0, 118.3, 150.0, 171.9]
    samples, text = paste(spoken, starts, 200.0, level)
    transcript = transcribe(whisper_base, samples, tmp_path)
    found = normalise(transcript.text)
    assert jiwer.wer(text, found) <= 0.06, found
    assert longest_run(text, found) <= 2
    begins = [
        min(s.start for s in transcript.segments if abs(s.start - start) < 5.0) for start in starts
    ]
    assert begins == pytest.approx(starts, abs=0.5)
    assert all(
        any(start - 0.5 <= segment.start < start + 12.0 for start in starts)
        for segment in transcript.segments
    )
    assert transcript.duration == 200.0
    assert transcript.warnings == ()


@pytest.mark.parametrize(
    "offset",
    [7.9, 21.7, *(pytest.param(offset, marks=pytest.mark.slow) for offset in (0.0, 3.3, 13.1))],
)
def test_speech_without_pauses(
    whisper_base: Recognizer, spoken: list[tuple[Samples, str]], tmp_path: Path, offset: float
) -> None:
    """Wherever the cuts fall, no word is lost and none comes twice."""
    order = (0, 1, 2, 3, 4, 2, 0, 4, 1, 3)
    samples = np.concatenate([noise(round(offset * RATE), 1e-3), *(spoken[i][0] for i in order)])
    text = " ".join(spoken[i][1] for i in order)
    found = normalise(transcribe(whisper_base, samples, tmp_path).text)
    assert jiwer.wer(text, found) <= 0.08, found
    assert longest_run(text, found) <= 2, found


@pytest.mark.slow
def test_a_phrase_that_is_truly_said_five_times(
    whisper_base: Recognizer, spoken: list[tuple[Samples, str]], tmp_path: Path
) -> None:
    piece, text = spoken[1]  # "he was not an ill disposed young man"
    samples = np.concatenate([part for _ in range(5) for part in (piece, noise(4000, 1e-3))])
    transcript = transcribe(whisper_base, samples, tmp_path)
    assert normalise(transcript.text).split().count("young") == 5
    assert jiwer.wer(" ".join([text] * 5), normalise(transcript.text)) <= 0.15
    assert transcript.warnings == ()


def test_speech_under_noise(
    whisper_base: Recognizer, spoken: list[tuple[Samples, str]], tmp_path: Path
) -> None:
    """At +5 dB the words are there."""
    piece, text = spoken[0]
    level = float(np.sqrt(np.mean(piece**2))) / 10 ** (5 / 20)
    samples = np.concatenate([np.zeros(8000, np.float32), piece, np.zeros(8000, np.float32)])
    transcript = transcribe(whisper_base, samples + noise(len(samples), level), tmp_path)
    assert jiwer.wer(text, normalise(transcript.text)) <= 0.35, transcript.text
