from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asrcli.cli.models import _length, _print_table, _rows, app
from asrcli.errors import CheckpointError
from tests.models.servers import COMMIT, Site
from tests.models.tiny_whisper import write_huggingface


def invoke(*arguments: str) -> str:
    result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def cache_base(own_caches: Path) -> Path:
    return write_huggingface(own_caches / "asr" / "models" / "whisper-base")


def test_list_in_lines(own_caches: Path) -> None:
    folder = cache_base(own_caches)
    assert invoke().splitlines() == [
        "model\tfamily\tsize\tlanguages\tlanguage choice\thotwords\ttimes\tstreaming\t"
        "longest window\tfolder",
        "other\tother\t1.2B\t99\tno\tno\tnone\tno\t20 min\t-",
        "whisper:tiny\twhisper\t1.2B\tEnglish\tyes\tyes\tsegments\tyes\t30 s\t-",
        f"whisper:base\twhisper\t1.2B\t99\tyes\tyes\tsegments\tyes\t30 s\t{folder}",
        "whisper:turbo\twhisper\t1.2B\t99\tyes\tyes\tsegments\tyes\t30 s\t-",
    ]


def test_first_of_each_line_is_the_name(own_caches: Path) -> None:
    """As ``asr models | cut -f1`` gives it."""
    names = [line.split("\t")[0] for line in invoke().splitlines()]
    assert names == ["model", "other", "whisper:tiny", "whisper:base", "whisper:turbo"]


@pytest.mark.parametrize(
    ("duration", "expected"),
    [(30.0, "30 s"), (7.5, "7.5 s"), (90.0, "90 s"), (120.0, "2 min"), (630.0, "10.5 min"),
     (1200.0, "20 min")],
)  # fmt: skip
def test_lengths_as_people_say_them(duration: float, expected: str) -> None:
    assert _length(duration) == expected


def test_list_in_json(own_caches: Path) -> None:
    folder = cache_base(own_caches)
    rows = json.loads(invoke("--json"))
    assert len(rows) == 4
    abilities = ("language_choice", "hotwords", "times", "streaming", "max_duration")
    assert [rows[0][name] for name in abilities] == [False, False, "none", False, 1200.0]
    assert rows[2] == {
        "name": "whisper:base",
        "family": "whisper",
        "hub_id": "sample/whisper-base",
        "num_parameters": 1_234_567_890,
        "languages": 99,
        "language_choice": True,
        "hotwords": True,
        "times": "segments",
        "streaming": True,
        "max_duration": 30.0,
        "path": str(folder),
    }


def test_path(own_caches: Path) -> None:
    folder = cache_base(own_caches)
    assert invoke("path", "whisper:base") == f"{folder}\n"


def test_path_of_what_is_not_here(own_caches: Path) -> None:
    with pytest.raises(CheckpointError, match="whisper:base: not on this machine") as caught:
        invoke("path", "whisper:base")
    assert caught.value.hint == "asr models pull whisper:base"


def test_pull(hub: Site, own_caches: Path) -> None:
    hub.add_repository("some/model", write_huggingface(own_caches / "repository"))
    folder = own_caches / "hub" / "models--some--model" / "snapshots" / COMMIT
    assert invoke("pull", "some/model") == f"{folder}\n"
    num_asked = len(hub.asked)
    assert invoke("pull", "some/model") == f"{folder}\n"
    assert len(hub.asked) == num_asked


@pytest.mark.parametrize(
    ("width", "columns"),
    [
        (122, "model family size languages choice hotwords times streaming window folder"),
        (121, "model size languages choice hotwords times streaming window folder"),
        (100, "model size languages choice hotwords times window folder"),
        (89, "model size languages hotwords times window folder"),
        (80, "model size languages times window folder"),
        (67, "model size languages window folder"),
        (57, "model size languages folder"),
        (56, "model size folder"),
        (30, "model size folder"),
    ],
)
def test_table_fits_the_terminal(
    own_caches: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    width: int,
    columns: str,
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("ASR_CACHE", str(own_caches / "a-folder-with-a-name" / "of-some-length"))
    folder = write_huggingface(
        own_caches / "a-folder-with-a-name/of-some-length/models/whisper-base"
    )
    _print_table(_rows())
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= width
    above, heading = lines[:2] if "choice" in columns or "window" in columns else ("", lines[0])
    assert heading.split() == columns.split()
    assert ("language" in above.split()) == ("choice" in columns)
    column = heading.index("folder")
    assert str(folder) in "".join(line[column:].strip() for line in lines)
    (row,) = [line.split() for line in lines if line.startswith("other")]
    assert row[-1] == "-"
    assert len(row) == len(columns.split()) + ("window" in columns)  # "20 min" is of two words


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_list_on_a_terminal(environment: dict[str, str]) -> None:
    import pty

    folder = Path(environment["ASR_CACHE"]) / "models" / "other"
    controller, terminal = pty.openpty()
    program = "from asrcli.cli.models import app; app()"
    environment = environment | {"COLUMNS": "300", "NO_COLOR": "1", "TERM": "xterm"}
    subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=terminal, check=True, timeout=60
    )
    os.close(terminal)
    text = os.read(controller, 100_000).decode()
    os.close(controller)
    assert not folder.exists()
    (row,) = [line.split() for line in text.splitlines() if line.lstrip().startswith("other")]
    assert row == ["other", "other", "1.2B", "99", "no", "no", "none", "no", "20", "min", "-"]


HEAVY = ("torch", "transformers", "librosa", "av", "numpy", "safetensors")


@pytest.mark.parametrize("arguments", [[], ["--json"], ["path", "sample/absent"]])
def test_answers_without_heavy_modules(environment: dict[str, str], arguments: list[str]) -> None:
    program = (
        "import sys\n"
        "from asrcli.cli.models import app\n"
        "try: app(standalone_mode=False)\n"
        "except Exception as error: print(error)\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules])\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    *lines, loaded = result.stdout.splitlines()
    assert lines
    assert loaded == "[]"
    assert result.stderr == ""
