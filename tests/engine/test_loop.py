"""The loop over a small network: whatever the company, each request gets its own ids."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
import torch

from asrcli.engine.loop import Engine
from asrcli.engine.request import Hypothesis, Request
from asrcli.engine.slot_runner import SlotRunner
from asrcli.errors import EngineError
from tests.engine.tiny_network import MAX_LENGTH, WatchedNetwork, build_network, build_request

NUM_REQUESTS = 24
TIMEOUT = 60.0  # s; far more than any of this takes


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    """Engines that are closed in the end."""
    engines: list[Engine] = []

    def make(
        network: WatchedNetwork | None = None,
        *,
        num_slots: int = 4,
        max_prefill: int = 3,
        encode_batch_size: int = 2,
    ) -> Engine:
        runner = SlotRunner(
            network or WatchedNetwork(), num_slots, encode_batch_size=encode_batch_size
        )
        engines.append(Engine(runner, max_prefill=max_prefill))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


@cache
def alone(number: int, temperature: float = 0.0) -> Hypothesis:
    """What a request gives with the engine to itself."""
    engine = Engine(SlotRunner(build_network(), 1, encode_batch_size=1), max_prefill=1)
    future = engine.submit(build_request(number, temperature=temperature))
    hypothesis = future.result(TIMEOUT)
    engine.close()
    return hypothesis


def results(futures: Sequence[Future[Hypothesis]]) -> list[Hypothesis]:
    return [future.result(TIMEOUT) for future in futures]


def check(hypothesis: Hypothesis, expected: Hypothesis) -> None:
    assert hypothesis.request_id == expected.request_id
    assert hypothesis.token_ids == expected.token_ids
    assert hypothesis.finish_reason == expected.finish_reason
    assert hypothesis.logprobs == pytest.approx(expected.logprobs, abs=1e-3)
    assert hypothesis.no_speech_prob == pytest.approx(expected.no_speech_prob, abs=1e-4)
    assert hypothesis.eos_logprob == pytest.approx(expected.eos_logprob, abs=1e-3)


def test_the_requests_differ() -> None:
    """Otherwise the tests below would compare nothing with nothing."""
    hypotheses = [alone(number) for number in range(NUM_REQUESTS)]
    assert len({each.token_ids for each in hypotheses}) >= NUM_REQUESTS - 2
    assert len({len(each.token_ids) for each in hypotheses}) >= 8
    assert {each.finish_reason for each in hypotheses} == {"stop", "length"}
    assert max(len(set(each.token_ids)) for each in hypotheses) >= 8


@pytest.mark.parametrize("num_slots", [1, 2, 3, 7, 32])
@pytest.mark.parametrize("seed", [0, 1])
def test_any_slots_and_any_order(start: Callable[..., Engine], num_slots: int, seed: int) -> None:
    engine = start(num_slots=num_slots, max_prefill=1 + seed * 4)
    numbers = list(range(NUM_REQUESTS))
    random.Random(seed).shuffle(numbers)
    futures = [engine.submit(build_request(number)) for number in numbers]
    for number, hypothesis in zip(numbers, results(futures), strict=True):
        check(hypothesis, alone(number))


def test_numbers_out_of_range_stay_with_their_row(start: Callable[..., Engine]) -> None:
    """NaN, as float16 gives where it overflows, fails one request: not those beside it, nor those
    that get its slot."""
    engine = start(num_slots=3)
    numbers = list(range(12))
    requests = {number: build_request(number) for number in numbers}
    broken = {0, 4, 5}
    for number in broken:
        requests[number].input_features.fill_(float("nan"))
    requests[5] = replace(requests[5], sampling=replace(requests[5].sampling, temperature=0.8))
    futures = [engine.submit(requests[number]) for number in numbers]
    for number, future in zip(numbers, futures, strict=True):
        if number in broken:
            with pytest.raises(EngineError, match="left the range"):
                future.result(TIMEOUT)
        else:
            check(future.result(TIMEOUT), alone(number))


def test_staggered_admission(start: Callable[..., Engine]) -> None:
    """Each request brings in the next when it has a few ids, while others run."""
    engine = start(num_slots=5)
    futures: dict[int, Future[Hypothesis]] = {}
    every_one_is_in = threading.Event()

    def submit(number: int) -> None:
        def on_token(hypothesis: Hypothesis) -> None:
            is_due = len(hypothesis.token_ids) == 1 + number % 3 or hypothesis.finish_reason
            if is_due and number + 2 < NUM_REQUESTS and number + 2 not in futures:
                submit(number + 2)
            if len(futures) == NUM_REQUESTS:
                every_one_is_in.set()

        futures[number] = Future()
        futures[number] = engine.submit(build_request(number, on_token=on_token))

    submit(0)
    submit(1)
    assert every_one_is_in.wait(TIMEOUT)
    for number in range(NUM_REQUESTS):
        check(futures[number].result(TIMEOUT), alone(number))


def test_draws_are_the_same_in_company(start: Callable[..., Engine]) -> None:
    engine = start(num_slots=6)
    temperatures = [0.0, 0.6, 1.0]
    pairs = [(number, temperatures[number % 3]) for number in range(12)]
    futures = [engine.submit(build_request(n, temperature=t)) for n, t in pairs]
    for (number, temperature), hypothesis in zip(pairs, results(futures), strict=True):
        check(hypothesis, alone(number, temperature))
    assert alone(1, 0.6).token_ids != alone(1).token_ids


def run_steps(engine: Engine, requests: Sequence[Request]) -> list[Hypothesis]:
    """Run in this thread, so that the number of steps is the same each time."""
    engine._start = lambda: None  # type: ignore[method-assign]
    futures = [engine.submit(request) for request in requests]
    while engine.scheduler.running or engine.scheduler.waiting:
        engine.step()
    return results(futures)


def test_rows_that_end_leave_the_batch(start: Callable[..., Engine]) -> None:
    network = WatchedNetwork()
    hypotheses = run_steps(start(network, num_slots=8), [build_request(n) for n in range(8)])
    # Of each row: one id comes from the prefill, and each further one, or the end, from a step.
    taken = [len(h.token_ids) + (h.finish_reason == "stop") for h in hypotheses]
    assert sum(network.decoded) == sum(taken) - len(taken)
    assert network.decoded[-1] < max(network.decoded)
    assert all(rows > 0 for rows in network.decoded)


def test_a_slot_that_falls_free_is_refilled_at_once(start: Callable[..., Engine]) -> None:
    """While somebody waits, a slot is empty for the rest of a step at most."""
    engine = start(num_slots=3)
    engine._start = lambda: None  # type: ignore[method-assign]
    futures = [engine.submit(build_request(number)) for number in range(12)]
    num_refilled = 0
    while engine.scheduler.waiting:
        num_waiting, num_free = len(engine.scheduler.waiting), 3 - len(engine.scheduler.running)
        engine.step()
        num_admitted = num_waiting - len(engine.scheduler.waiting)
        assert num_admitted == min(num_waiting, num_free)
        num_refilled += 0 < num_admitted < 3
    while engine.scheduler.running:
        engine.step()
    assert num_refilled >= 4
    for number, hypothesis in enumerate(results(futures)):
        check(hypothesis, alone(number))


def test_the_encoder_runs_for_newcomers_only(start: Callable[..., Engine]) -> None:
    network = WatchedNetwork()
    engine = start(network, num_slots=4, max_prefill=3, encode_batch_size=2)
    run_steps(engine, [build_request(number) for number in range(NUM_REQUESTS)])
    assert sum(network.encoded) == NUM_REQUESTS
    assert max(network.encoded) == 2
    assert sum(network.prefilled) == NUM_REQUESTS
    assert max(network.prefilled) == 3


def out_of_memory_above(limit: int) -> Callable[[Sequence[int], bool], Exception | None]:
    """The device holds so many rows, and says so when more are given to it."""

    def fault(rows: Sequence[int], is_prefill: bool) -> Exception | None:
        return torch.OutOfMemoryError("no room") if len(rows) > limit else None

    return fault


@pytest.mark.parametrize(("limit", "expected_slots"), [(8, 8), (4, 4), (3, 2), (1, 1)])
def test_out_of_memory_halves_the_slots(
    start: Callable[..., Engine], limit: int, expected_slots: int
) -> None:
    network = WatchedNetwork(fault=out_of_memory_above(limit))
    engine = start(network, num_slots=16, max_prefill=12)
    futures = [engine.submit(build_request(number)) for number in range(NUM_REQUESTS)]
    for number, hypothesis in enumerate(results(futures)):
        check(hypothesis, alone(number))
    assert engine.scheduler.num_slots == engine.runner.num_slots == expected_slots


def test_out_of_memory_in_the_midst_of_decoding(start: Callable[..., Engine]) -> None:
    """Rows that had got some way start again, and their draws with them."""
    num_steps = 0

    def fault(rows: Sequence[int], is_prefill: bool) -> Exception | None:
        nonlocal num_steps
        num_steps += not is_prefill
        is_full = num_steps in (5, 9) and not is_prefill
        return torch.OutOfMemoryError("no room") if is_full else None

    engine = start(WatchedNetwork(fault=fault), num_slots=8, max_prefill=8)
    futures = [engine.submit(build_request(n, temperature=n % 2 * 1.0)) for n in range(12)]
    for number, hypothesis in enumerate(results(futures)):
        check(hypothesis, alone(number, number % 2 * 1.0))
    assert engine.scheduler.num_slots == 2


def test_one_window_that_does_not_fit_is_an_error(start: Callable[..., Engine]) -> None:
    network = WatchedNetwork(fault=out_of_memory_above(0))
    engine = start(network, num_slots=4)
    futures = [engine.submit(build_request(number)) for number in range(3)]
    for future in futures:
        with pytest.raises(EngineError, match="one window does not fit the device's memory"):
            future.result(TIMEOUT)
    network.fault = lambda rows, is_prefill: None
    check(engine.submit(build_request(5)).result(TIMEOUT), alone(5))


def test_no_memory_even_for_fewer_slots(
    start: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits hears of it."""
    engine = start(WatchedNetwork(fault=out_of_memory_above(0)), num_slots=4)

    def allocate(num_slots: int) -> Any:
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(engine.runner, "_allocate", allocate)
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    with monkeypatch.context() as patch:  # all three are there before the engine starts
        patch.setattr(engine, "_start", lambda: None)
        futures = [engine.submit(build_request(number)) for number in range(3)]
    engine._start()
    for future in futures:
        with pytest.raises((EngineError, torch.OutOfMemoryError)):
            future.result(5)


