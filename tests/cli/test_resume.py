"""Going on where a run was stopped, and looking ahead: no model is loaded for either."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest

from asrcli.audio.sources import Source
from asrcli.cli import loading
from asrcli.cli.interrupts import Interrupted
from asrcli.cli.resuming import command_to_go_on
from asrcli.progress import BatchProgress
from tests.cli.conftest import Run
from tests.cli.runs import RATE, write_wave
from tests.cli.test_batch import Scripted, transcribe

NO_MODEL = ("-m", "no/such-model")  # whoever loads it fails
FORMATS = ("-f", "srt", "-f", "json")


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    folder = tmp_path / "talks"
    tone = 0.3 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    write_wave(folder / "a.wav", tone)
    write_wave(folder / "b.wav", tone)
    write_wave(folder / "silent.wav", np.zeros(RATE, np.float32))
    return folder


def tree(folder: Path) -> dict[str, tuple[bytes, int]]:
    """Every file with its content and when it was written."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): (p.read_bytes(), p.stat().st_mtime_ns) for p in files}


def test_nothing_is_loaded_where_all_is_complete(run: Run, talks: Path) -> None:
    assert transcribe([talks], "srt", "json")[0] == 0
    before = tree(talks)
    command = ("transcribe", str(talks), *FORMATS, "--skip-existing", *NO_MODEL)
    assert run(*command) == (0, "", "0 of 3 files done, 3 skipped\n")
    assert run(*command, "--quiet") == (0, "", "")
    assert tree(talks) == before
    one = ("transcribe", str(talks / "a.wav"), *FORMATS, "--skip-existing", *NO_MODEL)
    assert run(*one) == (0, "", f"{talks}/a.wav: skipped, its results are complete\n")


def test_without_the_option_results_are_replaced(run: Run, talks: Path) -> None:
    transcribe([talks], "srt", "json")
    before = tree(talks)
    for option in ((), ("--overwrite",)):
        code, _, err = run("transcribe", str(talks), *FORMATS, *option, *NO_MODEL)
        assert code == 1
        assert err.startswith("error: no/such-model: ")
    assert transcribe([talks], "srt", "json")[0] == 0
    after = tree(talks)
    assert {name: content for name, (content, _) in after.items()} == {
        name: content for name, (content, _) in before.items()
    }
    assert all(after[name] != before[name] for name in after if not name.endswith(".wav"))


def test_what_is_not_complete_is_done_again_in_all_formats(talks: Path) -> None:
    transcribe([talks], "srt", "json")
    whole = tree(talks)
    (talks / "a.json").unlink()
    (talks / "b.json").write_bytes(whole["b.json"][0][:-20])
    (talks / "b.srt").write_text("1\n00:00:00,000 --> 00:00:09,000\nanother text\n")
    num_failed, lines = transcribe([talks], "srt", "json", skip_existing=True)
    assert num_failed == 0
    (summary,) = lines
    assert summary.startswith("2 of 3 files done, 1 skipped · 0:04 of audio in ")
    again = tree(talks)
    assert {name: content for name, (content, _) in again.items()} == {
        name: content for name, (content, _) in whole.items()
    }
    assert again["silent.json"] == whole["silent.json"]
    assert all(again[name] != whole[name] for name in ("a.srt", "a.json", "b.srt", "b.json"))


def test_a_source_that_has_changed_is_done_again(talks: Path) -> None:
    transcribe([talks], "vtt")
    later = (talks / "a.vtt").stat().st_mtime + 10
    os.utime(talks / "a.wav", (later, later))
    _, lines = transcribe([talks], "vtt", skip_existing=True)
    assert lines[0].startswith("1 of 3 files done, 2 skipped · ")


def test_one_more_format(talks: Path) -> None:
    transcribe([talks], "vtt")
    _, lines = transcribe([talks], "vtt", "json", skip_existing=True)
    assert lines == [f"{talks}/silent.wav: no speech"]
    assert len(list(talks.glob("*.json"))) == 3


