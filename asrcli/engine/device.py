"""Where the network runs, and in which number format."""

from __future__ import annotations

import torch

from asrcli.engine.quantizing import can_quantize
from asrcli.errors import UsageError

DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "int8": torch.int8,
}


def choose_device(name: str) -> torch.device:
    """The device meant by "auto", "cpu", "cuda", "cuda:N" or "mps".

    Raises:
        UsageError: the name is unknown, or the machine has no such device.
    """
    if name == "auto":
        return torch.device(_best_device())
    try:
        device = torch.device(name)
    except RuntimeError:
        device = torch.device("meta")
    if device.type not in ("cpu", "cuda", "mps"):
        raise UsageError(f"device {name!r} is unknown", hint="one of: auto, cpu, cuda, cuda:N, mps")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UsageError(f"device {name}: this machine has no such GPU", hint="--device cpu works")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UsageError("device mps: this machine has no Metal GPU", hint="--device cpu works")
    return device


def _best_device() -> str:
    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def choose_dtype(name: str, device: torch.device) -> torch.dtype:
    """The number format meant by "auto", "float32", "bfloat16", "float16" or "int8".

    Raises:
        UsageError: the name is unknown, or the device cannot calculate in that format.
    """
    if name == "auto":
        return _best_dtype(device)
    if name not in DTYPES:
        raise UsageError(f"dtype {name!r} is unknown", hint=f"one of: auto, {', '.join(DTYPES)}")
    dtype = DTYPES[name]
    if dtype is torch.int8 and not (device.type == "cpu" and can_quantize()):
        raise UsageError(
            f"dtype int8 needs a CPU that multiplies integers (VNNI); {device.type} is not one",
            hint="--dtype auto takes the fastest format here",
        )
    return dtype


def set_up(device: torch.device) -> None:
    """Choose among torch's kernels for a device, for the whole process."""
    if device.type == "cuda":
        # cuDNN's attention compiles a plan for each new shape, and that takes longer than hundreds
        # of passes: prompts come in ever new shapes.
        torch.backends.cuda.enable_cudnn_sdp(False)


def unquantized(dtype: torch.dtype) -> torch.dtype:
    """The format of activations, and of what is no affine map's weight."""
    if dtype is not torch.int8:
        return dtype
    return torch.bfloat16 if cpu_has_bfloat16() else torch.float32


def _best_dtype(device: torch.device) -> torch.dtype:
    """The fastest format that the device calculates in by itself; float32 in case of doubt."""
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    if device.type == "cpu" and cpu_has_bfloat16():
        return torch.bfloat16
    return torch.float32


def cpu_has_bfloat16() -> bool:
    """Whether the CPU multiplies bfloat16 by itself (AVX512-BF16 or AMX); emulated, it is slow."""
    checks = ("_is_avx512_bf16_supported", "_is_amx_tile_supported")
    return any(getattr(torch.cpu, check, bool)() for check in checks)
