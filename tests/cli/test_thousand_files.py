"""A big batch with odd names and bad files, stopped again and again: nothing is lost or halved."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.checkpoints import GLM
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.runs import asr, start, write_wave

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
# One at a time: in company, the last digits of a mean of floats depend on the company.
OPTIONS = ("-m", GLM, "--dtype", "float32", "--batch-size", "1", "-f", "srt", "-f", "json")
ODD_NAMES = (
    "plain",
    "two words",
    "dots.in.it..v1.2",
    "⚒️ 🎙️",
    "한국어 강의",
    "中文",
    "cafe\u0301",
    "-dash",
    "--option=x",
    os.fsdecode(b"latin-1 caf\xe9"),
    os.fsdecode(b"\xff\xfe"),
    "n" * 190,
    "한" * 62,
    "trailing ",
    " leading",
    "[b] (c) {d}",
    'it\'s "quoted" `x` $(y) $z',
    "star * and ?",
    "back\\slash",
    "line\nfeed",
    "tab\there",
    "percent %s {0}",
    "~",
    "#hash;&|<>",
)


class Tree(NamedTuple):
    folder: Path
    good: list[Path]  # relative to the folder, without the suffix
    bad: dict[str, str]  # name of a file, and the end of what is said about it


def plant(folder: Path, bank: SpeechBank, num_files: int) -> Tree:
    """Recordings of a word each, one in twenty of them bad, in folders of at most 100."""
    chance = random.Random(4)
    words = [each for each in bank.recordings if " " not in each.text]
    good, bad = [], {}
    for number in range(num_files):
        below = Path(f"part {number // 100}")
        name = f"{ODD_NAMES[number % len(ODD_NAMES)]}{number:04}"
        if "trailing" in name:
            name = f"{number:04}{ODD_NAMES[number % len(ODD_NAMES)]}"
        path = folder / below / f"{name}.wav"
        if number % 20 == 7:
            path, complaint = _spoil(path, number // 20)
            bad[path.name] = complaint
        else:
            write_wave(path, chance.choice(words).samples)
            good.append(below / name)
    return Tree(folder, good, bad)


def _spoil(path: Path, kind: int) -> tuple[Path, str]:
    path.parent.mkdir(parents=True, exist_ok=True)
    contents = {
        "empty file": b"",
        "not audio or video that can be read (it is text)": b"not audio\n" * 10,
        "damaged WAV header: no format and no audio data": b"RIFF\x24\0\0\0WAVEfmt \x10\0",
        "no such file": None,  # a link to nowhere
    }
    complaint = list(contents)[kind % len(contents)]
    content = contents[complaint]
    if content is None:
        path.symlink_to(f"nowhere-{kind}")
    else:
        path.write_bytes(content)
    return path, complaint


def results(folder: Path) -> dict[bytes, bytes]:
    """Everything that lies in a folder of results, leftovers too."""
    return {
        os.fsencode(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture(
    params=[40, pytest.param(1000, marks=pytest.mark.slow)],
    ids=["forty", "thousand"],
    scope="module",
)
def tree(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    speech_bank: SpeechBank,
) -> Iterator[Tree]:
    yield plant(tmp_path_factory.mktemp("tree") / "in", speech_bank, request.param)


def check_summary(err: str, tree: Tree, num_skipped: int = 0) -> None:
    """The model is loaded once, and every bad file is named with its reason, twice."""
    lines = err.splitlines()
    assert [line for line in lines if " · cpu · " in line] == lines[:1]
    num_files = len(tree.good) + len(tree.bad)
    (summary,) = (index for index, line in enumerate(lines) if re.match(r"\d+ of \d+ f", line))
    skipped = f", {num_skipped} skipped" if num_skipped else ""
    assert lines[summary].startswith(
        f"{len(tree.good) - num_skipped} of {num_files} files done{skipped}, "
        f"{len(tree.bad)} failed · "
    )
    reasons = sorted(line.rpartition(".wav: ")[2] for line in lines[summary + 1 : -1])
    assert reasons == sorted(tree.bad.values())
    errors = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    assert [f"  {error}" for error in errors] == lines[summary + 1 : -1]
    assert lines[-1].startswith("hint: asr transcribe ")
    assert "Traceback" not in err


def test_stopped_and_run_again_it_comes_to_the_same(tree: Tree, tmp_path: Path) -> None:
    calm, stopped = tmp_path / "calm", tmp_path / "stopped"
    code, out, err = asr("transcribe", tree.folder, *OPTIONS, "-o", calm)
    assert (code, out) == (1, "")
    check_summary(err, tree)
    wanted = results(calm)
    assert set(wanted) == {
        os.fsencode(name) + suffix for name in tree.good for suffix in (b".srt", b".json")
    }
    command = ("transcribe", tree.folder, *OPTIONS, "-o", stopped, "--skip-existing")
    for number in SIGNALS:
        share = (SIGNALS.index(number) + 1) / (len(SIGNALS) + 1)
        with start(*command) as process:
            _wait_for(stopped, round(share * len(wanted)), process)
            process.send_signal(number)
            _, told = process.communicate(timeout=60)
        assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)
        _check_stop(told.decode(), number)
        _check_whole(results(stopped), wanted, may_hold_drafts=number == signal.SIGKILL)
    left = {name for name in wanted if name in results(stopped)}
    num_complete = sum({os.fsencode(n) + s for s in (b".srt", b".json")} <= left for n in tree.good)
    (stopped / "part 0" / ".asr-0123456789abcdef.tmp").write_text("half")  # as a kill may leave it
    code, out, err = asr(*command)
    assert (code, out) == (1, "")
    assert results(stopped) == wanted
    check_summary(err, tree, num_skipped=num_complete)


def _wait_for(folder: Path, num_files: int, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 500
    while len(results(folder)) < num_files and time.monotonic() < until:
        assert process.poll() is None, "it was over before it could be stopped"
        time.sleep(0.02)


def _check_stop(err: str, number: signal.Signals) -> None:
    assert "Traceback" not in err
    if number == signal.SIGKILL:
        return
    stop, hint = err.splitlines()[-2:]
    assert re.fullmatch(r"stopped: \d+ of \d+ files done(, \d+ skipped)?(, \d+ failed)?", stop)
    assert re.fullmatch(r"hint: asr transcribe .* --skip-existing goes on from here", hint)


def _check_whole(
    found: dict[bytes, bytes], wanted: dict[bytes, bytes], *, may_hold_drafts: bool
) -> None:
    """Whatever has its final name is what it is to be in the end."""
    drafts = {name for name in found if Path(os.fsdecode(name)).name.startswith(".asr-")}
    assert may_hold_drafts or not drafts
    for name in set(found) - drafts:
        assert found[name] == wanted[name], name
        if name.endswith(b".json"):
            assert json.loads(found[name])["duration"] > 0
