from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from asrcli.engine.cache import CacheShape, SlotCache
from asrcli.engine.key_values import BLOCK

SHAPE = CacheShape(num_layers=2, num_heads=3, head_dim=4, max_length=10, num_audio_positions=5)


def random_cache() -> SlotCache:
    torch.manual_seed(0)
    cache = SlotCache(SHAPE, 4, torch.device("cpu"), torch.float32)
    for tensor in everything(cache):
        tensor.copy_(torch.randn_like(tensor))
    return cache


def ids_of(cache: SlotCache) -> list[Tensor]:
    return [*cache.ids.keys, *cache.ids.values]


def audio_of(cache: SlotCache) -> list[Tensor]:
    return [*cache.audio.keys, *cache.audio.values]


def everything(cache: SlotCache) -> list[Tensor]:
    return [*ids_of(cache), *audio_of(cache)]


def test_wiping_leaves_other_slots() -> None:
    cache, before = random_cache(), random_cache()
    cache.wipe(2, 0)
    for kind, slot, others in ((ids_of, 2, [0, 1, 3]), (audio_of, 0, [1, 2, 3])):
        for wiped, old in zip(kind(cache), kind(before), strict=True):
            assert not wiped[slot].any()
            assert torch.equal(wiped[others], old[others])


@pytest.mark.parametrize("in_bytes", [False, True])
def test_sizes(in_bytes: bool) -> None:
    shape = replace(SHAPE, audio_in_bytes=in_bytes)
    cache = SlotCache(shape, 4, torch.device("cpu"), torch.bfloat16)
    assert all(not tensor.any() for tensor in everything(cache))
    masks = 4 * BLOCK * 2
    num_bytes = sum(tensor.nbytes for tensor in everything(cache)) + masks
    assert num_bytes == 4 * shape.slot_bytes(torch.bfloat16)
    assert SHAPE.ids.room == SHAPE.audio.room == BLOCK


@pytest.mark.parametrize("num_positions", [0, 3, 5])
def test_audio_moves_with_all_that_is_known_of_it(num_positions: int) -> None:
    cache, before = random_cache(), random_cache()
    log_weights = torch.arange(float(num_positions))
    cache.begin_audio(0, 2, 4, None)
    cache.begin_audio(3, 1, num_positions, log_weights)
    cache.move_audio(3, 1)
    for same, old in zip(ids_of(cache), ids_of(before), strict=True):
        assert torch.equal(same, old)
    for moved, old in zip(cache.audio.values, before.audio.values, strict=True):
        assert torch.equal(moved[1, :, :num_positions], old[3, :, :num_positions])
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
    if num_positions:
        mask = cache.hear([1, 0]).mask
        assert mask is not None
        masks = mask[:, 0, 0]
        assert torch.equal(masks[0, :num_positions], log_weights)
        assert masks[1, :4].eq(0).all()
        assert masks[0, num_positions:].eq(-torch.inf).all()
        assert masks[1, 4:].eq(-torch.inf).all()
