from __future__ import annotations

import math
from concurrent.futures import Future

import pytest
import torch
from torch import Tensor

from asrcli.engine import sampler
from asrcli.engine.beams import BeamSearch
from asrcli.engine.request import Hypothesis, LogitsRule
from asrcli.engine.scheduler import Sequence
from tests.engine.tiny_network import EOS, build_request


class Bar:
    """Bars one id, and remembers what it was given."""

    def __init__(self, token_id: int) -> None:
        self.token_id = token_id
        self.calls: list[list[list[int]]] = []

    def __call__(self, logits: Tensor, token_ids: object) -> None:
        assert isinstance(token_ids, list)
        assert len(logits) == len(token_ids)
        self.calls.append([list(row) for row in token_ids])
        logits[:, self.token_id] = -torch.inf


def row(
    number: int, *rules: LogitsRule, temperature: float = 0.0, token_ids: tuple[int, ...] = ()
) -> Sequence:
    request = build_request(number, rules=rules, temperature=temperature)
    return Sequence(request, Future[Hypothesis](), token_ids=list(token_ids))


def sample(logits: Tensor, rows: list[Sequence]) -> tuple[list[int], list[float]]:
    """What each row goes on with."""
    found = [candidates[0] for candidates in sampler.sample(logits, rows)]
    return [token_id for token_id, _ in found], [logprob for _, logprob in found]


def random_logits(num_rows: int, seed: int = 0) -> Tensor:
    return torch.randn(num_rows, 50, generator=torch.Generator().manual_seed(seed))


def test_greedy_takes_the_likeliest() -> None:
    logits = random_logits(4)
    expected = logits.log_softmax(-1).max(-1)
    ids, logprobs = sample(logits.clone(), [row(i) for i in range(4)])
    assert ids == expected.indices.tolist()
    assert logprobs == pytest.approx(expected.values.tolist(), abs=1e-6)


def test_a_rule_is_applied_once_to_the_rows_that_carry_it() -> None:
    logits = random_logits(4)
    best = logits.argmax(-1).tolist()
    rule, other = Bar(best[0]), Bar(best[1])
    rows = [
        row(0, rule, token_ids=(1, 2)),
        row(1, other, token_ids=(3,)),
        row(2, rule, token_ids=(4,)),
        row(3),
    ]
    changed = logits.clone()
    ids, _ = sample(changed, rows)
    assert rule.calls == [[[1, 2], [4]]]
    assert other.calls == [[[3]]]
    assert ids[0] != best[0]
    assert ids[1] != best[1]
    barred = logits.clone()
    barred[[0, 2], best[0]] = -torch.inf
    barred[1, best[1]] = -torch.inf
    assert torch.equal(changed, barred)
    assert ids == barred.argmax(-1).tolist()


def test_rules_of_one_kind_are_applied_in_one_call_if_they_can_be() -> None:
    calls: list[tuple[list[int], list[list[int]]]] = []

    class BarEach(Bar):
        @staticmethod
        def apply_each(rules: list[BarEach], logits: Tensor, token_ids: list[list[int]]) -> None:
            calls.append(([rule.token_id for rule in rules], token_ids))
            for row, rule in enumerate(rules):
                logits[row, rule.token_id] = -torch.inf

    logits = random_logits(4)
    best = logits.argmax(-1).tolist()
    changed = logits.clone()
    rows = [row(i, BarEach(best[i]) if i != 2 else Bar(best[i]), token_ids=(i,)) for i in range(4)]
    ids, _ = sample(changed, rows)
    assert calls == [([best[0], best[1], best[3]], [[0], [1], [3]])]
    logits[range(4), best] = -torch.inf
    assert torch.equal(changed, logits)
    assert ids == logits.argmax(-1).tolist()


def test_any_id_comes_out_exactly() -> None:
    """Ids share a tensor with their log-probabilities on the way to the host."""
    logits = torch.zeros(3, 200_003)
    for number, token_id in enumerate((0, 151_935, 200_002)):
        logits[number, token_id] = 9.0
    assert sample(logits, [row(i) for i in range(3)])[0] == [0, 151_935, 200_002]


