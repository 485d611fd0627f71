"""Time ``asr`` against faster-whisper: the same weights, the same audio, one after the other.

    python tests/benchmarks/against_faster_whisper.py AUDIO... --clip CLIP --peer-python PYTHON

Start and load are left out on both sides: ours is the time of the whole process on AUDIO less that
of the whole process on CLIP (a recording of about 11 s); theirs is taken inside their process, once
its model is loaded. PYTHON is an interpreter that has faster-whisper. Both run whisper-base on a
CPU; the peer's model is the CTranslate2 folder given by --peer-model. Only the ratio means
anything: machines differ, and so do hours of the day, which is why the rounds alternate.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time

_PEER = """
import sys, time
from faster_whisper import BatchedInferencePipeline, WhisperModel
folder, compute_type, batch_size, threads, language, *files = sys.argv[1:]
model = WhisperModel(folder, device="cpu", compute_type=compute_type, cpu_threads=int(threads))
options = dict(language=language, beam_size=1)
if int(batch_size):
    options["batch_size"] = int(batch_size)
    model = BatchedInferencePipeline(model)
start = time.perf_counter()
for file in files:
    for segment in model.transcribe(file, **options)[0]:
        pass
print(time.perf_counter() - start)
"""


def _time_ours(files: list[str], arguments: argparse.Namespace) -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "asrcli", "transcribe", *files, "-o", folder, "-q"]
        command += ["-m", arguments.model, "-l", arguments.language, "--dtype", arguments.dtype]
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - start


def _time_theirs(files: list[str], arguments: argparse.Namespace) -> float:
    command = [arguments.peer_python, "-c", _PEER, arguments.peer_model, arguments.compute_type]
    command += [str(arguments.peer_batch_size), str(arguments.threads), arguments.language, *files]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--clip", required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--peer-model", required=True)
    parser.add_argument("--peer-batch-size", type=int, default=0)
    parser.add_argument("--compute-type", default="int8")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--language", default="en")
    parser.add_argument("--model", default="whisper:base")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    ratios = []
    for number in range(1, arguments.rounds + 1):
        theirs = _time_theirs(arguments.files, arguments)
        clip = _time_ours([arguments.clip], arguments)
        whole = _time_ours(arguments.files, arguments)
        ratios.append(theirs / (whole - clip))
        print(
            f"round {number}: theirs {theirs:.1f} s, ours {whole - clip:.1f} s "
            f"({whole:.1f} s less {clip:.1f} s): {ratios[-1]:.2f} times as fast",
            flush=True,
        )
    print(f"median: {statistics.median(ratios):.2f} times as fast")


if __name__ == "__main__":
    main()
