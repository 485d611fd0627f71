"""The loop: schedule, run, sample, over and over, in a thread of its own."""

from __future__ import annotations

import math
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

import torch

from asrcli.compute_threads import give_way, lead_team, rest
from asrcli.engine.loops import CHECK_STEP, find_loop
from asrcli.engine.runner import release
from asrcli.engine.sampler import sample
from asrcli.engine.scheduler import Scheduler, Sequence
from asrcli.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence as Rows

    from asrcli.engine.beams import BeamSearch
    from asrcli.engine.request import Hypothesis, Request
    from asrcli.engine.runner import Runner
    from asrcli.engine.sampler import Candidate

OUT_OF_RANGE = "the model's numbers left the range of its dtype"
TOO_LITTLE_MEMORY = "one window does not fit the device's memory"


class Engine:
    """Runs many requests at once; a slot that falls free is refilled in the next step.

    Args:
        runner: the network and its slots.
        max_prefill: newcomers that enter in one step, so that those who run are not held up.
        max_prefill_tokens: tokens of their prompts in all, unless a single one is longer.
        max_requests: that run at once, if fewer than there are slots.
    """

    def __init__(
        self,
        runner: Runner,
        *,
        max_prefill: int,
        max_prefill_tokens: int | None = None,
        max_requests: int | None = None,
    ) -> None:
        self.runner = runner
        self.max_prefill = max_prefill
        self.max_prefill_tokens = max_prefill_tokens
        self.scheduler = Scheduler(runner.num_slots, runner.max_tokens, max_requests)
        self._num_threads = torch.get_num_threads()
        self._changed = threading.Condition()
        self._closed = False
        self._reason = "the engine is closed"
        self._thread: threading.Thread | None = None

    def submit(self, request: Request) -> Future[Hypothesis]:
        """Queue a request; the future gives its hypothesis. Safe from any thread."""
        room = self.runner.max_length - len(request.prompt_token_ids)
        if request.sampling.max_new_tokens > room or not request.prompt_token_ids:
            raise EngineError(
                f"request {request.request_id}: {len(request.prompt_token_ids)} prompt ids and "
                f"{request.sampling.max_new_tokens} new ones do not fit"
            )
        future: Future[Hypothesis] = Future()
        with self._changed:
            if self._closed:
                raise EngineError(self._reason)
            self.scheduler.add(Sequence(request, future))
            self._start()
            self._changed.notify_all()
        return future

    def close(self) -> None:
        """Stop after the step at hand; what has not finished is cancelled."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join()

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="asr-engine", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with lead_team(self._num_threads):
            while self._wait_for_work():
                self.step()
        for sequence in (*self.scheduler.running, *self.scheduler.waiting):
            sequence.future.cancel()

    def _wait_for_work(self) -> bool:
        with self._changed:
            while not (self._closed or self.scheduler.running or self.scheduler.waiting):
                rest()
                self._changed.wait()
            return not self._closed

    @torch.inference_mode()
    def step(self) -> None:
        """Let newcomers in, then take every running row one id further."""
        give_way()
        try:
            with self._changed:
                newcomers = self.scheduler.admit(self.max_prefill, self.max_prefill_tokens)
            if newcomers:
                self._advance(newcomers, self.runner.prefill(newcomers, self.scheduler.room))
            if self.scheduler.running:
                self._align()
                self._advance(self.scheduler.running, self.runner.decode(self.scheduler.running))
        except torch.OutOfMemoryError as error:
            try:
                self._halve(error)
            except Exception as trouble:  # without its slots the engine cannot go on
                self._give_up(EngineError(f"no way on from too little memory ({trouble})"))
        except Exception as error:  # whatever it is, it reaches those who wait for a result
            self._fail(error)

    def _align(self) -> None:
        """Let rows stand as their audio does, if that helps."""
        if self.runner.aligns_rows:
            longest = max(sequence.length for sequence in self.scheduler.running)
            for source, target in self.scheduler.align():
                self.runner.move(source, target, longest)

    def _advance(self, rows: Rows[Sequence], logits: torch.Tensor) -> None:
        with self.runner.stages.measure("sampling"):
            self._choose(list(rows), logits)

    def _choose(self, rows: Rows[Sequence], logits: torch.Tensor) -> None:
        """Give every row its next id."""
        found = dict(zip(rows, sample(logits, rows), strict=True))
        for row, candidates in found.items():
            if row.search is None:
                self._take(row, *candidates[0])
        for search in dict.fromkeys(row.search for row in rows):
            if search is not None:
                self._branch(search, [found[row] for row in search.rows])

    def _branch(self, search: BeamSearch, candidates: list[list[Candidate]]) -> None:
        """Take the beams of a request one id further, and end it if that was the last one."""
        text, error = None, None
        if all(math.isfinite(logprob) for ((_, logprob), *_) in candidates):
            text = search.advance(candidates, self.scheduler, self.runner)
            error = _tell(search.best) if text is None else None
        else:
            error = EngineError(OUT_OF_RANGE, hint="--dtype float32 has more room")
            for row in search.rows:
                self.runner.clear(row.slot, search.lead.audio_slot)
        if text is None and error is None:
            return
        for row in search.rows:
            release(row, self.scheduler, self.runner)
        lead = search.lead
        lead.finish_reason = "abort"
        if text is not None:
            lead.token_ids, lead.logprobs = text.token_ids, text.logprobs
            lead.eos_logprob, lead.finish_reason = text.eos_logprob, text.finish_reason
        _resolve(lead, error)

    def _take(self, sequence: Sequence, token_id: int, logprob: float) -> None:
        """Add a new id to its sequence and end the sequence if that was the last one."""
        sampling = sequence.request.sampling
        if not math.isfinite(logprob):
            sequence.finish_reason = "abort"
            # What it leaves there would reach the next row.
            self.runner.clear(sequence.slot, sequence.audio_slot)
            self._finish(sequence, EngineError(OUT_OF_RANGE, hint="--dtype float32 has more room"))
            return
        if token_id in sampling.eos_token_ids:
            sequence.eos_logprob, sequence.finish_reason = logprob, "stop"
        else:
            sequence.token_ids.append(token_id)
            sequence.logprobs.append(logprob)
            if len(sequence.token_ids) >= sampling.max_new_tokens:
                sequence.finish_reason = "length"
            if len(sequence.token_ids) % CHECK_STEP == 0 or sequence.finish_reason:
                _stop_circling(sequence)
        error = _tell(sequence)
        if error is not None:
            sequence.finish_reason = "abort"
        if sequence.finish_reason is not None:
            self._finish(sequence, error)

    def _finish(self, sequence: Sequence, error: Exception | None) -> None:
        release(sequence, self.scheduler, self.runner)
        _resolve(sequence, error)

    def _halve(self, error: BaseException) -> None:
        """Go on with half the slots after the device ran out of memory."""
        if self.scheduler.num_slots == 1:
            self._fail(EngineError(TOO_LITTLE_MEMORY))
            return
        # The traceback holds the tensors of the step that failed; they must go first.
        error.__traceback__ = None
        with self._changed:
            self.scheduler.shrink(self.scheduler.num_slots // 2)
            while not self._make_room(self.scheduler.num_slots):
                if self.scheduler.num_slots == 1:
                    self._give_up(EngineError(TOO_LITTLE_MEMORY))
                    return
                self.scheduler.shrink(self.scheduler.num_slots // 2)
        self.max_prefill = max(1, min(self.max_prefill, self.scheduler.num_slots))
        self.runner.encode_batch_size = max(1, self.runner.encode_batch_size // 2)

    def _make_room(self, num_slots: int) -> bool:
        """Replace the slots by fewer ones; whether the device has the memory for them."""
        try:
            self.runner.shrink(num_slots)
        except torch.OutOfMemoryError:
            return False
        return True

    def _fail(self, error: Exception) -> None:
        """Give up all that runs; those who wait may still do well."""
        leads = self.scheduler.leads()
        self.scheduler.running.clear()
        self.scheduler.heard.clear()
        for sequence in leads:
            sequence.finish_reason = "abort"
            _resolve(sequence, error)

    def _give_up(self, error: EngineError) -> None:
        """Close for good: without slots nothing can run."""
        with self._changed:  # from here on nobody is added to those who wait
            self._closed, self._reason = True, str(error)
            waiting = list(self.scheduler.waiting)
            self.scheduler.waiting.clear()
        self._fail(error)
        for sequence in waiting:
            _resolve(sequence, error)


def _stop_circling(sequence: Sequence) -> None:
    """End a row that runs in circles, and keep the first round."""
    num_kept = find_loop(sequence.token_ids, sequence.request.sampling.num_watched_ids)
    if num_kept is not None:
        sequence.finish_reason = "loop"
        del sequence.token_ids[num_kept:], sequence.logprobs[num_kept:]


def _tell(sequence: Sequence) -> Exception | None:
    """Show a request's watcher what there is so far; what goes wrong there is its own affair."""
    if sequence.request.on_token is None:
        return None
    try:
        sequence.request.on_token(sequence.hypothesis())
    except Exception as error:  # goes to the one who waits for this row; the others go on
        return error
    return None


def _resolve(sequence: Sequence, error: Exception | None) -> None:
    """Give the one who waits for a sequence its hypothesis, or the reason why there is none."""
    if not sequence.future.set_running_or_notify_cancel():
        return
    if error is None:
        sequence.future.set_result(sequence.hypothesis())
    else:
        sequence.future.set_exception(error)
