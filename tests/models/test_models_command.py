from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from asrcli.cli.models import app
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
        "model\tfamily\tsize\tlanguages\ttimes\tfolder",
        "other\tother\t1.2B\t99\tnone\t-",
        "whisper:tiny\twhisper\t1.2B\tEnglish\tsegments\t-",
        f"whisper:base\twhisper\t1.2B\t99\tsegments\t{folder}",
        "whisper:turbo\twhisper\t1.2B\t99\tsegments\t-",
    ]


def test_list_in_json(own_caches: Path) -> None:
    folder = cache_base(own_caches)
    rows = json.loads(invoke("--json"))
    assert len(rows) == 4
    assert rows[2] == {
        "name": "whisper:base",
        "family": "whisper",
        "hub_id": "sample/whisper-base",
        "num_parameters": 1_234_567_890,
        "languages": 99,
        "times": "segments",
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
    assert row == ["other", "other", "1.2B", "99", "none", "-"]


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
