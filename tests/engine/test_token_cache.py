from __future__ import annotations

import torch

from asrcli.engine.token_cache import TokenCache, TokenShape

SHAPE = TokenShape(num_layers=2, num_heads=3, head_dim=4)


def make_cache(num_rows: int, room: int) -> TokenCache:
    torch.manual_seed(0)
    cache = TokenCache(SHAPE, torch.device("cpu"), torch.float32)
    cache.fit(num_rows, room, 0)
    for tensor in (*cache.keys, *cache.values):
        tensor.copy_(torch.randn_like(tensor))
    return cache


def test_sizes() -> None:
    cache = TokenCache(SHAPE, torch.device("cpu"), torch.bfloat16)
    assert cache.room == 0
    cache.fit(5, 10, 0)
    assert [tuple(t.shape) for t in (*cache.keys, *cache.values)] == [(5, 3, 10, 4)] * 4
    assert sum(t.nbytes for t in (*cache.keys, *cache.values)) == 50 * SHAPE.token_bytes(
        torch.bfloat16
    )
    cache.clear()
    assert all(t.numel() == 0 for t in (*cache.keys, *cache.values))


def test_another_room_keeps_what_the_live_rows_hold() -> None:
    for num_rows, room in ((6, 10), (4, 16), (2, 7), (9, 30)):
        cache, before = make_cache(4, 10), make_cache(4, 10)
        cache.fit(num_rows, room, 2)
        kept = min(room, 10)
        pairs = zip(cache.keys + cache.values, before.keys + before.values, strict=True)
        for new, old in pairs:
            assert new.shape == (num_rows, 3, room, 4)
            assert torch.equal(new[:2, :, :kept], old[:2, :, :kept])
            assert not new[2:].any()
            assert not new[:, :, kept:].any()


def test_what_fits_already_is_left_alone() -> None:
    cache = make_cache(4, 10)
    keys = cache.keys[0]
    cache.fit(3, 10, 3)
    assert cache.keys[0] is keys


def test_move_copies_what_is_in_use() -> None:
    cache, before = make_cache(4, 10), make_cache(4, 10)
    cache.move(3, 1, 6)
    for moved, old in zip(cache.keys + cache.values, before.keys + before.values, strict=True):
        assert torch.equal(moved[1, :, :6], old[3, :, :6])
        assert torch.equal(moved[1, :, 6:], old[1, :, 6:])
        assert torch.equal(moved[[0, 2, 3]], old[[0, 2, 3]])
