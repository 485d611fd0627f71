"""Slots: preallocated keys and values, one slot a running row, one audio slot a request.

Rows sit in slots 0 to n - 1 without a hole, so every step reads plain slices and computes live rows
only. When a row ends, the last one moves into its slot; likewise the audio, when a request ends.
Any number of rows may attend to one audio slot, as the beams of a request do; how much audio a slot
holds is its own affair.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.key_values import KeyValues, Places, StoreShape
from asrcli.engine.stores import make_store


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheShape:
    """Sizes of a slot cache.

    Attributes:
        num_layers: decoder layers.
        num_heads: heads of the keys and values.
        head_dim: width of a head.
        max_length: ids that a row can hold, its prompt included.
        num_audio_positions: encoder positions that a row attends to.
        audio_in_bytes: whether keys and values of the audio are kept as whole numbers.
    """

    num_layers: int
    num_heads: int
    head_dim: int
    max_length: int
    num_audio_positions: int
    audio_in_bytes: bool = False

    @property
    def ids(self) -> StoreShape:
        """Sizes of what is kept of the ids."""
        return self._store(self.max_length)

    @property
    def audio(self) -> StoreShape:
        """Sizes of what is kept of the audio."""
        return self._store(self.num_audio_positions, in_bytes=self.audio_in_bytes)

    def _store(self, num_positions: int, *, in_bytes: bool = False) -> StoreShape:
        return StoreShape(
            num_layers=self.num_layers,
            num_heads=self.num_heads,
            head_dim=self.head_dim,
            num_positions=num_positions,
            in_bytes=in_bytes,
        )

    def slot_bytes(self, dtype: torch.dtype) -> int:
        """Memory of one slot, in bytes."""
        masks = self.audio.room * dtype.itemsize
        return self.ids.slot_bytes(dtype) + self.audio.slot_bytes(dtype) + masks


@dataclass(frozen=True, slots=True)
class Hearing:
    """The audio that some rows attend to.

    Attributes:
        places: where it lies.
        mask: [num_rows, 1, 1, length], logarithms of the weights of its positions, minus infinity
            behind it; None where every position counts as one.
    """

    places: Places
    mask: Tensor | None


class SlotCache:
    """Keys and values of all slots.

    Attributes:
        ids: those of the ids so far.
        audio: those of the audio.
    """

    def __init__(
        self, shape: CacheShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        self.num_slots = num_slots
        self.ids: KeyValues = make_store(shape.ids, num_slots, device, dtype)
        self.audio: KeyValues = make_store(shape.audio, num_slots, device, dtype)
        # Logarithms of the weights of an audio slot's positions, minus infinity behind its audio.
        self._log_weights = torch.zeros(num_slots, shape.audio.room, device=device, dtype=dtype)
        # Of the audio in each slot. One that was never used holds zeros, which do no harm. As many
        # as the network has at most are each of weight 1.
        self._num_positions = [shape.num_audio_positions] * num_slots
        self._most_positions = shape.num_audio_positions

    def begin_audio(
        self, first_slot: int, num_windows: int, num_positions: int, log_weights: Tensor | None
    ) -> None:
        """Say what audio the slots ``first_slot`` and up are about to be filled with.

        Args:
            log_weights: as in ``EncodedAudio``.
        """
        slots = slice(first_slot, first_slot + num_windows)
        self._log_weights[slots, :num_positions] = 0.0 if log_weights is None else log_weights
        self._log_weights[slots, num_positions:] = -torch.inf
        self._num_positions[slots] = [num_positions] * num_windows

    def hear(self, audio_slots: Rows[int]) -> Hearing:
        """What rows hear that attend to these audio slots, one each."""
        lengths = [self._num_positions[slot] for slot in audio_slots]
        places = self.audio.find(audio_slots, lengths)
        if self.audio.ends_anywhere and min(lengths) == self._most_positions:
            return Hearing(Places(places.slots, self._most_positions), None)
        return Hearing(places, self._log_weights[places.slots, None, None, : places.length])

    def move_audio(self, source: int, target: int) -> None:
        """Copy audio slot ``source`` over audio slot ``target``."""
        self.audio.copy(source, target, self._num_positions[source])
        self._log_weights[target] = self._log_weights[source]
        self._num_positions[target] = self._num_positions[source]

    def wipe(self, slot: int, audio_slot: int) -> None:
        """Set all that a slot and an audio slot hold to zero."""
        self.ids.wipe(slot)
        self.audio.wipe(audio_slot)
        self._log_weights[audio_slot] = 0
