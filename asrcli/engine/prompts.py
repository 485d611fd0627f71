"""Causal attention within prompts on a GPU: few large kernels, however many prompts there are."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.transfer import upload

MOST_PADDING = 0.5  # of the positions that are computed together


@dataclass(frozen=True, slots=True)
class _Group:
    """Prompts that follow each other and are computed together.

    Attributes:
        begin, end: their positions among those of all prompts.
        num_prompts, longest: how many they are, and the positions of the longest.
    """

    begin: int
    end: int
    num_prompts: int
    longest: int

    @property
    def is_full(self) -> bool:
        """Whether all are of one length."""
        return self.num_prompts * self.longest == self.end - self.begin


class PromptLayout:
    """Where prompts stand that lie behind one another.

    Args:
        lengths: of the prompts.

    Attributes:
        rows, places: int64 [sum(lengths)], the prompt of each position, and its place in that.
    """

    def __init__(self, lengths: Rows[int], device: torch.device) -> None:
        rows = [row for row, length in enumerate(lengths) for _ in range(length)]
        places = [place for length in lengths for place in range(length)]
        self.rows, self.places = upload([rows, places], device)
        self._groups = list(_group(lengths))

    def attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """Attention of each position to its prompt's, up to itself.

        Args:
            query: [sum(lengths), heads, head_dim], scaled already.
            key, value: [sum(lengths), kv heads, head_dim].

        Returns:
            [sum(lengths), heads * head_dim].
        """
        attended, first_row = [], 0
        for group in self._groups:
            part = slice(group.begin, group.end)
            index = None if group.is_full else (self.rows[part] - first_row, self.places[part])
            first_row += group.num_prompts
            mixed = F.scaled_dot_product_attention(
                _pad(query[part], group, index),
                _pad(key[part], group, index),
                _pad(value[part], group, index),
                is_causal=True,  # padding stands behind all that counts, and is not seen
                scale=1.0,
                enable_gqa=True,
            ).transpose(1, 2)
            attended.append(mixed.flatten(0, 1) if index is None else mixed[index])
        return torch.cat(attended).flatten(1)


def _pad(states: Tensor, group: _Group, index: tuple[Tensor, Tensor] | None) -> Tensor:
    """[positions, heads, head_dim] to [prompts, heads, longest, head_dim]."""
    sizes = group.num_prompts, group.longest, *states.shape[1:]
    if index is None:
        return states.view(sizes).transpose(1, 2)
    # Zeros, not empty: what is hidden has weight 0, and 0 times a stray NaN is NaN.
    padded = states.new_zeros(sizes)
    padded[index] = states
    return padded.transpose(1, 2)


def _group(lengths: Rows[int]) -> Iterator[_Group]:
    """Prompts that are neighbours, together for as long as not too much of them is padding."""
    begin = end = num_prompts = longest = 0
    for length in lengths:
        most = max(longest, length)
        padded = (num_prompts + 1) * most
        if num_prompts and padded - (end - begin + length) > MOST_PADDING * padded:
            yield _Group(begin, end, num_prompts, longest)
            begin, num_prompts, most = end, 0, length
        end, num_prompts, longest = end + length, num_prompts + 1, most
    if num_prompts:
        yield _Group(begin, end, num_prompts, longest)
