"""``asr transcribe`` as people run it: whisper-base on speech, many checks to a run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.cli.runs import RATE, SAMPLES, asr, environment, speech, start, words, write_wave

SPOKEN = words((SAMPLES / "english-slt.txt").read_text())
ODD_NAMES = (
    "-dash",
    "한국어 中文 ⚒️",
    "cafe\u0301",
    "16. Ti Kwan [x] (y) & 'z' *",
    "Show.S01E01.DD2.0.H.264",
    "trailing ",
    "line\nfeed",
    "n" * 200,
)


def test_a_folder_with_odd_names_and_bad_files(tmp_path: Path, model: str) -> None:
    tree = tmp_path / "tree"
    for name in ODD_NAMES:
        write_wave(tree / f"{name}.wav", speech())
    not_utf8 = os.fsdecode(b"bad\xff\xfe")
    write_wave(tree / "sub" / f"{not_utf8}.wav", speech())
    (tree / "1_zero.wav").touch()
    (tree / "2_text.mp3").write_text("not audio\n")
    outcome = asr("transcribe", tree, "-f", "text", "-f", "srt", "-o", tmp_path / "out", LC_ALL="C")
    assert (outcome.code, outcome.out) == (1, "")
    for name in (*ODD_NAMES, f"sub/{not_utf8}"):
        assert words((tmp_path / "out" / f"{name}.txt").read_text()) == SPOKEN, name
        assert (tmp_path / "out" / f"{name}.srt").read_text().startswith("1\n00:00:0"), name
    assert len([path for path in (tmp_path / "out").rglob("*") if path.is_file()]) == 18
    assert outcome.err.splitlines()[1:3] == [
        f"error: {tree}/1_zero.wav: empty file",
        f"error: {tree}/2_text.mp3: not audio or video that can be read (it is text)",
    ]
    assert outcome.err.splitlines()[3].startswith("9 of 11 files done, 2 failed · ")
    assert len(outcome.err.splitlines()) == 7
    assert outcome.err.splitlines()[6].endswith(" --skip-existing goes on from here")
    assert "\r" not in outcome.err
    assert "\x1b" not in outcome.err


def test_a_pipe_gives_nothing_but_the_result(tmp_path: Path, model: str) -> None:
    data = write_wave(tmp_path / "a.wav", speech()).read_bytes()
    endless = data[:4] + b"\xff" * 4 + data[8:40] + b"\xff" * 4 + data[44:]
    outcome = asr("transcribe", "-", ASR_FORMAT="json", ASR_MODEL=model, data=endless)
    assert outcome.code == 0
    transcript = json.loads(outcome.out)
    assert words(transcript["text"]) == SPOKEN
    assert transcript["language"] == "en"
    assert transcript["duration"] == pytest.approx(len(speech()) / RATE, abs=1e-3)
    (header,) = outcome.err.splitlines()
    assert header.startswith(f"{model} · cpu · ")


def test_raw_pcm_and_a_named_pipe_in_a_loop_that_reads_standard_input(
    tmp_path: Path, model: str
) -> None:
    """Nothing may take standard input from the shell that runs a loop over it."""
    raw = tmp_path / "a.raw"
    raw.write_bytes((speech() * 32767).astype("<i2").tobytes())
    os.mkfifo(tmp_path / "pipe")
    script = (
        f"cat {raw} > {tmp_path}/pipe & printf '%s\\n' {raw} {tmp_path}/pipe | "
        f"while read -r file; do {sys.executable} -m asrcli transcribe $file "
        "--raw s16le --sampling-rate 16000 --channels 1 --quiet; done"
    )
    result = subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment(), timeout=300
    )
    assert result.stderr == ""
    assert words(result.stdout) == SPOKEN * 2


def test_a_reader_that_leaves_stops_the_run(tmp_path: Path, model: str) -> None:
    names = [write_wave(tmp_path / f"{number}.wav", speech()) for number in range(3)]
    with start("transcribe", *names, "-f", "json", "-o", "-") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(1)
        process.stdout.close()
        err = process.stderr.read().decode()
    assert process.returncode == 141
    assert len(err.splitlines()) == 1  # the model's


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_leave_whole_files_and_nothing_else(
    tmp_path: Path, model: str, number: signal.Signals
) -> None:
    write_wave(tmp_path / "in" / "1.wav", speech())
    write_wave(tmp_path / "in" / "2.wav", speech())
    write_wave(tmp_path / "in" / "3.wav", np.tile(speech(), 300))
    out = tmp_path / "out"
    options = ("-f", "srt", "-f", "json", "--batch-size", "2")
    with start("transcribe", tmp_path / "in", *options, "-o", out) as process:
        until = time.monotonic() + 120
        while not (out / "2.json").exists() and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(number)
        sent = time.monotonic()
        _, err = process.communicate(timeout=60)
    assert time.monotonic() - sent < 5  # about one on an idle machine
    assert process.returncode == 128 + number
    stopped, hint = err.decode().splitlines()[1:]
    assert stopped == "stopped: 2 of 3 files done"
    assert hint.startswith(f"hint: asr transcribe {tmp_path / 'in'} -f srt -f json ")
    assert hint.endswith(" --skip-existing goes on from here")
    assert sorted(path.name for path in out.iterdir()) == ["1.json", "1.srt", "2.json", "2.srt"]
    for name in ("1", "2"):
        assert words(json.loads((out / f"{name}.json").read_text())["text"]) == SPOKEN


def test_a_pipe_that_says_nothing_can_be_left(model: str) -> None:
    with start("transcribe", "-", stdin=subprocess.PIPE) as process:
        time.sleep(1.0)
        process.send_signal(signal.SIGTERM)
        sent = time.monotonic()
        process.wait(60)
        assert time.monotonic() - sent < 5
        assert process.returncode == 143
        assert process.stderr is not None
        assert process.stderr.read() == b""
