"""Features against those of transformers, from which the checkpoints' users get theirs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from transformers import WhisperFeatureExtractor

from asrcli.models.log_mel import LogMel
from tests.speech import RATE, Sentence, cuts, read

LENGTHS = [1, 159, 160, 161, round(0.3 * RATE), 11 * RATE, round(29.99 * RATE), 30 * RATE]


def check(samples: NDArray[np.float32], num_mel_bins: int) -> None:
    extractor = WhisperFeatureExtractor(feature_size=num_mel_bins)
    expected = extractor(samples, sampling_rate=RATE, return_tensors="np")["input_features"][0]
    found = LogMel(num_mel_bins)(samples)
    assert found.shape == (num_mel_bins, 3000)
    np.testing.assert_allclose(found.numpy(), expected, atol=1e-5, rtol=0)


@pytest.mark.parametrize("num_mel_bins", [80, 128])
@pytest.mark.parametrize("num_samples", LENGTHS)
def test_noise(num_samples: int, num_mel_bins: int) -> None:
    noise = 0.1 * np.random.default_rng(num_samples).standard_normal(num_samples)
    check(noise.astype(np.float32), num_mel_bins)


@pytest.mark.parametrize("num_mel_bins", [80, 128])
def test_speech(speech: list[Sentence], num_mel_bins: int) -> None:
    for sentence in speech:
        check(read(sentence.path), num_mel_bins)


def test_thirty_seconds_of_speech(speech: list[Sentence]) -> None:
    check(np.concatenate(cuts(speech))[: 30 * RATE], 80)
    check(np.concatenate(cuts(speech))[: round(29.99 * RATE)], 128)


@pytest.mark.parametrize("num_samples", [1, RATE, 30 * RATE])
def test_silence(num_samples: int) -> None:
    check(np.zeros(num_samples, np.float32), 80)


def test_speech_that_ends_in_silence(speech: list[Sentence]) -> None:
    samples = read(speech[0].path)
    check(np.concatenate([samples, np.zeros(5 * RATE, np.float32)]), 80)


def test_very_quiet_and_very_loud(speech: list[Sentence]) -> None:
    samples = read(speech[1].path)
    check(samples * np.float32(1e-4), 80)
    check(np.clip(samples * np.float32(50), -1, 1), 80)


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(ValueError, match="480001 samples do not fit 480000"):
        LogMel(80)(np.zeros(30 * RATE + 1, np.float32))
