"""Which request runs in which slot. Pure Python: no tensor is touched here."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

from asrcli.engine.request import FinishReason, Hypothesis

if TYPE_CHECKING:
    from concurrent.futures import Future

    from asrcli.engine.request import Request


class Status(Enum):
    """Where a sequence stands."""

    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True, eq=False)
class Sequence:
    """A request on its way through the loop.

    Attributes:
        request: what was asked.
        future: where the hypothesis goes.
        slot: its row in the cache while it runs.
        num_audio_positions: encoder positions that its slot holds.
        token_ids, logprobs: what it has produced.
        eos_logprob, no_speech_prob, finish_reason: as in ``Hypothesis``.
        generator: source of random numbers of this sequence alone; made by the sampler.
    """

    request: Request
    future: Future[Hypothesis]
    slot: int = -1
    num_audio_positions: int = 0
    status: Status = Status.WAITING
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    eos_logprob: float | None = None
    no_speech_prob: float | None = None
    finish_reason: FinishReason | None = None
    generator: Any = None

    @property
    def length(self) -> int:
        """Ids that its slot holds or is about to hold: the prompt and what came after."""
        return len(self.request.prompt_token_ids) + len(self.token_ids)

    def restart(self) -> None:
        """Forget all that was produced, to begin again from the prompt."""
        self.slot, self.status = -1, Status.WAITING
        self.token_ids, self.logprobs = [], []
        self.eos_logprob = self.no_speech_prob = self.finish_reason = self.generator = None

    def hypothesis(self) -> Hypothesis:
        """What it has produced so far, or in the end."""
        return Hypothesis(
            request_id=self.request.request_id,
            token_ids=tuple(self.token_ids),
            logprobs=tuple(self.logprobs),
            eos_logprob=self.eos_logprob,
            no_speech_prob=self.no_speech_prob,
            finish_reason=self.finish_reason,
        )


class Scheduler:
    """Admits waiting sequences, first come first served, and keeps the live slots together."""

    def __init__(self, num_slots: int) -> None:
        self.num_slots = num_slots
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []  # running[i] is in slot i

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the queue."""
        self.waiting.append(sequence)

    def admit(self, at_most: int) -> list[Sequence]:
        """Give free slots to those who wait, at most so many; they stand behind the running."""
        newcomers: list[Sequence] = []
        while self.waiting and len(newcomers) < at_most and len(self.running) < self.num_slots:
            sequence = self.waiting.popleft()
            sequence.slot, sequence.status = len(self.running), Status.RUNNING
            self.running.append(sequence)
            newcomers.append(sequence)
        return newcomers

    def finish(self, sequence: Sequence) -> tuple[int, int] | None:
        """Take a running sequence out of the batch.

        Returns:
            (from, to) if the last row has to move to the slot that fell free, else None.
        """
        slot, last = sequence.slot, self.running.pop()
        sequence.slot, sequence.status = -1, Status.FINISHED
        if last is sequence:
            return None
        moved = (last.slot, slot)
        last.slot = slot
        self.running[slot] = last
        return moved

    def shrink(self, num_slots: int) -> None:
        """Go on with fewer slots: all that runs starts again, ahead of those who wait."""
        self.num_slots = num_slots
        for sequence in self.running:
            sequence.restart()
        self.waiting.extendleft(reversed(self.running))
        self.running = []
