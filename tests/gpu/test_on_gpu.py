"""What only a GPU can show: graphs, copies and kernels of its own."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future

import numpy as np
import pytest
import torch
from torch import Tensor

from asrcli.engine.barring import bar_ranges
from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.graphs import StepGraphs
from asrcli.engine.request import Hypothesis
from asrcli.engine.sampler import sample
from asrcli.engine.scheduler import Sequence
from asrcli.engine.slot_runner import SlotRunner
from asrcli.engine.token_runner import TokenRunner
from asrcli.engine.transfer import download, send, upload
from asrcli.models.log_mel import LogMel, UnpaddedLogMel
from tests.gpu import check
from tests.gpu.networks import SUBJECTS, Subject

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
GPU = torch.device("cuda")
WINDOWS = check.make_windows(70, 2.0)
NUM_IDS = 12


@pytest.fixture(scope="module", params=SUBJECTS)
def subject(request: pytest.FixtureRequest) -> Subject:
    return SUBJECTS[request.param](GPU, torch.bfloat16, True)


def test_graphs_give_the_ids_of_single_kernels(subject: Subject) -> None:
    result = check.check(subject, WINDOWS, NUM_IDS, 1)
    assert result.failure is None
    assert result.num_recorded > 0
    assert result.as_kernels == 1.0
    assert result.num_texts > 20


@pytest.mark.parametrize("key", SUBJECTS)
def test_a_gpu_gives_the_ids_of_a_cpu(key: str) -> None:
    """In float32, where hardly two ids are as likely as each other."""
    found = []
    for device in (GPU, torch.device("cpu")):
        subject = SUBJECTS[key](device, torch.float32, True)
        engine = check.start_engine(subject, "graphs")
        found.append(check.read(subject, engine, WINDOWS[:20], NUM_IDS))
        check.close(engine)
    assert check.share_equal(*found) >= 0.9


@pytest.fixture
def no_waiting() -> Iterator[None]:
    """Whatever has the host wait for the device, other than an event, is an error."""
    torch.cuda.set_sync_debug_mode("error")
    yield
    torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize("mode", check.MODES)
def test_a_step_waits_for_its_ids_alone(subject: Subject, mode: str) -> None:
    network = subject.network
    graphs = None
    if mode != "plain":
        graphs = StepGraphs(GPU, 8, records=mode == "graphs")
    runner: SlotRunner | TokenRunner
    if isinstance(network, DecoderOnly):
        runner = TokenRunner(network, 8, 10_000, encode_batch_size=8)
    else:
        runner = SlotRunner(network, 8, encode_batch_size=8)
    runner.graphs = graphs
    rows = []
    for slot in range(5):
        request = subject.prepare(slot, WINDOWS[slot], NUM_IDS)
        rows.append(Sequence(request, Future[Hypothesis](), slot=slot, audio_slot=slot))
    with torch.inference_mode():
        _take(rows, runner.prefill(rows, 512))
        _take(rows, runner.decode(rows))  # records
        torch.cuda.set_sync_debug_mode("error")
        try:
            for _ in range(4):
                _take(rows, runner.decode(rows))
        finally:
            torch.cuda.set_sync_debug_mode("default")
    assert all(len(row.token_ids) == 6 for row in rows)


def _take(rows: list[Sequence], logits: Tensor) -> None:
    for row, ((token_id, logprob), *_) in zip(rows, sample(logits, rows), strict=True):
        row.token_ids.append(token_id)
        row.logprobs.append(logprob)


@pytest.mark.parametrize("kind", [LogMel, UnpaddedLogMel])
def test_features_are_those_of_a_cpu(kind: type[LogMel] | type[UnpaddedLogMel]) -> None:
    for samples in WINDOWS[:3]:
        found = kind(128, device=GPU)(samples)
        assert found.device.type == "cuda"
        np.testing.assert_allclose(found.cpu().numpy(), kind(128)(samples).numpy(), atol=1e-3)


def test_ids_are_barred_as_on_a_cpu() -> None:
    logits = torch.randn(40, 51_866)
    ranges = [(row, 50 * row, 900 * row) for row in range(40)] + [(3, 7, 9), (3, 51_000, 51_866)]
    on_gpu = logits.to(GPU)
    bar_ranges(on_gpu, ranges)
    bar_ranges(logits, ranges)
    assert torch.equal(on_gpu.cpu(), logits)


@pytest.mark.usefixtures("no_waiting")
def test_copies_wait_for_nothing_and_lose_nothing() -> None:
    numbers = [[1, 2, 3], [4, 5, 6]]
    assert download(upload(numbers, GPU)) == numbers
    assert download(send(torch.arange(5), GPU)) == [0, 1, 2, 3, 4]
