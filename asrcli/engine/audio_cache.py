"""Keys and values of the audio that the decoder attends to, one audio slot a request.

Most of a decode step is reading them. Any number of rows may attend to one slot, as the beams of a
request do; how much audio a slot holds is its own affair.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.layers import attend
from asrcli.engine.zeros import sparse_zeros

BLOCK = 128  # positions that room is counted in


@dataclass(frozen=True, slots=True, kw_only=True)
class AudioShape:
    """Sizes of the audio that a slot holds.

    Attributes:
        num_layers: decoder layers.
        num_heads: heads of the keys and values.
        head_dim: width of a head.
        num_positions: encoder positions at most.
    """

    num_layers: int
    num_heads: int
    head_dim: int
    num_positions: int

    @property
    def num_blocks(self) -> int:
        """Blocks of positions that a slot has room for."""
        return -(-self.num_positions // BLOCK)

    @property
    def room(self) -> int:
        """Positions that a slot has room for."""
        return self.num_blocks * BLOCK


@dataclass(frozen=True, slots=True)
class Hearing:
    """Which audio some rows attend to.

    Attributes:
        slots: the audio slot of each row; a slice where they follow each other.
        mask: [num_rows, 1, 1, n], what is added to the scores of the first n positions: logarithms
            of their weights, minus infinity where there is no audio.
    """

    slots: slice | Tensor
    mask: Tensor


class AudioCache:
    """The audio of all slots, for products of matrices.

    Attributes:
        keys, values: per layer [num_slots, num_heads, room, head_dim].
    """

    def __init__(
        self, shape: AudioShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.shape = shape
        self.num_slots = num_slots
        self.device, self.dtype = device, dtype
        self.keys = self._allocate(*self._key_sizes())
        self.values = self._allocate(shape.room, shape.head_dim)
        self._log_weights = torch.zeros(num_slots, shape.room, device=device, dtype=dtype)
        self._num_positions = [0] * num_slots
        self._last: tuple[Rows[int], Hearing] | None = None

    def _key_sizes(self) -> tuple[int, ...]:
        return self.shape.room, self.shape.head_dim

    def _allocate(self, *sizes: int) -> list[Tensor]:
        # Zeros, not empty: a masked position has weight 0, and 0 times a stray NaN is NaN.
        sizes = (self.num_slots, self.shape.num_heads, *sizes)
        return [
            sparse_zeros(*sizes, device=self.device, dtype=self.dtype)
            for _ in range(self.shape.num_layers)
        ]

    def begin(
        self, first_slot: int, num_windows: int, num_positions: int, log_weights: Tensor | None
    ) -> None:
        """Say what audio the slots ``first_slot`` and up are about to hold.

        Args:
            log_weights: as in ``EncodedAudio``.
        """
        slots = slice(first_slot, first_slot + num_windows)
        self._log_weights[slots, :num_positions] = 0.0 if log_weights is None else log_weights
        self._log_weights[slots, num_positions:] = -torch.inf
        self._num_positions[slots] = [num_positions] * num_windows
        self._last = None

    def write(self, layer: int, first_slot: int, key_value: Tensor) -> None:
        """Put a layer's keys and values of windows into the slots ``first_slot`` and up.

        Args:
            key_value: [num_windows, num_positions, 2 * num_heads * head_dim].
        """
        num_windows, num_positions, _ = key_value.shape
        heads, width = self.shape.num_heads, self.shape.head_dim
        key_value = key_value.view(num_windows, num_positions, 2, heads, width)
        slots = slice(first_slot, first_slot + num_windows)
        self._write_keys(self.keys[layer][slots], key_value[:, :, 0])
        self.values[layer][slots, :, :num_positions] = key_value[:, :, 1].transpose(1, 2)

    def _write_keys(self, room: Tensor, keys: Tensor) -> None:
        """Put keys [num_windows, num_positions, num_heads, head_dim] into slots."""
        room[:, :, : keys.shape[1]] = keys.transpose(1, 2)

    def hear(self, slots: Rows[int]) -> Hearing:
        """Plan the attention of rows to audio slots; the plan holds until audio is written, moved
        or wiped."""
        if self._last is None or self._last[0] != slots:
            self._last = (slots, self._plan(slots))
        return self._last[1]

    def _plan(self, slots: Rows[int]) -> Hearing:
        num_blocks = max(-(-self._num_positions[slot] // BLOCK) for slot in slots)
        rows: slice | Tensor = slice(slots[0], slots[0] + len(slots))
        if list(slots) != list(range(slots[0], slots[0] + len(slots))):
            rows = torch.tensor(slots, device=self.device)
        return Hearing(rows, self._log_weights[rows, None, None, : num_blocks * BLOCK])

    def attend(self, layer: int, query: Tensor, hearing: Hearing) -> Tensor:
        """Attention to the audio.

        Args:
            query: [num_rows, num_heads, num_tokens, head_dim], scaled already.

        Returns:
            [num_rows, num_tokens, num_heads * head_dim].
        """
        length = hearing.mask.shape[-1]
        keys = self.keys[layer][hearing.slots, :, :length].transpose(2, 3)
        return attend(query, keys, self.values[layer][hearing.slots, :, :length], hearing.mask)

    def move(self, source: int, target: int) -> None:
        """Copy slot ``source`` over slot ``target``."""
        num_positions = self._num_positions[source]
        for keys in self.keys:
            self._copy_keys(keys, source, target, num_positions)
        for values in self.values:
            values[target, :, :num_positions] = values[source, :, :num_positions]
        self._log_weights[target] = self._log_weights[source]
        self._num_positions[target] = num_positions
        self._last = None

    def _copy_keys(self, keys: Tensor, source: int, target: int, num_positions: int) -> None:
        keys[target, :, :num_positions] = keys[source, :, :num_positions]

    def wipe(self, slot: int) -> None:
        """Set all that a slot holds to zero."""
        for tensor in (*self.keys, *self.values, self._log_weights):
            tensor[slot] = 0
        self._last = None
