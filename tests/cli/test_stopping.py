"""Signals at any moment, and streams that close: no traceback, whatever is going on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from asrcli.cli import running
from asrcli.console import internal_error
from tests.checkpoints import GLM
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.conftest import Run
from tests.cli.runs import environment, write_wave

# Says when asr has the word: what comes before, Python's own start, is out of its reach.
PROGRAM = """
from asrcli import cli
begin = cli._leave_on_signals
def begin_and_tell():
    begin()
    print("ready", flush=True)
cli._leave_on_signals = begin_and_tell
cli.main()
"""
DELAYS = (0.0, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6)


@pytest.fixture
def clips(tmp_path: Path, speech_bank: SpeechBank) -> list[Path]:
    phrase = next(iter(speech_bank.phrases["English"])).samples
    return [write_wave(tmp_path / "in" / f"{number}.wav", phrase) for number in range(3)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_from_the_first_moment_on(
    tmp_path: Path, clips: list[Path], number: signal.Signals
) -> None:
    # More than is done before the last signal.
    write_wave(clips[-1], np.tile(np.array([0.1, -0.1], np.float32), 16_000 * 1000))
    command = [sys.executable, "-c", PROGRAM, "transcribe", *map(str, clips), "-m", str(GLM)]
    for delay in DELAYS:
        with subprocess.Popen(
            [*command, "-f", "srt", "-o", str(tmp_path / "out")],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(delay)
            process.send_signal(number)
            out, err = process.communicate(timeout=60)
        assert process.returncode == 128 + number, delay
        assert out == b"", delay
        expected = (f"{GLM} · cpu", "stopped: ", "hint: asr transcribe ")
        lines = err.decode().splitlines()
        assert not [line for line in lines if not line.startswith(expected)], delay
        assert not list((tmp_path / "out").glob(".asr-*"))


def test_a_signal_while_a_module_is_imported_ends_the_process_itself(tmp_path: Path) -> None:
    """A compiled module that is told of it by an exception would abort."""
    (tmp_path / "heavy.py").write_text(
        "import os, signal\n"
        "try:\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "finally:\n"
        "    print('raised', flush=True)\n"
    )
    program = (
        "from asrcli.cli.interrupts import farewell, interruptible\n"
        "with interruptible(), farewell(lambda: print('cleared up', flush=True)):\n"
        "    import heavy\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (143, "cleared up\n", "")


def test_a_signal_that_is_ignored_stays_ignored(clips: list[Path], tmp_path: Path) -> None:
    """As nohup and the background jobs of shells have it."""
    command = [sys.executable, "-c", PROGRAM, "transcribe", str(clips[0]), "-m", str(GLM)]
    with subprocess.Popen(
        [*command, "-o", str(tmp_path / "out")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 0
    assert (tmp_path / "out" / "0.txt").read_text()


# A library that makes its own of every exception, as it is imported above all, and ours that
# takes it for a fault of the model.
WRAPPING = """
import os, signal, sys
from asrcli.cli import running
from asrcli.errors import CheckpointError
def app(**_):
    try:
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
    except BaseException as error:
        raise {error} from error
running.app = app
sys.exit(running.run([]))
"""


@pytest.mark.parametrize(
    "error", ["CheckpointError('no such model')", "ImportError('x')", "SystemExit(1)"]
)
def test_a_signal_that_comes_out_as_another_error(error: str) -> None:
    program = WRAPPING.format(error=error)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (143, b"", b"")


def test_a_fault_of_many_lines_is_told_in_one(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """As CUDA's are."""

    def app(**_: object) -> None:
        raise RuntimeError("CUDA error: out of luck\n  For debugging, pass X=1\n\n")

    monkeypatch.setattr(running, "app", app)
    assert run() == (
        1,
        "",
        "error: internal error (RuntimeError: CUDA error: out of luck For debugging, pass X=1)\n"
        "hint: --verbose shows where\n",
    )
    assert internal_error(KeyError()) == "internal error (KeyError)"


# What becomes of stderr, as a shell would have it; "exit" keeps a command's own exit code.
LOST = {
    "closed": "{asr} 2>&-",
    "unread": "exec 3>&1; {{ {asr} 2>&1 >/dev/null 3>&-; echo $? >&3; }} | true",
    "full": "{asr} 2>/dev/full",
}


@pytest.mark.parametrize("kind", LOST)
def test_nobody_hears_the_messages(clips: list[Path], tmp_path: Path, kind: str) -> None:
    """One file fails, so there is something to say; the others are done all the same."""
    if kind == "full" and not Path("/dev/full").exists():
        pytest.skip("needs a device that is always full")
    clips[0].write_bytes(b"")
    inputs = " ".join(map(str, clips))
    asr = f"{sys.executable} -m asrcli transcribe {inputs} -m {GLM} -o {tmp_path}/out"
    script = LOST[kind].format(asr=asr)
    if kind != "unread":
        script += "; echo $?"
    result = subprocess.run(["bash", "-c", script], capture_output=True, env=environment())
    assert (result.stdout, result.stderr) == (b"1\n", b"")
    written = sorted((tmp_path / "out").iterdir())
    assert [path.name for path in written] == ["1.txt", "2.txt"]
    assert all("\n" in path.read_text() for path in written)


def test_every_stream_is_closed(clips: list[Path], tmp_path: Path) -> None:
    """No file may then get the number of a stream, or messages would go into it."""
    asr = f"{sys.executable} -m asrcli transcribe {clips[0]} -m {GLM} -o {tmp_path}/out/"
    script = f"{asr} <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", script], env=environment()).returncode == 0
    with_streams = subprocess.run(
        ["bash", "-c", f"{asr}2"], env=environment(), capture_output=True, check=True
    )
    assert with_streams.stdout == b""
    assert (tmp_path / "out/0.txt").read_bytes() == (tmp_path / "out/2/0.txt").read_bytes()


def test_a_reader_of_the_look_ahead_that_leaves(clips: list[Path]) -> None:
    """More lines than a pipe holds."""
    folder = clips[0].parent
    for number in range(3, 1200):
        os.link(clips[0], folder / f"{number}-{'x' * 60}.wav")
    asr = f"{sys.executable} -m asrcli transcribe {folder} --dry-run"
    script = f"{asr} | head -1; echo ${{PIPESTATUS[0]}}"
    result = subprocess.run(["bash", "-c", script], capture_output=True, env=environment())
    assert result.stderr == b""
    first, code = result.stdout.splitlines()
    assert first.decode() == f"{folder}/0.wav → {folder}/0.txt"
    assert code == b"141"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("arguments", ["transcribe {} --dry-run", "models", "-h"])
def test_output_that_finds_no_room(clips: list[Path], arguments: str) -> None:
    asr = f"{sys.executable} -m asrcli {arguments.format(clips[0])}"
    result = subprocess.run(
        ["bash", "-c", f"{asr} >/dev/full"],
        capture_output=True,
        env=environment(PYTHONUNBUFFERED=""),
    )
    message = b"error: standard output cannot be written: no space left on device\n"
    assert (result.returncode, result.stderr) == (1, message)