def test_a_failing_pass_fails_those_in_it_only(start: Callable[..., Engine]) -> None:
    poisoned = build_request(3)
    first_id = poisoned.prompt_token_ids[0]

    def fault(rows: Sequence[int], is_prefill: bool) -> Exception | None:
        return ValueError("broken") if is_prefill and first_id in rows else None

    engine = start(WatchedNetwork(fault=fault), num_slots=1)
    numbers = [0, 1, 3, 4, 5]
    futures = {number: engine.submit(build_request(number)) for number in numbers}
    with pytest.raises(ValueError, match="broken"):
        futures[3].result(TIMEOUT)
    for number in (0, 1, 4, 5):
        check(futures[number].result(TIMEOUT), alone(number))
    check(engine.submit(build_request(9)).result(TIMEOUT), alone(9))


def test_a_failing_step_fails_what_runs_and_leaves_what_waits(
    start: Callable[..., Engine],
) -> None:
    num_steps = 0

    def fault(rows: Sequence[int], is_prefill: bool) -> Exception | None:
        nonlocal num_steps
        num_steps += not is_prefill
        return ValueError("broken") if num_steps == 1 and not is_prefill else None

    engine = start(WatchedNetwork(fault=fault), num_slots=3, max_prefill=3)
    engine._start = lambda: None  # type: ignore[method-assign]
    futures = [engine.submit(build_request(number)) for number in range(6)]
    while engine.scheduler.running or engine.scheduler.waiting:
        engine.step()
    failed = [future for future in futures if future.exception(TIMEOUT) is not None]
    assert 1 <= len(failed) <= 3
    for number in range(3, 6):
        check(futures[number].result(TIMEOUT), alone(number))


