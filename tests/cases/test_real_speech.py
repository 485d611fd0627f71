"""Real speech with whisper-base at every awkward length (B01, B03, B05, B14)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.cases.results import Result, Run, check, transcribe, word_error_rate
from tests.cases.sounds import RATE, Samples, ending_at, silence, trimmed
from tests.cli.runs import write_wave

pytestmark = pytest.mark.slow  # whisper-base, on minutes of audio

# In samples: a window and a little less, and one sample more; two windows; the last word ends on
# the last sample of each.
QUICK = (round(29.9 * RATE), 30 * RATE + 1, 60 * RATE)
MORE = (30 * RATE, round(59.99 * RATE), round(60.05 * RATE), 87 * RATE)
IN_A_WORD = (15.0, 30.0)  # s
MOST_ERRORS = 0.06
LEAST_PAUSE = 0.25  # s, between sentences


def fill(sentences: list[tuple[Samples, str]], num_samples: int) -> tuple[Samples, str]:
    """As many sentences as fit, over and over, and what they say."""
    pieces: list[Samples] = []
    texts: list[str] = []
    least = round(LEAST_PAUSE * RATE)
    while True:
        samples, text = sentences[len(pieces) % len(sentences)]
        piece = trimmed(samples)
        if sum(map(len, [*pieces, piece])) + least * (len(pieces) + 1) > num_samples:
            return ending_at(pieces, num_samples), " ".join(texts)
        pieces.append(piece)
        texts.append(text)


def run_lengths(
    lengths: tuple[int, ...], sentences: list[tuple[Samples, str]], model: str, place: Path
) -> tuple[Run, dict[int, str]]:
    """Recordings of these lengths, each with 0.6 s of silence behind it as well."""
    texts = {}
    for length in lengths:
        samples, texts[length] = fill(sentences, length)
        write_wave(place / "in" / f"{length}.wav", samples)
        longer = np.concatenate([samples, silence(0.6)])
        write_wave(place / "in" / f"{length}-and-silence.wav", longer)
    for end in IN_A_WORD:
        samples, _ = fill(sentences, 60 * RATE)
        write_wave(place / "in" / f"cut-at-{end:g}s.wav", samples[: round(end * RATE)])
    return transcribe([place / "in"], model, place / "out"), texts


def check_length(run: Run, length: int, text: str) -> None:
    for name, duration in (
        (str(length), length / RATE),
        (f"{length}-and-silence", length / RATE + 0.6),
    ):
        result = run.results[name]
        check(result)
        assert word_error_rate(text, result) <= MOST_ERRORS, name
        assert result.words[-1] == text.split()[-1], name
        assert result.transcript["duration"] == pytest.approx(duration, abs=1e-3)
        assert result.transcript["warnings"] == []
        assert result.segments[-1]["end"] == pytest.approx(length / RATE, abs=0.7)
    plain, longer = (run.results[name] for name in (str(length), f"{length}-and-silence"))
    assert plain.words == longer.words


@pytest.fixture(scope="module")
def quick(
    place: Path, sentences: list[tuple[Samples, str]], models: dict[str, str]
) -> tuple[Run, dict[int, str]]:
    return run_lengths(QUICK, sentences, models["whisper"], place)


@pytest.mark.parametrize("length", QUICK)
def test_the_last_word_is_there(quick: tuple[Run, dict[int, str]], length: int) -> None:
    run, texts = quick
    assert (run.outcome.code, run.outcome.out) == (0, "")
    assert len(run.outcome.err.splitlines()) == 1  # the model's
    check_length(run, length, texts[length])


def test_more_audio_never_has_fewer_words(quick: tuple[Run, dict[int, str]]) -> None:
    counts = [len(quick[0].results[str(length)].words) for length in QUICK]
    assert counts == sorted(counts)


@pytest.mark.parametrize("end", IN_A_WORD)
def test_a_recording_that_ends_in_a_word(quick: tuple[Run, dict[int, str]], end: float) -> None:
    """Its text begins as that of the whole does, and no time lies behind its end."""
    result: Result = quick[0].results[f"cut-at-{end:g}s"]
    check(result)
    assert result.transcript["duration"] == end
    whole = quick[0].results[str(QUICK[-1])].words
    count = len(result.words) - 3
    same = sum(a == b for a, b in zip(result.words[:count], whole[:count], strict=True))
    assert count >= 2 * end - 5  # they speak faster than two words a second
    assert same >= 0.9 * count


@pytest.mark.slow
def test_further_lengths(
    sentences: list[tuple[Samples, str]], models: dict[str, str], tmp_path: Path
) -> None:
    run, texts = run_lengths(MORE, sentences, models["whisper"], tmp_path)
    for length in MORE:
        check_length(run, length, texts[length])
