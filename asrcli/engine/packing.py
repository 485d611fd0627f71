"""Weights in the layout that a CPU's matrix kernels want, laid out once and not in every call.

oneDNN rearranges a plain weight matrix each time it multiplies by it. For the few rows of a decode
step that takes longer than the product: in bfloat16, 1 row is 5 times and 16 rows are 1.5 to 1.9
times as fast with weights packed beforehand; hundreds of rows gain little.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

import torch
from torch import Tensor

from asrcli.engine.layers import Linear

_Weights = TypeVar("_Weights")
_NUM_ROWS = 16  # the layout that is best for so many is good for all others

# What TorchInductor compiles affine maps to; not public, so it is asked for before it is used.
_OPERATORS = ("_reorder_linear_weight", "_linear_pointwise", "_is_mkldnn_bf16_supported")


@dataclass(frozen=True, slots=True)
class PackedLinear(Linear):
    """An affine map whose weight is opaque: only the kernel knows its layout."""

    def __call__(self, states: Tensor) -> Tensor:
        multiplied: Tensor = torch.ops.mkldnn._linear_pointwise(
            states, self.weight, self.bias, "none", [], ""
        )
        return multiplied


def can_pack(weight: Tensor) -> bool:
    """Whether this torch, on this machine, multiplies by packed weights of that kind."""
    return (
        weight.device.type == "cpu"
        and weight.dtype is torch.bfloat16
        and torch._C._has_mkldnn
        and all(hasattr(torch.ops.mkldnn, name) for name in _OPERATORS)
        and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    )


def pack_linear(linear: Linear) -> Linear:
    """A map with its weight packed; the map itself where that cannot be done."""
    if isinstance(linear, PackedLinear) or not can_pack(linear.weight):
        return linear
    packed = torch.ops.mkldnn._reorder_linear_weight(linear.weight.contiguous(), _NUM_ROWS)
    return PackedLinear(packed, linear.bias)


def pack(weights: _Weights) -> _Weights:
    """Weights (dataclasses and tuples of them) with every affine map packed."""
    packed: _Weights = _pack(weights)
    return packed


def _pack(value: Any) -> Any:
    if isinstance(value, Linear):
        return pack_linear(value)
    if isinstance(value, tuple):
        return tuple(_pack(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        changed = {}
        for field in fields(value):
            old = getattr(value, field.name)
            new = _pack(old)
            if new is not old:
                changed[field.name] = new
        return replace(value, **changed) if changed else value
    return value
