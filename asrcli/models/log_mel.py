"""Log-mel spectrograms as Whisper (openai/whisper, ``audio.py``) and Qwen3-ASR were trained on."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.models.mel_filters import mel_filters

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FFT_LENGTH = 400  # samples: 25 ms
HOP_LENGTH = 160  # samples: 10 ms, one frame
POWER_FLOOR = 1e-10
DYNAMIC_RANGE = 8.0  # decades below the loudest bin, beyond which all is floor


class LogMel:
    """Extracts features of a fixed length from windows of any shorter length.

    Args:
        num_mel_bins: 80, or 128 for large-v3 and its kin.
        duration: seconds that a feature matrix covers; shorter windows are padded with silence.
    """

    def __init__(self, num_mel_bins: int, duration: float = 30.0) -> None:
        self.num_samples = round(duration * SAMPLING_RATE)
        self.num_frames = self.num_samples // HOP_LENGTH
        self._filters = _mel_filters(num_mel_bins)
        self._window = torch.hann_window(FFT_LENGTH)

    def __call__(self, samples: NDArray[np.float32]) -> Tensor:
        """Features of one window.

        Args:
            samples: float32 [num_samples], 16 kHz mono, at most ``self.num_samples``.

        Returns:
            float32 [num_mel_bins, num_frames].
        """
        if len(samples) > self.num_samples:
            raise ValueError(f"{len(samples)} samples do not fit {self.num_samples}")
        # Only what the window reaches is computed; the silence behind it is known beforehand. One
        # FFT of zeros keeps the last frames from seeing a mirror image of the window's end.
        num_padded = min(len(samples) + 2 * FFT_LENGTH, self.num_samples)
        padded = torch.nn.functional.pad(torch.from_numpy(samples), (0, num_padded - len(samples)))
        power = _power(padded, self._window)
        log_power = torch.full((len(self._filters), self.num_frames), POWER_FLOOR).log10_()
        log_power[:, : power.shape[1]] = (self._filters @ power).clamp_(min=POWER_FLOOR).log10_()
        return _level(log_power)


class UnpaddedLogMel:
    """Extracts features that are as long as the window, as Qwen3-ASR was trained on them.

    A window is always extracted by itself: behind it stands its own mirror image, not silence, so
    that padding samples up to a longer neighbour would change its last frame and their number.

    Args:
        num_mel_bins: 128 in the published checkpoints.
        min_num_samples: shorter windows are padded with silence up to this.
    """

    def __init__(self, num_mel_bins: int, min_num_samples: int = 8000) -> None:
        self._min_num_samples = min_num_samples
        self._filters = _mel_filters(num_mel_bins)
        self._window = torch.hann_window(FFT_LENGTH)

    def __call__(self, samples: NDArray[np.float32]) -> Tensor:
        """Features of one window.

        Args:
            samples: float32 [num_samples], 16 kHz mono.

        Returns:
            float32 [num_mel_bins, num_frames], a frame for each whole 160 samples.
        """
        missing = max(0, self._min_num_samples - len(samples))
        padded = torch.nn.functional.pad(torch.from_numpy(samples), (0, missing))
        power = _power(padded, self._window)
        return _level((self._filters @ power).clamp_(min=POWER_FLOOR).log10_())


def _power(samples: Tensor, window: Tensor) -> Tensor:
    """Power of each frequency, [FFT_LENGTH / 2 + 1, num_frames]; the frame past the end is left."""
    spectrum = torch.stft(samples, FFT_LENGTH, HOP_LENGTH, window=window, return_complex=True)
    return spectrum[:, :-1].abs().square_()


def _level(log_power: Tensor) -> Tensor:
    """Decades of power, cut off far below the loudest, to a range about 0."""
    log_power = torch.maximum(log_power, log_power.max() - DYNAMIC_RANGE)
    return (log_power + 4.0) / 4.0


@lru_cache
def _mel_filters(num_mel_bins: int) -> Tensor:
    """Slaney's triangles, [num_mel_bins, FFT_LENGTH / 2 + 1]."""
    filters = mel_filters(num_mel_bins, FFT_LENGTH, SAMPLING_RATE)
    return torch.from_numpy(filters).float()
