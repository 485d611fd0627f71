"""Layers that networks of every kind are made of: affine maps, norms and attention."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

MIN_ROWS = 4
"""Rows of the smallest product on a CPU. Fewer are summed in another order there (by MKL, in
float32), and the text of a window would depend on how many others happen to run beside it."""

SCORES_AT_ONCE = 3_000_000  # 6 MB in bfloat16: all heads of a short window, one of a long one


@dataclass(frozen=True, slots=True)
class Linear:
    """Weight [out, in] and bias [out] of an affine map."""

    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, states: Tensor) -> Tensor:
        """Map [..., in] to [..., out]; a row's result does not depend on the others."""
        num_rows = states.numel() // states.shape[-1]
        if num_rows >= MIN_ROWS or states.device.type != "cpu":
            return F.linear(states, self.weight, self.bias)
        rows = F.pad(states.reshape(num_rows, -1), (0, 0, 0, MIN_ROWS - num_rows))
        mapped = F.linear(rows, self.weight, self.bias)[:num_rows]
        return mapped.view(*states.shape[:-1], -1)


@dataclass(frozen=True, slots=True)
class LayerNorm:
    """Weight and bias [width] of a layer norm."""

    weight: Tensor
    bias: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        return F.layer_norm(states, self.weight.shape, self.weight, self.bias)


@dataclass(frozen=True, slots=True)
class RmsNorm:
    """Weight [..., width] of a root-mean-square norm over the last axis, taken in float32."""

    weight: Tensor
    epsilon: float

    def __call__(self, states: Tensor) -> Tensor:
        if states.device.type == "cuda":  # one kernel instead of eight
            return F.rms_norm(states, self.weight.shape, self.weight, self.epsilon)
        wide = states.float()
        wide = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.epsilon)
        return self.weight * wide.to(states.dtype)


def attend_all(
    query: Tensor, key: Tensor, value: Tensor, last_log_weights: Tensor | None = None
) -> Tensor:
    """Attention of all positions to all, the way that is fastest on the device.

    Args:
        query, key, value: [rows, heads, positions, head_dim], the queries scaled already.
        last_log_weights: [at most positions], added to the scores of the last positions: one of
            weight n counts as n of them.

    Returns:
        [rows, positions, heads * head_dim].
    """
    if query.device.type == "cpu" and query.dtype is torch.bfloat16:
        return _attend_in_parts(query, key, value, last_log_weights)
    mask = None
    if last_log_weights is not None:
        mask = F.pad(last_log_weights, (key.shape[2] - len(last_log_weights), 0))[None]
    attended = F.scaled_dot_product_attention(query, key, value, mask, scale=1.0)
    return attended.transpose(1, 2).flatten(2)


def _attend_in_parts(
    query: Tensor, key: Tensor, value: Tensor, last_log_weights: Tensor | None
) -> Tensor:
    """``attend_all`` for a CPU in bfloat16, where the fused kernel is several times slower.

    Some heads at a time, through one buffer: all scores would leave the cache, and a fresh tensor
    of that size costs more in page faults than the arithmetic.
    """
    rows, heads, positions, head_dim = query.shape
    batch = rows * heads
    query = query.reshape(batch, positions, head_dim)
    # Laid out anew once: with a transposed factor the batched product takes half as long again.
    key = key.reshape(batch, positions, head_dim).transpose(1, 2).contiguous()
    value = value.reshape(batch, positions, head_dim)
    attended = torch.empty_like(value)
    at_once = min(batch, max(1, SCORES_AT_ONCE // positions**2))
    buffer = query.new_empty(at_once, positions, positions)
    for begin in range(0, batch, at_once):
        part = slice(begin, begin + at_once)
        weights = buffer[: min(at_once, batch - begin)]
        torch.bmm(query[part], key[part], out=weights)
        if last_log_weights is not None:
            weights[..., positions - len(last_log_weights) :] += last_log_weights
        torch.softmax(weights, dim=-1, out=weights)
        torch.bmm(weights, value[part], out=attended[part])
    return attended.view(rows, heads, positions, head_dim).transpose(1, 2).flatten(2)


def attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None) -> Tensor:
    """Attention for few queries: on a CPU in plain steps, whose softmax works in float32 itself.

    Args:
        query: [rows, heads, queries, head_dim], scaled already.
        key: [rows, heads, head_dim, keys], transposed.
        value: [rows, heads, keys, head_dim].
        mask: added to the scores, minus infinity where nothing is to be seen; broadcast to [rows,
            heads, queries, keys].

    Returns:
        [rows, queries, heads * head_dim].
    """
    if query.device.type == "cuda":
        key = key.transpose(2, 3)
        attended = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=1.0)
        return attended.transpose(1, 2).flatten(2)
    scores = torch.matmul(query, key)
    if mask is not None:
        scores = scores + mask
    weights = torch.softmax(scores, dim=-1)
    return torch.matmul(weights, value).transpose(1, 2).flatten(2)
