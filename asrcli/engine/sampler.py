"""From logits to ids: the requests' rules, then the likeliest id or a draw."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence as Rows

    from asrcli.engine.request import LogitsRule
    from asrcli.engine.scheduler import Sequence


Candidate = tuple[int, float]
"""An id and its natural log-probability, after the rules, at temperature 1."""


def sample(logits: Tensor, sequences: Rows[Sequence]) -> list[list[Candidate]]:
    """Choose the next id of every row.

    Args:
        logits: float32 [num_rows, vocabulary]; changed in place.
        sequences: the rows' sequences, in the same order.

    Returns:
        Of each row the id that it goes on with; of a beam the likeliest ids, likeliest first, as
        many as its search has beams and ends. A log-probability that is not finite says that the
        row's numbers have left the range of their dtype, and its id means nothing.
    """
    _apply_rules(logits, sequences)
    logprobs = logits.log_softmax(dim=-1)
    nums = [_num_candidates(sequence) for sequence in sequences]
    if max(nums) == 1:
        best = logprobs.argmax(dim=-1, keepdim=True)
    else:
        best = logprobs.topk(min(max(nums), logprobs.shape[1])).indices
    for row, sequence in enumerate(sequences):
        if sequence.request.sampling.temperature > 0 and logprobs[row, best[row, 0]].isfinite():
            best[row, 0] = _draw(logits[row], sequence)
    rows = zip(nums, best.tolist(), logprobs.gather(1, best).tolist(), strict=True)
    return [list(zip(ids, values, strict=True))[:num] for num, ids, values in rows]


def _num_candidates(sequence: Sequence) -> int:
    if sequence.search is None:
        return 1
    return sequence.search.num_beams + len(sequence.request.sampling.eos_token_ids)


def _apply_rules(logits: Tensor, sequences: Rows[Sequence]) -> None:
    """Apply each rule once, to all the rows that carry it."""
    carried = [sequence.request.sampling.logits_rules for sequence in sequences]
    for place in range(max(map(len, carried))):
        groups: dict[LogitsRule, list[int]] = defaultdict(list)
        for row, rules in enumerate(carried):
            if place < len(rules):
                groups[rules[place]].append(row)
        for rule, rows in groups.items():
            _apply(rule, logits, rows, sequences)


def _apply(rule: LogitsRule, logits: Tensor, rows: list[int], sequences: Rows[Sequence]) -> None:
    token_ids = [sequences[row].token_ids for row in rows]
    first, end = rows[0], rows[-1] + 1
    if len(rows) == end - first:
        rule(logits[first:end], token_ids)
        return
    part = logits[rows]  # copies
    rule(part, token_ids)
    logits[rows] = part


def _draw(logits: Tensor, sequence: Sequence) -> int:
    """Draw an id for one row from its own random numbers, on the CPU: alike on every device."""
    sampling = sequence.request.sampling
    if sequence.generator is None:
        sequence.generator = torch.Generator().manual_seed(sampling.seed)
    probabilities = torch.softmax(logits.cpu().double() / sampling.temperature, dim=-1)
    return int(torch.multinomial(probabilities, 1, generator=sequence.generator))
