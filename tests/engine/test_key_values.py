"""Keys and values in slots, and attention to them, whichever way they are kept."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from asrcli.engine.bags import BaggedKeyValues
from asrcli.engine.byte_bags import ByteKeyValues, can_sum_bytes
from asrcli.engine.key_values import BLOCK, KeyValues, StoreShape

LAYERS, HEADS, WIDTH, SLOTS = 2, 3, 4, 5
SHAPE = StoreShape(num_layers=LAYERS, num_heads=HEADS, head_dim=WIDTH, num_positions=3 * BLOCK - 20)
LENGTHS = (3 * BLOCK - 20, 7, BLOCK, 2 * BLOCK + 1)  # of what is in the first slots

WRITTEN_SINGLY = [KeyValues, BaggedKeyValues]
SINGLY = pytest.mark.parametrize("kind", WRITTEN_SINGLY)
needs_bytes = pytest.mark.skipif(
    not can_sum_bytes(torch.device("cpu")), reason="no sums of rows in bytes in this torch"
)
KINDS = pytest.mark.parametrize(
    "kind", [*WRITTEN_SINGLY, pytest.param(ByteKeyValues, marks=needs_bytes)]
)


class Case:
    """A store of some kind, and what was put into it: [positions, 2, heads, width] a layer."""

    def __init__(self, kind: type[KeyValues], dtype: torch.dtype = torch.float32) -> None:
        torch.manual_seed(0)
        self.dtype = dtype
        self.store = kind(SHAPE, SLOTS, torch.device("cpu"), dtype)
        self.held: dict[int, list[Tensor]] = {}
        for slot, length in enumerate(LENGTHS):
            self.fill(slot, length)

    @property
    def near(self) -> float:
        if isinstance(self.store, ByteKeyValues):
            return 0.04  # values of 6 in 255 steps
        return 1e-5 if self.dtype is torch.float32 else 0.03

    def fill(self, slot: int, length: int) -> None:
        self.held[slot] = [
            torch.randn(length, 2, HEADS, WIDTH).to(self.dtype) for _ in range(LAYERS)
        ]
        for layer, written in enumerate(self.held[slot]):
            self.store.fill(layer, slice(slot, slot + 1), *written[None].unbind(2))

    def put(self, slots: list[int], positions: list[list[int]]) -> None:
        """Put further positions behind what is there."""
        for layer in range(LAYERS):
            new = torch.randn(len(slots), len(positions[0]), 2, HEADS, WIDTH).to(self.dtype)
            rows = torch.tensor(slots)[:, None]
            self.store.put(layer, rows, torch.tensor(positions), *new.unbind(2))
            for slot, places, each in zip(slots, positions, new, strict=True):
                longer = torch.zeros(max(places) + 1, 2, HEADS, WIDTH).to(self.dtype)
                longer[: len(self.held[slot][layer])] = self.held[slot][layer]
                longer[places] = each
                self.held[slot][layer] = longer

    def mask(self, slots: list[int], length: int) -> Tensor:
        """Some weight on every position, none behind what is in a slot."""
        mask = torch.full((len(slots), 1, 1, length), -torch.inf)
        for row, slot in zip(mask, slots, strict=True):
            num_held = len(self.held[slot][0])
            row[..., :num_held] = torch.arange(num_held) % 3
        return mask.to(self.dtype)

    def attend(self, slots: list[int], query: Tensor, layer: int = 0) -> Tensor:
        places = self.store.find(slots, [len(self.held[slot][layer]) for slot in slots])
        return self.store.attend(layer, query, places, self.mask(slots, places.length))

    def check(self, slots: list[int], num_tokens: int = 1) -> None:
        """Compare with plain arithmetic."""
        query = torch.randn(len(slots), HEADS, num_tokens, WIDTH).to(self.dtype)
        near = self.near
        for layer in range(LAYERS):
            expected = []
            for slot, row in zip(slots, query.float(), strict=True):
                held = self.held[slot][layer].float()
                key, value = held.permute(1, 2, 0, 3)
                scores = row @ key.transpose(1, 2) + self.mask([slot], len(held))[0].float()
                expected.append((scores.softmax(-1) @ value).transpose(0, 1).flatten(1))
            attended = self.attend(slots, query, layer).float()
            torch.testing.assert_close(attended, torch.stack(expected), atol=near, rtol=near)


@KINDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_attend_to_what_was_written(kind: type[KeyValues], dtype: torch.dtype) -> None:
    case = Case(kind, dtype)
    for slots in ([0, 1, 2, 3], [2, 3], [1], [3, 0], [1, 1, 1, 0, 2, 2]):
        for num_tokens in (1, 4):
            case.check(slots, num_tokens)


@SINGLY
def test_positions_are_put_one_by_one_and_many_at_once(kind: type[KeyValues]) -> None:
    case = Case(kind)
    case.put([2, 3], [[BLOCK + i for i in range(3)], [2 * BLOCK + 1 + i for i in range(3)]])
    case.check([1, 2, 3])
    for position in range(BLOCK + 3, BLOCK + 6):
        case.put([2, 1], [[position], [position - BLOCK + 4]])
        case.check([0, 1, 2, 3])


@KINDS
def test_less_in_the_place_of_more(kind: type[KeyValues]) -> None:
    case = Case(kind)
    case.check([0, 1, 2, 3])
    for slot, length in ((0, 9), (3, BLOCK), (1, 3 * BLOCK - 20)):
        case.fill(slot, length)
        case.check([0, 1, 2, 3])


@KINDS
@pytest.mark.parametrize(("num_slots", "num_blocks"), [(7, 3), (4, 5), (9, 8)])
def test_another_size_keeps_what_is_there(
    kind: type[KeyValues], num_slots: int, num_blocks: int
) -> None:
    case = Case(kind)
    case.store.find([0, 1], [BLOCK, BLOCK])  # which is not to be remembered
    case.store.resize(num_slots, num_blocks * BLOCK, 4)
    assert (case.store.num_slots, case.store.shape.room) == (num_slots, num_blocks * BLOCK)
    case.check([0, 1, 2, 3])
    case.fill(num_slots - 1, 3 * BLOCK)
    case.check([num_slots - 1, 0])


@KINDS
def test_less_room_keeps_the_first_positions(kind: type[KeyValues]) -> None:
    case = Case(kind)
    case.store.resize(2, BLOCK, 2)
    case.held[0] = [each[:BLOCK] for each in case.held[0]]
    case.check([0, 1])
    case.check([0, 1])


@KINDS
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_sharing", [2, 7])
def test_queries_share_heads(kind: type[KeyValues], dtype: torch.dtype, num_sharing: int) -> None:
    """Those that follow each other have one head's keys and values, as if these were repeated."""
    case, repeated = Case(kind, dtype), Case(kind, dtype)
    shape = replace(SHAPE, num_sharing=num_sharing)
    case.store = kind(shape, SLOTS, torch.device("cpu"), dtype)
    shape = replace(SHAPE, num_heads=num_sharing * HEADS)
    repeated.store = kind(shape, SLOTS, torch.device("cpu"), dtype)
    for slot, held in case.held.items():
        for layer, written in enumerate(held):
            case.store.fill(layer, slice(slot, slot + 1), *written[None].unbind(2))
            many = written[None].repeat_interleave(num_sharing, dim=3)
            repeated.store.fill(layer, slice(slot, slot + 1), *many.unbind(2))
    query = torch.randn(4, HEADS * num_sharing, 1, WIDTH).to(dtype)
    near = case.near
    for slots in ([0, 1, 2, 3], [3, 0, 1, 1]):
        found, expected = case.attend(slots, query), repeated.attend(slots, query)
        assert found.shape == (4, 1, HEADS * num_sharing * WIDTH)
        torch.testing.assert_close(found, expected, atol=near, rtol=near)


