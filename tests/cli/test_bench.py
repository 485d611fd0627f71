"""``asr bench`` as people run it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.cli.runs import SAMPLES, asr


def test_the_built_in_clip(base_checkpoint: object) -> None:
    code, out, err = asr("bench", "--rounds", "1", "-m", "whisper:base", "-f", "json")
    assert code == 0, err
    values = json.loads(out)
    assert values["num_files"] == 16
    assert values["median"]["duration"] == pytest.approx(16 * 11.68, abs=0.1)
    assert values["median"]["speed"] > 1
    assert values["median"]["share_of_limit"] > 0
    assert err.startswith("whisper:base · ")


def test_a_table_of_own_files(base_checkpoint: object) -> None:
    code, out, _ = asr(
        "bench",
        SAMPLES / "english-slt.flac",
        "--rounds",
        "2",
        "-l",
        "en",
        "-q",
        "-m",
        "whisper:base",
    )
    assert code == 0
    lines = [line.split() for line in out.splitlines()]
    assert ["audio", "1", "files,"] in [line[:3] for line in lines]
    assert [line[0] for line in lines if line][-8:] == [
        "audio", "voice", "features", "encoder", "prefill", "decode", "sampling", "other",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--format", "srt"], 2, "format 'srt' is unknown"),
        (["--compare", "nobody"], 2, "'nobody' cannot be compared with"),
        (["--compare-model", "base"], 2, "--compare-model needs --compare"),
        (["--rounds", "0"], 2, "invalid value for '--rounds'"),
        (["-"], 2, "standard input cannot be read several times"),
        (["nothing.wav"], 1, "nothing.wav: no such file"),
    ],
)
def test_refusals(run: Run, arguments: list[str], code: int, message: str) -> None:
    found, out, err = run("bench", *arguments)
    assert (found, out) == (code, "")
    assert err.startswith(f"error: {message}")
    assert "Traceback" not in err


def test_a_file_that_is_no_audio(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "notes.wav"
    path.write_text("nothing to hear")
    code, out, err = run("bench", str(path))
    assert (code, out) == (1, "")
    assert err.count("error: ") == 1
    assert "notes.wav" in err
