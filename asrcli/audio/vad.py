"""Where somebody speaks: the Silero voice detector, many frames at once.

The weights are those of the silero-vad package (MIT), read from its ``silero_vad_16k.safetensors``;
its own code takes one frame after the other. Here the convolutions, written as matrix products, run
over all frames of a block at once, and only the recurrent layer goes step by step, inside torch.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from asrcli.compute_threads import one_thread
from asrcli.errors import AsrError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray
    from torch import Tensor

FRAME_SAMPLES = 512  # at 16 kHz: 32 ms
CONTEXT_SAMPLES = 64  # of the frame before, which the network sees as well
_PADDING = 64  # samples mirrored behind a frame
_WINDOW, _STRIDE = 256, 128  # samples; of the short-time Fourier transform
_HIDDEN = 128

SAMPLING_RATE = 16_000
FULL_LEVEL = 0.3  # peak of speech that was recorded well
MAX_GAIN = 1000.0  # 60 dB
STEADY_FRAMES = 32  # a second
STEADY_RANGE = 2.0  # dB, all but the outer tenth; a buzz moves by 0.5, speech in noise by 6
_NO_POWER = 1e-12
_FORGETTING = 0.8  # what is left of the peak after a second: a tenth after ten


class VoiceDetector:
    """The network. One serves any number of streams; it holds nothing of them."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        import torch

        def taps(name: str) -> Tensor:
            """Convolution kernel [out, in, 3] as [3 · in, out], oldest column first."""
            kernel = weights[f"{name}.weight"]
            return kernel.permute(2, 1, 0).reshape(-1, kernel.shape[0]).contiguous()

        # Its rows are those of a discrete Fourier transform, windowed; the first is the window.
        self._window = weights["stft_conv.weight"][0, 0].contiguous()
        self._taps = {name: taps(name) for name in ("conv1", "conv2", "conv3", "conv4")}
        self._biases = {name: weights[f"{name}.bias"] for name in self._taps}
        self._recurrent = torch.nn.LSTM(_HIDDEN, _HIDDEN)
        self._recurrent.load_state_dict(
            {
                f"{kind}_{side}_l0": weights[f"lstm_cell.{kind}_{side}"]
                for kind in ("weight", "bias")
                for side in ("ih", "hh")
            }
        )
        self._recurrent.requires_grad_(False)
        self._final = weights["final_conv.weight"][0, :, 0]
        self._final_bias = weights["final_conv.bias"]

    def __call__(
        self, samples: NDArray[np.float32], state: tuple[Tensor, Tensor] | None
    ) -> tuple[NDArray[np.float32], tuple[Tensor, Tensor]]:
        """Probability of speech, frame by frame.

        Args:
            samples: float32 [CONTEXT_SAMPLES + num_frames · FRAME_SAMPLES], at 16 kHz.
            state: what the frames before left behind; None at the start.

        Returns:
            float32 [num_frames], and the state behind them.
        """
        import torch

        with torch.inference_mode(), one_thread():
            frames = torch.from_numpy(samples).unfold(
                0, CONTEXT_SAMPLES + FRAME_SAMPLES, FRAME_SAMPLES
            )
            states, state = self._recurrent(self._encode(frames)[:, None], state)
            logits = states[:, 0].relu() @ self._final + self._final_bias
            return logits.sigmoid().numpy(), state

    def _encode(self, frames: Tensor) -> Tensor:
        """Frames [num_frames, 576] to what the recurrent layer takes, [num_frames, 128]."""
        import torch

        mirrored = frames[:, -_PADDING - 1 : -1].flip(-1)
        pieces = torch.cat([frames, mirrored], dim=1).unfold(1, _WINDOW, _STRIDE)
        columns = torch.fft.rfft(pieces * self._window).abs()
        columns = self._convolve("conv1", columns, places=(0, 1, 2, 3))
        columns = self._convolve("conv2", columns, places=(0, 2))
        columns = self._convolve("conv3", columns, places=(0,))
        return self._convolve("conv4", columns, places=(0,))[:, 0]

    def _convolve(self, name: str, columns: Tensor, places: tuple[int, ...]) -> Tensor:
        """Three taps around some columns, zeros beyond the edges: [num_frames, columns, out]."""
        import torch

        padded = torch.nn.functional.pad(columns, (0, 0, 1, 1))
        around = torch.stack([padded[:, place : place + 3].flatten(1) for place in places], dim=1)
        return (around @ self._taps[name] + self._biases[name]).relu_()


