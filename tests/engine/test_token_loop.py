"""The loop over a network of the decoder-only kind: company changes nothing, memory is kept to."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from functools import cache

import pytest
import torch

from asrcli.engine.loop import Engine
from asrcli.engine.request import Hypothesis
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import EngineError
from tests.engine.tiny_decoder_only import (
    WatchedDecoderOnly,
    build_decoder_only,
    build_spliced_request,
)

TIMEOUT = 60
NUM_REQUESTS = 18
PLENTY = 1_000_000


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []

    def make(
        network: WatchedDecoderOnly | None = None,
        *,
        num_slots: int = 4,
        max_tokens: int = PLENTY,
        max_prefill: int = 3,
        max_prefill_tokens: int | None = None,
        encode_batch_size: int = 2,
    ) -> Engine:
        runner = TokenRunner(
            network or WatchedDecoderOnly(),
            num_slots,
            max_tokens,
            encode_batch_size=encode_batch_size,
        )
        engine = Engine(runner, max_prefill=max_prefill, max_prefill_tokens=max_prefill_tokens)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.close()


@cache
def alone(number: int, temperature: float = 0.0) -> Hypothesis:
    """What a request gives with the engine to itself."""
    runner = TokenRunner(build_decoder_only(), 1, PLENTY, encode_batch_size=1)
    engine = Engine(runner, max_prefill=1)
    future = engine.submit(build_spliced_request(number, temperature=temperature))
    hypothesis = future.result(TIMEOUT)
    engine.close()
    return hypothesis


def check_all(futures: Sequence[Future[Hypothesis]], numbers: Sequence[int] | None = None) -> None:
    for number, future in zip(numbers or range(len(futures)), futures, strict=True):
        check(future.result(TIMEOUT), alone(number))


def check(hypothesis: Hypothesis, expected: Hypothesis) -> None:
    assert hypothesis.request_id == expected.request_id
    assert hypothesis.token_ids == expected.token_ids
    assert hypothesis.finish_reason == expected.finish_reason
    assert hypothesis.logprobs == pytest.approx(expected.logprobs, abs=1e-3)


def test_the_requests_differ() -> None:
    hypotheses = [alone(number) for number in range(NUM_REQUESTS)]
    assert len({each.token_ids for each in hypotheses}) >= NUM_REQUESTS - 2
    assert len({len(each.token_ids) for each in hypotheses}) >= 8
    assert {each.finish_reason for each in hypotheses} == {"stop", "length"}


def test_audio_is_heard() -> None:
    """The same ids around other audio give another text."""
    runner = TokenRunner(build_decoder_only(), 1, PLENTY, encode_batch_size=1)
    engine = Engine(runner, max_prefill=1)
    request = build_spliced_request(4)
    flipped = build_spliced_request(4)
    flipped.input_features.neg_()
    first, second = (engine.submit(each).result(TIMEOUT) for each in (request, flipped))
    engine.close()
    assert first.token_ids != second.token_ids


@pytest.mark.parametrize("num_slots", [1, 2, 3, 7, 32])
@pytest.mark.parametrize("seed", [0, 1])
def test_any_slots_and_any_order(start: Callable[..., Engine], num_slots: int, seed: int) -> None:
    engine = start(num_slots=num_slots, max_prefill=1 + seed * 4)
    numbers = list(range(NUM_REQUESTS))
    random.Random(seed).shuffle(numbers)
    check_all([engine.submit(build_spliced_request(number)) for number in numbers], numbers)


def test_numbers_out_of_range_stay_with_their_row(start: Callable[..., Engine]) -> None:
    """NaN, as float16 gives where it overflows, fails one request: not those beside it, nor those
    that get its slot."""
    engine = start(num_slots=3)
    numbers = list(range(12))
    requests = {number: build_spliced_request(number) for number in numbers}
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
        futures[number] = engine.submit(build_spliced_request(number, on_token=on_token))

    submit(0)
    submit(1)
    assert every_one_is_in.wait(TIMEOUT)
    check_all([futures[number] for number in range(NUM_REQUESTS)])


@pytest.mark.parametrize("max_tokens", [300, 700, 1500])
def test_memory_is_kept_to(start: Callable[..., Engine], max_tokens: int) -> None:
    """What fits is admitted, the rest waits, and no result suffers."""
    network = WatchedDecoderOnly()
    engine = start(network, num_slots=16, max_prefill=8, max_tokens=max_tokens)
    numbers = list(range(NUM_REQUESTS))
    fitting = [n for n in numbers if len(build_spliced_request(n).prompt_token_ids) < 230]
    check_all([engine.submit(build_spliced_request(n)) for n in fitting], fitting)
    most_rows = max(rows for what, rows in network.log if what == "decode")
    assert network.most_tokens <= max_tokens
    assert most_rows > 1 or max_tokens == 300


def test_a_long_request_is_not_overtaken_for_ever(start: Callable[..., Engine]) -> None:
    """It needs the whole memory: those behind it wait until it has been let in."""
    engine = start(num_slots=8, max_tokens=640)
    order: list[int] = []

    def watch(number: int) -> Callable[[Hypothesis], None]:
        return lambda hypothesis: order.append(number) if number not in order else None

    with engine._changed:
        futures = [
            engine.submit(
                build_spliced_request(
                    number,
                    num_positions=550 if number == 3 else 20,
                    on_token=watch(number),
                )
            )
            for number in range(8)
        ]
    for future in futures:
        future.result(TIMEOUT)
    assert order == list(range(8))


def test_prefill_and_decoding_take_turns(start: Callable[..., Engine]) -> None:
    network = WatchedDecoderOnly()
    engine = start(network, num_slots=16, max_prefill=8, max_prefill_tokens=300)
    with engine._changed:
        futures = [engine.submit(build_spliced_request(number)) for number in range(NUM_REQUESTS)]
    check_all(futures)
    passes = [what for what, _ in network.log if what != "encode"]
    turns = "".join(what[0] for what in passes)
    assert "pp" not in turns  # those who run are taken on between two groups of newcomers
    assert turns.startswith("pdpdpd")  # and newcomers come in while others run
    # More tokens than that only where a single prompt is longer.
    assert all(tokens <= 300 for what, tokens in network.log if what == "prefill")


def test_draws_do_not_depend_on_company(start: Callable[..., Engine]) -> None:
    engine = start(num_slots=6)
    futures = [engine.submit(build_spliced_request(n, temperature=1.0)) for n in range(8)]
    for number, future in enumerate(futures):
        check(future.result(TIMEOUT), alone(number, 1.0))


@pytest.mark.parametrize(("limit", "expected_slots"), [(8, 8), (3, 2), (1, 1)])
def test_out_of_memory_halves_rows_and_tokens(
    start: Callable[..., Engine], limit: int, expected_slots: int
) -> None:
    def fault(num_rows: int) -> Exception | None:
        return torch.OutOfMemoryError("no room") if num_rows > limit else None

    network = WatchedDecoderOnly(fault=fault)
    engine = start(network, num_slots=16, max_prefill=12, max_tokens=16_000)
    check_all([engine.submit(build_spliced_request(number)) for number in range(NUM_REQUESTS)])
    assert engine.scheduler.num_slots == engine.runner.num_slots == expected_slots
    assert engine.scheduler.max_tokens == engine.runner.max_tokens == 1000 * expected_slots


def test_what_no_memory_can_hold_is_refused(start: Callable[..., Engine]) -> None:
    engine = start(max_tokens=128)
    with pytest.raises(EngineError, match="207 prompt ids and 20 new ones do not fit"):
        engine.submit(build_spliced_request(0, num_positions=204))
    with pytest.raises(EngineError, match="do not fit"):  # more than the network was made for
        start().submit(build_spliced_request(0, num_positions=1024))


def test_a_prompt_without_enough_audio_fails_alone(start: Callable[..., Engine]) -> None:
    engine = start(max_prefill=1)
    request = build_spliced_request(2)
    lacking = build_spliced_request(3)
    lacking.input_features.resize_(8, 6)
    futures = [engine.submit(each) for each in (request, lacking)]
    with pytest.raises(EngineError, match="113 places for audio in the prompt, but 3 embeddings"):
        futures[1].result(TIMEOUT)
    check(engine.submit(build_spliced_request(5)).result(TIMEOUT), alone(5))
