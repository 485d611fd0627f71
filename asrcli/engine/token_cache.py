"""Keys and values of rows whose lengths differ widely: memory goes by tokens, not by slots.

Rows sit in slots 0 to n - 1 without a hole and all have room for the longest one's need, so that a
step reads plain slices. The room follows what is running: rows of a minute and rows of twenty would
otherwise need the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.zeros import sparse_zeros


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShape:
    """Sizes of one token in the cache: layers, heads of the keys and values, width of a head."""

    num_layers: int
    num_heads: int
    head_dim: int

    def token_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one token, in bytes."""
        return 2 * self.num_layers * self.num_heads * self.head_dim * dtype.itemsize


class TokenCache:
    """Keys and values of all rows.

    Attributes:
        keys, values: per layer [num_rows, num_heads, room, head_dim].
        room: tokens that each row can hold.
    """

    def __init__(self, shape: TokenShape, device: torch.device, dtype: torch.dtype) -> None:
        self.shape = shape
        self._device = device
        self._dtype = dtype
        self.clear()

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        self.room = 0
        self.keys: list[Tensor] = [self._allocate(0, 0) for _ in range(self.shape.num_layers)]
        self.values: list[Tensor] = [self._allocate(0, 0) for _ in range(self.shape.num_layers)]

    def fit(self, num_rows: int, room: int, num_live: int) -> None:
        """Have room for so many tokens in each of so many rows.

        Args:
            num_live: rows that are in use, from slot 0; what they hold is kept.
        """
        if room == self.room and num_rows <= len(self.keys[0]):
            return
        # Layer by layer: never are two whole caches in memory.
        for tensors in (self.keys, self.values):
            for index, old in enumerate(tensors):
                new = self._allocate(num_rows, room)
                kept = min(room, self.room)
                new[:num_live, :, :kept] = old[:num_live, :, :kept]
                tensors[index] = new
        self.room = room

    def move(self, source: int, target: int, length: int) -> None:
        """Copy row ``source``, of which ``length`` tokens are in use, over row ``target``."""
        for tensor in (*self.keys, *self.values):
            tensor[target, :, :length] = tensor[source, :, :length]

    def wipe(self, slot: int) -> None:
        """Set all that a row holds to zero."""
        for tensor in (*self.keys, *self.values):
            tensor[slot] = 0

    def _allocate(self, num_rows: int, room: int) -> Tensor:
        # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
        shape = self.shape
        return sparse_zeros(
            num_rows, shape.num_heads, room, shape.head_dim, device=self._device, dtype=self._dtype
        )
