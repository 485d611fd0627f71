from __future__ import annotations

import torch
from torch import Tensor

from asrcli.engine.cache import CacheShape, SlotCache

SHAPE = CacheShape(num_layers=2, num_heads=3, head_dim=4, max_length=10, num_audio_positions=5)


def random_cache() -> SlotCache:
    torch.manual_seed(0)
    cache = SlotCache(SHAPE, 4, torch.device("cpu"), torch.float32)
    for tensor in everything(cache):
        tensor.copy_(torch.randn_like(tensor))
    return cache


def ids_of(cache: SlotCache) -> list[Tensor]:
    return [*cache.keys, *cache.values]


def everything(cache: SlotCache) -> list[Tensor]:
    return [*ids_of(cache), *cache.audio.keys, *cache.audio.values]


def test_wiping_leaves_other_slots() -> None:
    cache, before = random_cache(), random_cache()
    cache.wipe(2, 0)
    for kind, slot, others in ((ids_of, 2, [0, 1, 3]), (audio_of, 0, [1, 2, 3])):
        for wiped, old in zip(kind(cache), kind(before), strict=True):
            assert not wiped[slot].any()
            assert torch.equal(wiped[others], old[others])


def audio_of(cache: SlotCache) -> list[Tensor]:
    return [*cache.audio.keys, *cache.audio.values]


def test_sizes() -> None:
    cache = SlotCache(SHAPE, 4, torch.device("cpu"), torch.bfloat16)
    assert [tuple(t.shape) for t in cache.keys] == [(4, 3, 10, 4)] * 2
    assert all(not tensor.any() for tensor in everything(cache))
    log_weights = 4 * SHAPE.audio.room * 2
    num_bytes = sum(t.nbytes for t in everything(cache)) + log_weights
    assert num_bytes == 4 * SHAPE.slot_bytes(torch.bfloat16)


def test_move_copies_what_is_in_use_and_leaves_the_other_slots() -> None:
    cache, before = random_cache(), random_cache()
    cache.move(3, 1, 6)
    for moved, old in zip(ids_of(cache), ids_of(before), strict=True):
        assert torch.equal(moved[1, :, :6], old[3, :, :6])
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
    for same, old in zip(audio_of(cache), audio_of(before), strict=True):
        assert torch.equal(same, old)
