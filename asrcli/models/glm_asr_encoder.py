"""The audio tower of GLM-ASR: Whisper's encoder with rotary positions, and four states made one.

It takes no mask: the silence behind a window's audio is encoded like the audio itself, so that a
window's embeddings depend on the length of its row. Rows are therefore always whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.encoder_decoder import EncoderLayer
from asrcli.engine.layers import LayerNorm, Linear, attend_all
from asrcli.engine.transfer import send


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerWeights:
    """All weights of the tower, in the dtype and on the device that they run in.

    Attributes:
        convolutions: (weight, bias, stride) of the stem, in order.
        layers, norm: the encoder; its queries are scaled by 1/sqrt(head_dim) in their weights.
        projector_in, projector_out: from states that follow each other, laid side by side, to the
            width of the language model.
        num_heads: of every attention.
        rotary_frequencies: float32 [n], radians a position; 2n of a head's dimensions turn, the
            others stay.
    """

    convolutions: tuple[tuple[Tensor, Tensor, int], ...]
    layers: tuple[EncoderLayer, ...]
    norm: LayerNorm
    projector_in: Linear
    projector_out: Linear
    num_heads: int
    rotary_frequencies: Tensor


class Tower:
    """Encodes windows; see ``asrcli.engine.decoder_only.AudioTower``."""

    def __init__(self, weights: TowerWeights) -> None:
        self.weights = weights
        self.device = weights.norm.weight.device
        self.dtype = weights.norm.weight.dtype

    def __call__(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Rows of one length, [num_mel_bins, num_frames], to [num_frames / 8, width] of each."""
        states = self._convolve(send(torch.stack(list(features)), self.device).to(self.dtype))
        rotation = self._rotation(states.shape[1])
        for layer in self.weights.layers:
            attended = self._attend(layer.qkv(layer.attention_norm(states)), rotation)
            states = states + layer.attention_out(attended)
            inner = layer.feed_forward_in(layer.feed_forward_norm(states))
            states = states + layer.feed_forward_out(F.gelu(inner))
        return list(self._project(self.weights.norm(states)))

    def _convolve(self, states: Tensor) -> Tensor:
        """[num_windows, num_mel_bins, num_frames] to [num_windows, num_frames / 2, width]."""
        for weight, bias, stride in self.weights.convolutions:
            states = F.gelu(F.conv1d(states, weight, bias, stride=stride, padding=1))
        return states.transpose(1, 2)

    def _project(self, states: Tensor) -> Tensor:
        """Lay as many states side by side as the projector takes in, and project them."""
        merged = states.reshape(len(states), -1, self.weights.projector_in.weight.shape[1])
        return self.weights.projector_out(F.gelu(self.weights.projector_in(merged)))

    def _rotation(self, num_positions: int) -> tuple[Tensor, Tensor]:
        """Cosines and sines [num_positions, 1, 1, 2n], reckoned in float32."""
        positions = torch.arange(num_positions, device=self.device, dtype=torch.float32)
        angles = positions[:, None] * self.weights.rotary_frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None, None]
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def _attend(self, qkv: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
        """Self-attention: [windows, positions, 3 * width] to [windows, positions, width]."""
        num_windows, num_positions, _ = qkv.shape
        split = qkv.view(num_windows, num_positions, 3, self.weights.num_heads, -1)
        turned = _rotate(split[:, :, :2], rotation)
        query, key = turned.permute(2, 0, 3, 1, 4).unbind(0)
        return attend_all(query, key, split[:, :, 2].transpose(1, 2))


def _rotate(heads: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the first dimensions of each head by its position's angles."""
    cosines, sines = rotation
    num_turned = cosines.shape[-1]
    turned, rest = heads[..., :num_turned], heads[..., num_turned:]
    first, second = turned.chunk(2, dim=-1)
    turned = turned * cosines + torch.cat((-second, first), dim=-1) * sines
    return torch.cat((turned, rest), dim=-1)