def test_a_listener_that_fails_takes_nobody_with_it(start: Callable[..., Engine]) -> None:
    def on_token(hypothesis: Hypothesis) -> None:
        if len(hypothesis.token_ids) == 2:
            raise RuntimeError("nobody listens any more")

    engine = start(num_slots=4, max_prefill=4)
    numbers = [n for n in range(NUM_REQUESTS) if len(alone(n).token_ids) > 4][:4]
    futures = [
        engine.submit(build_request(number, on_token=on_token if index == 1 else None))
        for index, number in enumerate(numbers)
    ]
    for index, number in enumerate(numbers):
        if index != 1:
            check(futures[index].result(TIMEOUT), alone(number))
    assert futures[1].exception(TIMEOUT) is None or isinstance(futures[1].exception(), RuntimeError)


def test_on_token_sees_every_id(start: Callable[..., Engine]) -> None:
    seen: dict[int, list[Hypothesis]] = {number: [] for number in range(6)}
    engine = start(num_slots=3)
    futures = [
        engine.submit(build_request(number, on_token=seen[number].append)) for number in seen
    ]
    for number, hypothesis in enumerate(results(futures)):
        lengths = [len(each.token_ids) for each in seen[number]]
        growing = list(range(1, len(hypothesis.token_ids) + 1))
        stopped = hypothesis.finish_reason == "stop"
        assert lengths == growing + ([len(hypothesis.token_ids)] if stopped else [])
        assert all(
            each.token_ids == hypothesis.token_ids[: len(each.token_ids)] for each in seen[number]
        )
        assert [each.finish_reason for each in seen[number][:-1]] == [None] * (len(lengths) - 1)
        assert seen[number][-1] == hypothesis