@KINDS
def test_copies(kind: type[KeyValues]) -> None:
    case = Case(kind)
    for source, target in ((3, 1), (1, 2), (0, 4)):
        case.store.copy(source, target, len(case.held[source][0]))
        case.held[target] = list(case.held[source])
        case.check([0, 1, 2, 3])


@KINDS
@pytest.mark.parametrize("stray", [torch.nan, torch.inf])
def test_what_is_no_number_shows_and_cannot_spread(kind: type[KeyValues], stray: float) -> None:
    """It comes out of its slot as NaN, not as a number, and not once the slot is wiped."""
    case = Case(kind)
    query = torch.rand(4, HEADS, 1, WIDTH)
    for layer in range(LAYERS):
        key, value = torch.randn(2, 1, 5, HEADS, WIDTH)
        (key, value)[layer][0, 2] = stray
        case.store.fill(layer, slice(1, 2), key, value)
        attended = case.attend([0, 1, 2, 3], query, layer)
        assert not attended[1].isfinite().all()
        assert attended[[0, 2, 3]].isfinite().all()
    case.store.wipe(1)
    case.fill(1, 7)
    case.check([0, 1, 2, 3])


@KINDS
def test_a_row_does_not_depend_on_its_company(kind: type[KeyValues]) -> None:
    case = Case(kind, torch.bfloat16)
    query = torch.randn(4, HEADS, 1, WIDTH).bfloat16()
    together = case.attend([0, 1, 2, 3], query)
    for first, end in (*pairwise(range(5)), (1, 3)):
        alone = case.attend(list(range(first, end)), query[first:end])
        assert torch.equal(alone, together[first:end])
