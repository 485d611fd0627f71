from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from asrcli.cli.prompts import choose_prompt
from asrcli.errors import UsageError
from asrcli.models.registry import families
from tests.cli.conftest import Run
from tests.cli.runs import asr, environment, speech, write_wave

HEAVY = ("torch", "transformers", "librosa", "av", "numpy", "huggingface_hub.hf_api")
OPTIONS = """
    -m --model -f --format -o --output --skip-existing --overwrite --dry-run -l --language
    --multilingual --task --prompt --prompt-file --hotwords --condition-on-previous-text
    --timestamps --audio-context --window --no-vad --no-fallback --temperature --beam-size --seed
    --pattern --clip --track --raw --sampling-rate --channels --device --dtype --batch-size
    -q --quiet -v --verbose -h --help
"""


@pytest.fixture
def wave(tmp_path: Path) -> str:
    return str(write_wave(tmp_path / "a.wav", speech()))


def test_help_lists_every_option(run: Run) -> None:
    code, out, err = run("transcribe", "--help")
    assert (code, err) == (0, "")
    listed = re.findall(r"(?<![\w-])--?[a-z][a-z-]*", out.split("Options:")[1])
    assert [name for name in listed if name in OPTIONS.split()] == OPTIONS.split()
    assert set(listed) <= set(OPTIONS.split()), "an option that this list lacks"
    for name in ("MODEL", "FORMAT", "LANGUAGE", "WINDOW", "DEVICE", "DTYPE", "BATCH_SIZE"):
        assert f"ASR_{name}" in out


def test_no_arguments_show_the_help(run: Run) -> None:
    code, out, err = run()
    assert (code, out) == (2, "")
    assert err.startswith("Usage: ")
    assert "transcribe" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["transcribe"], "missing argument 'INPUT'"),
        (["transcribe", "--no-such-flag", "WAVE"], "no such option: --no-such-flag"),
        (["transscribe"], "no such command 'transscribe'"),
        (["transcribe", "WAVE", "--batch-size", "0"], "invalid value for '--batch-size'"),
        (["transcribe", "WAVE", "--temperature", "warm"], "invalid value for '--temperature'"),
        (["transcribe", "WAVE", "--temperature", "3"], "temperature 3 is not between 0 and 2"),
        (["transcribe", "WAVE", "--beam-size", "0"], "beam-size 0 is not between 1 and 8"),
        (["transcribe", "WAVE", "--window", "0.5"], "window 0.5 is not a length of 1 s or more"),
        (["transcribe", "WAVE", "--window", "-30"], "window -30 is not a length of 1 s or more"),
        (["transcribe", "WAVE", "--window", "nan"], "window nan is not a length of 1 s or more"),
        (["transcribe", "WAVE", "--window", "inf"], "window inf is not a length of 1 s or more"),
        (["transcribe", "WAVE", "--window", "short"], "invalid value for '--window'"),
        (["transcribe", "WAVE", "--hotwords"], "option '--hotwords' requires an argument"),
        (["transcribe", "WAVE", "-f", "docx"], "format 'docx' is unknown"),
        (["transcribe", "WAVE", "-l", "xx"], "language 'xx' is unknown"),
        (["transcribe", "WAVE", "-l", ""], "language '' is unknown"),
        (["transcribe", "WAVE", "--task", "sing"], "task 'sing' is unknown"),
        (["transcribe", "WAVE", "--timestamps", "all"], "timestamps 'all' is unknown"),
        (["transcribe", "WAVE", "--device", "tpu"], "device 'tpu' is unknown"),
        (["transcribe", "WAVE", "--device", "cuda:x"], "device 'cuda:x' is unknown"),
        (["transcribe", "WAVE", "--dtype", "int3"], "dtype 'int3' is unknown"),
        (["transcribe", "WAVE", "--raw", "s99"], "raw format 's99' is unknown"),
        (["transcribe", "WAVE", "--channels", "2"], "--sampling-rate and --channels describe raw"),
        (
            ["transcribe", "WAVE", "-f", "srt", "-f", "vtt", "-o", "-"],
            "standard output cannot hold",
        ),
        (["transcribe", "-", "-f", "srt", "-f", "vtt"], "standard input has no folder"),
        (
            ["transcribe", "WAVE", "--skip-existing", "--overwrite"],
            "--skip-existing leaves results",
        ),
        (["transcribe", "WAVE", "--skip-existing"], "the results go to standard output"),
        (["transcribe", "WAVE", "--clip", "1:99-2"], "'1:99' is no time"),
        (["transcribe", "WAVE", "--track", "0"], "invalid value for '--track'"),
        (["transcribe", "WAVE", "--raw", "s16le", "--track", "1"], "raw PCM has none"),
        (["transcribe", "WAVE", "--multilingual", "-l", "de"], "and a language is given"),
        (["transcribe", "WAVE", "--prompt", "a", "--prompt-file", "WAVE"], "both set the prompt"),
        (["transcribe", "WAVE", "--prompt-file", "-"], "--prompt-file takes the name of a file"),
        (["transcribe", "WAVE", "--prompt-file", "no.txt"], "prompt file no.txt: no such file"),
        (["transcribe", "WAVE", "--prompt-file", "FOLDER"], "empty: is a directory"),
        (["transcribe", "WAVE", "--prompt-file", "WAVE"], "a.wav: is not UTF-8 text"),
        (["transcribe", "FOLDER"], "no audio or video in this folder"),
        (["transcribe", ""], "an input has an empty name"),
    ],
)
def test_wrong_usage(
    run: Run, wave: str, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "empty").mkdir()
    places = {"WAVE": wave, "FOLDER": str(tmp_path / "empty")}
    code, out, err = run(*(places.get(argument, argument) for argument in arguments))
    assert (code, out) == (2, "")
    first, *others = err.splitlines()
    assert first.startswith("error: ")
    assert message in first
    assert all(line.startswith("hint: ") for line in others)
    assert len(others) <= 1
    assert not list(tmp_path.glob("*.txt"))


