"""Beam search: the likeliest text of several that are followed at once.

As in the reference of the encoder–decoder kind (OpenAI, 2022, ``decoding.py``): each step keeps the
likeliest continuations of all beams together, a text that ends is put aside, and once as many have
ended as there are beams, the one of the greatest mean log-probability is taken. Each beam is a row
of the batch like any other; the one that falls out leaves its slot to another's branch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Rows
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asrcli.engine.loops import CHECK_STEP, find_loop
from asrcli.engine.runner import release

if TYPE_CHECKING:
    from asrcli.engine.request import FinishReason
    from asrcli.engine.runner import Runner
    from asrcli.engine.sampler import Candidate
    from asrcli.engine.scheduler import Scheduler, Sequence


@dataclass(frozen=True, slots=True)
class Text:
    """A text that has ended."""

    token_ids: list[int]
    logprobs: list[float]
    eos_logprob: float | None
    finish_reason: FinishReason

    @property
    def mean_logprob(self) -> float:
        """Of its ids and its end."""
        return (sum(self.logprobs) + (self.eos_logprob or 0.0)) / (len(self.logprobs) + 1)


@dataclass(frozen=True, slots=True)
class Branch:
    """One id more in one of the rows."""

    row: Sequence
    token_id: int
    logprob: float


class BeamSearch:
    """The beams of one request.

    Args:
        lead: the sequence that the request came in; it waits for the result.
        num_beams: rows at most.

    Attributes:
        rows: those of its beams, the lead not always among them.
    """

    def __init__(self, lead: Sequence, num_beams: int) -> None:
        self.lead = lead
        self.num_beams = num_beams
        self.rows = [lead]
        self._ended: list[Text] = []

    def advance(
        self, candidates: Rows[Rows[Candidate]], scheduler: Scheduler, runner: Runner
    ) -> Text | None:
        """Take every beam one id further.

        Args:
            candidates: the likeliest ids of each of ``rows``: as many as there are beams and ends.

        Returns:
            The text, once it is found; the rows then stay where they are.
        """
        branches = self._branch(candidates)
        if branches and len(self._ended) < self.num_beams:
            self._follow(branches, scheduler, runner)
            last = self._last_text()
            if last is None:
                return None
            self._ended = self._ended or [last]
        return max(self._ended, key=lambda text: text.mean_logprob, default=None)

    @property
    def best(self) -> Sequence:
        """The row that leads at the moment."""
        return max(self.rows, key=_score)

    def _branch(self, candidates: Rows[Rows[Candidate]]) -> list[Branch]:
        """The likeliest ways on, one for each beam; what ends on the way there is put aside."""
        scored = [
            (_score(row) + logprob, Branch(row, token_id, logprob))
            for row, found in zip(self.rows, candidates, strict=True)
            for token_id, logprob in found
            if logprob > -math.inf
        ]
        scored.sort(key=lambda pair: -pair[0])
        branches: list[Branch] = []
        for _, branch in scored:
            if branch.token_id in self.lead.request.sampling.eos_token_ids:
                row = branch.row
                self._ended.append(Text(row.token_ids, row.logprobs, branch.logprob, "stop"))
            else:
                branches.append(branch)
            if len(branches) == self.num_beams:
                break
        return branches

    def _follow(self, branches: list[Branch], scheduler: Scheduler, runner: Runner) -> None:
        """Have a row go each way. The first branch of a row stays in it; another one takes a row
        that has none, or a new one."""
        grown = [
            ([*way.row.token_ids, way.token_id], [*way.row.logprobs, way.logprob])
            for way in branches
        ]
        first = {id(way.row): way for way in reversed(branches)}
        free = [row for row in self.rows if id(row) not in first]
        rows = []
        for way in branches:
            row, length = way.row, way.row.length
            if first[id(row)] is not way:
                if free:
                    row = free.pop(0)
                    runner.move(way.row.slot, row.slot, length)
                else:
                    row = scheduler.fork(way.row)
                    runner.fork(way.row.slot, row.slot, length)
            rows.append(row)
        for row, (token_ids, logprobs) in zip(rows, grown, strict=True):
            row.token_ids, row.logprobs = token_ids, logprobs
        for row in free:
            release(row, scheduler, runner)
        self.rows = rows

    def _last_text(self) -> Text | None:
        """The text of the row that leads, if it can go no further or runs in circles."""
        row, sampling = self.best, self.lead.request.sampling
        num_ids = len(row.token_ids)
        is_full = num_ids >= sampling.max_new_tokens
        if is_full or num_ids % CHECK_STEP == 0:
            num_kept = find_loop(row.token_ids, sampling.num_watched_ids)
            if num_kept is not None:
                return Text(row.token_ids[:num_kept], row.logprobs[:num_kept], None, "loop")
        return Text(row.token_ids, row.logprobs, None, "length") if is_full else None


def _score(row: Sequence) -> float:
    return sum(row.logprobs)
