"""Slots: preallocated keys and values, one slot a running row, one audio slot a request.

Rows sit in slots 0 to n - 1 without a hole, so every step reads plain slices and computes live rows
only. When a row ends, the last one moves into its slot; likewise the audio, when a request ends.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.audio_bags import BagAudioCache
from asrcli.engine.audio_cache import AudioCache, AudioShape
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

    @property
    def audio(self) -> AudioShape:
        """Sizes of the audio that a slot holds."""
        return AudioShape(
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            num_positions=self.num_audio_positions,
        )

    def slot_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one slot, in bytes."""
        room = self.audio.room
        width = self.num_layers * self.num_heads * self.head_dim
        return (2 * (self.max_length + room) * width + room) * dtype.itemsize


class SlotCache:
    """Keys and values of all slots.

    Attributes:
        keys, values: per layer [num_slots, num_heads, max_length, head_dim]: of the ids so far.
        audio: what the rows attend to besides.
    """

    def __init__(
        self, shape: CacheShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.num_slots = num_slots
        heads, width = shape.num_heads, shape.head_dim

        def allocate() -> list[Tensor]:
            # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
            return [
                sparse_zeros(num_slots, heads, shape.max_length, width, device=device, dtype=dtype)
                for _ in range(shape.num_layers)
            ]

        self.keys, self.values = allocate(), allocate()
        kind = BagAudioCache if device.type == "cpu" else AudioCache
        self.audio = kind(shape.audio, num_slots, device, dtype)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy the ids of slot ``source``, ``length`` of them, over slot ``target``."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def wipe(self, slot: int, audio_slot: int) -> None:
        """Set all that a slot and an audio slot hold to zero."""
        for tensor in (*self.keys, *self.values):
            tensor[slot] = 0
        self.audio.wipe(audio_slot)
