"""Slots: preallocated keys and values, one slot a running row, one audio slot a request.

Rows sit in slots 0 to n - 1 without a hole, so every step reads plain slices and computes live rows
only. When a row ends, the last one moves into its slot; likewise the audio, when a request ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """Sizes of a slot cache.

    Attributes:
        num_layers: decoder layers.
        num_heads: heads of the keys and values.
        head_dim: width of a head.
        max_length: ids that a row can hold, its prompt included.
        num_audio_positions: encoder positions that a row attends to.
    """

    num_layers: int
    num_heads: int
    head_dim: int
    max_length: int
    num_audio_positions: int

    def slot_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one slot, in bytes."""
        positions = self.max_length + self.num_audio_positions
        width = self.num_layers * self.num_heads * self.head_dim
        return 2 * positions * width * dtype.itemsize


class SlotCache:
    """Keys and values of all slots.

    Attributes:
        keys, values: per layer [num_slots, num_heads, max_length, head_dim]: of the ids so far.
        audio_keys: per layer [num_slots, num_heads, head_dim, num_audio_positions]: transposed, so
            that a step's product with the queries reads memory in order.
        audio_values: per layer [num_slots, num_heads, num_audio_positions, head_dim].
    """

    def __init__(
        self, shape: CacheShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.shape = shape
        self.num_slots = num_slots
        heads, width = shape.num_heads, shape.head_dim

        def allocate(*sizes: int) -> list[Tensor]:
            # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
            return [
                torch.zeros(num_slots, heads, *sizes, device=device, dtype=dtype)
                for _ in range(shape.num_layers)
            ]

        self.keys = allocate(shape.max_length, width)
        self.values = allocate(shape.max_length, width)
        self.audio_keys = allocate(width, shape.num_audio_positions)
        self.audio_values = allocate(shape.num_audio_positions, width)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the ids of slot ``source``, ``length`` of them, over slot ``target``."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def move_audio(self, source: int, target: int) -> None:
        """Copy audio slot ``source`` over audio slot ``target``."""
        for tensor in (*self.audio_keys, *self.audio_values):
            tensor[target] = tensor[source]

    def wipe(self, slot: int, audio_slot: int) -> None:
        """Set all that a slot and an audio slot hold to zero."""
        for tensor in (*self.keys, *self.values):
            tensor[slot] = 0
        for tensor in (*self.audio_keys, *self.audio_values):
            tensor[audio_slot] = 0
