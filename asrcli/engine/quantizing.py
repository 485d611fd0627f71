"""Affine maps with weights of eight bits, for CPUs that multiply integers fastest.

Weights are int8 with a step for each output, activations uint8 with a step for each row (as in
LLM.int8() without its outliers, and in CTranslate2), so that a row's result does not depend on the
others. Steps are rounded to the activations' own format before they are used: nothing is lost where
the product is multiplied by them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from asrcli.engine.layers import Linear

_MOST = 127.0
_MIDDLE = 128  # what stands for 0 in a row of uint8
_LEAST_STEP = 1e-30  # of a row of zeros
_ROWS_AT_ONCE = 4096

# What TorchInductor compiles quantized maps to; not public, so it is asked for before it is used.
_OPERATORS = ("qlinear_prepack", "qlinear_pointwise")


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizedLinear(Linear):
    """An affine map by integers.

    Attributes:
        weight: int8 [out, in], opaque: only the kernel knows its layout.
        steps: float32 [out], the value of 1 in each row of the weight.
        zeros: int64 [out], all zero.
    """

    steps: Tensor
    zeros: Tensor

    def __call__(self, states: Tensor) -> Tensor:
        numbers, steps = _quantize(states.reshape(-1, states.shape[-1]))
        products = self.multiply(numbers, states.dtype)
        if self.bias is None:
            products *= steps
        else:
            products = torch.addcmul(self.bias, products, steps)
        return products.view(*states.shape[:-1], -1)

    def multiply(self, numbers: Tensor, dtype: torch.dtype) -> Tensor:
        """Products [n, out] in a dtype, of uint8 [n, in] around the middle; no bias is added."""
        products: Tensor = torch.ops.onednn.qlinear_pointwise(
            numbers, 1.0, _MIDDLE, self.weight, self.steps, self.zeros, None,
            1.0, 0, dtype, "none", [], "",
        )  # fmt: skip
        return products


def can_quantize() -> bool:
    """Whether this torch, on this machine, multiplies eight bits by eight as exact integers."""
    # Without VNNI, sums of two products are cut off at 16 bits.
    has_vnni = getattr(torch.cpu, "_is_vnni_supported", bool)()
    operators = torch.ops.onednn
    return bool(has_vnni) and all(hasattr(operators, name) for name in _OPERATORS)


def quantize_linear(linear: Linear) -> QuantizedLinear:
    """A map with its weight in eight bits; its bias stays as it is."""
    weight = linear.weight
    steps = torch.empty(len(weight))
    numbers = torch.empty(weight.shape, dtype=torch.int8)
    for begin in range(0, len(weight), _ROWS_AT_ONCE):  # a large weight in float32 is never whole
        part = slice(begin, begin + _ROWS_AT_ONCE)
        rows = weight[part].float()
        steps[part] = (rows.abs().amax(dim=1) / _MOST).clamp_min_(_LEAST_STEP)
        numbers[part] = (rows / steps[part, None]).round_()
    packed = torch.ops.onednn.qlinear_prepack(numbers, None)
    zeros = torch.zeros(len(steps), dtype=torch.int64)
    return QuantizedLinear(packed, linear.bias, steps=steps, zeros=zeros)


def _quantize(rows: Tensor) -> tuple[Tensor, Tensor]:
    """Rows [n, width] as uint8 around the middle, and the steps [n, 1] that they count in."""
    steps = (_largest(rows).float() / _MOST).clamp_min_(_LEAST_STEP).to(rows.dtype)
    scaled = rows.to(torch.float32, copy=True).mul_(steps.float().reciprocal()).round_()
    # By way of int8, whose conversion is ten times as fast; another sign bit adds the middle.
    return scaled.to(torch.int8).view(torch.uint8).bitwise_xor_(_MIDDLE), steps


def _largest(rows: Tensor) -> Tensor:
    """Of each row [n, width] the largest magnitude, [n, 1]; NaN where there is one."""
    if rows.dtype is not torch.bfloat16:
        return rows.abs().amax(dim=-1, keepdim=True)
    # The bits behind the sign, as whole numbers, are in the order of the magnitudes: two to three
    # times as fast.
    bits = rows.view(torch.int16).bitwise_and(0x7FFF)
    return bits.amax(dim=-1, keepdim=True).view(torch.bfloat16)
