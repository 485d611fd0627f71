"""Zeros that take memory only where something is written."""

from __future__ import annotations

import math
import mmap

import torch
from torch import Tensor


def sparse_zeros(*sizes: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    """Zeros for a cache of which most may never be used.

    ``torch.zeros`` writes all of them. On a CPU these come straight from the kernel, which finds a
    page of memory for them once it is written to, and takes it back with the tensor.
    """
    num_bytes = math.prod(sizes) * dtype.itemsize
    if device.type != "cpu" or not num_bytes:
        return torch.zeros(*sizes, device=device, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, num_bytes), dtype=dtype).view(sizes)
