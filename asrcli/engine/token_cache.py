"""Keys and values of rows whose lengths differ widely: memory goes by tokens, not by slots.

Rows sit in slots 0 to n - 1 without a hole and all have room for the longest one's need. The room
follows what is running: rows of a minute and rows of twenty would otherwise need the same memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from asrcli.engine.key_values import KeyValues, StoreShape
from asrcli.engine.stores import make_store


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenShape:
    """Sizes of one token in the cache.

    Attributes:
        num_layers: of the decoder.
        num_heads: heads of the keys and values.
        head_dim: width of a head.
        num_sharing: heads of the queries that share one of these.
    """

    num_layers: int
    num_heads: int
    head_dim: int
    num_sharing: int = 1

    def token_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one token, in bytes."""
        return 2 * self.num_layers * self.num_heads * self.head_dim * dtype.itemsize


class TokenCache:
    """Keys and values of all rows.

    Attributes:
        held: where they are.
        room: tokens that each row can hold.
        version: another one whenever the rows are laid out anew.
    """

    held: KeyValues
    room: int
    version = 0

    def __init__(self, shape: TokenShape, device: torch.device, dtype: torch.dtype) -> None:
        self.shape = shape
        self._device = device
        self._dtype = dtype
        self.clear()

    @property
    def num_rows(self) -> int:
        """Rows that there is memory for."""
        return self.held.num_slots

    def clear(self) -> None:
        """Forget everything and give the memory back."""
        shape = StoreShape(
            num_layers=self.shape.num_layers,
            num_heads=self.shape.num_heads,
            head_dim=self.shape.head_dim,
            num_sharing=self.shape.num_sharing,
            num_positions=0,
        )
        self.room = 0
        self.version += 1
        self.held = make_store(shape, 0, self._device, self._dtype)

    def fit(self, num_rows: int, room: int, num_live: int) -> None:
        """Have room for so many tokens in each of so many rows.

        Args:
            num_live: rows that are in use, from slot 0; what they hold is kept.
        """
        if room == self.room and num_rows <= self.num_rows:
            return
        self.held.resize(num_rows, room, num_live)
        self.room = room
        self.version += 1

    def move(self, source: int, target: int, length: int) -> None:
        """Copy row ``source``, of which ``length`` tokens are in use, over row ``target``."""
        self.held.copy(source, target, length)

    def wipe(self, slot: int) -> None:
        """Set all that a row holds to zero."""
        self.held.wipe(slot)
