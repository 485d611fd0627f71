"""Other programs on the same recordings, each in a process of its own: to compare speeds with."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from asrcli import memory_use
from asrcli.errors import AsrError, UsageError

NAMES = ("faster-whisper",)
BATCH_SIZE = 16  # its fastest on long recordings

_FASTER_WHISPER = """
import json, runpy, sys, time
from faster_whisper import BatchedInferencePipeline, WhisperModel
memory_use, folder, device, threads, batch_size, language, num_rounds, *files = sys.argv[1:]
compute_type = "int8" if device == "cpu" else "float16"
model = WhisperModel(folder, device=device, compute_type=compute_type, cpu_threads=int(threads))
model = BatchedInferencePipeline(model)
seconds = []
for files_now in [files[:1], *[files] * int(num_rounds)]:
    begin = time.perf_counter()
    for file in files_now:
        options = dict(language=language or None, beam_size=1, batch_size=int(batch_size))
        for segment in model.transcribe(file, **options)[0]:
            pass
    seconds.append(time.perf_counter() - begin)
json.dump([seconds[1:], runpy.run_path(memory_use)["peak_memory"]()], sys.stdout)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerMeasurement:
    """What another program took.

    Attributes:
        name: of the program, and how it ran.
        seconds: of each round, its model loaded and warmed up.
        peak_memory: bytes that its process has had at most; None where the system does not say.
    """

    name: str
    seconds: tuple[float, ...]
    peak_memory: int | None


def check_peer(name: str) -> None:
    """Raise UsageError where a program is unknown or not installed beside this one."""
    if name not in NAMES:
        raise UsageError(f"{name!r} cannot be compared with", hint=f"one of: {', '.join(NAMES)}")
    if importlib.util.find_spec("faster_whisper") is None:
        raise UsageError("faster-whisper is not installed", hint="pip install faster-whisper")


def measure_peer(
    files: Sequence[Path],
    *,
    model: str,
    device: str,
    num_threads: int,
    language: str | None,
    num_rounds: int,
) -> PeerMeasurement:
    """Have faster-whisper transcribe the same files, by the likeliest id, in batches of windows.

    Args:
        model: a name that it knows, or a folder in CTranslate2's format.
        device: "cpu" (int8) or "cuda" (float16).

    Raises:
        AsrError: it failed; its last line says why.
    """
    settings = [model, device, str(num_threads), str(BATCH_SIZE), language or "", str(num_rounds)]
    command = [sys.executable, "-c", _FASTER_WHISPER, memory_use.__file__, *settings]
    command += map(str, files)
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise AsrError(
            f"faster-whisper failed: {lines[-1]}", hint="--compare-model names its model"
        )
    seconds, peak_memory = json.loads(done.stdout)
    kind = "int8" if device == "cpu" else "float16"
    return PeerMeasurement(
        name=f"faster-whisper {kind}, batches of {BATCH_SIZE}",
        seconds=tuple(seconds),
        peak_memory=peak_memory,
    )
