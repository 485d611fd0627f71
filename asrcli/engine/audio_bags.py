"""Attention to the audio on a CPU, at the speed at which memory can be read.

With one query a row, attention is two weighted sums of stored vectors: the scores are the sum of
the keys' rows (one for each dimension, a block of positions wide) by the query, and what is heard
is the sum of the values' rows (one for each position) by the softmax of the scores. That is what
``embedding_bag`` computes, whose kernels are made for it: they read each row once and in order,
while a batched product of matrices lays its factors out anew first, and takes two to three times as
long. Bags may also differ in length and share their rows: short audio costs what it is, and beams
read what lies in the caches of the processor already.
"""

from __future__ import annotations

from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.audio_cache import BLOCK, AudioCache, Hearing


@dataclass(frozen=True, slots=True)
class BagHearing(Hearing):
    """Which audio some rows attend to, and where it lies.

    Attributes:
        key_rows, value_rows: int32, the rows of all bags in a layer's keys and values, taken as
            matrices. Behind a slot's own audio they name its last rows again: such positions are
            masked, and what lies in the cache costs little.
        key_bags, value_bags: int32, where each bag begins in these. There is a bag for each row,
            head and block of positions, and one for each row and head.
    """

    key_rows: Tensor
    key_bags: Tensor
    value_rows: Tensor
    value_bags: Tensor


class BagAudioCache(AudioCache):
    """The audio of all slots, for weighted sums.

    Attributes:
        keys: per layer [num_slots, num_heads, num_blocks, head_dim, BLOCK].
        values: per layer [num_slots, num_heads, room, head_dim].
    """

    def _key_sizes(self) -> tuple[int, ...]:
        return self.shape.num_blocks, self.shape.head_dim, BLOCK

    def _write_keys(self, room: Tensor, keys: Tensor) -> None:
        num_whole = keys.shape[1] // BLOCK
        whole = keys[:, : num_whole * BLOCK]
        whole = whole.view(len(keys), num_whole, BLOCK, *keys.shape[2:])
        room[:, :, :num_whole] = whole.permute(0, 3, 1, 4, 2)
        rest = keys[:, num_whole * BLOCK :]
        if rest.shape[1]:
            room[:, :, num_whole, :, : rest.shape[1]] = rest.permute(0, 2, 3, 1)

    def _copy_keys(self, keys: Tensor, source: int, target: int, num_positions: int) -> None:
        num_blocks = -(-num_positions // BLOCK)
        keys[target, :, :num_blocks] = keys[source, :, :num_blocks]

    def _plan(self, slots: Rows[int]) -> BagHearing:
        plain = super()._plan(slots)
        length = plain.mask.shape[-1]
        heads, width = self.shape.num_heads, self.shape.head_dim
        places = torch.tensor(slots)[:, None] * heads + torch.arange(heads)  # [rows, heads]
        last = torch.tensor([self._num_positions[slot] - 1 for slot in slots])[:, None, None]
        blocks = torch.arange(length // BLOCK).minimum(last // BLOCK)
        blocks = places[..., None] * self.shape.num_blocks + blocks  # [rows, heads, blocks]
        key_rows = blocks[..., None] * width + torch.arange(width)
        value_rows = places[..., None] * self.shape.room + torch.arange(length).minimum(last)
        return BagHearing(
            plain.slots,
            plain.mask,
            key_rows.int().view(-1),
            torch.arange(0, key_rows.numel(), width, dtype=torch.int32),
            value_rows.int().view(-1),
            torch.arange(0, value_rows.numel(), length, dtype=torch.int32),
        )

    def attend(self, layer: int, query: Tensor, hearing: Hearing) -> Tensor:
        """Attention to the audio; see ``AudioCache``."""
        num_rows, num_heads, num_tokens, width = query.shape
        num_blocks = hearing.mask.shape[-1] // BLOCK
        keys, values = self.keys[layer], self.values[layer]
        if num_tokens > 1:  # one pass over the audio for all of them
            keys = keys[hearing.slots, :, :num_blocks]
            scores = torch.matmul(query[:, :, None], keys).transpose(2, 3).flatten(3)
            weights = torch.softmax(scores.add_(hearing.mask), dim=-1)
            heard = torch.matmul(weights, values[hearing.slots, :, : num_blocks * BLOCK])
            return heard.transpose(1, 2).flatten(2)
        assert isinstance(hearing, BagHearing)
        by = query.expand(-1, -1, num_blocks, -1).reshape(-1)
        scores = _sum_bags(keys.view(-1, BLOCK), hearing.key_rows, hearing.key_bags, by)
        scores = scores.view(num_rows, num_heads, 1, -1).add_(hearing.mask)
        by = torch.softmax(scores, dim=-1).view(-1)
        heard = _sum_bags(values.view(-1, width), hearing.value_rows, hearing.value_bags, by)
        return heard.view(num_rows, 1, num_heads * width)


def _sum_bags(table: Tensor, rows: Tensor, bags: Tensor, by: Tensor) -> Tensor:
    """Sums of rows of a table [num_rows, n], each row times a number: [num_bags, n]."""
    return F.embedding_bag(rows, table, bags, mode="sum", per_sample_weights=by)
