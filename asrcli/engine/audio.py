"""Which rows attend to which audio: the beams of one request share theirs."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as Rows
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from asrcli.engine.scheduler import Sequence


@dataclass(frozen=True, slots=True)
class AudioRun:
    """Audio slots one behind the other, to each of which equally many rows attend.

    Attributes:
        first: the first audio slot.
        lengths: encoder positions that each of them holds.
        num_queries: rows that attend to each.
        rows: int [len(lengths) * num_queries], these rows, audio by audio; None where they are all
            rows there are, in their order.
    """

    first: int
    lengths: tuple[int, ...]
    num_queries: int = 1
    rows: Tensor | None = None

    @property
    def slots(self) -> slice:
        """The audio slots."""
        return slice(self.first, self.first + len(self.lengths))


def plan_runs(leads: Rows[Sequence], device: torch.device) -> list[AudioRun]:
    """How the rows of some requests attend to their audio, which lies in consecutive slots.

    Args:
        leads: the requests' own sequences, by audio slot.
    """
    rows_of = [_rows(lead) for lead in leads]
    first_row = min(min(rows) for rows in rows_of)
    in_order = [[first_row + number] for number in range(len(leads))]
    runs = []
    begin = 0
    for num_queries, group in groupby(rows_of, key=len):
        rows = list(group)
        lengths = tuple(lead.num_audio_positions for lead in leads[begin : begin + len(rows)])
        flat = None if rows == in_order else _flatten(rows, first_row, device)
        runs.append(AudioRun(leads[begin].audio_slot, lengths, num_queries, flat))
        begin += len(rows)
    return runs


def _rows(lead: Sequence) -> list[int]:
    return [lead.slot] if lead.search is None else [row.slot for row in lead.search.rows]


def _flatten(rows: Iterable[Rows[int]], first_row: int, device: torch.device) -> Tensor:
    return torch.tensor([row - first_row for each in rows for row in each], device=device)