def test_a_window_can_be_set_once_and_for_all(
    run: Run, wave: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASR_WINDOW", "0.2")
    code, out, err = run("transcribe", wave)
    assert (code, out, err) == (2, "", "error: window 0.2 is not a length of 1 s or more\n")
    code, _, err = run("transcribe", wave, "--window", "20", "-m", "no/such-model")
    assert (code, "window" in err) == (1, False)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"Acme Inc.\n", "Acme Inc."),
        (b"\xef\xbb\xbf\xea\xb0\x80\r\nb \n", "가\r\nb"),
        (b"", ""),
        (b" \n", ""),
    ],
)
def test_a_prompt_from_a_file(tmp_path: Path, content: bytes, text: str) -> None:
    file = tmp_path / "prompt.txt"
    file.write_bytes(content)
    assert choose_prompt(None, str(file)) == text
    assert choose_prompt("given", None) == "given"
    assert choose_prompt(None, None) is None


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("가나".encode("utf-16"), "is not UTF-8 text"),
        (b"a\0b", "is not text"),
        (b"a" * 1_000_001, "is too large for a prompt"),
    ],
)
def test_a_prompt_file_that_is_no_text(tmp_path: Path, content: bytes, complaint: str) -> None:
    file = tmp_path / "prompt\n.txt"
    file.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        choose_prompt(None, str(file))
    assert str(caught.value) == f"prompt file {tmp_path}/prompt\\n.txt: {complaint}"


def test_an_unknown_language_lists_the_choices(run: Run, wave: str) -> None:
    assert " ko, " in run("transcribe", wave, "-l", "xx").err


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("nosuch.wav", None, "no such file"),
        ("zero.wav", b"", "empty file"),
        ("text.mp3", b"not audio\n", "not audio or video that can be read (it is text)"),
        (
            "cut.wav",
            b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00",
            "damaged WAV header: no format and no audio data",
        ),
    ],
)
def test_inputs_that_cannot_be_read_need_no_model(
    run: Run, tmp_path: Path, name: str, content: bytes | None, complaint: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    code, out, err = run("transcribe", str(tmp_path / name), "-m", "no/such-model")
    assert (code, out) == (1, "")
    assert err.splitlines()[0] == f"error: {tmp_path / name}: {complaint}"


def test_each_of_many_unreadable_inputs_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "zero.wav").touch()
    names = [str(tmp_path / name) for name in ("zero.wav", "absent.wav")]
    code, _, err = run("transcribe", *names, "-o", str(tmp_path / "out"), "-m", "no/such-model")
    assert code == 1
    assert err.splitlines() == [
        f"error: {names[0]}: empty file",
        f"error: {names[1]}: no such file",
    ]
    code, _, err = run("transcribe", "n" * 300, "-m", "no/such-model")
    assert (code, err) == (1, f"error: {'n' * 300}: file name too long\n")


