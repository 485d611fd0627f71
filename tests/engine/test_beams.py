"""Beam search in the loop: what a plain search over whole texts finds, whatever the company."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import cache

import pytest
import torch
from torch import Tensor

from asrcli.engine.loop import Engine
from asrcli.engine.loops import find_loop
from asrcli.engine.request import Hypothesis, Request
from asrcli.engine.runner import Runner
from asrcli.engine.scheduler import Sequence as Row
from asrcli.engine.slot_runner import SlotRunner
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import EngineError
from tests.engine.tiny_decoder_only import (
    WatchedDecoderOnly,
    build_decoder_only,
    build_spliced_request,
)
from tests.engine.tiny_network import EOS, WatchedNetwork, build_network, build_request

TIMEOUT = 60.0  # s
NUM_REQUESTS = 12
KINDS = ["encoder-decoder", "decoder-only"]


def request(kind: str, number: int, num_beams: int, max_new_tokens: int = 12) -> Request:
    build = build_request if kind == "encoder-decoder" else build_spliced_request
    plain = build(number, max_new_tokens=max_new_tokens)
    return replace(plain, sampling=replace(plain.sampling, num_beams=num_beams))


def runner(kind: str, num_slots: int, max_tokens: int = 1_000_000) -> Runner:
    if kind == "encoder-decoder":
        return SlotRunner(build_network(), num_slots, encode_batch_size=2)
    return TokenRunner(build_decoder_only(), num_slots, max_tokens, encode_batch_size=2)


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    engines: list[Engine] = []

    def make(runner: Runner, max_requests: int | None = None) -> Engine:
        engines.append(Engine(runner, max_prefill=3, max_requests=max_requests))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def next_logprobs(kind: str, asked: Request, token_ids: tuple[int, ...]) -> Tensor:
    """Of every id behind a text that is read as part of the prompt, without any cache."""
    longer = replace(asked, prompt_token_ids=asked.prompt_token_ids + token_ids)
    sequence = Row(longer, Future(), slot=0, audio_slot=0)
    with torch.inference_mode():
        logits = runner(kind, 1).prefill([sequence], 512)
        for rule in asked.sampling.logits_rules:
            rule(logits, [token_ids])
    return logits[0].double().log_softmax(dim=-1)


@cache
def searched(kind: str, number: int, num_beams: int) -> tuple[tuple[int, ...], str]:
    """What the search is to find, by its definition; the text and how it ended."""
    asked = request(kind, number, num_beams)
    live: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    ended: list[tuple[tuple[int, ...], float]] = []
    while len(live[0][0]) < asked.sampling.max_new_tokens:
        ways = [
            ((*token_ids, token_id), total + logprob)
            for token_ids, total in live
            for token_id, logprob in enumerate(next_logprobs(kind, asked, token_ids).tolist())
        ]
        ways.sort(key=lambda way: -way[1])
        live = []
        for token_ids, total in ways:
            if token_ids[-1] in EOS:
                ended.append((token_ids, total))
            else:
                live.append((token_ids, total))
            if len(live) == num_beams:
                break
        if len(ended) >= num_beams:
            break
    if not ended:
        return live[0][0], "length"
    best, _ = max(ended, key=lambda way: way[1] / len(way[0]))
    return best[:-1], "stop"


@cache
def likeliest(kind: str, number: int) -> Hypothesis:
    engine = Engine(runner(kind, 1), max_prefill=1)
    found = engine.submit(request(kind, number, 1)).result(TIMEOUT)
    engine.close()
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_other_texts_are_found_than_by_the_likeliest_id(kind: str) -> None:
    """Otherwise the tests below would show nothing."""
    found = [searched(kind, number, 5) for number in range(NUM_REQUESTS)]
    assert {end for _, end in found} == {"stop", "length"} or kind == "decoder-only"
    changed = [
        token_ids != likeliest(kind, number).token_ids
        for number, (token_ids, _) in enumerate(found)
    ]
    assert sum(changed) >= 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_slots", [5, 8, 16, 64])
def test_the_likeliest_text_is_found_in_any_company(
    start: Callable[..., Engine], kind: str, num_slots: int
) -> None:
    engine = start(runner(kind, num_slots))
    asked = [(number, 1 + number % 3 * 2) for number in range(NUM_REQUESTS)]  # 1, 3 or 5 beams
    random.Random(num_slots).shuffle(asked)
    futures = [engine.submit(request(kind, *each)) for each in asked]
    for (number, num_beams), future in zip(asked, futures, strict=True):
        hypothesis = future.result(TIMEOUT)
        if num_beams == 1:
            assert hypothesis.token_ids == likeliest(kind, number).token_ids
            continue
        expected = searched(kind, number, num_beams)
        assert (hypothesis.token_ids, hypothesis.finish_reason) == expected
        check_logprobs(kind, hypothesis, request(kind, number, num_beams))
    assert engine.scheduler.running == []


def check_logprobs(kind: str, hypothesis: Hypothesis, asked: Request) -> None:
    """They are those of the text's own ids."""
    assert len(hypothesis.logprobs) == len(hypothesis.token_ids)
    assert (hypothesis.eos_logprob is None) == (hypothesis.finish_reason == "length")
    for place in (0, len(hypothesis.token_ids) - 1):
        ahead = hypothesis.token_ids[:place]
        expected = next_logprobs(kind, asked, ahead)[hypothesis.token_ids[place]]
        assert hypothesis.logprobs[place] == pytest.approx(float(expected), abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_beams_than_slots(start: Callable[..., Engine], kind: str) -> None:
    engine = start(runner(kind, 3))
    found = engine.submit(request(kind, 2, 5)).result(TIMEOUT)
    assert (found.token_ids, found.finish_reason) == searched(kind, 2, 3)


def test_no_more_beams_than_tokens(start: Callable[..., Engine]) -> None:
    kind = "decoder-only"
    need = Row(request(kind, 2, 5), Future()).need
    engine = start(runner(kind, 16, max_tokens=3 * need))
    found = engine.submit(request(kind, 2, 5)).result(TIMEOUT)
    assert (found.token_ids, found.finish_reason) == searched(kind, 2, 3)


def test_slots_are_kept_for_beams_and_requests_counted(start: Callable[..., Engine]) -> None:
    network = WatchedNetwork()
    engine = start(SlotRunner(network, 8, encode_batch_size=2), max_requests=2)
    futures = [engine.submit(request("encoder-decoder", number, 3)) for number in range(6)]
    for number, future in enumerate(futures):
        assert future.result(TIMEOUT).token_ids == searched("encoder-decoder", number, 3)[0]
    assert max(network.decoded) <= 6
    assert max(network.prefilled) <= 2


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_drawn_has_no_beams(start: Callable[..., Engine], kind: str) -> None:
    def drawn(num_beams: int) -> Hypothesis:
        asked = request(kind, 3, num_beams)
        sampling = replace(asked.sampling, temperature=0.8)
        return start(runner(kind, 8)).submit(replace(asked, sampling=sampling)).result(TIMEOUT)

    assert drawn(5).token_ids == drawn(1).token_ids


def test_drafts_are_of_the_beam_that_leads(start: Callable[..., Engine]) -> None:
    drafts: list[tuple[int, ...]] = []
    asked = replace(
        request("encoder-decoder", 4, 3), on_token=lambda draft: drafts.append(draft.token_ids)
    )
    start(runner("encoder-decoder", 4)).submit(asked).result(TIMEOUT)
    assert [len(draft) for draft in drafts] == list(range(1, len(drafts) + 1))
    assert len(drafts) > 3


def test_a_watcher_that_fails_ends_its_own_request(start: Callable[..., Engine]) -> None:
    def fail(_: Hypothesis) -> None:
        raise ValueError("the screen is full")

    engine = start(runner("encoder-decoder", 8))
    bad = engine.submit(replace(request("encoder-decoder", 4, 3), on_token=fail))
    good = engine.submit(request("encoder-decoder", 5, 3))
    with pytest.raises(ValueError, match="the screen is full"):
        bad.result(TIMEOUT)
    assert good.result(TIMEOUT).token_ids == searched("encoder-decoder", 5, 3)[0]


def test_a_text_that_runs_in_circles_is_stopped(start: Callable[..., Engine]) -> None:
    class AlwaysSeven:
        def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
            logits[:, 7] += 100.0
            logits[:, list(EOS)] = -torch.inf

    asked = build_request(1, max_new_tokens=40, prompt_length=2, rules=(AlwaysSeven(),))
    sampling = replace(asked.sampling, num_beams=3, num_watched_ids=1000)

    assert find_loop([7] * 48, 1000) == 1  # longer than a row of this network gets
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("asrcli.engine.loops.MIN_LENGTH", 16)
        found = start(runner("encoder-decoder", 4)).submit(replace(asked, sampling=sampling))
        hypothesis = found.result(TIMEOUT)
    assert (hypothesis.token_ids, hypothesis.finish_reason) == ((7,), "loop")


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_out_of_range_end_all_beams_of_their_request(
    start: Callable[..., Engine], kind: str
) -> None:
    class NotANumber:
        def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
            for row, produced in enumerate(token_ids):
                if len(produced) == 3:
                    logits[row] = torch.nan

    asked = request(kind, 1, 3)
    bad = replace(asked, sampling=replace(asked.sampling, logits_rules=(NotANumber(),)))
    engine = start(runner(kind, 8))
    futures = [engine.submit(each) for each in (bad, request(kind, 2, 3), request(kind, 3, 1))]
    with pytest.raises(EngineError, match="left the range"):
        futures[0].result(TIMEOUT)
    assert futures[1].result(TIMEOUT).token_ids == searched(kind, 2, 3)[0]
    assert futures[2].result(TIMEOUT).token_ids == likeliest(kind, 3).token_ids


def test_too_little_memory_begins_all_again(start: Callable[..., Engine]) -> None:
    has_failed: list[bool] = []

    def fault(rows: Sequence[int], is_prefill: bool) -> Exception | None:
        if not is_prefill and len(rows) > 6 and not has_failed:
            has_failed.append(True)
            return torch.OutOfMemoryError("no")
        return None

    network = WatchedNetwork(fault=fault)
    engine = start(SlotRunner(network, 12, encode_batch_size=2))
    futures = [engine.submit(request("encoder-decoder", number, 3)) for number in range(6)]
    for number, future in enumerate(futures):
        assert future.result(TIMEOUT).token_ids == searched("encoder-decoder", number, 3)[0]
    assert has_failed
    assert engine.scheduler.num_slots == 6


def test_a_step_that_fails_is_told_to_each_request_once(start: Callable[..., Engine]) -> None:
    def fault(num_rows: int) -> Exception | None:
        return RuntimeError("broken") if num_rows > 4 else None

    network = WatchedDecoderOnly(fault=fault)
    engine = start(TokenRunner(network, 16, 1_000_000, encode_batch_size=2))
    futures = [engine.submit(request("decoder-only", number, 5)) for number in range(2)]
    for future in futures:
        with pytest.raises(RuntimeError, match="broken"):
            future.result(TIMEOUT)
    small = engine.submit(request("decoder-only", 3, 1))
    assert small.result(TIMEOUT).token_ids == likeliest("decoder-only", 3).token_ids


def test_what_runs_is_cancelled_in_the_end() -> None:

    reached, go_on = threading.Event(), threading.Event()

    def wait(_: Hypothesis) -> None:
        reached.set()
        go_on.wait(TIMEOUT)

    engine = Engine(runner("encoder-decoder", 4), max_prefill=1)
    future = engine.submit(replace(request("encoder-decoder", 4, 3), on_token=wait))
    assert reached.wait(TIMEOUT)
    closing = threading.Thread(target=engine.close)
    closing.start()
    go_on.set()
    closing.join(TIMEOUT)
    with pytest.raises(CancelledError):
        future.result(TIMEOUT)
