"""Word error rates of ``asr`` and of faster-whisper: the same weights, the same list of recordings.

    python tests/benchmarks/word_errors.py MANIFEST --peer-python PYTHON --peer-model FOLDER

MANIFEST is a table (.tsv) as ``asr evaluate`` takes it, with the columns ``file``, ``language``,
``duration_s`` and ``reference_transcript``; of it, all that is shorter than --max-duration and has
a reference is transcribed, its language given. Both are scored as ``asr evaluate`` does. PYTHON is
an interpreter that has faster-whisper; its model, in CTranslate2's format, runs in float32 by the
likeliest id. What it understood is kept in --peer-transcripts and used again from there.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from asrcli.evaluation import Pair, score

_PEER = """
import sys
from pathlib import Path
from faster_whisper import WhisperModel
folder, language, *names = sys.argv[1:]
model = WhisperModel(folder, device="cpu", compute_type="float32", cpu_threads=2)
for audio, text in zip(names[::2], names[1::2]):
    try:
        segments, _ = model.transcribe(audio, language=language, beam_size=1)
        heard = "".join(segment.text for segment in segments)
    except Exception as error:  # told, and left out of its score; the other recordings go on
        print("faster-whisper:", audio, repr(error), file=sys.stderr)
        continue
    Path(text).parent.mkdir(parents=True, exist_ok=True)
    Path(text).write_text(heard, encoding="utf-8")
"""

Row = dict[str, str]


def read_rows(manifest: Path, max_duration: float) -> list[Row]:
    with manifest.open(encoding="utf-8", newline="") as lines:
        rows = list(csv.DictReader(lines, delimiter="\t"))
    return [
        row
        for row in rows
        if row["reference_transcript"].strip()
        and row["duration_s"]
        and float(row["duration_s"]) < max_duration
    ]


def evaluate(manifest: Path, *arguments: str) -> tuple[dict[str, float | None], set[str]]:
    """The totals that ``asr evaluate`` gives, and the files that it could score."""
    command = [sys.executable, "-m", "asrcli", "evaluate", "--references", str(manifest)]
    found = subprocess.run([*command, *arguments, "-q", "-f", "json"], capture_output=True)
    if found.returncode not in (0, 1):
        raise SystemExit(found.stderr.decode())
    print(found.stderr.decode(), end="", file=sys.stderr)
    result = json.loads(found.stdout)
    return result["total"], {file["file"] for file in result["files"]}


def ask_peer(rows: list[Row], language: str, arguments: argparse.Namespace) -> None:
    """Have the peer write the transcripts that are not there yet."""
    names: list[str] = []
    for row in rows:
        text = place_of(row, arguments)
        if not text.exists():
            names += [str(arguments.manifest.parent.resolve() / row["file"]), str(text)]
    if names:
        command = [arguments.peer_python, "-c", _PEER, arguments.peer_model, language, *names]
        subprocess.run(command, check=True)


def compare(language: str, rows: list[Row], arguments: argparse.Namespace) -> None:
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, ["file", "language", "reference_transcript"], delimiter="\t")
        writer.writeheader()
        folder = arguments.manifest.parent.resolve()
        for row in rows:
            file = str(folder / row["file"])
            text = row["reference_transcript"]
            writer.writerow({"file": file, "language": language, "reference_transcript": text})
        table.flush()
        manifest = Path(table.name)
        options = ["-m", arguments.model, "--dtype", arguments.dtype, "-l", language]
        ours, scored = evaluate(manifest, *options, *arguments.option)
    line = f"{language}  ours {describe(ours)}"
    if arguments.peer_python:
        ask_peer(rows, language, arguments)
    if arguments.peer_transcripts:
        same = [row for row in rows if str(folder / row["file"]) in scored]
        line += f"  faster-whisper {describe(score_peer(same, language, arguments))}"
    print(line, flush=True)


def score_peer(
    rows: list[Row], language: str, arguments: argparse.Namespace
) -> dict[str, float | None]:
    pairs = [
        Pair(
            name=row["file"],
            reference=row["reference_transcript"],
            hypothesis=place_of(row, arguments).read_text(encoding="utf-8"),
            language=language,
        )
        for row in rows
        if place_of(row, arguments).exists()
    ]
    total = score(pairs).total
    return {"num_files": total.num_files, "wer": total.wer, "cer": total.cer}


def place_of(row: Row, arguments: argparse.Namespace) -> Path:
    """Where the peer's transcript of a recording is kept."""
    folder: Path = arguments.peer_transcripts
    return folder / (row["file"] + ".txt")


def describe(total: dict[str, float | None]) -> str:
    rates = (f"{name.upper()} {percent(total[name])}" for name in ("wer", "cer"))
    return f"{total['num_files']} files: {', '.join(rates)}"


def percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{100 * rate:.2f} %"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("manifest", type=Path)
    parser.add_argument("--languages", default="en,de,fr,es,ko,zh,ja")
    parser.add_argument("--max-duration", type=float, default=300.0)
    parser.add_argument("--model", default="whisper:base")
    parser.add_argument("--dtype", default="auto")
    parser.add_argument("--option", action="append", default=[], help="one more for asr evaluate")
    parser.add_argument("--peer-python")
    parser.add_argument("--peer-model")
    parser.add_argument("--peer-transcripts", type=Path)
    arguments = parser.parse_args()
    rows = read_rows(arguments.manifest, arguments.max_duration)
    for language in arguments.languages.split(","):
        compare(language, [row for row in rows if row["language"] == language], arguments)


if __name__ == "__main__":
    main()
