"""Keys and values in slots, and attention to them: the plain way."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.zeros import sparse_zeros

BLOCK = 128  # positions that room is counted in
BYTES_BESIDES = 8  # of a row that is kept in bytes: its step and its least, in float32


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreShape:
    """Sizes of keys and values.

    Attributes:
        num_layers: of the decoder.
        num_heads: heads of the keys and values.
        head_dim: width of a head.
        num_positions: that a slot holds at most.
        num_sharing: heads of the queries, one behind the other, that share a head of these.
        in_bytes: whether they are kept as whole numbers of eight bits, where that can be done.
    """

    num_layers: int
    num_heads: int
    head_dim: int
    num_positions: int
    num_sharing: int = 1
    in_bytes: bool = False

    @property
    def num_blocks(self) -> int:
        """Blocks of positions that a slot has room for."""
        return -(-self.num_positions // BLOCK)

    @property
    def room(self) -> int:
        """Positions that a slot has room for."""
        return self.num_blocks * BLOCK

    def slot_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one slot, in bytes."""
        num_rows = self.num_blocks * self.head_dim, self.room  # of keys and of values
        num_numbers = 2 * self.room * self.head_dim
        if self.in_bytes:
            num_bytes = num_numbers + sum(num_rows) * BYTES_BESIDES
        else:
            num_bytes = num_numbers * dtype.itemsize
        return self.num_layers * self.num_heads * num_bytes


@dataclass(frozen=True, slots=True)
class Places:
    """What some rows attend to: the first positions of the slots where their keys and values lie.

    Attributes:
        slots: of each row; a slice where they follow each other.
        length: positions; whole blocks.
    """

    slots: slice | Tensor
    length: int


class KeyValues:
    """Keys and values of all slots.

    Attributes:
        keys, values: per layer [num_slots, num_heads, room, head_dim].
        ends_anywhere: whether what is attended to may end within a block, without a mask.
    """

    ends_anywhere = True

    def __init__(
        self, shape: StoreShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.shape = shape
        self.device = device
        self.dtype = dtype
        self.num_slots = 0
        self._found: tuple[Rows[int], Rows[int], Places] | None = None
        nothing = torch.zeros(0, device=device, dtype=dtype)
        self.keys = [nothing] * shape.num_layers
        self.values = [nothing] * shape.num_layers
        self.resize(num_slots, shape.num_positions, 0)

    def resize(self, num_slots: int, num_positions: int, num_kept: int) -> None:
        """Have so many slots, of so many positions at most.

        Args:
            num_kept: slots, from the first, whose content stays, as far as there is room for it.
        """
        self.shape = replace(self.shape, num_positions=num_positions)
        self.num_slots, self._found = num_slots, None
        # Layer by layer: never are two whole stores in memory.
        for tensors, sizes in (
            (self.keys, self._key_sizes()),
            (self.values, self._value_sizes()),
        ):
            for layer, old in enumerate(tensors):
                # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
                new = sparse_zeros(
                    num_slots, self.shape.num_heads, *sizes, device=self.device, dtype=self.dtype
                )
                if num_kept:
                    kept = min(old.shape[2], new.shape[2])  # positions, or blocks of them
                    new[:num_kept, :, :kept] = old[:num_kept, :, :kept]
                tensors[layer] = new

    def _key_sizes(self) -> tuple[int, ...]:
        return self.shape.room, self.shape.head_dim

    def _value_sizes(self) -> tuple[int, ...]:
        return self.shape.room, self.shape.head_dim

    def fill(self, layer: int, slots: slice, key: Tensor, value: Tensor) -> None:
        """Put the first positions into slots that follow each other.

        Args:
            key, value: [num_rows, num_positions, num_heads, head_dim].
        """
        length = key.shape[1]
        self.keys[layer][slots, :, :length] = key.transpose(1, 2)
        self.values[layer][slots, :, :length] = value.transpose(1, 2)

    def put(self, layer: int, slots: Tensor, positions: Tensor, key: Tensor, value: Tensor) -> None:
        """Put single positions into slots.

        Args:
            slots: [num_rows, 1].
            positions: [num_rows, num_tokens].
            key, value: [num_rows, num_tokens, num_heads, head_dim].
        """
        self.keys[layer][slots, :, positions] = key
        self.values[layer][slots, :, positions] = value

    def find(self, slots: Rows[int], lengths: Rows[int]) -> Places:
        """Where rows find what they attend to.

        Args:
            slots: of each row.
            lengths: positions that each row attends to at most.
        """
        if self._found is None or self._found[:2] != (slots, lengths):
            self._found = (slots, lengths, self._find(slots, lengths))
        return self._found[2]

    def _find(self, slots: Rows[int], lengths: Rows[int]) -> Places:
        rows: slice | Tensor = slice(slots[0], slots[0] + len(slots))
        if list(slots) != list(range(slots[0], slots[0] + len(slots))):
            rows = torch.tensor(slots, device=self.device)
        return Places(rows, -(-max(lengths) // BLOCK) * BLOCK)

    def attend(self, layer: int, query: Tensor, places: Places, mask: Tensor | None) -> Tensor:
        """Attention of some rows.

        Args:
            query: [num_rows, num_heads * num_sharing, num_tokens, head_dim], scaled already; one
                token where heads share.
            mask: added to the scores, minus infinity where nothing is to be seen; broadcast to
                [num_rows, num_heads, num_tokens, length]. None where all is to be seen.

        Returns:
            [num_rows, num_tokens, num_heads * num_sharing * head_dim].
        """
        keys = self.keys[layer][places.slots, :, : places.length]
        values = self.values[layer][places.slots, :, : places.length]
        # Queries that share a head stand where tokens would: no key is repeated.
        shared = query.reshape(len(query), self.shape.num_heads, -1, self.shape.head_dim)
        attended = F.scaled_dot_product_attention(shared, keys, values, mask, scale=1.0)
        return attended.reshape(query.shape).transpose(1, 2).flatten(2)

    def copy(self, source: int, target: int, length: int) -> None:
        """Copy the first positions of slot ``source`` over those of slot ``target``."""
        for keys in self.keys:
            self._copy_keys(keys, source, target, length)
        for values in self.values:
            values[target, :, :length] = values[source, :, :length]

    def _copy_keys(self, keys: Tensor, source: int, target: int, length: int) -> None:
        keys[target, :, :length] = keys[source, :, :length]

    def wipe(self, slot: int) -> None:
        """Set all that a slot holds to zero."""
        for tensor in (*self.keys, *self.values):
            tensor[slot] = 0
