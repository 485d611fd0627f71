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


def sample(logits: Tensor, sequences: Rows[Sequence]) -> tuple[list[int], list[float]]:
    """Choose the next id of every row.

    Args:
        logits: float32 [num_rows, vocabulary]; changed in place.
        sequences: the rows' sequences, in the same order.

    Returns:
        Ids, and their natural log-probabilities after the rules at temperature 1: not finite where
        a row's numbers have left the range of their dtype, and its id means nothing.
    """
    _apply_rules(logits, sequences)
    totals = logits.logsumexp(dim=-1)
    is_sound = totals.isfinite().tolist()
    chosen = logits.argmax(dim=-1)
    for row, sequence in enumerate(sequences):
        if sequence.request.sampling.temperature > 0 and is_sound[row]:
            chosen[row] = _draw(logits[row], sequence)
    logprobs = logits.gather(1, chosen[:, None])[:, 0] - totals
    return chosen.tolist(), logprobs.tolist()


def find_candidates(logits: Tensor, num_candidates: int) -> list[tuple[int, float]]:
    """The likeliest ids of one row and their log-probabilities, likeliest first.

    Args:
        logits: float32 [vocabulary], after the rules.
    """
    values, token_ids = logits.topk(min(num_candidates, len(logits)))
    logprobs = values - logits.logsumexp(dim=-1)
    return list(zip(token_ids.tolist(), logprobs.tolist(), strict=True))


def _apply_rules(logits: Tensor, sequences: Rows[Sequence]) -> None:
    """Apply each rule once, to all the rows that carry it."""
    groups: dict[tuple[LogitsRule, ...], list[int]] = defaultdict(list)
    for row, sequence in enumerate(sequences):
        groups[sequence.request.sampling.logits_rules].append(row)
    for rules, rows in groups.items():
        everything = len(rows) == len(sequences)
        # Indexing with a list copies, so only a part of the batch pays for it.
        part = logits if everything else logits[rows]
        for rule in rules:
            rule(part, [sequences[row].token_ids for row in rows])
        if not everything:
            logits[rows] = part


def _draw(logits: Tensor, sequence: Sequence) -> int:
    """Draw an id for one row from its own random numbers, on the CPU: alike on every device."""
    sampling = sequence.request.sampling
    if sequence.generator is None:
        sequence.generator = torch.Generator().manual_seed(sampling.seed)
    probabilities = torch.softmax(logits.cpu().double() / sampling.temperature, dim=-1)
    return int(torch.multinomial(probabilities, 1, generator=sequence.generator))