def test_an_empty_subtitle_file_alone_proves_nothing(talks: Path) -> None:
    transcribe([talks], "srt")
    _, lines = transcribe([talks], "srt", skip_existing=True)
    assert lines[0] == f"{talks}/silent.wav: no speech"
    assert lines[1].startswith("1 of 3 files done, 2 skipped · ")


def test_what_was_lost_is_said_again(run: Run, talks: Path) -> None:
    """The exit code is of this run, in which nothing was lost."""
    loud = 0.8 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    write_wave(talks / "b.wav", loud)
    assert transcribe([talks], *FORMATS[1::2])[0] == 1
    command = ("transcribe", str(talks), *FORMATS, "--skip-existing", *NO_MODEL)
    warning = f"warning: {talks}/b.wav: skipped, with a result that warns: 0.0-2.0 s: no end\n"
    assert run(*command) == (0, "", f"{warning}0 of 3 files done, 3 skipped\n")
    assert run(*command, "--quiet") == (0, "", "")
    written = json.loads((talks / "b.json").read_text())
    written["warnings"] += ["\x1b[1m", "holds no audio"]
    (talks / "b.json").write_text(json.dumps(written) + "\n")
    assert "no end (and 2 more)\n" in run(*command).err


def test_protected_results_that_are_complete_are_in_nobodys_way(run: Run, talks: Path) -> None:
    transcribe([talks], "vtt")
    for result in talks.glob("*.vtt"):
        result.chmod(0o444)
    command = ("transcribe", str(talks), "-f", "vtt", *NO_MODEL)
    assert run(*command, "--skip-existing").code == 0
    code, _, err = run(*command)
    assert code == 1
    assert err.startswith(f"error: {talks}/a.vtt: is write-protected\n")


# --dry-run


def test_a_look_ahead(run: Run, talks: Path, tmp_path: Path) -> None:
    transcribe([talks / "a.wav"], "srt", output=talks)
    before = tree(tmp_path)
    command = ("transcribe", str(talks), "--dry-run", *NO_MODEL)
    assert run(*command, "-f", "srt") == (
        0,
        f"{talks}/a.wav → {talks}/a.srt (replaces it)\n"
        f"{talks}/b.wav → {talks}/b.srt\n"
        f"{talks}/silent.wav → {talks}/silent.srt\n",
        "",
    )
    assert run(*command, "-f", "srt", "--skip-existing").out == (
        f"{talks}/a.wav → {talks}/a.srt (exists, skipped)\n"
        f"{talks}/b.wav → {talks}/b.srt\n"
        f"{talks}/silent.wav → {talks}/silent.srt\n"
    )
    out = tmp_path / "out" / "new"
    assert run(*command, *FORMATS, "-o", str(out)).out == (
        f"{talks}/a.wav → {out}/a.srt, {out}/a.json\n"
        f"{talks}/b.wav → {out}/b.srt, {out}/b.json\n"
        f"{talks}/silent.wav → {out}/silent.srt, {out}/silent.json\n"
    )
    assert run("transcribe", str(talks / "b.wav"), "--dry-run") == (
        0,
        f"{talks}/b.wav → stdout\n",
        "",
    )
    assert tree(tmp_path) == before
    assert not out.parent.exists()


