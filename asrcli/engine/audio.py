"""Encoded audio: what the encoder made of windows."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, eq=False)
class EncodedAudio:
    """What the encoder made of windows of one length.

    Attributes:
        states: [num_windows, num_positions, width].
        log_weights: float [num_positions], the logarithm of how many positions of the network each
            of them stands for; None where each is one and none is missing.
    """

    states: Tensor
    log_weights: Tensor | None = None

    @property
    def num_positions(self) -> int:
        """Encoder positions of each window."""
        return self.states.shape[1]

    def windows(self) -> list[EncodedAudio]:
        """Each window by itself."""
        return [EncodedAudio(states[None], self.log_weights) for states in self.states]


def join(windows: Rows[EncodedAudio]) -> EncodedAudio:
    """Windows of one length, together."""
    states = torch.cat([window.states for window in windows])
    return EncodedAudio(states, windows[0].log_weights)
