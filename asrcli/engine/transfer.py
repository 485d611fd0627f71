"""Copies between the host and the device that hold nobody up.

A copy from ordinary memory waits until the device has done all that was asked of it before. One
from pinned memory is queued behind that, and the host goes on.
"""

from __future__ import annotations

import threading
from typing import Any

import torch
from torch import Tensor

gpu_beside_engine = threading.Lock()
"""Held by a thread that uses the GPU beside the engine's, and by that one while it records a graph:
what others ask of the GPU meanwhile could spoil the recording."""


def upload(values: Any, device: torch.device, dtype: torch.dtype = torch.long) -> Tensor:
    """Numbers (lists of lists of any depth) as a tensor on a device, without waiting for it."""
    if device.type != "cuda":
        return torch.tensor(values, device=device, dtype=dtype)
    # The allocator keeps pinned memory until the copies from it are done.
    return torch.tensor(values, dtype=dtype, pin_memory=True).to(device, non_blocking=True)


def upload_into(buffer: Tensor, values: Any) -> None:
    """Copy numbers into a tensor that stays where it is, without waiting for its device."""
    pinned = buffer.device.type == "cuda"
    host = torch.tensor(values, dtype=buffer.dtype, pin_memory=pinned)
    buffer.copy_(host, non_blocking=True)


def send(tensor: Tensor, device: torch.device) -> Tensor:
    """A tensor on a device, without waiting for it; itself if it is there already."""
    if device.type != "cuda" or tensor.device.type != "cpu":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def download(tensor: Tensor) -> list[Any]:
    """A tensor's numbers as lists, once its device has come to them: one copy."""
    host = tensor
    if tensor.device.type == "cuda":
        host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        host.copy_(tensor, non_blocking=True)
        finish(torch.cuda.current_stream(tensor.device))
    numbers: list[Any] = host.tolist()
    return numbers


def open_stream(device: torch.device) -> torch.cuda.Stream:
    """A further stream of a CUDA device."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch has no types for it


def finish(stream: torch.cuda.Stream) -> None:
    """Wait for what a stream has been given so far, and not for what others give it meanwhile."""
    done = torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no types for it
    done.record(stream)
    done.synchronize()


def use_here(tensor: Tensor) -> Tensor:
    """A tensor that another stream has made, before the stream at hand reads it.

    Its memory is then not given to others until the stream at hand has done with it.
    """
    if tensor.device.type == "cuda":
        tensor.record_stream(torch.cuda.current_stream(tensor.device))
    return tensor
