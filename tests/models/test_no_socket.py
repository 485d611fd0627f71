"""What is on this machine is found without a socket (and without torch)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.models.servers import COMMIT
from tests.models.tiny_whisper import write_ctranslate2, write_huggingface

PROGRAM = """
import json, socket, sys

def refuse(*arguments, **settings):
    raise AssertionError(f"network: {arguments}")

socket.socket.connect = socket.socket.connect_ex = socket.getaddrinfo = refuse
from asrcli.models.checkpoints import cached_path, find_checkpoint
from tests.models.conftest import Recorder

checkpoints = [find_checkpoint(name, reporter=Recorder()) for name in sys.argv[1:]]
print(cached_path("other"))
assert "torch" not in sys.modules and "huggingface_hub.file_download" not in sys.modules
from asrcli.models.files import read_model_files
for checkpoint in checkpoints:
    print(checkpoint.path, len(read_model_files(checkpoint).tensors))
"""


@pytest.mark.parametrize("switch", [{}, {"HF_HUB_OFFLINE": "1"}])
def test_cached(tmp_path: Path, environment: dict[str, str], switch: dict[str, str]) -> None:
    repository = tmp_path / "hf" / "hub" / "models--sample--other"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    cached = write_huggingface(repository / "snapshots" / COMMIT)
    local = write_huggingface(tmp_path / "local")
    write_ctranslate2(tmp_path / "converted")
    names = ["other", "sample/other", str(local), str(tmp_path / "converted")]
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, *names],
        env=environment | switch,
        capture_output=True,
        text=True,
    )
    assert result.stderr == ""
    assert result.stdout.splitlines() == [
        str(cached),
        f"{cached} 2",
        f"{cached} 2",
        f"{local} 2",
        f"{tmp_path / 'converted'} 74",
    ]
