"""Qwen3-ASR's audio tower: chunks of a second through convolutions, attention over eight of them.

Three convolutions make 13 positions of the 100 frames of a chunk; the positions of a chunk count
from 0. Attention spans eight chunks (800 frames), so a recording's windows, and those of
recordings beside it, are rows of one batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.encoder_decoder import EncoderLayer
from asrcli.engine.layers import LayerNorm, Linear, attend
from asrcli.engine.packing import pack
from asrcli.engine.transfer import send, upload
from asrcli.models.qwen3_asr_positions import DOWNSAMPLING, count_positions

CHUNKS_AT_ONCE = {"cuda": 256}  # through the convolutions, of 6 MB each in float32
CHUNKS_AT_ONCE_ELSEWHERE = 8  # more of them are no faster on a CPU
LONGEST_WAVE = 10_000.0  # of the positions' sinusoids, as in Vaswani et al. 2017


@dataclass(frozen=True, slots=True, kw_only=True)
class TowerWeights:
    """All weights of the tower and of the projector behind it.

    Attributes:
        convolutions: (weight, bias) of each, all of 3 by 3 with a stride of 2, in order.
        convolutions_out: channels by frequencies of a position to the width.
        layers, norm: the transformer.
        projector_in, projector_out: to the language model's width, with a GELU in between.
        num_heads: of every attention.
        chunk_length: frames that the convolutions take by themselves.
        chunks_per_window: chunks that attention spans.
    """

    convolutions: tuple[tuple[Tensor, Tensor], ...]
    convolutions_out: Linear
    layers: tuple[EncoderLayer, ...]
    norm: LayerNorm
    projector_in: Linear
    projector_out: Linear
    num_heads: int
    chunk_length: int
    chunks_per_window: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """Where the chunks of all recordings stand among the windows of attention.

    Attributes:
        slots: [num_chunks], the place of each chunk; every window has ``num_chunks_each``.
        num_windows, num_chunks_each: sizes of the batch; shorter windows have empty places.
        mask: [num_windows, 1, 1, positions], minus infinity where there is no audio.
    """

    slots: Tensor
    num_windows: int
    num_chunks_each: int
    mask: Tensor


class Tower:
    """Encodes windows of unequal length, all at once; see ``AudioTower`` of the engine."""

    def __init__(self, weights: TowerWeights) -> None:
        self.weights = pack(weights)
        width = len(weights.norm.weight)
        self._device, self._dtype = weights.norm.weight.device, weights.norm.weight.dtype
        self._num_positions = count_positions(weights.chunk_length, weights.chunk_length)
        positions = sinusoids(self._num_positions, width)
        self._positions = positions.to(self._device, self._dtype)

    def __call__(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Features of each window, [num_mel_bins, num_frames], to [num_positions, width]."""
        lengths = [one.shape[1] for one in features]
        layout = self._arrange(lengths)
        states = self._embed(torch.cat([self._chunks(one) for one in features]))
        for layer in self.weights.layers:
            states = states + layer.attention_out(self._attend(layer, states, layout))
            hidden = F.gelu(layer.feed_forward_in(layer.feed_forward_norm(states)))
            states = states + layer.feed_forward_out(hidden)
            if states.dtype == torch.float16:  # whose range the sums may leave
                limit = torch.finfo(states.dtype).max - 1000
                states = states.clamp(-limit, limit)
        states = F.gelu(self.weights.projector_in(self.weights.norm(states)))
        encoded = self.weights.projector_out(states)
        parts = torch.split(encoded, [self._count_chunks(length) for length in lengths])
        return [
            part.flatten(0, 1)[: count_positions(length, self.weights.chunk_length)]
            for part, length in zip(parts, lengths, strict=True)
        ]

    def _count_chunks(self, num_frames: int) -> int:
        return -(-num_frames // self.weights.chunk_length)

    def _chunks(self, features: Tensor) -> Tensor:
        """[num_mel_bins, num_frames] to [num_chunks, num_mel_bins, chunk_length], zeros behind."""
        num_chunks = self._count_chunks(features.shape[1])
        missing = num_chunks * self.weights.chunk_length - features.shape[1]
        padded = F.pad(features, (0, missing))
        return padded.view(len(features), num_chunks, self.weights.chunk_length).transpose(0, 1)

    def _embed(self, chunks: Tensor) -> Tensor:
        """[num_chunks, num_mel_bins, chunk_length] to [num_chunks, num_positions, width]."""
        at_once = CHUNKS_AT_ONCE.get(self._device.type, CHUNKS_AT_ONCE_ELSEWHERE)
        return torch.cat([self._convolve(part) for part in torch.split(chunks, at_once)])

    def _convolve(self, chunks: Tensor) -> Tensor:
        states = send(chunks[:, None], self._device).to(self._dtype)
        for weight, bias in self.weights.convolutions:
            states = F.gelu(F.conv2d(states, weight, bias, stride=2, padding=1))
        return (
            self.weights.convolutions_out(states.permute(0, 3, 1, 2).flatten(2)) + self._positions
        )

    def _arrange(self, lengths: Sequence[int]) -> _Layout:
        """Deal the chunks of recordings of so many frames out to windows of attention."""
        weights = self.weights
        most = max(map(self._count_chunks, lengths), default=0)
        num_each = min(weights.chunks_per_window, max(most, 1))
        slots, num_windows = list[int](), 0
        sizes = list[int]()  # positions with audio, of each chunk
        for length in lengths:
            num_chunks = self._count_chunks(length)
            first = num_windows * num_each
            slots += range(first, first + num_chunks)
            num_windows += -(-num_chunks // num_each)
            whole, rest = divmod(length, weights.chunk_length)
            sizes += [self._num_positions] * whole + [-(-rest // DOWNSAMPLING)] * (rest > 0)
        places = torch.arange(self._num_positions)
        is_audio = torch.zeros(num_windows * num_each, self._num_positions, dtype=torch.bool)
        is_audio[slots] = places < torch.tensor(sizes, dtype=torch.long)[:, None]
        mask = torch.zeros(is_audio.shape, dtype=self._dtype).masked_fill_(~is_audio, -torch.inf)
        return _Layout(
            slots=upload(slots, self._device),
            num_windows=num_windows,
            num_chunks_each=num_each,
            mask=send(mask.view(num_windows, 1, 1, -1), self._device),
        )

    def _attend(self, layer: EncoderLayer, states: Tensor, layout: _Layout) -> Tensor:
        """Attention within windows, [num_chunks, num_positions, width] to the same."""
        qkv = layer.qkv(layer.attention_norm(states))
        num_slots = layout.num_windows * layout.num_chunks_each
        is_full = num_slots == len(qkv)  # the chunks stand in order, without a gap
        rows = qkv
        if not is_full:
            rows = qkv.new_zeros(num_slots, *qkv.shape[1:])
            rows[layout.slots] = qkv
        heads = self.weights.num_heads
        rows = rows.view(layout.num_windows, -1, 3, heads, qkv.shape[-1] // 3 // heads)
        query, key, value = rows.permute(2, 0, 3, 1, 4).contiguous()  # one copy instead of three
        attended = attend(query, key.transpose(2, 3), value, layout.mask)
        attended = attended.view(num_slots, self._num_positions, -1)
        return attended if is_full else attended[layout.slots]


def sinusoids(num_positions: int, width: int) -> Tensor:
    """Sines and then cosines of each position, float32 [num_positions, width]."""
    steps = torch.arange(width // 2, dtype=torch.float32) / (width // 2 - 1)
    angles = torch.arange(num_positions)[:, None] * LONGEST_WAVE**-steps
    return torch.cat([angles.sin(), angles.cos()], dim=1)
