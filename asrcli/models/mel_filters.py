"""The triangles that gather frequencies into mel bins.

On Slaney's scale (Auditory Toolbox, 1998): linear up to 1 kHz, where a mel is 66.7 Hz, and
logarithmic above, 27 mels to a factor of 6.4. Libraries have these filters too, and take over half
a second to be imported for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_HERTZ_PER_MEL = 200.0 / 3
_BREAK = 1000.0  # Hz: linear below, logarithmic above
_STEP = np.log(6.4) / 27  # of the logarithm of the frequency in a mel


def mel_filters(num_mel_bins: int, fft_length: int, sampling_rate: int) -> NDArray[np.float64]:
    """Triangles of equal area whose corners are equally far apart in mels, from 0 Hz to the top.

    Returns:
        [num_mel_bins, fft_length / 2 + 1].
    """
    highest = sampling_rate / 2
    mels = _BREAK / _HERTZ_PER_MEL + np.log(highest / _BREAK) / _STEP
    corners = _hertz(np.linspace(0.0, mels, num_mel_bins + 2))
    distances = corners[:, None] - np.linspace(0.0, highest, fft_length // 2 + 1)
    widths = np.diff(corners)[:, None]
    rising, falling = -distances[:-2] / widths[:-1], distances[2:] / widths[1:]
    height = 2.0 / (corners[2:] - corners[:-2])
    return np.maximum(0.0, np.minimum(rising, falling)) * height[:, None]


def _hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
    above = mels - _BREAK / _HERTZ_PER_MEL
    return np.where(above < 0.0, mels * _HERTZ_PER_MEL, _BREAK * np.exp(above * _STEP))