def test_a_look_ahead_leaves_standard_input_alone(run: Run, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert run("transcribe", "-", str(tmp_path / "pipe"), "--dry-run", "-o", "-") == (
        0,
        f"stdin → stdout\n{tmp_path}/pipe → stdout\n",
        "",
    )


def test_a_look_ahead_names_what_cannot_be_read(run: Run, talks: Path) -> None:
    (talks / "text.mp3").write_text("not audio\n")
    names = [str(talks / name) for name in ("a.wav", "text.mp3", "absent.wav")]
    code, out, err = run("transcribe", *names, "--dry-run", "-f", "srt")
    assert (code, out) == (1, f"{talks}/a.wav → {talks}/a.srt\n")
    assert err.splitlines() == [
        f"error: {talks}/text.mp3: not audio or video that can be read (it is text)",
        f"error: {talks}/absent.wav: no such file",
    ]


def test_a_look_ahead_names_folders_that_cannot_be_listed(
    run: Run, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = talks / "secret"
    secret.mkdir()
    scandir = os.scandir

    def refusing(path: Path) -> object:
        # Permissions would not keep root out.
        if path == secret:
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    code, out, err = run("transcribe", str(talks), "--dry-run", "-f", "srt")
    assert (code, err) == (1, f"error: {secret}: is a folder\n")
    assert [line.partition(" → ")[0] for line in out.splitlines()] == [
        f"{talks}/{name}.wav" for name in ("a", "b", "silent")
    ]


def test_a_prompt_file_is_not_replaced(run: Run, talks: Path) -> None:
    prompt = talks / "a.txt"
    prompt.write_text("Acme Inc.\n")
    command = ("transcribe", str(talks), "--prompt-file", str(prompt), *NO_MODEL)
    for options in ((), ("--dry-run",), ("--skip-existing",), ("-f", "srt", "-f", "text")):
        code, out, err = run(*command, *options)
        assert (code, out) == (2, "")
        assert err.startswith(
            f"error: the result of {talks}/a.wav would overwrite the input {prompt} at {prompt}\n"
        )
    assert run(*command, "-f", "srt", "--dry-run").code == 0
    assert prompt.read_text() == "Acme Inc.\n"


def test_a_look_ahead_finds_places_that_cannot_be_written(run: Run, talks: Path) -> None:
    (talks / "a.srt").mkdir()
    code, out, err = run("transcribe", str(talks), "-f", "srt", "--dry-run")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {talks}/a.srt: is a folder\n")


# How to go on


def stop_at(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a signal come before the result of the file with this name is taken."""
    finish = BatchProgress.finish

    def finish_or_stop(progress: BatchProgress, source: Source) -> None:
        finish(progress, source)
        if source.relative.name == name:
            raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(BatchProgress, "finish", finish_or_stop)


def test_old_results_are_not_taken_for_new_ones(
    talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcribe([talks], "vtt")
    stop_at("b.wav", monkeypatch)
    for name in ("b", "silent"):
        code, lines = transcribe([talks], "vtt")
        assert code == -143
        assert lines == [
            "stopped: 1 of 3 files done",
            f"hint: --skip-existing would take old results for new ones, {talks}/{name}.vtt for "
            "one: delete them first, or run the whole command again",
        ]
        (talks / f"{name}.vtt").unlink()
    _, lines = transcribe([talks], "vtt")
    assert lines[-1] == f"hint: asr transcribe {talks} --skip-existing goes on from here"


def test_an_old_result_of_what_failed_is_not_taken_for_a_new_one(talks: Path) -> None:
    transcribe([talks], "vtt")
    write_wave(talks / "b.wav", np.full(RATE, 0.99, np.float32))  # too loud for the backend
    os.utime(talks / "b.wav", (1_000_000, 1_000_000))
    num_failed, lines = transcribe([talks], "vtt")
    assert num_failed == 1
    assert lines[-1].startswith(
        f"hint: --skip-existing would take old results for new ones, {talks}/b.vtt for one: "
    )
    (talks / "b.vtt").unlink()
    _, lines = transcribe([talks], "vtt")
    assert lines[-1] == f"hint: asr transcribe {talks} --skip-existing goes on from here"


def test_results_with_losses_are_new_all_the_same(
    talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_wave(talks / "a.wav", np.full(RATE, 0.8, np.float32))
    stop_at("silent.wav", monkeypatch)
    _, lines = transcribe([talks], "vtt")
    assert lines[-2:] == [
        "stopped: 1 of 3 files done, 1 failed",
        f"hint: asr transcribe {talks} --skip-existing goes on from here",
    ]


ENVIRONMENT = {
    "ASR_MODEL": "no one's",
    "ASR_FORMAT": "srt json",
    "ASR_LANGUAGE": "Korean",
    "ASR_WINDOW": "20",
    "ASR_DEVICE": "cpu",
    "ASR_DTYPE": "float32",
    "ASR_BATCH_SIZE": "2",
}


def test_the_command_holds_what_the_environment_said(
    run: Run, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may have been said for that run alone."""
    monkeypatch.setattr(loading, "load", lambda *_: nullcontext(Scripted()))
    write_wave(talks / "b.wav", np.full(RATE, 0.99, np.float32))  # too loud for the backend
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    arguments = ["transcribe", "--no-vad", "--dtype", "auto", "-l", "ko", "--", str(talks)]
    code, _, err = run(*arguments)
    assert code == 1
    command = err.splitlines()[-1].removeprefix("hint: ").removesuffix(" goes on from here")
    assert shlex.split(command) == [
        "asr",
        *arguments[:6],
        *("--model", "no one's", "--format", "srt", "--format", "json", "--window", "20"),
        *("--device", "cpu", "--batch-size", "2", "--skip-existing"),
        *arguments[6:],
    ]
    for name in ENVIRONMENT:
        monkeypatch.delenv(name)
    code, out, _ = run(*shlex.split(command)[1:3], "--dry-run", *shlex.split(command)[3:])
    assert (code, out.splitlines()) == (
        0,
        [
            f"{talks}/a.wav → {talks}/a.srt, {talks}/a.json (exist, skipped)",
            f"{talks}/silent.wav → {talks}/silent.srt, {talks}/silent.json (exist, skipped)",
            f"{talks}/b.wav → {talks}/b.srt, {talks}/b.json",
        ],
    )


def test_formats_in_one_value_of_the_environment(
    run: Run, talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "load", lambda *_: nullcontext(Scripted()))
    write_wave(talks / "b.wav", np.full(RATE, 0.99, np.float32))
    monkeypatch.setenv("ASR_FORMAT", "srt,vtt")
    monkeypatch.setenv("ASR_MODEL", "")
    err = run("transcribe", "--no-vad", str(talks)).err
    assert err.splitlines()[-1] == (
        f"hint: asr transcribe --no-vad {talks} --format srt,vtt --skip-existing goes on from here"
    )


@pytest.mark.parametrize(
    ("arguments", "command"),
    [
        (["transcribe", "talks/", "-f", "srt"], "asr transcribe talks/ -f srt --skip-existing"),
        (["transcribe", "a b", "--overwrite"], "asr transcribe 'a b' --skip-existing"),
        (["transcribe", "--skip-existing", "x"], "asr transcribe --skip-existing x"),
        (
            ["transcribe", "--", "--overwrite", "-a"],
            "asr transcribe --skip-existing -- --overwrite -a",
        ),
    ],
)
def test_the_command_that_goes_on(arguments: list[str], command: str) -> None:
    assert command_to_go_on(arguments) == command


def test_the_command_survives_a_shell() -> None:
    names = ["it's", "$(x) `y` *", "한국어 ⚒️", "line\nfeed'", "tab\\\t7", "\x1b[1m7", "caf\udce9"]
    command = command_to_go_on(["transcribe", *names])
    assert command.isprintable()
    shell = f"asr() {{ printf '%s\\0' \"$@\"; }}; {command}"
    said = subprocess.run(["bash", "-c", shell], capture_output=True, check=True).stdout
    expected = ["transcribe", *names, "--skip-existing"]
    assert said.split(b"\0")[:-1] == [os.fsencode(argument) for argument in expected]
    assert shlex.split(command_to_go_on(["transcribe", "it's"]))[2] == "it's"
