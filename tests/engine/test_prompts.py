"""Prompts that are padded and computed together, as on a GPU."""

from __future__ import annotations

import random

import pytest
import torch

from asrcli.engine.prompts import PromptLayout, _group
from asrcli.engine.token_cache import TokenCache
from tests.engine.tiny_decoder_only import VOCABULARY, build_decoder_only

LENGTHS = [[5], [7, 7, 7], [3, 5, 4, 6], [1, 1, 90, 2, 80, 85, 3], [40, 1, 1, 1, 1, 1, 1, 1, 1, 1]]


@pytest.mark.parametrize("lengths", LENGTHS)
def test_prompts_at_once_give_what_each_gives_alone(lengths: list[int]) -> None:
    network = build_decoder_only()
    token_ids = torch.randint(VOCABULARY, (sum(lengths),), generator=torch.manual_seed(1))
    found = []
    for at_once in (False, True):
        network.lays_out_prompts = at_once
        cache = TokenCache(network.token_shape, network.device, network.dtype)
        cache.fit(len(lengths) + 2, max(lengths) + 8, 0)
        states = network.prefill(network.embed(token_ids), lengths, cache, 2)
        found.append([states, *cache.held.keys, *cache.held.values])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-4)


def test_numbers_out_of_range_stay_with_their_prompt() -> None:
    layout = PromptLayout([2, 4, 3], torch.device("cpu"))
    states = torch.randn(9, 2, 8)
    states[5] = torch.nan
    attended = layout.attend(states, states, states)
    assert attended[[0, 1, 6, 7, 8]].isfinite().all()
    assert attended[5].isnan().all()


def test_little_is_padding() -> None:
    generator = random.Random(0)
    for _ in range(200):
        lengths = [generator.choice((1, 5, 60, 400)) for _ in range(generator.randrange(1, 40))]
        groups = list(_group(lengths))
        assert sum(group.num_prompts for group in groups) == len(lengths)
        assert [group.begin for group in groups[1:]] == [group.end for group in groups[:-1]]
        assert groups[-1].end == sum(lengths)
        assert sum(g.num_prompts * g.longest for g in groups) <= 2 * sum(lengths)
