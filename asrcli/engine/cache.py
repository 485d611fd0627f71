"""Slots: preallocated keys and values, one slot a running row, one audio slot a request.

Rows sit in slots 0 to n - 1 without a hole, so every step reads plain slices and computes live rows
only. When a row ends, the last one moves into its slot; likewise the audio, when a request ends.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.zeros import sparse_zeros


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
        numbers = 2 * positions * width + self.num_audio_positions
        return numbers * dtype.itemsize


class SlotCache:
    """Keys and values of all slots.

    Attributes:
        keys, values: per layer [num_slots, num_heads, max_length, head_dim]: of the ids so far.
        audio_keys, audio_values: per layer [num_slots, num_heads, audio_room, head_dim].
        audio_weights: [num_slots, num_audio_positions], what is added to the scores of an audio
            slot's positions: logarithms of their weights, minus infinity where nothing lies.
        audio_room: encoder positions that every audio slot has room for. It follows what is there:
            a product reads tensors without holes twice as fast as it reads parts of longer ones.
    """

    def __init__(
        self, shape: CacheShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.shape = shape
        self.num_slots = num_slots
        heads, width = shape.num_heads, shape.head_dim

        def allocate(length: int) -> list[Tensor]:
            # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
            return [
                sparse_zeros(num_slots, heads, length, width, device=device, dtype=dtype)
                for _ in range(shape.num_layers)
            ]

        self.keys, self.values = allocate(shape.max_length), allocate(shape.max_length)
        self.audio_room = shape.num_audio_positions
        self.audio_keys, self.audio_values = allocate(self.audio_room), allocate(self.audio_room)
        self.audio_weights = torch.zeros(num_slots, self.audio_room, device=device, dtype=dtype)
        self._whole = (self.audio_keys, self.audio_values)

    def fit_audio(self, room: int, num_live: int) -> None:
        """Give every audio slot room for so many positions, in the memory that there is.

        Args:
            num_live: audio slots that are in use, from 0 on; as much of each as fits stays.
        """
        if room == self.audio_room:
            return
        length = min(room, self.audio_room)
        keys, values = (self._fit(whole, room) for whole in self._whole)
        for old, new in zip((*self.audio_keys, *self.audio_values), (*keys, *values), strict=True):
            if num_live:  # by way of a copy: both lie in the same memory
                new[:num_live, :, :length] = old[:num_live, :, :length].clone()
        self.audio_keys, self.audio_values, self.audio_room = keys, values, room

    def _fit(self, whole: list[Tensor], room: int) -> list[Tensor]:
        sizes = (self.num_slots, self.shape.num_heads, room, self.shape.head_dim)
        return [tensor.view(-1)[: math.prod(sizes)].view(sizes) for tensor in whole]

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the ids of slot ``source``, ``length`` of them, over slot ``target``."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def move_audio(self, source: int, target: int) -> None:
        """Copy audio slot ``source`` over audio slot ``target``."""
        for tensor in (*self.audio_keys, *self.audio_values, self.audio_weights):
            tensor[target] = tensor[source]

    def wipe(self, slot: int, audio_slot: int) -> None:
        """Set all that a slot and an audio slot hold to zero."""
        for tensor in (*self.keys, *self.values):
            tensor[slot] = 0
        for tensor in (*self.audio_keys, *self.audio_values, self.audio_weights):
            tensor[audio_slot] = 0
