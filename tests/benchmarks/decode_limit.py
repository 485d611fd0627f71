"""Decode steps of a decoder-only network, against reading its weights and cache once a step.

    python -m tests.benchmarks.decode_limit --windows 16 --seconds 10 --tokens 64

Weights are random but of the true shape, which is all that time depends on. The speed at which
memory can be read is measured before and after each round, in the same process.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter

import torch

from asrcli.bench import Machine, find_bound, measure_machine
from asrcli.compute_threads import in_passing
from asrcli.engine.loop import Engine
from asrcli.engine.memory import keep_freed_memory
from asrcli.engine.token_runner import TokenRunner
from asrcli.stages import Stages
from tests.benchmarks.against_generate import SHAPES, build, make_inputs, run_engine

STEPS = ("steps", "read_positions")  # what decoding demands; the rest is of encoder and prompts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-asr-0.6b")
    parser.add_argument("--dtype", choices=["bfloat16", "float32", "int8"], default="bfloat16")
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    keep_freed_memory()
    device, dtype = torch.device("cpu"), getattr(torch, arguments.dtype)

    def measure() -> Machine:
        return in_passing(lambda: measure_machine(device, dtype))

    # Whatever else computes takes its team of threads along, as in a run of asr.
    model, network = in_passing(lambda: build(arguments.shape, device, dtype))
    audio, _ = in_passing(lambda: make_inputs(model, [arguments.seconds] * arguments.windows))
    stages = Stages()
    runner = TokenRunner(network, arguments.windows, 1_000_000, encode_batch_size=1, stages=stages)
    engine = Engine(runner, max_prefill=4, max_prefill_tokens=2048)
    run_engine(engine, audio, 2)
    ratios = []
    for number in range(arguments.rounds):
        stages.reset()
        machines = [measure()]
        run_engine(engine, audio, arguments.tokens)
        machines.append(measure())
        counts = Counter({name: stages.counts[name] for name in STEPS})
        limit = statistics.mean(find_bound(network, counts, each) or 0.0 for each in machines)
        spent = stages.seconds["decode"]
        ratios.append(spent / limit)
        print(
            f"round {number + 1}: {1000 * spent / counts['steps']:.1f} ms a step, limit "
            f"{1000 * limit / counts['steps']:.1f} ms, {spent / limit:.2f} times",
            flush=True,
        )
    print(
        f"{arguments.shape}, {arguments.dtype}, {arguments.windows} windows of "
        f"{arguments.seconds:g} s, {arguments.tokens} ids each: median "
        f"{statistics.median(ratios):.2f} times the limit"
    )
    engine.close()


if __name__ == "__main__":
    main()
