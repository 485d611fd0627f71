"""What a row comes to does not depend on how many others are beside it, to the last bit."""

from __future__ import annotations

import pytest
import torch

from asrcli.engine.layers import Linear, attend
from asrcli.engine.packing import can_pack, pack_linear

NUM_ROWS = (1, 2, 3, 4, 5, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 257)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.parametrize(("width", "out"), [(512, 512), (512, 2048), (2048, 512), (80, 100)])
def test_affine_maps(width: int, out: int, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    weight = torch.randn(out, width, dtype=dtype) / width**0.5
    if dtype is torch.bfloat16 and not can_pack(weight):
        pytest.skip("packed weights are not to be had on this machine")
    linear = pack_linear(Linear(weight, torch.randn(out, dtype=dtype)))
    states = torch.randn(max(NUM_ROWS), width, dtype=dtype)
    expected = linear(states[:16])
    for num_rows in NUM_ROWS:
        found = linear(states[:num_rows])
        assert found.shape == (num_rows, out)
        shared = min(num_rows, 16)
        assert torch.equal(found[:shared], expected[:shared]), num_rows
    order = torch.randperm(16)
    assert torch.equal(linear(states[:16][order]), expected[order])


def test_shapes_stay() -> None:
    linear = Linear(torch.randn(6, 5), torch.randn(6))
    states = torch.randn(1, 2, 5)
    assert linear(states).shape == (1, 2, 6)
    torch.testing.assert_close(
        linear(states), torch.nn.functional.linear(states, linear.weight, linear.bias)
    )
    assert Linear(torch.randn(6, 5))(torch.randn(5)).shape == (6,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def test_attention(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    query = torch.randn(17, 8, 1, 64, dtype=dtype) / 8
    key = torch.randn(17, 8, 64, 300, dtype=dtype)
    value = torch.randn(17, 8, 300, 64, dtype=dtype)
    expected = attend(query, key, value)
    for num_rows in (1, 2, 3, 5, 16):
        found = attend(query[:num_rows], key[:num_rows], value[:num_rows])
        assert torch.equal(found, expected[:num_rows])
    mask = torch.zeros(300, dtype=dtype)
    mask[50:] = float("-inf")
    long = attend(query, key, value, mask)
    short = attend(query, key[..., :64], value[:, :, :64], mask[:64])
    assert torch.equal(long, short)  # the room behind a row does not matter either
