from __future__ import annotations

import pytest
import torch

from asrcli.engine.key_values import BLOCK
from asrcli.engine.scheduler import NEED_STEP
from asrcli.engine.token_cache import TokenCache, TokenShape

SHAPE = TokenShape(num_layers=2, num_heads=3, head_dim=4)


def make_cache(num_rows: int, room: int) -> TokenCache:
    torch.manual_seed(0)
    cache = TokenCache(SHAPE, torch.device("cpu"), torch.float32)
    cache.fit(num_rows, room, 0)
    for tensor in (*cache.held.keys, *cache.held.values):
        tensor.copy_(torch.randn_like(tensor))
    return cache


def test_room_is_counted_in_blocks() -> None:
    """Or more memory would be taken than the scheduler has reckoned with."""
    assert NEED_STEP % BLOCK == 0


@pytest.mark.parametrize("room", [BLOCK, 3 * BLOCK])
def test_sizes(room: int) -> None:
    cache = TokenCache(SHAPE, torch.device("cpu"), torch.bfloat16)
    assert (cache.num_rows, cache.room) == (0, 0)
    cache.fit(5, room, 0)
    assert (cache.num_rows, cache.room) == (5, room)
    held = (*cache.held.keys, *cache.held.values)
    assert [(len(tensor), tensor.shape[1], tensor[0, 0].numel()) for tensor in held] == [
        (5, 3, room * 4)
    ] * 4
    assert sum(tensor.nbytes for tensor in held) == 5 * room * SHAPE.token_bytes(torch.bfloat16)
    cache.clear()
    assert (cache.num_rows, cache.room) == (0, 0)
    assert not sum(tensor.nbytes for tensor in (*cache.held.keys, *cache.held.values))


def test_another_room_keeps_what_the_live_rows_hold() -> None:
    for num_rows, num_blocks in ((6, 2), (4, 3), (2, 1), (9, 5)):
        cache, before = make_cache(4, 2 * BLOCK), make_cache(4, 2 * BLOCK)
        cache.fit(num_rows, num_blocks * BLOCK, 2)
        for tensors, old, a_block in (
            (cache.held.keys, before.held.keys, 1),
            (cache.held.values, before.held.values, BLOCK),
        ):
            kept = min(num_blocks, 2) * a_block
            for new, previous in zip(tensors, old, strict=True):
                assert torch.equal(new[:2, :, :kept], previous[:2, :, :kept])
                assert not new[2:].any()
                assert not new[:, :, kept:].any()


def test_what_fits_already_is_left_alone() -> None:
    cache = make_cache(4, BLOCK)
    keys = cache.held.keys[0]
    cache.fit(3, BLOCK, 3)
    assert cache.held.keys[0] is keys


def test_move_copies_what_is_in_use() -> None:
    cache, before = make_cache(4, BLOCK), make_cache(4, BLOCK)
    cache.move(3, 1, 6)
    for moved, old in zip(cache.held.values, before.held.values, strict=True):
        assert torch.equal(moved[1, :, :6], old[3, :, :6])
        assert torch.equal(moved[1, :, 6:], old[1, :, 6:])
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
    for moved, old in zip(cache.held.keys, before.held.keys, strict=True):
        assert torch.equal(moved[1, ..., :6], old[3, ..., :6])
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
