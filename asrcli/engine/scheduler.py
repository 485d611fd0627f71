"""Which request runs in which slot. Pure Python: no tensor is touched here."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

from asrcli.engine.beams import BeamSearch
from asrcli.engine.request import FinishReason, Hypothesis

if TYPE_CHECKING:
    from concurrent.futures import Future

    from asrcli.engine.audio import EncodedAudio
    from asrcli.engine.request import Request


NEED_STEP = 128  # tokens; keys lie in blocks of so many


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
        audio_slot: where its audio lies, if it is the lead.
        audio: what the encoder made of its audio.
        token_ids, logprobs: what it has produced.
        eos_logprob, no_speech_prob, finish_reason: as in ``Hypothesis``.
        generator: source of random numbers of this sequence alone; made by the sampler.
        search: the beams that it is one of; None where only the likeliest id is followed.
    """

    request: Request
    future: Future[Hypothesis]
    slot: int = -1
    audio_slot: int = -1
    audio: EncodedAudio | None = None
    status: Status = Status.WAITING
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    eos_logprob: float | None = None
    no_speech_prob: float | None = None
    finish_reason: FinishReason | None = None
    generator: Any = None
    search: BeamSearch | None = None

    @property
    def lead(self) -> Sequence:
        """The one whose request it is: itself, or the one that its beams began with."""
        return self if self.search is None else self.search.lead

    @property
    def length(self) -> int:
        """Ids that its slot holds or is about to hold: the prompt and what came after."""
        return len(self.request.prompt_token_ids) + len(self.token_ids)

    @property
    def need(self) -> int:
        """Tokens that it can come to at most, to the next of few lengths."""
        need = len(self.request.prompt_token_ids) + self.request.sampling.max_new_tokens
        return -(-need // NEED_STEP) * NEED_STEP

    def restart(self) -> None:
        """Forget all that was produced, to begin again from the prompt."""
        self.slot, self.audio_slot, self.status = -1, -1, Status.WAITING
        self.token_ids, self.logprobs = [], []
        self.eos_logprob = self.no_speech_prob = self.finish_reason = self.generator = None
        self.search = self.audio = None

    def hypothesis(self) -> Hypothesis:
        """What it has produced so far, or in the end."""
        return Hypothesis(
            request_id=self.request.request_id,
            token_ids=tuple(self.token_ids),
            logprobs=tuple(self.logprobs),
            eos_logprob=self.eos_logprob,
            no_speech_prob=self.no_speech_prob,
            finish_reason=self.finish_reason,
            audio=self.audio,
        )


class Scheduler:
    """Admits waiting sequences, mostly first come first served, and keeps the live slots together.

    Args:
        num_slots: rows at most.
        max_tokens: tokens that the rows may need in all; every row has room for what the longest
            of them needs. None: any rows fit.
        max_requests: that may run at once, whatever the slots.
    """

    def __init__(
        self, num_slots: int, max_tokens: int | None = None, max_requests: int | None = None
    ) -> None:
        self.num_slots = num_slots
        self.max_tokens = max_tokens
        self.max_requests = max_requests
        self.room = 0  # tokens that each row can hold
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []  # running[i] is in slot i
        self.heard: list[Sequence] = []  # leads; the audio of heard[i] is in audio slot i

    def add(self, sequence: Sequence) -> None:
        """Put a sequence at the end of the queue; one that is heard again goes ahead of all.

        Its beams then run beside other rows, and not by themselves at the end; and what was encoded
        of it is not kept for longer than it has to be.
        """
        if sequence.request.audio is not None:
            self.waiting.appendleft(sequence)
        else:
            self.waiting.append(sequence)

    def admit(self, at_most: int, max_prompt_tokens: int | None = None) -> list[Sequence]:
        """Give free slots to those who wait; they stand behind the running.

        One that does not fit yet is not overtaken: what runs ends some time, and then it does.

        Args:
            at_most: newcomers.
            max_prompt_tokens: of all newcomers' prompts; a single one may be longer.
        """
        newcomers: list[Sequence] = []
        num_tokens = 0
        while self.waiting and len(newcomers) < at_most and self._may_admit():
            sequence = self.waiting[0]
            num_tokens += len(sequence.request.prompt_token_ids)
            if newcomers and max_prompt_tokens is not None and num_tokens > max_prompt_tokens:
                break
            num_beams = self._num_beams(sequence)
            room = self._room_for(sequence, num_beams)
            if room is None:
                break
            self.room = room
            if num_beams > 1:
                sequence.search = BeamSearch(sequence, num_beams)
            self.waiting.popleft()
            sequence.slot, sequence.status = len(self.running), Status.RUNNING
            self.running.append(sequence)
            sequence.audio_slot = len(self.heard)
            self.heard.append(sequence)
            newcomers.append(sequence)
        return newcomers

    def leads(self) -> list[Sequence]:
        """The requests that run, each once."""
        return list(self.heard)

    def fork(self, row: Sequence) -> Sequence:
        """Another row of the same request, behind all that run; its slot was kept for it."""
        twin = replace(row, slot=len(self.running))
        self.running.append(twin)
        return twin

    def _may_admit(self) -> bool:
        if self.max_requests is not None and len(self.leads()) >= self.max_requests:
            return False
        return self._num_kept() < self.num_slots

    def _num_kept(self) -> int:
        """Slots that are in use, or kept for the beams of those that run."""
        return sum(1 if lead.search is None else lead.search.num_beams for lead in self.leads())

    def _num_beams(self, sequence: Sequence) -> int:
        """The beams of a request: as many as are asked for, and ever fit."""
        sampling = sequence.request.sampling
        if sampling.temperature > 0:
            return 1
        fitting = self.num_slots if self.max_tokens is None else self.max_tokens // sequence.need
        return max(1, min(sampling.num_beams, self.num_slots, fitting))

    def _room_for(self, sequence: Sequence, num_beams: int) -> int | None:
        """Room of the rows with which one more request can be let in; None where it has to wait."""
        num_rows = self._num_kept() + num_beams
        tight = max(row.need for row in (*self.running, sequence))
        # As it is, if possible: with another room, all that the rows hold has to be copied.
        for room in (max(self.room, tight), tight):
            fits = self.max_tokens is None or num_rows * room <= self.max_tokens
            if fits and num_rows <= self.num_slots:
                return room
        return None if self.running else tight

    def finish(self, sequence: Sequence) -> tuple[int, int] | None:
        """Take a running sequence out of the batch.

        Returns:
            (from, to) if the last row has to move to the slot that fell free, else None.
        """
        moved = _close_gap(self.running, sequence.slot)
        sequence.slot, sequence.status = -1, Status.FINISHED
        if moved is not None:
            _, slot = moved
            self.running[slot].slot = slot
        return moved

    def free_audio(self, lead: Sequence) -> tuple[int, int] | None:
        """Give up a request's audio slot, once none of its rows runs.

        Returns:
            (from, to) if the last audio has to move to the slot that fell free, else None.
        """
        if any(row.lead is lead for row in self.running):
            return None
        moved = _close_gap(self.heard, lead.audio_slot)
        lead.audio_slot = -1
        if moved is not None:
            _, slot = moved
            self.heard[slot].audio_slot = slot
        return moved

    def align(self) -> list[tuple[int, int]]:
        """Put the rows in the order of their audio, where each has its own and a slot is free.

        Beams leave them in another one when they end.

        Returns:
            (from, to) of the copies to be made, one after the other.
        """
        order = [lead.slot for lead in self.heard]  # the slot whose row is to stand in each
        spare = len(self.running)
        if len(order) != spare or spare >= self.num_slots or any(s.search for s in self.running):
            return []
        copies = []
        for first in range(spare):
            if order[first] == first:
                continue
            copies.append((first, spare))
            slot = first
            while order[slot] != first:
                copies.append((order[slot], slot))
                order[slot], slot = slot, order[slot]
            copies.append((spare, slot))
            order[slot] = slot
        self.running = list(self.heard)
        for slot, sequence in enumerate(self.running):
            sequence.slot = slot
        return copies

    def shrink(self, num_slots: int) -> None:
        """Go on with fewer slots: all that runs starts again, ahead of those who wait."""
        if self.max_tokens is not None:
            self.max_tokens = self.max_tokens * num_slots // self.num_slots
        self.num_slots = num_slots
        self.room = 0
        leads = self.leads()
        for sequence in leads:
            sequence.restart()
        self.heard = []
        self.waiting.extendleft(reversed(leads))
        self.running = []


def _close_gap(held: list[Sequence], slot: int) -> tuple[int, int] | None:
    """Take out what is in a slot and put the last one there: (from, to), or None if it was it."""
    last = held.pop()
    if slot == len(held):
        return None
    held[slot] = last
    return len(held), slot