def test_close_cancels_what_waits_and_refuses_the_rest(start: Callable[..., Engine]) -> None:
    is_running, go_on = threading.Event(), threading.Event()

    def on_token(hypothesis: Hypothesis) -> None:
        is_running.set()
        assert go_on.wait(TIMEOUT)

    engine = start(num_slots=1)
    futures = [engine.submit(build_request(1, on_token=on_token))]
    futures += [engine.submit(build_request(number)) for number in range(2, 5)]
    assert is_running.wait(TIMEOUT)
    closing = threading.Thread(target=engine.close)
    closing.start()
    with pytest.raises(EngineError, match="closed"):
        while True:  # until the thread above has had its turn
            futures.append(engine.submit(build_request(7)))
    go_on.set()
    closing.join(TIMEOUT)
    assert not closing.is_alive()
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(TIMEOUT)


def test_close_without_work(start: Callable[..., Engine]) -> None:
    engine = start()
    engine.close()
    engine.close()
    with pytest.raises(EngineError, match="closed"):
        engine.submit(build_request(1))


def test_a_future_that_is_cancelled_holds_nobody_up(start: Callable[..., Engine]) -> None:
    engine = start(num_slots=1)
    engine._start = lambda: None  # type: ignore[method-assign]
    futures = [engine.submit(build_request(number)) for number in range(3)]
    assert futures[0].cancel()
    assert futures[1].cancel()
    while engine.scheduler.running or engine.scheduler.waiting:
        engine.step()
    check(futures[2].result(TIMEOUT), alone(2))


@pytest.mark.parametrize(("prompt_length", "max_new_tokens"), [(MAX_LENGTH, 1), (40, 9), (0, 5)])
def test_what_does_not_fit_a_slot_is_refused(
    start: Callable[..., Engine], prompt_length: int, max_new_tokens: int
) -> None:
    request = build_request(4, prompt_length=prompt_length, max_new_tokens=max_new_tokens)
    message = f"request 4: {prompt_length} prompt ids and {max_new_tokens} new ones do not fit"
    with pytest.raises(EngineError, match=message):
        start().submit(request)


def test_a_slot_can_be_filled_to_its_end(start: Callable[..., Engine]) -> None:
    request = build_request(2, prompt_length=MAX_LENGTH - 6, max_new_tokens=6)
    hypothesis = start().submit(request).result(TIMEOUT)
    assert hypothesis.finish_reason in ("stop", "length")
    assert len(hypothesis.token_ids) <= 6


def test_many_threads_submit_at_once(start: Callable[..., Engine]) -> None:
    engine = start(num_slots=4)
    found: dict[int, Hypothesis] = {}

    def submit(numbers: range) -> None:
        futures = {number: engine.submit(build_request(number)) for number in numbers}
        found.update({number: future.result(TIMEOUT) for number, future in futures.items()})

    threads = [threading.Thread(target=submit, args=(range(i, NUM_REQUESTS, 6),)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert sorted(found) == list(range(NUM_REQUESTS))
    for number, hypothesis in found.items():
        check(hypothesis, alone(number))


def test_without_slots_the_engine_gives_up_and_says_so(
    start: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for ever where even the way on from too little memory fails."""
    network = WatchedNetwork()
    network.fault = lambda rows, is_prefill: torch.OutOfMemoryError("out of memory")
    engine = start(network)

    def fail(num_slots: int) -> None:
        raise RuntimeError("the device is gone")

    monkeypatch.setattr(engine.runner, "shrink", fail)
    for number in range(6):
        with pytest.raises(EngineError, match="the device is gone"):  # at once, if it knows by then
            engine.submit(build_request(number)).result(TIMEOUT)
    with pytest.raises(EngineError, match="the device is gone"):
        engine.submit(build_request(7))


def test_what_was_encoded_once_is_not_encoded_again(start: Callable[..., Engine]) -> None:
    """Alone and in company, and alike in every number."""
    network = WatchedNetwork()
    engine = start(network)
    requests = [build_request(number) for number in range(NUM_REQUESTS)]
    firsts = results([engine.submit(request) for request in requests])
    assert sum(network.encoded) == NUM_REQUESTS
    again = [
        replace(request, audio=first.audio) if number % 3 else request
        for number, (request, first) in enumerate(zip(requests, firsts, strict=True))
    ]
    seconds = results([engine.submit(request) for request in again])
    assert sum(network.encoded) == NUM_REQUESTS + NUM_REQUESTS // 3
    for first, second in zip(firsts, seconds, strict=True):
        check(second, first)
        assert first.audio is not None
        assert second.audio is not None
        torch.testing.assert_close(second.audio.states, first.audio.states)
