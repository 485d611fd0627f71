"""Ways to bar ids, for the rules of models: a few kernels for all rows on a GPU, slices on a CPU.

What a row has produced is known on the host before a step begins, so that a rule finds out there
which ids it bars. Nothing here waits for the device.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # families of models, which import this, must not import torch for it
    import torch
    from torch import Tensor

NEVER = -math.inf


class Ids:
    """A set of ids, at hand as an index on every device that asks for it."""

    def __init__(self, ids: Sequence[int]) -> None:
        self._ids = list(ids)
        self._index: dict[torch.device, Tensor] = {}

    def on(self, device: torch.device) -> Tensor:
        """The ids as int64 [num_ids] on a device."""
        if device not in self._index:
            import torch

            self._index[device] = torch.tensor(self._ids, dtype=torch.long, device=device)
        return self._index[device]


def bar_ids(logits: Tensor, rows: Sequence[int], ids: Ids) -> None:
    """Bar the same ids in some rows of logits [num_rows, vocabulary]."""
    index = ids.on(logits.device)
    if len(rows) == len(logits):
        logits.index_fill_(1, index, NEVER)
    elif rows:
        logits[to_index(rows, logits.device)[:, None], index] = NEVER


def bar_ranges(logits: Tensor, ranges: Sequence[tuple[int, int, int]]) -> None:
    """Bar the ids from begin to end - 1 in a row, for each (row, begin, end).

    Args:
        logits: float [num_rows, vocabulary].
    """
    if logits.device.type != "cpu":
        bar_ranges_at_once(logits, ranges)
        return
    for row, begin, end in ranges:
        logits[row, begin:end] = NEVER


def bar_ranges_at_once(logits: Tensor, ranges: Sequence[tuple[int, int, int]]) -> None:
    """``bar_ranges`` by masks over all ids: as many kernels however many rows there are."""
    import torch

    from asrcli.engine.transfer import upload

    if not ranges:
        return
    of_row: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for row, begin, end in ranges:
        of_row[row].append((begin, end))
    most = max(map(len, of_row.values()))
    num_rows, num_ids = logits.shape
    bounds = [[(0, 0)] * num_rows for _ in range(most)]  # of most ranges each, some of them empty
    for row, own in of_row.items():
        for place, pair in enumerate(own):
            bounds[place][row] = pair
    places = torch.arange(num_ids, device=logits.device, dtype=torch.int32)
    hidden = torch.zeros(logits.shape, device=logits.device, dtype=torch.bool)
    for pairs in upload(bounds, logits.device, torch.int32):
        hidden |= (places >= pairs[:, :1]) & (places < pairs[:, 1:])
    logits.masked_fill_(hidden, NEVER)


def bar_where(logits: Tensor, flags: Tensor, end: int) -> None:
    """Bar the ids below ``end`` in the rows that have a flag, bool [num_rows]."""
    if logits.device.type != "cpu":
        bar_where_at_once(logits, flags, end)
        return
    for row in flags.nonzero()[:, 0].tolist():
        logits[row, :end] = NEVER


def bar_where_at_once(logits: Tensor, flags: Tensor, end: int) -> None:
    """``bar_where`` without a look at the flags."""
    logits[:, :end].masked_fill_(flags[:, None], NEVER)


def to_index(numbers: Sequence[int], device: torch.device) -> Tensor:
    """Numbers as int64 on a device, without waiting for it."""
    from asrcli.engine.transfer import upload

    return upload(numbers, device)
