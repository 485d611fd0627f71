from __future__ import annotations

import numpy as np
import pytest
from transformers.audio_utils import mel_filter_bank

from asrcli.models.mel_filters import mel_filters


@pytest.mark.parametrize("num_mel_bins", [80, 128])
def test_filters_are_those_that_models_were_trained_with(num_mel_bins: int) -> None:
    expected = mel_filter_bank(
        num_frequency_bins=201,
        num_mel_filters=num_mel_bins,
        min_frequency=0.0,
        max_frequency=8000.0,
        sampling_rate=16_000,
        norm="slaney",
        mel_scale="slaney",
    )
    np.testing.assert_allclose(mel_filters(num_mel_bins, 400, 16_000), expected.T, atol=1e-12)
