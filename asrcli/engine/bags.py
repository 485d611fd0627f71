"""Attention to keys and values in slots on a CPU, at the speed at which memory can be read.

With one query a row, attention is two weighted sums of stored vectors: the scores are the sum of
the keys' rows (one for each dimension, a block of positions wide) by the query, and the result is
the sum of the values' rows (one for each position) by the softmax of the scores. That is what
``embedding_bag`` computes, whose kernels are made for it: they read each row once and in order,
while a batched product of matrices lays its factors out anew first, and takes two to five times as
long. Bags may also share their rows: beams read what lies in the processor's caches already.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.key_values import BLOCK, KeyValues, Places


@dataclass(frozen=True, slots=True)
class Bags(Places):
    """What some rows attend to, as rows of a layer's keys and values, taken as matrices.

    Attributes:
        key_rows, value_rows: int32, the rows of all bags. Behind what a row attends to they name
            its last ones again: such positions are masked, and what is at hand costs little.
        key_bags, value_bags: int32, where each bag begins in these. There is a bag for each row,
            head and block of positions, and one for each row and head; of queries that share a
            head, one for each, next to each other: what one has read is at hand for the others.
    """

    key_rows: Tensor
    key_bags: Tensor
    value_rows: Tensor
    value_bags: Tensor


class BaggedKeyValues(KeyValues):
    """Keys and values of all slots, for weighted sums.

    Attributes:
        keys: per layer [num_slots, num_heads, num_blocks, head_dim, BLOCK].
        values: per layer [num_slots, num_heads, room, head_dim].
    """

    ends_anywhere = False

    def _key_sizes(self) -> tuple[int, ...]:
        return self.shape.num_blocks, self.shape.head_dim, BLOCK

    def fill(self, layer: int, slots: slice, key: Tensor, value: Tensor) -> None:
        """Put the first positions into slots; see ``KeyValues``."""
        num_rows, length, *sizes = key.shape
        num_whole = length // BLOCK
        end = num_whole * BLOCK
        keys = self.keys[layer][slots]
        whole = key[:, :end].view(num_rows, num_whole, BLOCK, *sizes)
        keys[:, :, :num_whole] = whole.permute(0, 3, 1, 4, 2)
        if end < length:
            keys[:, :, num_whole, :, : length - end] = key[:, end:].permute(0, 2, 3, 1)
        self.values[layer][slots, :, :length] = value.transpose(1, 2)

    def put(self, layer: int, slots: Tensor, positions: Tensor, key: Tensor, value: Tensor) -> None:
        """Put single positions into slots; see ``KeyValues``."""
        self.keys[layer][slots, :, positions // BLOCK, :, positions % BLOCK] = key
        self.values[layer][slots, :, positions] = value

    def _find(self, slots: Rows[int], lengths: Rows[int]) -> Bags:
        plain = super()._find(slots, lengths)
        heads, width = self.shape.num_heads, self.shape.head_dim
        places = torch.tensor(slots)[:, None] * heads + torch.arange(heads)  # [rows, heads]
        last = torch.tensor(lengths).clamp_min(1)[:, None, None] - 1
        blocks = torch.arange(plain.length // BLOCK).minimum(last // BLOCK)
        blocks = places[..., None] * self.shape.num_blocks + blocks  # [rows, heads, blocks]
        # [rows, heads, blocks, sharing, width] and [rows, heads, sharing, positions]
        key_rows = _repeat(blocks[..., None] * width + torch.arange(width), self.shape.num_sharing)
        value_rows = places[..., None] * self.shape.room + torch.arange(plain.length).minimum(last)
        value_rows = _repeat(value_rows, self.shape.num_sharing)
        return Bags(
            plain.slots,
            plain.length,
            key_rows.int().reshape(-1),
            torch.arange(0, key_rows.numel(), width, dtype=torch.int32),
            value_rows.int().reshape(-1),
            torch.arange(0, value_rows.numel(), plain.length, dtype=torch.int32),
        )

    def attend(self, layer: int, query: Tensor, places: Places, mask: Tensor | None) -> Tensor:
        """Attention of some rows; see ``KeyValues``."""
        assert mask is not None
        dtype = query.dtype
        if query.shape[2] > 1:
            return self._attend_in_one(layer, query, places, mask).to(dtype)
        assert isinstance(places, Bags)
        num_rows, num_heads, _, width = query.shape
        num_blocks = places.length // BLOCK
        split = self.shape.num_heads, self.shape.num_sharing
        query = query.reshape(num_rows, *split, width)
        by = query[:, :, None].expand(-1, -1, num_blocks, -1, -1).reshape(-1)
        scores = self._sum(self.keys[layer], places.key_rows, places.key_bags, by)
        scores = scores.view(num_rows, split[0], num_blocks, split[1], BLOCK)
        scores = scores.transpose(2, 3).reshape(num_rows, *split, -1).add_(mask)
        by = torch.softmax(scores, dim=-1).view(-1)
        attended = self._sum(self.values[layer], places.value_rows, places.value_bags, by)
        return attended.to(dtype).view(num_rows, 1, num_heads * width)

    def _attend_in_one(self, layer: int, query: Tensor, places: Places, mask: Tensor) -> Tensor:
        """Attention of many tokens a row, by one pass over the slots for all of them."""
        keys = self._whole(self.keys[layer][places.slots, :, : places.length // BLOCK])
        values = self._whole(self.values[layer][places.slots, :, : places.length])
        scores = torch.matmul(query[:, :, None].to(keys.dtype), keys).transpose(2, 3).flatten(3)
        weights = torch.softmax(scores.add_(mask), dim=-1)
        return torch.matmul(weights, values).transpose(1, 2).flatten(2)

    def _whole(self, stored: Tensor) -> Tensor:
        """Keys or values as numbers [..., n], of what is stored of them."""
        return stored

    def _sum(self, stored: Tensor, rows: Tensor, bags: Tensor, by: Tensor) -> Tensor:
        """Sums of rows [n] of a layer's keys or values, each row times a number: [num_bags, n]."""
        table = stored.view(-1, stored.shape[-1])
        return F.embedding_bag(rows, table, bags, mode="sum", per_sample_weights=by)

    def _copy_keys(self, keys: Tensor, source: int, target: int, length: int) -> None:
        num_blocks = -(-length // BLOCK)
        keys[target, :, :num_blocks] = keys[source, :, :num_blocks]


def _repeat(rows: Tensor, num_times: int) -> Tensor:
    """[..., n] to [..., num_times, n]."""
    return rows[..., None, :].expand(*rows.shape[:-1], num_times, -1)