class VoiceStream:
    """One recording's way through the detector, block by block.

    What is quiet is made louder first, since the network hardly hears speech at -40 dB; noise stays
    noise for it at any level. The level follows the loudest of the last ten seconds or so. A buzz,
    which it takes for a voice, is told by its level, that of no voice is so steady.

    Args:
        helps: whether all that is done; without, probabilities are those of the network on the
            audio itself.
    """

    def __init__(self, detector: VoiceDetector, *, helps: bool = True) -> None:
        self._detector = detector
        self._state: tuple[Tensor, Tensor] | None = None
        self._helps = helps
        self._peak = 0.0
        self._rest = np.zeros(CONTEXT_SAMPLES, np.float32)  # the context and what fills no frame
        self._steadiness = Steadiness()

    def add(self, block: NDArray[np.float32]) -> NDArray[np.float32]:
        """Probabilities, float32, of further frames, given a block (float32 [n], 16 kHz).

        They lag a second behind the audio.
        """
        if self._helps and len(block):
            block = block - block.mean()  # beside a constant offset the network hears nothing
            block *= np.float32(self._gain(block))
        samples = np.concatenate([self._rest, block])
        num_frames = (len(samples) - CONTEXT_SAMPLES) // FRAME_SAMPLES
        if num_frames < 1:
            self._rest = samples
            return np.zeros(0, np.float32)
        end = CONTEXT_SAMPLES + num_frames * FRAME_SAMPLES
        probabilities, self._state = self._detector(samples[:end], self._state)
        self._rest = samples[end - CONTEXT_SAMPLES :]
        if not self._helps:
            return probabilities
        return self._steadiness.add(probabilities, samples[CONTEXT_SAMPLES:end])

    def finish(self) -> NDArray[np.float32]:
        """Probabilities of all that is left; zeros fill up a last frame that is not full."""
        missing = FRAME_SAMPLES + CONTEXT_SAMPLES - len(self._rest)
        last = np.zeros(0, np.float32)
        if missing != FRAME_SAMPLES:
            helps, self._helps = self._helps, False
            last = self.add(np.zeros(missing, np.float32))
            self._helps = helps
        return np.concatenate([self._steadiness.finish(), last]) if self._helps else last

    def _gain(self, block: NDArray[np.float32]) -> float:
        """By how much a block is to be made louder: 1 or more."""
        forgotten = _FORGETTING ** (len(block) / SAMPLING_RATE)
        self._peak = max(float(np.abs(block).max()), self._peak * forgotten, FULL_LEVEL / MAX_GAIN)
        return max(1.0, FULL_LEVEL / self._peak)


class Steadiness:
    """Takes from frames the name of speech whose level hardly moves for a second."""

    def __init__(self) -> None:
        self._levels = np.zeros(0)  # dB; of the frames held back and of a second before them
        self._probabilities = np.zeros(0, np.float32)  # of the frames held back

    def add(
        self, probabilities: NDArray[np.float32], samples: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Probabilities of frames about which no later one will tell any more."""
        power = np.square(samples.reshape(-1, FRAME_SAMPLES), dtype=np.float64).mean(axis=1)
        self._levels = np.concatenate([self._levels, 10 * np.log10(power + _NO_POWER)])
        self._probabilities = np.concatenate([self._probabilities, probabilities])
        known = self.finish()
        num_held = min(len(known), STEADY_FRAMES - 1)
        self._levels = self._levels[-(num_held + STEADY_FRAMES - 1) :]
        self._probabilities = self._probabilities[len(known) - num_held :]
        return known[: len(known) - num_held]

    def finish(self) -> NDArray[np.float32]:
        """Those of all frames that are held back, as far as can be told."""
        num_levels = len(self._levels)
        steady = np.zeros(num_levels, bool)
        if num_levels >= STEADY_FRAMES:
            spans = np.lib.stride_tricks.sliding_window_view(self._levels, STEADY_FRAMES)
            low, high = np.percentile(spans, (5, 95), axis=1)
            for begin in np.flatnonzero(high - low < STEADY_RANGE):
                steady[begin : begin + STEADY_FRAMES] = True
        held = steady[num_levels - len(self._probabilities) :]
        return np.where(held, np.float32(0.0), self._probabilities)


@cache
def load_detector() -> VoiceDetector:
    """Load the weights that the silero-vad package brings along.

    Raises:
        AsrError: the package is not installed, or not whole.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    spec = find_spec("silero_vad")  # found and not imported: its own imports take a second
    places = spec.submodule_search_locations if spec is not None else None
    try:
        if not places:
            raise FileNotFoundError("the package silero-vad is not installed")
        with one_thread():
            return VoiceDetector(load_file(Path(places[0]) / "data" / "silero_vad_16k.safetensors"))
    except (OSError, SafetensorError) as error:
        raise AsrError(
            f"the voice detector cannot be loaded: {error}",
            hint="pip install silero-vad, or go without it: --no-vad",
        ) from None
