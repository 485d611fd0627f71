"""Log-mel spectrograms as Whisper (openai/whisper, ``audio.py``) and Qwen3-ASR were trained on.

They are computed where the network runs, if that is a CUDA device, and stay there; else on the CPU.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.engine.transfer import finish, gpu_beside_engine, open_stream, send
from asrcli.models.mel_filters import mel_filters

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    from numpy.typing import NDArray

FFT_LENGTH = 400  # samples: 25 ms
HOP_LENGTH = 160  # samples: 10 ms, one frame
POWER_FLOOR = 1e-10
DYNAMIC_RANGE = 8.0  # decades below the loudest bin, beyond which all is floor

_CPU = torch.device("cpu")


class _Extraction:
    """Filters and window on a device, and the device's stream for them: beside the network's."""

    def __init__(self, num_mel_bins: int, device: torch.device | None) -> None:
        self._device = device if device is not None and device.type == "cuda" else _CPU
        self._filters = _mel_filters(num_mel_bins).to(self._device)
        self._window = torch.hann_window(FFT_LENGTH).to(self._device)
        self._stream = None
        if self._device.type == "cuda":
            self._stream = open_stream(self._device)

    def _extract(self, samples: NDArray[np.float32], compute: Callable[[Tensor], Tensor]) -> Tensor:
        """What is computed of samples, complete."""
        if self._stream is None:
            return compute(torch.from_numpy(samples))
        with gpu_beside_engine, torch.cuda.stream(self._stream):
            features = compute(send(torch.from_numpy(samples), self._device))
            finish(self._stream)
        return features


class LogMel(_Extraction):
    """Extracts features of a fixed length from windows of any shorter length.

    Args:
        num_mel_bins: 80, or 128 for large-v3 and its kin.
        duration: seconds that a feature matrix covers; shorter windows are padded with silence.
        device: where the network runs.
    """

    def __init__(
        self, num_mel_bins: int, duration: float = 30.0, device: torch.device | None = None
    ) -> None:
        super().__init__(num_mel_bins, device)
        self.num_samples = round(duration * SAMPLING_RATE)
        self.num_frames = self.num_samples // HOP_LENGTH

    def __call__(self, samples: NDArray[np.float32]) -> Tensor:
        """Features of one window.

        Args:
            samples: float32 [num_samples], 16 kHz mono, at most ``self.num_samples``.

        Returns:
            float32 [num_mel_bins, num_frames].
        """
        if len(samples) > self.num_samples:
            raise ValueError(f"{len(samples)} samples do not fit {self.num_samples}")
        return self._extract(samples, self._compute)

    def _compute(self, samples: Tensor) -> Tensor:
        # Only what the window reaches is computed; the silence behind it is known beforehand. One
        # FFT of zeros keeps the last frames from seeing a mirror image of the window's end.
        num_padded = min(len(samples) + 2 * FFT_LENGTH, self.num_samples)
        padded = torch.nn.functional.pad(samples, (0, num_padded - len(samples)))
        power = _power(padded, self._window)
        sizes = len(self._filters), self.num_frames
        log_power = torch.full(sizes, POWER_FLOOR, device=self._device).log10_()
        log_power[:, : power.shape[1]] = (self._filters @ power).clamp_(min=POWER_FLOOR).log10_()
        return _level(log_power)


class UnpaddedLogMel(_Extraction):
    """Extracts features that are as long as the window, as Qwen3-ASR was trained on them.

    A window is always extracted by itself: behind it stands its own mirror image, not silence, so
    that padding samples up to a longer neighbour would change its last frame and their number.

    Args:
        num_mel_bins: 128 in the published checkpoints.
        min_num_samples: shorter windows are padded with silence up to this.
        device: where the network runs.
    """

    def __init__(
        self, num_mel_bins: int, min_num_samples: int = 8000, device: torch.device | None = None
    ) -> None:
        super().__init__(num_mel_bins, device)
        self._min_num_samples = min_num_samples

    def __call__(self, samples: NDArray[np.float32]) -> Tensor:
        """Features of one window.

        Args:
            samples: float32 [num_samples], 16 kHz mono.

        Returns:
            float32 [num_mel_bins, num_frames], a frame for each whole 160 samples.
        """
        return self._extract(samples, self._compute)

    def _compute(self, samples: Tensor) -> Tensor:
        missing = max(0, self._min_num_samples - len(samples))
        padded = torch.nn.functional.pad(samples, (0, missing))
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
