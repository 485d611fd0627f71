from __future__ import annotations

import pytest
import torch

from asrcli.engine import device
from asrcli.engine.device import choose_dtype, unquantized
from asrcli.engine.layers import Linear
from asrcli.engine.packing import can_pack
from asrcli.engine.quantizing import QuantizedLinear, can_quantize, quantize_linear
from asrcli.errors import UsageError
from asrcli.models.weight_reader import MIN_OUTPUTS, MIN_STEP_WEIGHTS, WeightReader

CPU = torch.device("cpu")
needs_integers = pytest.mark.skipif(
    not can_quantize(), reason="this CPU does not multiply eight bits by eight exactly"
)


def linear(num_in: int, num_out: int, dtype: torch.dtype, *, bias: bool = True) -> Linear:
    torch.manual_seed(num_in)
    weight = torch.randn(num_out, num_in) / num_in**0.5
    return Linear(weight.to(dtype), torch.randn(num_out).to(dtype) if bias else None)


def off_by(found: torch.Tensor, exact: torch.Tensor) -> float:
    return float((found.float() - exact).norm() / exact.norm())


@needs_integers
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("bias", [True, False])
def test_the_product_is_right_to_a_hundredth(dtype: torch.dtype, bias: bool) -> None:
    plain = linear(256, 96, dtype, bias=bias)
    by_integers = quantize_linear(plain)
    exact = Linear(plain.weight.float(), None if plain.bias is None else plain.bias.float())
    for shape in ((1, 256), (3, 256), (150, 256), (2, 5, 256)):
        states = torch.randn(*shape).to(dtype)
        before = states.clone()
        found = by_integers(states)
        assert torch.equal(states, before)
        assert found.dtype is dtype
        assert found.shape == (*shape[:-1], 96)
        assert off_by(found, exact(states.float())) < 0.015


@needs_integers
def test_whole_numbers_that_fit_are_exact() -> None:
    weight = torch.randint(-127, 128, (8, 16)).float()
    weight[:, 0] = 127.0
    states = torch.randint(-127, 128, (5, 16)).float()
    states[:, 3] = torch.tensor([127.0, -127.0, 127.0, -127.0, 127.0])
    found = quantize_linear(Linear(weight))(states)
    torch.testing.assert_close(found, states @ weight.T, rtol=1e-5, atol=0.05)


@needs_integers
def test_a_row_depends_on_no_other_row() -> None:
    by_integers = quantize_linear(linear(256, 96, torch.bfloat16))
    states = torch.randn(20, 256).bfloat16() * torch.logspace(-3, 3, 20)[:, None].bfloat16()
    together = by_integers(states)
    for row in range(20):
        assert torch.equal(by_integers(states[row : row + 1])[0], together[row])


@needs_integers
def test_zeros_and_what_is_no_number() -> None:
    bias = torch.randn(8).bfloat16()
    plain = Linear(torch.randn(8, 64).bfloat16(), bias)
    states = torch.zeros(3, 64).bfloat16()
    states[1, 5] = torch.nan
    states[2, 5] = torch.inf
    found = quantize_linear(plain)(states)
    assert torch.equal(found[0], bias)
    assert not found[1:].isfinite().any()  # as the engine wants it, which gives the row up
    assert quantize_linear(Linear(torch.zeros(8, 64)))(torch.randn(2, 64)).eq(0).all()


@needs_integers
def test_maps_of_few_rows_stay_as_they_are_unless_they_are_large() -> None:
    tensors = {
        "narrow.weight": torch.randn(8, 16),
        "small.weight": torch.randn(MIN_OUTPUTS, 16),
        "large.weight": torch.randn(2000, 1001),
    }
    assert tensors["large.weight"].numel() >= MIN_STEP_WEIGHTS
    reader = WeightReader(tensors, CPU, torch.int8)

    def is_quantized(name: str, *, in_steps: bool) -> bool:
        found = reader.linear(name, without_bias=(name,), in_steps=in_steps)
        return isinstance(found, QuantizedLinear)

    assert is_quantized("small", in_steps=False)
    assert not is_quantized("small", in_steps=True)
    assert is_quantized("large", in_steps=True)
    # What few outputs gain, their input costs, where bfloat16 is multiplied fast as well.
    assert is_quantized("narrow", in_steps=False) is not can_pack(reader.tensor("narrow.weight"))
    assert reader.tensor("small.weight").dtype is unquantized(torch.int8)
    embedding, output = reader.embedding("large")
    assert embedding is tensors["large.weight"]  # looked up where it is stored
    assert isinstance(output, QuantizedLinear)


def test_where_integers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="int8 needs a CPU that multiplies integers"):
        choose_dtype("int8", torch.device("cuda"))
    monkeypatch.setattr(device, "can_quantize", lambda: False)
    with pytest.raises(UsageError, match="cpu is not one"):
        choose_dtype("int8", CPU)
    monkeypatch.setattr(device, "can_quantize", lambda: True)
    assert choose_dtype("int8", CPU) is torch.int8


def test_activations_beside_integers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert unquantized(torch.float16) is torch.float16
    for has, expected in ((True, torch.bfloat16), (False, torch.float32)):
        monkeypatch.setattr(device, "cpu_has_bfloat16", lambda has=has: has)
        assert unquantized(torch.int8) is expected
