"""Which way of keeping keys and values is the fast one."""

from __future__ import annotations

import torch

from asrcli.engine.bags import BaggedKeyValues
from asrcli.engine.byte_bags import ByteKeyValues
from asrcli.engine.key_values import KeyValues, StoreShape


def make_store(
    shape: StoreShape, num_slots: int, device: torch.device, dtype: torch.dtype
) -> KeyValues:
    """Slots for keys and values, of the kind that is fast on a device."""
    if device.type != "cpu":
        return KeyValues(shape, num_slots, device, dtype)
    kind = ByteKeyValues if shape.in_bytes else BaggedKeyValues
    return kind(shape, num_slots, device, dtype)
