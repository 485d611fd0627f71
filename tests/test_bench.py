"""The figures of a benchmark, from counts worked out by hand, and how they are told."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from asrcli.audio.sources import expand
from asrcli.bench import (
    Cost,
    Machine,
    Measurement,
    Round,
    find_bound,
    measure,
    measure_machine,
    num_weights,
    other_seconds,
    weight_bytes,
)
from asrcli.bench_report import render_json, render_table
from asrcli.engine.layers import Linear
from asrcli.engine.quantizing import can_quantize, quantize_linear
from asrcli.errors import AudioError, UsageError
from asrcli.options import Options
from asrcli.peers import PeerMeasurement, check_peer
from asrcli.recognizer import Recognizer
from asrcli.stages import STAGES
from tests.engine import tiny_decoder_only, tiny_network
from tests.engine.tiny_decoder_only import build_decoder_only
from tests.engine.tiny_network import build_network

SAMPLES = Path(__file__).parents[1] / "samples"
EACH = Machine(flops=1.0, bandwidth=float("inf"))  # a bound in operations
BYTES = Machine(flops=float("inf"), bandwidth=1.0)  # a bound in bytes
STAGE_SECONDS = {**dict.fromkeys(STAGES, 0.0), "audio": 0.5, "encoder": 2.0, "decode": 1.0}


def a_round(seconds: float, bound: float | None = 1.0, first: float | None = 0.5) -> Round:
    return Round(
        duration=40.0,
        seconds=seconds,
        first_text=first,
        stages=STAGE_SECONDS,
        num_tokens=100,
        bound=bound,
    )


def measurement(*rounds: Round, peak_memory: int | None = 1_234_000_000) -> Measurement:
    return Measurement(
        description="whisper:base · cpu",
        num_files=3,
        machine=Machine(flops=2.5e11, bandwidth=1.7e10),
        rounds=rounds,
        peak_memory=peak_memory,
    )


def test_what_an_encoder_costs() -> None:
    width, mel = tiny_network.WIDTH, tiny_network.NUM_MEL_BINS
    layer = 3 * width**2 + width**2 + 2 * (2 * width**2)
    convolutions = 2 * mel * width * 3 + width * width * 3  # the first has twice the frames
    audio = 2 * width**2  # keys and values, in each layer of the decoder
    per_position = convolutions + tiny_network.NUM_LAYERS * (layer + audio)
    counts = {"encoded_positions": 20, "encoded_pairs": 400}
    expected = 2 * 20 * per_position + tiny_network.NUM_LAYERS * 4 * width * 400
    assert find_bound(build_network(), counts, EACH) == expected


def test_what_a_step_reads() -> None:
    width = tiny_network.WIDTH
    layer = 3 * width**2 + width**2 + 2 * (2 * width**2) + 2 * width**2
    weights = tiny_network.NUM_LAYERS * layer + tiny_network.VOCABULARY * width
    counts = {"steps": 3, "read_positions": 50, "read_audio_positions": 70}
    caches = tiny_network.NUM_LAYERS * 2 * width * (50 + 70)
    assert find_bound(build_network(), counts, BYTES) == 4 * (3 * weights + caches)


def test_what_a_decoder_only_network_costs() -> None:
    module = tiny_decoder_only
    heads = (module.HEADS + 2 * module.FEW_HEADS) * module.HEAD_DIM
    layer = module.WIDTH * heads + module.HEADS * module.HEAD_DIM * module.WIDTH
    layer += module.WIDTH * 128 + 64 * module.WIDTH
    layers = module.NUM_LAYERS * layer
    network = build_decoder_only()
    counts = {"prompt_positions": 30, "prompt_pairs": 900}
    attention = 2 * module.NUM_LAYERS * module.HEADS * module.HEAD_DIM * 900
    assert find_bound(network, counts, EACH) == 2 * layers * 30 + attention
    counts = {"steps": 2, "read_positions": 64}
    cache = 2 * module.NUM_LAYERS * module.FEW_HEADS * module.HEAD_DIM * 64
    read = 2 * (layers + module.VOCABULARY * module.WIDTH) + cache
    assert find_bound(network, counts, BYTES) == 4 * read


def test_a_foreign_network_has_no_bound() -> None:
    assert find_bound(object(), {"steps": 1}, EACH) is None
    assert num_weights(object()) == 0


def test_a_machine_has_speeds_that_can_be() -> None:
    machine = measure_machine(torch.device("cpu"), torch.float32)
    assert 1e8 < machine.flops < 1e15
    assert 1e8 < machine.bandwidth < 1e13


def test_the_round_of_median_speed() -> None:
    rounds = [a_round(seconds) for seconds in (4.0, 9.0, 5.0)]
    assert measurement(*rounds).median is rounds[2]
    assert measurement(*rounds[:2]).median is rounds[0]  # of two the faster
    assert rounds[0].speed == 10.0
    assert other_seconds(rounds[0]) == 1.0  # what is beside the engine takes none of its time


def test_a_table() -> None:
    lines = render_table(measurement(a_round(4.0))).splitlines()
    assert lines[0] == "whisper:base · cpu"
    assert "speed         10.0 × real time (4.00 s)" in lines
    assert "first text    after 0.50 s" in lines
    assert "tokens        25 a second" in lines
    assert "peak memory   1234 MB" in lines
    assert "machine       250 GFLOP/s in products, 17.0 GB/s read" in lines
    assert "of the limit  25%" in lines
    assert "encoder            2.00       50.0%           0.05000  encoder" in lines
    assert all(line == line.rstrip() for line in lines)


def test_what_is_not_known_is_said_so() -> None:
    found = measurement(a_round(4.0, bound=None, first=None), peak_memory=None)
    table = render_table(found)
    assert "of the limit  unknown" in table
    assert "first text    none" in table
    assert "peak memory   unknown" in table
    values = json.loads(render_json(found))
    assert values["peak_memory"] is None
    assert values["median"]["share_of_limit"] is None


def test_a_comparison() -> None:
    peer = PeerMeasurement(name="faster-whisper int8", seconds=(6.0, 8.0, 10.0), peak_memory=10**9)
    found = measurement(a_round(4.0))
    lines = render_table(found, peer).splitlines()
    assert lines[-4:] == [
        "faster-whisper int8",
        "speed         5.0 × real time (8.00 s)",
        "peak memory   1000 MB",
        "asr           2.00 times as fast",
    ]
    values = json.loads(render_json(found, peer))
    assert values["peer"]["ratio"] == 2.0
    assert values["median"]["stages"]["other"] == 1.0
    assert values["median"]["real_time_factors"]["encoder"] == 0.05


def test_memory_that_is_given_back_was_had() -> None:
    script = (
        "from asrcli.memory_use import peak_memory; before = peak_memory();"
        "block = bytearray(300_000_000); block[::4096] = b'x' * len(block[::4096]); del block;"
        "print(before, peak_memory())"
    )
    ours = bytearray(500_000_000)
    ours[::4096] = b"x" * len(ours[::4096])  # what starts a process does not count as its own
    command = [sys.executable, "-c", script]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    before, after = map(int, printed.split())
    assert before < 200_000_000
    assert 290_000_000 < after - before < 350_000_000  # pages are counted in batches


def test_programs_that_are_not_there() -> None:
    with pytest.raises(UsageError, match="cannot be compared with"):
        check_peer("whisper-jax")
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "faster_whisper", None)
        with pytest.raises(UsageError, match="not installed"):
            check_peer("faster-whisper")


@pytest.mark.parametrize("name", ["whisper_base", "qwen"])
def test_a_real_run(name: str, request: pytest.FixtureRequest) -> None:
    recognizer: Recognizer = request.getfixturevalue(name)
    sources = expand([SAMPLES / "english-slt.flac", SAMPLES / "english-rms.flac"])
    found = measure(recognizer, sources, Options(language="en"), num_rounds=2)
    assert found.num_files == len(sources)
    assert len(found.rounds) == 2
    for each in found.rounds:
        assert each.duration == pytest.approx(7.6, abs=1.0)
        assert each.first_text is not None
        assert 0 < each.first_text <= each.seconds
        assert each.num_tokens > 10
        assert each.bound is not None
        assert each.bound > 0
        engine = ("encoder", "prefill", "decode", "sampling")
        assert sum(each.stages[stage] for stage in engine) <= each.seconds
        assert all(each.stages[stage] > 0 for stage in STAGES)
    assert found.peak_memory is None or found.peak_memory > 10**8


def test_a_recording_that_cannot_be_read(whisper_base: Recognizer, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"not audio")
    with pytest.raises(AudioError, match=r"a\.wav"):
        measure(whisper_base, expand([tmp_path / "a.wav"]), Options(), num_rounds=1)


def test_the_built_in_clip_is_the_sample() -> None:
    clip = Path(__file__).parents[1] / "asrcli" / "clips" / "english.flac"
    assert clip.read_bytes() == (SAMPLES / "english-long-awb.flac").read_bytes()


def test_integers_have_a_speed_of_their_own() -> None:
    cost = Cost(map_ops=100, flops=30, num_bytes=8)
    assert cost.seconds(Machine(flops=10.0, bandwidth=4.0)) == 10.0 + 3.0 + 2.0
    machine = Machine(flops=10.0, bandwidth=4.0, map_ops=50.0)
    assert cost.seconds(machine) == 2.0 + 3.0 + 2.0
    found = replace(measurement(a_round(1.0)), machine=replace(machine, flops=5e9, map_ops=9e9))
    assert "5 GFLOP/s in products, 9 by integers, 0.0 GB/s read" in render_table(found)
    assert json.loads(render_json(found))["machine"]["map_ops"] == 9e9


@pytest.mark.skipif(not can_quantize(), reason="this CPU does not multiply eight bits exactly")
def test_the_machine_by_integers() -> None:
    machine = measure_machine(torch.device("cpu"), torch.int8)
    assert machine.map_ops is not None
    assert machine.map_ops > 0
    maps = (quantize_linear(Linear(torch.ones(3, 5))), Linear(torch.ones(2, 2)))
    assert num_weights(maps) == 15 + 4
    assert weight_bytes(maps) == 15 + 4 * 4