def test_rules_of_one_row_are_applied_in_order() -> None:
    class Set:
        def __init__(self, value: float) -> None:
            self.value = value

        def __call__(self, logits: Tensor, token_ids: object) -> None:
            logits[:, 5] = self.value

    logits = random_logits(1)
    assert sample(logits.clone(), [row(0, Set(-9.0), Set(99.0))])[0] == [5]
    assert sample(logits.clone(), [row(0, Set(99.0), Set(-9.0))])[0] != [5]


def test_log_probabilities_are_those_after_the_rules() -> None:
    logits = random_logits(2)
    best = int(logits[0].argmax())
    ids, logprobs = sample(logits.clone(), [row(0, Bar(best)), row(1)])
    logits[0, best] = -torch.inf
    expected = logits.log_softmax(-1)
    assert logprobs == pytest.approx([float(expected[i, ids[i]]) for i in range(2)], abs=1e-6)


def draw(sequences: list[Sequence], of_interest: Sequence, num_steps: int = 12) -> list[int]:
    """Ids of one row over steps in which the others have other logits."""
    drawn = []
    for step in range(num_steps):
        logits = random_logits(len(sequences), seed=100 + step)
        logits[sequences.index(of_interest)] = random_logits(1, seed=step)[0]
        drawn.append(sample(logits, sequences)[0][sequences.index(of_interest)])
    return drawn


def test_draws_depend_on_the_seed_alone() -> None:
    alone = row(7, temperature=1.0)
    expected = draw([alone], alone)
    in_company = row(7, temperature=1.0)
    others = [row(1, temperature=0.7), row(2), row(3, temperature=1.5)]
    assert draw([*others, in_company], in_company) == expected
    again = row(7, temperature=1.0)
    assert draw([again, *[row(i, temperature=1.0) for i in range(3)]], again) == expected
    other_seed = row(8, temperature=1.0)
    assert draw([other_seed], other_seed) != expected


def test_draws_follow_the_temperature() -> None:
    logits = torch.tensor([[2.0, 1.0, 0.0, -torch.inf]])
    counts = torch.zeros(4)
    each = row(0, temperature=0.5)
    for _ in range(2000):
        counts[sample(logits.clone(), [each])[0][0]] += 1
    expected = torch.softmax(logits[0] / 0.5, -1)
    assert torch.allclose(counts / 2000, expected, atol=0.03)
    assert counts[3] == 0


def test_log_probabilities_of_draws_are_at_temperature_1() -> None:
    logits = random_logits(1)
    ids, logprobs = sample(logits.clone(), [row(0, temperature=2.0)])
    assert logprobs[0] == pytest.approx(float(logits.log_softmax(-1)[0, ids[0]]), abs=1e-6)


def test_beams_are_given_the_likeliest_ids_and_others_one() -> None:
    """As many as there are beams and ends: then one way on is left for each beam."""
    logits = random_logits(3)
    rows = [row(0), row(1), row(2)]
    rows[1].search = BeamSearch(rows[1], 3)
    best = logits.log_softmax(-1).topk(5)
    found = sampler.sample(logits.clone(), rows)
    assert [len(candidates) for candidates in found] == [1, 3 + len(EOS), 1]
    assert [token_id for token_id, _ in found[1]] == best.indices[1].tolist()
    assert [logprob for _, logprob in found[1]] == pytest.approx(best.values[1].tolist(), abs=1e-6)


def test_numbers_out_of_range_are_told_by_a_log_probability_that_is_none() -> None:
    logits = random_logits(3)
    logits[0, 7], logits[1, 7] = torch.nan, torch.inf
    _, logprobs = sample(logits, [row(0), row(1, temperature=1.0), row(2)])
    assert [math.isfinite(logprob) for logprob in logprobs] == [False, False, True]
