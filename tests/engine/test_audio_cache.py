"""Attention to cached audio, whichever way it is kept, against plain arithmetic."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from asrcli.engine.audio_bags import BagAudioCache
from asrcli.engine.audio_cache import BLOCK, AudioCache, AudioShape

LAYERS, HEADS, WIDTH, SLOTS = 2, 3, 4, 5
SHAPE = AudioShape(num_layers=LAYERS, num_heads=HEADS, head_dim=WIDTH, num_positions=3 * BLOCK - 20)
LENGTHS = (3 * BLOCK - 20, 7, BLOCK, 2 * BLOCK + 1)  # of the audio in the first slots


class Case:
    """A cache of some kind, and what was put into it."""

    def __init__(self, kind: type[AudioCache], dtype: torch.dtype) -> None:
        torch.manual_seed(0)
        self.dtype = dtype
        self.cache = kind(SHAPE, SLOTS, torch.device("cpu"), dtype)
        self.held: dict[int, tuple[list[Tensor], Tensor | None]] = {}
        for slot, length in enumerate(LENGTHS):
            self.put(slot, length, weighted=slot % 2 == 1)

    def put(self, slot: int, length: int, *, weighted: bool) -> None:
        log_weights = torch.randint(1, 9, (length,)).log().to(self.dtype) if weighted else None
        self.cache.begin(slot, 1, length, log_weights)
        written = [torch.randn(1, length, 2 * HEADS * WIDTH).to(self.dtype) for _ in range(LAYERS)]
        for layer, key_value in enumerate(written):
            self.cache.write(layer, slot, key_value)
        self.held[slot] = written, log_weights

    def check(self, slots: list[int], num_tokens: int = 1) -> None:
        """What rows that attend to these slots hear."""
        query = torch.randn(len(slots), HEADS, num_tokens, WIDTH).to(self.dtype)
        for layer in range(LAYERS):
            heard = self.cache.attend(layer, query, self.cache.hear(slots))
            expected = [
                self.expect(layer, slot, row) for slot, row in zip(slots, query, strict=True)
            ]
            near = 1e-5 if self.dtype is torch.float32 else 0.03
            torch.testing.assert_close(heard.float(), torch.stack(expected), atol=near, rtol=near)

    def expect(self, layer: int, slot: int, query: Tensor) -> Tensor:
        written, log_weights = self.held[slot]
        key, value = written[layer][0].float().view(-1, 2, HEADS, WIDTH).permute(1, 2, 0, 3)
        scores = query.float() @ key.transpose(1, 2)
        if log_weights is not None:
            scores = scores + log_weights.float()
        heard: Tensor = scores.softmax(-1) @ value
        return heard.transpose(0, 1).flatten(1)


@pytest.fixture(params=[AudioCache, BagAudioCache])
def kind(request: pytest.FixtureRequest) -> Iterator[type[AudioCache]]:
    yield request.param


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rows_hear_what_was_written(kind: type[AudioCache], dtype: torch.dtype) -> None:
    case = Case(kind, dtype)
    for slots in ([0, 1, 2, 3], [2, 3], [1], [3, 0], [1, 1, 1, 0, 2, 2]):
        for num_tokens in (1, 4):
            case.check(slots, num_tokens)


def test_shorter_audio_in_the_place_of_longer(kind: type[AudioCache]) -> None:
    case = Case(kind, torch.float32)
    case.check([0, 1, 2, 3])
    for slot, length in ((0, 9), (3, BLOCK), (1, 3 * BLOCK - 20)):
        case.put(slot, length, weighted=slot == 3)
        case.check([0, 1, 2, 3])


def test_audio_moves(kind: type[AudioCache]) -> None:
    case = Case(kind, torch.float32)
    case.check([0, 1, 2, 3])
    for source, target in ((3, 1), (1, 2), (0, 4)):
        case.cache.move(source, target)
        case.held[target] = case.held[source]
        case.check([0, 1, 2, 3])


def test_what_is_wiped_cannot_spread(kind: type[AudioCache]) -> None:
    """A NaN in a slot that was left stays out of the shorter audio that comes after it."""
    case = Case(kind, torch.float32)
    for tensor in (*case.cache.keys, *case.cache.values):
        tensor[0] = torch.nan
    case.cache.wipe(0)
    case.put(0, 5, weighted=False)
    case.check([0, 1, 2, 3])


def test_a_row_does_not_depend_on_its_company(kind: type[AudioCache]) -> None:
    case = Case(kind, torch.bfloat16)
    query = torch.randn(4, HEADS, 1, WIDTH).bfloat16()
    together = case.cache.attend(0, query, case.cache.hear([0, 1, 2, 3]))
    for first, end in (*pairwise(range(5)), (1, 3)):
        slots = list(range(first, end))
        alone = case.cache.attend(0, query[first:end], case.cache.hear(slots))
        assert torch.equal(alone, together[first:end])
