"""Time ``asr`` as it stands against another commit of it: same weights, same audio, in turns.

    python tests/benchmarks/against_commit.py REVISION AUDIO... --clip CLIP

Both run from the interpreter that runs this script, the other one from a worktree that is made for
it. Start and load are left out: what counts is the time of the whole process on AUDIO less that of
the whole process on CLIP (a recording of about 11 s). Prints the ratio of each round, the peak
memory of both and whether their texts are the same; fails where this commit is slower by more than
--at-most. Only ratios mean anything: machines differ, and so do hours of the day.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds and bytes that a process took, and the texts that it wrote, by name."""

    duration: float
    peak_memory: int
    texts: dict[str, str]


def _transcribe(tree: Path, files: list[str], arguments: argparse.Namespace) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "asrcli", "transcribe", *files, "-o", folder, "-q"]
        command += ["-m", arguments.model, "-l", arguments.language, "--dtype", arguments.dtype]
        start = time.perf_counter()
        process = subprocess.Popen(
            command,
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree)},
            stdout=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        duration = time.perf_counter() - start
        if status:
            raise SystemExit(f"{tree}: the run failed")
        paths = sorted(path for path in Path(folder).rglob("*") if path.is_file())
        texts = {path.name: path.read_text("utf-8") for path in paths}
    return Run(duration, usage.ru_maxrss * 1024, texts)


@contextmanager
def _worktree(revision: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "other"
        git = ["git", "-C", str(HERE), "worktree"]
        subprocess.run([*git, "add", "--detach", str(tree), revision], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def _measure(tree: Path, arguments: argparse.Namespace) -> Run:
    """A run on the audio, with the time that start and load take left out."""
    clip = _transcribe(tree, [arguments.clip], arguments)
    run = _transcribe(tree, arguments.files, arguments)
    return Run(run.duration - clip.duration, run.peak_memory, run.texts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("revision")
    parser.add_argument("files", nargs="+")
    parser.add_argument("--clip", required=True)
    parser.add_argument("--model", default="whisper:base")
    parser.add_argument("--language", default="en")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-most", type=float, default=1.05, help="times the other's duration")
    arguments = parser.parse_args()
    arguments.clip = str(Path(arguments.clip).resolve())
    arguments.files = [str(Path(file).resolve()) for file in arguments.files]
    ratios = []
    with _worktree(arguments.revision) as other:
        for number in range(1, arguments.rounds + 1):
            theirs, ours = _measure(other, arguments), _measure(HERE, arguments)
            ratios.append(ours.duration / theirs.duration)
            num_same = sum(ours.texts[name] == theirs.texts.get(name) for name in ours.texts)
            print(
                f"round {number}: {arguments.revision} {theirs.duration:.1f} s,"
                f" {theirs.peak_memory / 1e6:.0f} MB; here {ours.duration:.1f} s,"
                f" {ours.peak_memory / 1e6:.0f} MB: {ratios[-1]:.2f} times as long;"
                f" {num_same} of {len(ours.texts)} texts the same",
                flush=True,
            )
    ratio = statistics.median(ratios)
    print(f"median: {ratio:.2f} times as long")
    sys.exit(ratio > arguments.at_most)


if __name__ == "__main__":
    main()
