"""Whether graphs give the ids of steps that are launched kernel by kernel, and how fast all is.

    python -m tests.gpu.check                  # on a GPU: true shapes, random weights
    python -m tests.gpu.check --small          # anywhere: to try the check itself

Exit code 1: ids differ, or a step could not be recorded. The same windows are decoded three times,
admitted in the same steps each time: by graphs; by the same steps over the same buffers, launched
kernel by kernel; and plainly, where rows are not padded, so that products of matrices may be summed
in another order and, in a format of 16 bits, a near tie be decided otherwise. The first two have to
agree in every id.

Times are of everything from samples in main memory to ids in main memory.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from asrcli.engine.device import choose_device, choose_dtype
from asrcli.engine.graphs import StepGraphs
from asrcli.engine.loop import Engine
from asrcli.recognizer import _start_engine
from asrcli.stages import STAGES, Stages
from tests.gpu.networks import SUBJECTS, Subject
from tests.gpu.pipeline import build_pipeline, time_pipeline

RATE = 16_000
MODES = ("graphs", "kernels", "plain")
HOST_STAGES = STAGES[STAGES.index("features") :]
GOALS = {"large-v3-turbo": 3000.0, "Qwen3-ASR-0.6B": 3000.0}  # RTFx on an H200
GOAL_AGAINST_PIPELINE = 10.0

Windows = Sequence[NDArray[np.float32]]
Ids = list[tuple[int, ...]]


@dataclass(frozen=True)
class Result:
    """What was found of one network.

    Attributes:
        num_recorded: graphs; 0 without a GPU.
        failure: why steps were not recorded; None where they were, or are not to be.
        as_kernels, as_plain: shares of windows with the same ids as by graphs.
        num_texts: texts that differ from each other; with one alone, nothing was compared.
        rtfx: seconds of audio a second.
        stages: seconds by stage of the timed run.
    """

    name: str
    num_windows: int
    num_recorded: int
    failure: str | None
    as_kernels: float
    as_plain: float
    num_texts: int
    rtfx: float
    stages: dict[str, float]

    @property
    def is_good(self) -> bool:
        """Whether graphs are to be trusted."""
        return self.as_kernels == 1.0 and self.failure is None and self.num_texts > 1


def start_engine(subject: Subject, mode: str, stages: Stages | None = None) -> Engine:
    """The engine that a recognizer would start, with its steps run in one of ``MODES``."""
    device = subject.network.device
    engine = _start_engine(subject.network, device, None, stages or Stages())
    num_rows = engine.runner.num_slots
    graphs = {
        "graphs": StepGraphs(device, num_rows),
        "kernels": StepGraphs(device, num_rows, records=False),
        "plain": None,
    }
    engine.runner.graphs = graphs[mode]
    return engine


def read(subject: Subject, engine: Engine, windows: Windows, num_ids: int) -> Ids:
    """Ids of all windows, which are admitted in the same steps each time."""
    requests = [subject.prepare(number, each, num_ids) for number, each in enumerate(windows)]
    with engine._changed:
        futures = [engine.submit(request) for request in requests]
    return [future.result().token_ids for future in futures]


def time_windows(subject: Subject, engine: Engine, windows: Windows, num_ids: int) -> float:
    """Seconds from samples to ids, prepared while the engine runs."""
    begin = time.perf_counter()
    futures = []
    for number, each in enumerate(windows):
        with engine.runner.stages.measure("features"):
            request = subject.prepare(number, each, num_ids)
        futures.append(engine.submit(request))
    for future in futures:
        future.result()
    return time.perf_counter() - begin


def check(subject: Subject, windows: Windows, num_ids: int, rounds: int) -> Result:
    """Compare and time one network."""
    found: dict[str, Ids] = {}
    num_recorded, failure = 0, None
    for mode in MODES:
        engine = start_engine(subject, mode)
        found[mode] = read(subject, engine, windows, num_ids)
        graphs = engine.runner.graphs
        if mode == "graphs":
            assert graphs is not None
            num_recorded, failure = graphs.num_recorded, graphs.failure
        close(engine)
    stages = Stages()
    engine = start_engine(subject, "graphs", stages)
    time_windows(subject, engine, windows, num_ids)  # records what is met on the way
    best, of_best = float("inf"), dict.fromkeys(STAGES, 0.0)
    for _ in range(rounds):
        stages.reset()
        seconds = time_windows(subject, engine, windows, num_ids)
        if seconds < best:
            best, of_best = seconds, stages.seconds
    close(engine)
    return Result(
        name=subject.name,
        num_windows=len(windows),
        num_recorded=num_recorded,
        failure=failure,
        as_kernels=share_equal(found["graphs"], found["kernels"]),
        as_plain=share_equal(found["graphs"], found["plain"]),
        num_texts=len(set(found["graphs"])),
        rtfx=sum(map(len, windows)) / RATE / best,
        stages=of_best,
    )


def share_equal(ids: Ids, others: Ids) -> float:
    """Of windows with the same ids."""
    return sum(one == other for one, other in zip(ids, others, strict=True)) / len(ids)


def close(engine: Engine) -> None:
    """End an engine and give its memory back."""
    engine.close()
    engine.runner.graphs = None
    del engine
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def best_of_pipeline(
    subject: Subject, windows: Windows, num_ids: int, batch_sizes: Sequence[int]
) -> tuple[float, int]:
    """RTFx of transformers' pipeline at its best batch, and that."""
    pipeline = build_pipeline(subject.model)
    found = []
    for batch_size in batch_sizes:
        some = [windows[i % len(windows)] for i in range(max(batch_size, max(batch_sizes)))]
        time_pipeline(pipeline, some[:batch_size], batch_size, 2)  # first calls set things up
        seconds = time_pipeline(pipeline, some, batch_size, num_ids)
        found.append((sum(map(len, some)) / RATE / seconds, batch_size))
        print(f"pipeline, batch of {batch_size}: RTFx {found[-1][0]:.0f}", flush=True)
    return max(found)


