"""Whether a run's cost grows with its audio and with nothing else, its memory not at all.

    python tests/benchmarks/linear_cost.py talk.mp3 --clip CLIP --copies 1 10 100
    python tests/benchmarks/linear_cost.py clips/*.flac --clip CLIP --copies 1 20
    python tests/benchmarks/linear_cost.py talk.mp3 --clip CLIP --copies 1 1 1 -f text -f srt+json

Each run transcribes so many copies of all files, in one call, to subtitles, or to the formats named
by each -f in turn. Load and start are left out: time is that of the whole process less that of one
on CLIP, a recording of about 11 s.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from asrcli.audio.reading import SAMPLING_RATE, open_audio
from asrcli.audio.sources import expand


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds and bytes that a process took."""

    duration: float
    peak_memory: int


def _run(files: list[Path], num_copies: int, formats: str, model: str) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        talks = Path(folder) / "talks"
        talks.mkdir()
        for copy in range(num_copies):
            for index, file in enumerate(files):
                shutil.copy(file, talks / f"{copy:04}-{index:04}{file.suffix}")
        command = [sys.executable, "-m", "asrcli", "transcribe", str(talks), "-q", "-m", model]
        command += ["-o", str(Path(folder) / "out")]
        command += [word for each in formats.split("+") for word in ("-f", each)]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit("asr failed")
        return Run(time.perf_counter() - start, usage.ru_maxrss * 1024)


def _duration(file: Path) -> float:
    (source,) = expand([str(file)])
    with open_audio(source) as reader:
        return sum(map(len, reader.blocks())) / SAMPLING_RATE


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--clip", required=True, type=Path)
    parser.add_argument("--copies", nargs="+", type=int, default=[1, 10])
    parser.add_argument("-f", "--formats", action="append")
    parser.add_argument("--model", default="whisper:base")
    arguments = parser.parse_args()
    duration = sum(map(_duration, arguments.files))
    print("| files | formats | audio | time | a second of audio | peak memory |")
    print("|---|---|---|---|---|---|", flush=True)
    for num_copies in arguments.copies:
        for formats in arguments.formats or ["srt"]:
            clip = _run([arguments.clip], 1, formats, arguments.model)
            run = _run(arguments.files, num_copies, formats, arguments.model)
            spent, audio = run.duration - clip.duration, duration * num_copies
            print(
                f"| {num_copies * len(arguments.files)} | {formats} | {audio / 60:.1f} min |"
                f" {spent:.1f} s | {1000 * spent / audio:.2f} ms |"
                f" {run.peak_memory / 1e6:.0f} MB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
