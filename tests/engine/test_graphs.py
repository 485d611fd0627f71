"""Steps over buffers that stay give what other steps give, recorded or not."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace

import pytest
import torch

from asrcli.engine import cache as slot_cache
from asrcli.engine import token_cache
from asrcli.engine.bags import BaggedKeyValues
from asrcli.engine.graphs import Step, StepGraphs, pad_length, pad_rows
from asrcli.engine.key_values import KeyValues
from asrcli.engine.loop import Engine
from asrcli.engine.request import Hypothesis, Request
from asrcli.engine.slot_runner import SlotRunner
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import EngineError
from tests.engine.tiny_decoder_only import build_decoder_only, build_spliced_request
from tests.engine.tiny_network import build_network, build_request
from tests.engine.traced_graphs import TracedGraphs

TIMEOUT = 60.0  # s
NUM_REQUESTS = 20
BEAMS = (0, 1, 4)
KINDS = ["encoder-decoder", "decoder-only"]


@pytest.fixture(autouse=True)
def kept_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (slot_cache, token_cache):
        monkeypatch.setattr(module, "make_store", KeyValues)


@pytest.fixture
def start() -> Iterator[Callable[..., Engine]]:
    """Engines that are closed in the end."""
    engines: list[Engine] = []

    def make(
        kind: str, graphs: StepGraphs | None, num_slots: int, max_tokens: int = 9000
    ) -> Engine:
        runner: SlotRunner | TokenRunner
        if kind == "encoder-decoder":
            runner = SlotRunner(build_network(), num_slots, encode_batch_size=2, graphs=graphs)
        else:
            network = build_decoder_only()
            runner = TokenRunner(network, num_slots, max_tokens, encode_batch_size=2, graphs=graphs)
        engines.append(Engine(runner, max_prefill=3))
        return engines[-1]

    yield make
    for engine in engines:
        engine.close()


def request(kind: str, number: int, num_beams: int = 1) -> Request:
    build = build_request if kind == "encoder-decoder" else build_spliced_request
    plain = build(number, max_new_tokens=4 + number * 3 % 17)
    return replace(plain, sampling=replace(plain.sampling, num_beams=num_beams))


def run(engine: Engine, requests: Sequence[Request]) -> list[Hypothesis]:
    """All of them, admitted in the same steps each time."""
    with engine._changed:
        futures: list[Future[Hypothesis]] = [engine.submit(each) for each in requests]
    return [future.result(TIMEOUT) for future in futures]


def check(found: Sequence[Hypothesis], expected: Sequence[Hypothesis]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert one.token_ids == other.token_ids
        assert one.finish_reason == other.finish_reason
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("num_slots", [1, 6, 11])
@pytest.mark.parametrize("records", [False, True], ids=["run", "recorded"])
def test_rows_that_come_and_go(
    start: Callable[..., Engine], kind: str, num_slots: int, records: bool
) -> None:
    requests = [request(kind, number) for number in range(NUM_REQUESTS)]
    expected = run(start(kind, None, num_slots), requests)
    graphs = TracedGraphs(num_slots) if records else StepGraphs(torch.device("cpu"), num_slots)
    check(run(start(kind, graphs, num_slots), requests), expected)
    if isinstance(graphs, TracedGraphs):
        assert graphs.replays.total() > 10
        assert graphs.num_recorded > (num_slots > 1)


@pytest.mark.parametrize("kind", KINDS)
def test_bags_may_be_stepped_in_place_as_well(
    start: Callable[..., Engine], kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests = [request(kind, number) for number in range(NUM_REQUESTS)]
    expected = run(start(kind, None, 6), requests)
    for module in (slot_cache, token_cache):
        monkeypatch.setattr(module, "make_store", BaggedKeyValues)
    graphs = StepGraphs(torch.device("cpu"), 6)
    check(run(start(kind, graphs, 6), requests), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_beams_beside_plain_rows(start: Callable[..., Engine], kind: str) -> None:
    requests = [request(kind, number, 1 + number % 4 // 3 * 2) for number in range(NUM_REQUESTS)]
    expected = run(start(kind, None, 8), requests)
    graphs = TracedGraphs(8)
    check(run(start(kind, graphs, 8), requests), expected)
    assert graphs.num_recorded  # some steps had rows of which each heard its own slot


def test_once_the_beams_have_ended_rows_stand_as_their_audio_does(
    start: Callable[..., Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "encoder-decoder"
    requests = [request(kind, number, 3 if number in BEAMS else 1) for number in range(30)]
    expected = run(start(kind, None, 9), requests)
    graphs = TracedGraphs(9)
    engine = start(kind, graphs, 9)
    num_copies = 0
    align = engine.scheduler.align

    def watched() -> list[tuple[int, int]]:
        nonlocal num_copies
        copies = align()
        num_copies += len(copies)
        return copies

    monkeypatch.setattr(engine.scheduler, "align", watched)
    check(run(engine, requests), expected)
    assert num_copies > 1
    assert graphs.replays.total() > 3


@pytest.mark.parametrize("stride", [2, 3])
def test_audio_of_other_lengths(start: Callable[..., Engine], stride: int) -> None:
    """What of a slot is attended to is part of a graph; weights of its positions are not."""
    requests = []
    for number in range(NUM_REQUESTS):
        plain = request("encoder-decoder", number)
        num_frames = 40 if number < 10 else 40 - number % 3 * 8
        features = plain.input_features[:, :num_frames].clone()
        requests.append(replace(plain, input_features=features, silence_stride=stride))
    expected = run(start("encoder-decoder", None, 5), requests)
    graphs = TracedGraphs(5)
    check(run(start("encoder-decoder", graphs, 5), requests), expected)
    assert {shape[2] for _, shape in graphs.shapes} == {False, True}


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_out_of_range_stay_with_their_row(start: Callable[..., Engine], kind: str) -> None:
    """Not even rows of padding, or those that get the slot, have anything of it."""
    requests = [request(kind, number) for number in range(NUM_REQUESTS)]
    expected = run(start(kind, None, 6), requests)
    broken = {1, 6, 7, 13}
    for number in broken:
        requests[number].input_features.fill_(torch.nan)
    engine = start(kind, TracedGraphs(6), 6)
    futures = [engine.submit(each) for each in requests]
    for number, future in enumerate(futures):
        if number in broken:
            with pytest.raises(EngineError, match="left the range"):
                future.result(TIMEOUT)
        else:
            check([future.result(TIMEOUT)], [expected[number]])


class TooLittleMemory(TracedGraphs):
    """Runs out of it once, in a step that was recorded before."""

    has_failed = False

    def _run(self, num_rows: int, shape: Hashable, step: Step) -> None:
        if not self.has_failed and self.replays[num_rows, shape] == 2:
            self.has_failed = True
            raise torch.OutOfMemoryError("no room")
        super()._run(num_rows, shape, step)


@pytest.mark.parametrize("kind", KINDS)
def test_less_memory_drops_the_graphs(start: Callable[..., Engine], kind: str) -> None:
    requests = [request(kind, number) for number in range(NUM_REQUESTS)]
    expected = run(start(kind, None, 12), requests)
    graphs = TooLittleMemory(12)
    engine = start(kind, graphs, 12)
    check(run(engine, requests), expected)
    assert graphs.has_failed
    assert graphs.num_drops >= 1
    assert engine.runner.num_slots == 6
    assert graphs.replays.total() > 10


def test_rows_that_are_laid_out_anew_drop_the_graphs(start: Callable[..., Engine]) -> None:
    kind = "decoder-only"
    lengths = [3, 40, 230, 5, 180, 20, 240, 9]
    requests = [
        build_spliced_request(number, num_positions=length) for number, length in enumerate(lengths)
    ]
    expected = [run(start(kind, None, 4), [each])[0] for each in requests]
    graphs = TracedGraphs(4)
    engine = start(kind, graphs, 4, max_tokens=700)
    check(run(engine, requests), expected)
    assert graphs.num_drops >= 2
    assert graphs.replays.total() > 10


def test_few_sizes() -> None:
    assert [pad_rows(n, 256) for n in (1, 2, 3, 9, 32, 33, 65, 256)] == [
        1,
        2,
        4,
        16,
        32,
        64,
        96,
        256,
    ]
    assert pad_rows(5, 6) == 6
    assert len({pad_rows(n, 256) for n in range(1, 257)}) == 13
    lengths = range(1, 20_001)
    for length in lengths:
        padded = pad_length(length, 20_000)
        assert length <= padded <= max(128, length + 127, 1.25 * length)
    assert len({pad_length(length, 20_000) for length in lengths}) < 28
    assert pad_length(300, 320) == 320
