from __future__ import annotations

import pytest
import torch

from asrcli.engine import memory
from asrcli.engine.device import choose_device, choose_dtype
from asrcli.errors import UsageError

CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("free", "expected"), [(400, 1), (4000, 1), (4000 * 5, 5), (10**9, memory.MAX_CPU_SLOTS)]
)
def test_slots_follow_the_memory_at_hand(
    monkeypatch: pytest.MonkeyPatch, free: int, expected: int
) -> None:
    monkeypatch.setattr(memory, "_free_memory", lambda: free)
    assert memory.choose_num_slots(1000, CPU) == expected


def test_free_memory_of_this_machine() -> None:
    assert 1 << 20 < memory._free_memory() < 1 << 50


def test_devices() -> None:
    assert choose_device("cpu") == CPU
    assert choose_device("auto").type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize("name", ["gpu", "", "cuda:x", "meta", "xpu"])
def test_unknown_device(name: str) -> None:
    with pytest.raises(UsageError, match="unknown"):
        choose_device(name)


def test_a_gpu_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="no such GPU"):
        choose_device(f"cuda:{torch.cuda.device_count()}")


def test_dtypes() -> None:
    assert choose_dtype("float32", CPU) is torch.float32
    assert choose_dtype("float16", CPU) is torch.float16
    assert choose_dtype("bfloat16", CPU) is torch.bfloat16
    with pytest.raises(UsageError, match="dtype 'int4' is unknown"):
        choose_dtype("int4", CPU)


@pytest.mark.parametrize(
    ("instructions", "expected"), [(True, torch.bfloat16), (False, torch.float32)]
)
def test_the_default_dtype_follows_the_instructions(
    monkeypatch: pytest.MonkeyPatch, instructions: bool, expected: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: instructions)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: False)
    assert choose_dtype("auto", CPU) is expected
