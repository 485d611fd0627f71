"""From logits to ids: the requests' rules, then the likeliest id or a draw.

All of it happens where the logits are; ids and log-probabilities come to the host in one copy.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asrcli.engine.transfer import download, upload

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
    found = _fetch(logprobs, best)
    drawn = [
        row
        for row, sequence in enumerate(sequences)
        if sequence.request.sampling.temperature > 0 and math.isfinite(found[row][0][1])
    ]
    if drawn:
        own = logits[upload(drawn, logits.device)].cpu()
        ids = [_draw(own[place], sequences[row]) for place, row in enumerate(drawn)]
        where = upload([drawn, ids], logits.device)
        values = download(logprobs[where[0], where[1]])
        for row, token_id, value in zip(drawn, ids, values, strict=True):
            found[row] = [(token_id, value)]
    return [candidates[:num] for num, candidates in zip(nums, found, strict=True)]


def _fetch(logprobs: Tensor, ids: Tensor) -> list[list[Candidate]]:
    """Ids [num_rows, n] with their log-probabilities, in one copy: doubles hold both exactly."""
    pairs = torch.stack((ids.double(), logprobs.gather(1, ids).double()), dim=-1)
    return [[(int(id_), value) for id_, value in row] for row in download(pairs)]


def _num_candidates(sequence: Sequence) -> int:
    if sequence.search is None:
        return 1
    return sequence.search.num_beams + len(sequence.request.sampling.eos_token_ids)


def _apply_rules(logits: Tensor, sequences: Rows[Sequence]) -> None:
    """Apply each rule once, to all the rows that carry it; those of one kind together, where that
    kind can be: see ``LogitsRule``."""
    carried = [sequence.request.sampling.logits_rules for sequence in sequences]
    for place in range(max(map(len, carried))):
        groups: dict[Any, dict[int, LogitsRule]] = defaultdict(dict)
        for row, rules in enumerate(carried):
            if place < len(rules):
                rule = rules[place]
                groups[type(rule) if hasattr(rule, "apply_each") else rule][row] = rule
        for group in groups.values():
            _apply(list(group.values()), logits, list(group), sequences)


def _apply(
    rules: list[LogitsRule], logits: Tensor, rows: list[int], sequences: Rows[Sequence]
) -> None:
    """Apply to each of some rows its rule; all are one object, or of one kind."""
    token_ids = [sequences[row].token_ids for row in rows]
    first, end = rows[0], rows[-1] + 1
    index = None
    part = logits[first:end]
    if len(rows) < end - first:
        index = upload(rows, logits.device)
        part = logits[index]  # copies
    together = getattr(rules[0], "apply_each", None)
    if together is None:
        rules[0](part, token_ids)
    else:
        together(rules, part, token_ids)
    if index is not None:
        logits[index] = part


def _draw(logits: Tensor, sequence: Sequence) -> int:
    """Draw an id for one row from its own random numbers, on the CPU: alike on every device."""
    sampling = sequence.request.sampling
    if sequence.generator is None:
        sequence.generator = torch.Generator().manual_seed(sampling.seed)
    probabilities = torch.softmax(logits.cpu().double() / sampling.temperature, dim=-1)
    return int(torch.multinomial(probabilities, 1, generator=sequence.generator))