def test_clashing_results_are_refused(run: Run, tmp_path: Path) -> None:
    for name in ("x/a.wav", "y/a.wav"):
        write_wave(tmp_path / name, speech())
    inputs = [str(tmp_path / folder / "a.wav") for folder in "xy"]
    code, _, err = run("transcribe", *inputs, "-o", str(tmp_path / "out"))
    assert code == 2
    assert f"{inputs[0]} and {inputs[1]} would both be written to" in err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("output", "complaint"),
    [("/proc/x", "cannot be created"), ("a.wav", "is a file, not a folder for results")],
)
def test_a_bad_place_is_found_before_the_model_loads(
    run: Run, wave: str, tmp_path: Path, output: str, complaint: str
) -> None:
    code, _, err = run("transcribe", wave, "-o", str(tmp_path / output), "-m", "no/such-model")
    assert code == 1
    assert complaint in err
    assert "model" not in err


def test_a_missing_model_is_told_without_torch(wave: str, tmp_path: Path) -> None:
    for name, complaint in (
        ("whisper:huge", "whisper:huge: no such model and no such folder"),
        (str(tmp_path / "nowhere"), f"{tmp_path / 'nowhere'}: no such folder"),
        ("no/such-model", "no/such-model: not on this machine, and HF_HUB_OFFLINE forbids"),
    ):
        start = time.monotonic()
        outcome = asr("transcribe", wave, "-m", name, HF_HUB_OFFLINE="1")
        assert time.monotonic() - start < 5
        assert (outcome.code, outcome.out) == (1, "")
        assert outcome.err.startswith(f"error: {complaint}")
        assert len(outcome.err.splitlines()) <= 2


def test_an_unknown_architecture_is_named_with_its_folder(
    run: Run, wave: str, tmp_path: Path
) -> None:
    from tests.models.tiny_whisper import write_huggingface

    folder = write_huggingface(tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["FooForBar"]
    (folder / "config.json").write_text(json.dumps(config))
    code, _, err = run("transcribe", wave, "-m", str(folder))
    assert code == 1
    error, hint = err.splitlines()
    assert error == f"error: {folder}: architecture FooForBar is unknown"
    known = hint.removeprefix("hint: known: ").split(", ")
    assert known == [name for family in families().values() for name in family.architectures]
    assert "WhisperForConditionalGeneration" in known


def test_empty_and_closed_standard_input() -> None:
    outcome = asr("transcribe", "-", data=b"")
    assert outcome == (1, "", "error: stdin: empty input\n")
    command = f"{sys.executable} -m asrcli transcribe - <&-"
    closed = subprocess.run(command, shell=True, capture_output=True, env=environment())
    assert (closed.returncode, closed.stdout) == (1, b"")
    assert closed.stderr == b"error: stdin: is closed\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_standard_input_that_is_a_terminal() -> None:
    import pty

    controller, terminal = pty.openpty()
    process = subprocess.run(
        [sys.executable, "-m", "asrcli", "transcribe", "-"],
        stdin=terminal,
        capture_output=True,
        env=environment(),
        timeout=60,
    )
    os.close(terminal)
    os.close(controller)
    assert process.returncode == 2
    assert process.stderr.startswith(b"error: standard input is a terminal")


@pytest.mark.parametrize(
    "arguments", [["--help"], ["models"], ["transcribe", "--help"], ["transcribe", "x", "-l", "xx"]]
)
def test_quick_answers_import_nothing_heavy(arguments: list[str]) -> None:
    program = (
        "import sys, asrcli.cli\n"
        f"sys.argv[1:] = {arguments!r}\n"
        "try: asrcli.cli.main()\n"
        "finally:\n"
        f"    print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    start = time.monotonic()
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment()
    )
    assert time.monotonic() - start < 2.0  # a fraction of it on an idle machine
    assert result.stderr.splitlines()[-1] == "[]"
    assert "Traceback" not in result.stderr


def test_a_reader_that_leaves_ends_quietly() -> None:
    command = f"{sys.executable} -m asrcli models | true"
    result = subprocess.run(command, shell=True, capture_output=True, env=environment())
    assert (result.stdout, result.stderr) == (b"", b"")