def make_windows(num_windows: int, seconds: float) -> list[NDArray[np.float32]]:
    """Noise, each window another one's."""
    random = np.random.default_rng(0)
    kinds = [
        (0.1 * random.standard_normal(round(seconds * RATE))).astype(np.float32)
        for _ in range(min(num_windows, 32))
    ]
    return [np.roll(kinds[n % len(kinds)], 977 * n) for n in range(num_windows)]


def tell(result: Result, has_goal: bool) -> None:
    """One network's rows of the table."""
    goal = f" (goal {GOALS[result.name]:.0f})" if has_goal and result.name in GOALS else ""
    print(f"{result.name}: {result.num_windows} windows, {result.num_texts} different texts")
    print(f"  graphs recorded             {result.num_recorded}")
    if result.failure is not None:
        print(f"  recording failed            {result.failure}")
    print(f"  ids as launched by kernel   {result.as_kernels:.1%} of windows")
    print(f"  ids as without padding      {result.as_plain:.1%} of windows")
    print(f"  RTFx                        {result.rtfx:.0f}{goal}")
    spent = ", ".join(f"{stage} {result.stages[stage]:.2f}" for stage in HOST_STAGES)
    print(f"  s by stage of the host      {spent}", flush=True)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Settings; those of ``--small`` unless they are given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="small networks, few windows")
    parser.add_argument("--only", choices=SUBJECTS, action="append", help="one of the networks")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--windows", type=int, help="512, or 10")
    parser.add_argument("--seconds", type=float, help="of each: 30, or 2")
    parser.add_argument("--tokens", type=int, help="of each: 100, or 8")
    parser.add_argument("--rounds", type=int, help="of which the best counts: 3, or 1")
    parser.add_argument("--batches", type=int, nargs="*", help="of the pipeline: 16 to 128, or 4")
    chosen = parser.parse_args(arguments)
    small = {"windows": 10, "seconds": 2.0, "tokens": 8, "rounds": 1, "batches": [4]}
    true = {
        "windows": 512,
        "seconds": 30.0,
        "tokens": 100,
        "rounds": 3,
        "batches": [16, 32, 64, 128],
    }
    for name, value in (small if chosen.small else true).items():
        if getattr(chosen, name) is None:
            setattr(chosen, name, value)
    return chosen


def main(arguments: Sequence[str] | None = None) -> int:
    """Check all networks, or those that are named; 1 where graphs are not to be trusted."""
    chosen = parse(arguments)
    transformers.logging.set_verbosity_error()
    device = choose_device(chosen.device)
    dtype = choose_dtype(chosen.dtype, device)
    windows = make_windows(chosen.windows, chosen.seconds)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "no GPU: not recorded"
    print(f"{device} ({name}), {dtype}, torch {torch.__version__}, {chosen.tokens} ids a window")
    results = []
    for key in chosen.only or SUBJECTS:
        subject = SUBJECTS[key](device, dtype, chosen.small)
        results.append(check(subject, windows, chosen.tokens, chosen.rounds))
        tell(results[-1], device.type == "cuda" and not chosen.small)
        if key == "turbo" and chosen.batches:
            rtfx, batch = best_of_pipeline(subject, windows, chosen.tokens, chosen.batches)
            ratio = results[-1].rtfx / rtfx
            print(
                f"  against the pipeline        {ratio:.1f} times as fast (goal "
                f"{GOAL_AGAINST_PIPELINE:.0f}); its best: RTFx {rtfx:.0f} with batches of {batch}",
                flush=True,
            )
    bad = [result.name for result in results if not result.is_good]
    print(f"ids differ or steps were not recorded: {', '.join(bad)}" if bad else "ids are equal")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
