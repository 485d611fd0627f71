"""How much memory the loop may take, and how the C library is kept from giving it back too soon."""

from __future__ import annotations

import ctypes
import os
import sys

import torch

SHARE_OF_FREE_MEMORY = 0.25  # for slots on a CPU, whose memory is everybody's
SHARE_OF_FREE_GPU_MEMORY = 0.6  # the rest is for the encoder's activations
MAX_CPU_SLOTS = 16  # beyond that a step on a CPU takes longer by as much as it does more
MAX_GPU_SLOTS = 256

# glibc, malloc.h
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def keep_freed_memory() -> None:
    """Have glibc reuse large blocks instead of returning them to the kernel.

    By default every activation of a megabyte or more is mapped anew, page by page, in each layer of
    each pass: more than half of an encoder's time. And what one thread has freed is for all others:
    each with an arena of its own would keep its own. Elsewhere than on glibc this does nothing.
    """
    if not sys.platform.startswith("linux"):
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):  # musl has no such switch
        return
    mallopt(_M_MMAP_THRESHOLD, 1 << 30)
    mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1)
    mallopt(_M_ARENA_MAX, 1)


def choose_num_slots(slot_bytes: int, device: torch.device) -> int:
    """Slots of ``slot_bytes`` that are worth having and fit what is free on a device."""
    return _clamp(_cache_memory(device) // slot_bytes, max_slots(device))


def choose_num_tokens(token_bytes: int, device: torch.device) -> int:
    """Tokens of ``token_bytes`` that fit what is free on a device."""
    return max(1, _cache_memory(device) // token_bytes)


def max_slots(device: torch.device) -> int:
    """Rows beyond which running more at once gains nothing."""
    return MAX_GPU_SLOTS if device.type == "cuda" else MAX_CPU_SLOTS


def _cache_memory(device: torch.device) -> int:
    """Bytes of a device's memory that slots may take."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        return int(free * SHARE_OF_FREE_GPU_MEMORY)
    return int(_free_memory() * SHARE_OF_FREE_MEMORY)


def _clamp(num_slots: int, most: int) -> int:
    return max(1, min(num_slots, most))


def _free_memory() -> int:
    """Bytes of main memory that are free; a cautious guess where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 4 << 30
