from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch

from asrcli.engine.layers import Linear
from asrcli.engine.packing import PackedLinear, can_pack, pack, pack_linear

needs_packing = pytest.mark.skipif(
    not can_pack(torch.ones(1, dtype=torch.bfloat16)), reason="this CPU does not pack weights"
)


@dataclass(frozen=True, slots=True)
class Layer:
    name: str
    inner: Linear
    missing: Linear | None = None


@dataclass(frozen=True, slots=True)
class Stack:
    layers: tuple[Layer, ...]
    out: Linear


def linear(num_in: int, num_out: int, dtype: torch.dtype, *, bias: bool = True) -> Linear:
    torch.manual_seed(num_in)
    weight = torch.randn(num_out, num_in) / num_in**0.5
    return Linear(weight.to(dtype), torch.randn(num_out).to(dtype) if bias else None)


@needs_packing
@pytest.mark.parametrize("shape", [(1, 64), (3, 64), (16, 64), (150, 64), (2, 5, 64)])
@pytest.mark.parametrize("bias", [True, False])
def test_a_packed_map_gives_the_same(shape: tuple[int, ...], bias: bool) -> None:
    plain = linear(64, 96, torch.bfloat16, bias=bias)
    packed = pack_linear(plain)
    assert isinstance(packed, PackedLinear)
    states = torch.randn(*shape).bfloat16()
    with torch.inference_mode():
        torch.testing.assert_close(packed(states), plain(states), atol=0.03, rtol=0.02)


@needs_packing
def test_every_map_is_packed() -> None:
    stack = Stack(
        (Layer("a", linear(8, 16, torch.bfloat16)), Layer("b", linear(16, 8, torch.bfloat16))),
        linear(8, 8, torch.bfloat16),
    )
    packed = pack(stack)
    assert isinstance(packed.out, PackedLinear)
    assert all(isinstance(layer.inner, PackedLinear) for layer in packed.layers)
    assert [(layer.name, layer.missing) for layer in packed.layers] == [("a", None), ("b", None)]


def test_other_formats_are_left_alone() -> None:
    stack = Stack((Layer("a", linear(8, 16, torch.float32)),), linear(8, 8, torch.float32))
    assert pack(stack) is not None
    assert pack(stack).out is stack.out
    assert pack(stack).layers[0].inner is stack.layers[0].inner
