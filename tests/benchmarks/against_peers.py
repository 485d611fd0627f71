"""``asr`` and what else transcribes by Whisper: speed, word error rate and memory, as a table.

    python tests/benchmarks/against_peers.py MANIFEST --clip CLIP --peer-python PYTHON \\
        --peer faster-whisper=FOLDER --peer whisper.cpp=FILE --peer openai-whisper=FILE ...

MANIFEST is a table (.tsv) with the columns ``file`` and ``reference_transcript``, all of one
language. PYTHON is an interpreter that has the peers; each --peer names one and its whisper
weights, the same as asr's for the figures to mean anything:

    faster-whisper, faster-whisper-batched   a folder in CTranslate2's format; int8, batches of 16
    whisper.cpp                              a ggml file, by pywhispercpp
    openai-whisper                           a checkpoint of OpenAI's; float32
    transformers                             a folder; float32, its pipeline in batches of 8

All transcribe by the likeliest id on a CPU, one program after the other, and are scored alike. Load
and start are left out: the peers' time is taken inside their process once the model is there, and
ours is that of the whole process less that of one on CLIP, a recording of about 11 s. Peak memory
is that of the whole process.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from asrcli.evaluation import Pair, score

_PEER = """
import json, resource, sys, time
name, weights, threads, language, output, *files = sys.argv[1:]
threads = int(threads)
if name.startswith("faster-whisper"):
    from faster_whisper import BatchedInferencePipeline, WhisperModel
    model = WhisperModel(weights, device="cpu", compute_type="int8", cpu_threads=threads)
    options = dict(language=language, beam_size=1)
    if name.endswith("batched"):
        model, options = BatchedInferencePipeline(model), dict(options, batch_size=16)
    transcribe = lambda file: "".join(each.text for each in model.transcribe(file, **options)[0])
elif name == "whisper.cpp":
    from faster_whisper.audio import decode_audio
    from pywhispercpp.model import Model
    model = Model(weights, n_threads=threads, print_progress=False, print_realtime=False,
                  redirect_whispercpp_logs_to=None)
    transcribe = lambda file: " ".join(
        each.text for each in model.transcribe(decode_audio(file), language=language))
elif name == "openai-whisper":
    import torch, whisper
    torch.set_num_threads(threads)
    model = whisper.load_model(weights, device="cpu")
    transcribe = lambda file: model.transcribe(file, language=language, fp16=False)["text"]
else:
    import torch, transformers
    from faster_whisper.audio import decode_audio
    torch.set_num_threads(threads)
    model = transformers.pipeline("automatic-speech-recognition", model=weights, chunk_length_s=30)
    model.tokenizer.pad_token = model.tokenizer.pad_token or model.tokenizer.eos_token
    options = dict(batch_size=8, generate_kwargs=dict(language=language, task="transcribe"))
    transcribe = lambda file: model(
        {"raw": decode_audio(file), "sampling_rate": 16000}, **options)["text"]
start = time.perf_counter()
texts = [transcribe(file) for file in files]
duration = time.perf_counter() - start
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
json.dump([duration, peak, texts], open(output, "w", encoding="utf-8"))
"""


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds and bytes that a program took, and the text of each file."""

    duration: float
    peak_memory: int
    texts: list[str]


def _run_asr(files: list[str], arguments: argparse.Namespace) -> Run:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "asrcli", "transcribe", *files, "-q", "-f", "json"]
        command += ["-m", arguments.model, "-l", arguments.language, "-o", folder]
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        duration = time.perf_counter() - start
        if status:
            raise SystemExit("asr failed")
        found = {path.stem: path for path in Path(folder).rglob("*.json")}
        results = [json.loads(found[Path(file).stem].read_text("utf-8")) for file in files]
    return Run(duration, usage.ru_maxrss * 1024, [result["text"] for result in results])


def _run_ours(files: list[str], arguments: argparse.Namespace) -> Run:
    clip = _run_asr([arguments.clip], arguments)
    run = _run_asr(files, arguments)
    return Run(run.duration - clip.duration, run.peak_memory, run.texts)


def _run_peer(peer: str, files: list[str], arguments: argparse.Namespace) -> Run:
    name, _, weights = peer.partition("=")
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "run.json"
        command = [arguments.peer_python, "-c", _PEER, name, weights, str(arguments.threads)]
        command += [arguments.language, str(output), *files]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(f"{name} failed: {done.stderr.strip().splitlines()[-1]}")
        return Run(*json.loads(output.read_text("utf-8")))


def _word_error_rate(run: Run, rows: list[dict[str, str]], language: str) -> float:
    pairs = [
        Pair(
            name=row["file"],
            reference=row["reference_transcript"],
            hypothesis=text,
            language=language,
        )
        for row, text in zip(rows, run.texts, strict=True)
    ]
    return score(pairs).total.wer or 0.0


def _line(name: str, runs: list[Run], ours: list[Run], error_rate: float) -> str:
    ratio = statistics.median(
        run.duration / own.duration for run, own in zip(runs, ours, strict=True)
    )
    duration = statistics.median(run.duration for run in runs)
    peak = max(run.peak_memory for run in runs)
    return (
        f"| {name} | {duration:.1f} s | {ratio:.1f} × | {100 * error_rate:.2f} % |"
        f" {peak / 1e6:.0f} MB |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--clip", required=True)
    parser.add_argument("--peer-python", required=True)
    parser.add_argument("--peer", action="append", default=[], metavar="NAME=WEIGHTS")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--language", default="en")
    parser.add_argument("--model", default="whisper:base")
    parser.add_argument("--rounds", type=int, default=2)
    arguments = parser.parse_args()
    with arguments.manifest.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    files = [str(arguments.manifest.parent.resolve() / row["file"]) for row in rows]
    runs: dict[str, list[Run]] = {"asr": []}
    for _ in range(arguments.rounds):
        runs["asr"].append(_run_ours(files, arguments))
        for peer in arguments.peer:
            name = peer.partition("=")[0]
            runs.setdefault(name, []).append(_run_peer(peer, files, arguments))
    print("| program | time | of ours | words wrong | peak memory |\n|---|---|---|---|---|")
    for name, of_program in runs.items():
        error_rate = _word_error_rate(of_program[0], rows, arguments.language)
        print(_line(name, of_program, runs["asr"], error_rate), flush=True)


if __name__ == "__main__":
    main()
