"""Keys and values in slots as whole numbers of eight bits, for attention at twice the speed.

What a step of decoding costs beside others is the reading of the audio's keys and values. Each row
that is summed (see ``asrcli.engine.bags``) is kept as bytes that count in steps of its own from its
own least value, and sums are taken in float32. That is as exact as bfloat16: over 27 windows, the
distribution of the next id of a model of 74 million weights is 0.0005 nats (Kullback-Leibler) from
that in float32 with keys and values in bfloat16, and 0.0006 with bytes; with its maps in int8,
0.0031 and 0.0028. It is the format in which embeddings of recommendation models are stored (Khudia
et al. 2021, *FBGEMM*), and its kernels serve here.

A row can only be written whole, and one of the keys spans a block of positions. So this is for what
is written once, the audio, and not for ids that come one by one.
"""

from __future__ import annotations

import torch
from torch import Tensor

from asrcli.engine.bags import BaggedKeyValues
from asrcli.engine.key_values import BLOCK, BYTES_BESIDES, StoreShape

# Behind torch's quantized embeddings; not public, so they are asked for before they are used.
_OPERATORS = (
    "embedding_bag_byte_prepack",
    "embedding_bag_byte_rowwise_offsets",
    "embedding_bag_byte_unpack",
)


class ByteKeyValues(BaggedKeyValues):
    """Keys and values of all slots, in bytes, for weighted sums.

    Attributes:
        keys: per layer uint8 [num_slots, num_heads, num_blocks, head_dim, BLOCK + BYTES_BESIDES].
        values: per layer uint8 [num_slots, num_heads, room, head_dim + BYTES_BESIDES].
    """

    def __init__(
        self, shape: StoreShape, num_slots: int, device: torch.device, dtype: torch.dtype
    ) -> None:
        super().__init__(shape, num_slots, device, torch.uint8)

    def _key_sizes(self) -> tuple[int, ...]:
        return self.shape.num_blocks, self.shape.head_dim, BLOCK + BYTES_BESIDES

    def _value_sizes(self) -> tuple[int, ...]:
        return self.shape.room, self.shape.head_dim + BYTES_BESIDES

    def fill(self, layer: int, slots: slice, key: Tensor, value: Tensor) -> None:
        """Put the first positions into slots; see ``KeyValues``."""
        num_rows, length, *sizes = key.shape
        num_blocks = -(-length // BLOCK)
        # The last position again, up to the end of its block: zeros might make the steps longer.
        rest = key[:, -1:].expand(-1, num_blocks * BLOCK - length, -1, -1)
        blocks = torch.cat([key, rest], dim=1).view(num_rows, num_blocks, BLOCK, *sizes)
        self.keys[layer][slots, :, :num_blocks] = _to_bytes(blocks.permute(0, 3, 1, 4, 2))
        self.values[layer][slots, :, :length] = _to_bytes(value.transpose(1, 2))

    def put(self, layer: int, slots: Tensor, positions: Tensor, key: Tensor, value: Tensor) -> None:
        """Positions cannot be put one by one; see above."""
        raise NotImplementedError("keys and values in bytes are written whole")

    def _whole(self, stored: Tensor) -> Tensor:
        return _from_bytes(stored)

    def _sum(self, stored: Tensor, rows: Tensor, bags: Tensor, by: Tensor) -> Tensor:
        table = stored.view(-1, stored.shape[-1])
        sums: Tensor = torch.ops.quantized.embedding_bag_byte_rowwise_offsets(
            table, rows, bags, False, 0, False, by.float(), None, False
        )
        return sums


def can_sum_bytes(device: torch.device) -> bool:
    """Whether this torch has sums of rows in bytes that are fast on a device."""
    operators = torch.ops.quantized
    return (
        device.type == "cpu"
        and "fbgemm" in torch.backends.quantized.supported_engines
        and all(hasattr(operators, name) for name in _OPERATORS)
    )


def _to_bytes(rows: Tensor) -> Tensor:
    """[..., n] to uint8 [..., n + BYTES_BESIDES]."""
    rows = rows.to(torch.float32, memory_format=torch.contiguous_format)
    packed: Tensor = torch.ops.quantized.embedding_bag_byte_prepack(rows)
    # Whole numbers hide what is none: it has to show in the steps.
    packed.view(torch.float32)[..., -2] += rows.sum() * 0.0
    return packed


def _from_bytes(packed: Tensor) -> Tensor:
    """uint8 [..., n + BYTES_BESIDES] to float32 [..., n]."""
    rows: Tensor = torch.ops.quantized.embedding_bag_byte_unpack(packed.contiguous())
    return rows
