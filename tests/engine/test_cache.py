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


def everything(cache: SlotCache) -> list[Tensor]:
    return [*cache.keys, *cache.values, *audio_of(cache), cache.audio_weights]


def audio_of(cache: SlotCache) -> list[Tensor]:
    return [*cache.audio_keys, *cache.audio_values]


def test_audio_moves_by_itself() -> None:
    cache, before = random_cache(), random_cache()
    cache.move_audio(3, 1)
    for moved, old in zip(audio_of(cache), audio_of(before), strict=True):
        assert torch.equal(moved[[0, 1, 2, 3]], old[[0, 3, 2, 3]])
    for same, old in zip(cache.keys + cache.values, before.keys + before.values, strict=True):
        assert torch.equal(same, old)


def test_room_for_audio_follows_what_is_there() -> None:
    """In the memory that there is, and without a hole."""
    cache, before = random_cache(), random_cache()
    memory = {tensor.data_ptr() for tensor in audio_of(cache)}
    for room in (3, 1, 3, 5):
        cache.fit_audio(room, 3)
        assert cache.audio_room == room
        for tensor, old in zip(audio_of(cache), audio_of(before), strict=True):
            assert tensor.shape == (4, 3, room, 4)
            assert tensor.is_contiguous()
            assert torch.equal(tensor[:3, :, :1], old[:3, :, :1])  # what fitted all the time
    assert {tensor.data_ptr() for tensor in audio_of(cache)} == memory
    cache.fit_audio(2, 0)
    cache.wipe(3, 3)
    assert all(not tensor[3].any() for tensor in audio_of(cache))


def test_wiping_leaves_other_slots() -> None:
    cache, before = random_cache(), random_cache()
    cache.wipe(2, 0)
    for kind, slot, others in (("ids", 2, [0, 1, 3]), ("audio", 0, [1, 2, 3])):
        tensors = [
            audio_of(each) if kind == "audio" else each.keys + each.values
            for each in (cache, before)
        ]
        for wiped, old in zip(*tensors, strict=True):
            assert not wiped[slot].any()
            assert torch.equal(wiped[others], old[others])


def test_sizes() -> None:
    cache = SlotCache(SHAPE, 4, torch.device("cpu"), torch.bfloat16)
    assert [tuple(t.shape) for t in cache.keys] == [(4, 3, 10, 4)] * 2
    assert [tuple(t.shape) for t in cache.audio_keys] == [(4, 3, 5, 4)] * 2
    assert [tuple(t.shape) for t in cache.audio_values] == [(4, 3, 5, 4)] * 2
    assert all(not tensor.any() for tensor in everything(cache))
    assert sum(t.nbytes for t in everything(cache)) == 4 * SHAPE.slot_bytes(torch.bfloat16)


def test_move_copies_what_is_in_use_and_leaves_the_other_slots() -> None:
    cache, before = random_cache(), random_cache()
    cache.move(3, 1, 6)
    for moved, old in zip(cache.keys + cache.values, before.keys + before.values, strict=True):
        assert torch.equal(moved[1, :, :6], old[3, :, :6])
    for moved, old in zip(audio_of(cache), audio_of(before), strict=True):
        assert torch.equal(moved, old)
    for moved, old in zip(everything(cache), everything(before), strict=True):
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
