"""Encoded audio, and which rows attend to which: the beams of one request share theirs."""

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
class EncodedAudio:
    """What the encoder made of windows of one length.

    Attributes:
        states: [num_windows, num_positions, width].
        log_weights: float [num_positions], the logarithm of how many positions of the network each
            of them stands for; None where each is one and none is missing.
    """

    states: Tensor
    log_weights: Tensor | None = None

    @property
    def num_positions(self) -> int:
        """Encoder positions of each window."""
        return self.states.shape[1]

    def windows(self) -> list[EncodedAudio]:
        """Each window by itself."""
        return [EncodedAudio(states[None], self.log_weights) for states in self.states]


def join(windows: Rows[EncodedAudio]) -> EncodedAudio:
    """Windows of one length, together."""
    states = torch.cat([window.states for window in windows])
    return EncodedAudio(states, windows[0].log_weights)


@dataclass(frozen=True, slots=True)
class AudioRun:
    """Audio slots one behind the other, to each of which equally many rows attend.

    Attributes:
        first: the first audio slot.
        num_slots: how many they are.
        is_plain: whether all of them hold as many positions as there is room for, and each position
            stands for itself.
        num_queries: rows that attend to each.
        rows: int [num_slots * num_queries], these rows, audio by audio; None where they are all
            rows there are, in their order.
    """

    first: int
    num_slots: int
    is_plain: bool
    num_queries: int = 1
    rows: Tensor | None = None

    @property
    def slots(self) -> slice:
        """The audio slots."""
        return slice(self.first, self.first + self.num_slots)


def plan_runs(leads: Rows[Sequence], room: int, device: torch.device) -> list[AudioRun]:
    """How the rows of some requests attend to their audio, which lies in consecutive slots.

    Args:
        leads: the requests' own sequences, by audio slot.
        room: positions that each audio slot has room for.
    """
    rows_of = [_rows(lead) for lead in leads]
    first_row = min(min(rows) for rows in rows_of)
    in_order = [[first_row + number] for number in range(len(leads))]
    runs = []
    begin = 0
    for num_queries, group in groupby(rows_of, key=len):
        rows = list(group)
        is_plain = all(_fills(lead, room) for lead in leads[begin : begin + len(rows)])
        flat = None if rows == in_order else _flatten(rows, first_row, device)
        first = leads[begin].audio_slot
        runs.append(AudioRun(first, len(rows), is_plain, num_queries, flat))
        begin += len(rows)
    return runs


def _fills(lead: Sequence, room: int) -> bool:
    audio = lead.audio
    return audio is not None and audio.num_positions == room and audio.log_weights is None


def _rows(lead: Sequence) -> list[int]:
    return [lead.slot] if lead.search is None else [row.slot for row in lead.search.rows]


def _flatten(rows: Iterable[Rows[int]], first_row: int, device: torch.device) -> Tensor:
    return torch.tensor([row - first_row for each in rows for row in each], device=device)
