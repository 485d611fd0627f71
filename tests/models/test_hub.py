from __future__ import annotations

import errno
import logging
import os
import socket
import subprocess
import sys
import time
import warnings
from pathlib import Path

import pytest
from huggingface_hub import constants

from asrcli.errors import CheckpointError
from asrcli.models import hub_client
from asrcli.models.folders import is_whole
from asrcli.models.hub import Hub, cached_snapshot, choose_weights
from asrcli.models.hub_client import HubId, HubUnreachableError
from tests.models.conftest import Recorder
from tests.models.servers import COMMIT, Answer, Site
from tests.models.tiny_whisper import write_ctranslate2, write_huggingface

SAMPLE = HubId("sample/model")


def accept(folder: Path) -> None:
    assert (folder / "config.json").is_file()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("org/name", HubId("org/name", "main")),
        ("org/name-1.5@refs/pr/3", HubId("org/name-1.5", "refs/pr/3")),
        ("org/name@", None),
        ("name", None),
        ("a/b/c", None),
        ("org/na me", None),
    ],
)
def test_hub_id(text: str, expected: HubId | None) -> None:
    assert HubId.parse(text) == expected
    if expected is not None:
        assert str(expected) == text


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["model.safetensors", "pytorch_model.bin", "tf_model.h5"], ["model.safetensors"]),
        (["model.safetensors", "model.fp32-00001-of-00002.safetensors"], ["model.safetensors"]),
        (
            ["model-00002-of-00002.safetensors", "model-00001-of-00002.safetensors", "model.bin"],
            ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"],
        ),
        (["pytorch_model.bin", "flax_model.msgpack", "onnx/model.onnx"], ["pytorch_model.bin"]),
        (["pytorch_model-00001-of-00001.bin"], ["pytorch_model-00001-of-00001.bin"]),
        (["model.bin", "vocabulary.json"], ["model.bin"]),
        (["adapter_model.safetensors"], []),
    ],
)
def test_one_copy_of_the_weights_is_chosen(names: list[str], chosen: list[str]) -> None:
    assert choose_weights(names) == chosen


def test_download_takes_what_is_needed(hub: Site, tmp_path: Path, reporter: Recorder) -> None:
    repository = write_huggingface(tmp_path / "repository")
    needed = sum(path.stat().st_size for path in repository.iterdir())
    for name in ("pytorch_model.bin", "flax_model.msgpack", "README.md", "onnx/config.json"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_bytes(bytes(5000))
    hub.add_repository("sample/model", repository)
    assert cached_snapshot(SAMPLE) is None
    folder = Hub(reporter).download(SAMPLE, accept)
    assert sorted(path.name for path in folder.iterdir()) == [
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert is_whole(folder)
    assert cached_snapshot(SAMPLE) == folder
    assert cached_snapshot(HubId("sample/model", COMMIT)) == folder
    assert cached_snapshot(HubId("sample/model", "v2")) is None
    assert reporter.downloads == [("sample/model", needed)]
    assert reporter.num_bytes == needed


def test_download_of_ctranslate2(hub: Site, tmp_path: Path, reporter: Recorder) -> None:
    write_ctranslate2(tmp_path / "repository")
    hub.add_repository("sample/model", tmp_path / "repository")
    assert is_whole(Hub(reporter).download(SAMPLE, accept))


def test_nothing_is_printed(
    hub: Site, tmp_path: Path, reporter: Recorder, capfd: pytest.CaptureFixture[str]
) -> None:
    hub.add_repository("sample/model", write_huggingface(tmp_path / "repository"))
    with warnings.catch_warnings(record=True) as caught:
        Hub(reporter).download(SAMPLE, accept)
    assert capfd.readouterr() == ("", "")
    assert caught == []
    assert logging.getLogger("huggingface_hub").level != logging.CRITICAL


def test_a_refused_configuration_saves_the_weights(
    hub: Site, tmp_path: Path, reporter: Recorder
) -> None:
    hub.add_repository("sample/model", write_huggingface(tmp_path / "repository"))

    def refuse(folder: Path) -> None:
        raise CheckpointError("not this one")

    with pytest.raises(CheckpointError, match="not this one"):
        Hub(reporter).download(SAMPLE, refuse)
    assert not any("safetensors" in line for line in hub.asked)


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (404, "RepoNotFound", "sample/model: no such model on the hub"),
        (401, "", "sample/model: the hub knows no such model, or does not show it"),
        (403, "GatedRepo", "sample/model: the hub asks for a licence to be accepted"),
        (404, "RevisionNotFound", "sample/model: no revision main on the hub"),
    ],
)
def test_what_the_hub_refuses(
    hub: Site, reporter: Recorder, status: int, code: str, expected: str
) -> None:
    headers = {"X-Error-Code": code} if code else {}
    answer = Answer(b"", headers=headers, status=status)
    hub.answers["/api/models/sample/model/revision/main"] = answer
    with pytest.raises(CheckpointError) as caught:
        Hub(reporter).download(SAMPLE, accept)
    assert str(caught.value) == expected
    assert not isinstance(caught.value, HubUnreachableError)


def test_a_site_that_is_no_hub(hub: Site, reporter: Recorder) -> None:
    hub.answers["/api/models/sample/model/revision/main"] = Answer(b"", status=404)
    with pytest.raises(HubUnreachableError, match=r"the hub answers with an error \(HTTP 404\)"):
        Hub(reporter).download(SAMPLE, accept)


def test_a_closed_port_is_noticed_at_once(own_caches: Path, reporter: Recorder) -> None:
    start = time.perf_counter()
    with pytest.raises(HubUnreachableError, match="sample/model: not on this machine, and the hub"):
        Hub(reporter).require(SAMPLE)
    assert time.perf_counter() - start < 2


def test_silence_is_waited_for_once(
    own_caches: Path, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_client, "PROBE_TIMEOUT", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as listener:  # it takes calls and says nothing
        monkeypatch.setattr(constants, "ENDPOINT", f"http://127.0.0.1:{listener.getsockname()[1]}")
        hub = Hub(reporter)
        start = time.perf_counter()
        for _ in range(3):
            with pytest.raises(HubUnreachableError, match="cannot be reached"):
                hub.require(SAMPLE)
    assert 0.4 < time.perf_counter() - start < 1.4


def test_offline_asks_nobody(
    hub: Site, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubUnreachableError, match="HF_HUB_OFFLINE forbids the network"):
        Hub(reporter).download(SAMPLE, accept)
    assert hub.asked == []


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES])
def test_a_full_or_closed_disk_is_no_fault_of_the_hub(number: int) -> None:
    error = OSError(number, os.strerror(number), "/cache/blobs/x")
    explained = hub_client.transfer_error(SAMPLE, error)
    assert not isinstance(explained, HubUnreachableError)
    assert str(explained) == (
        f"sample/model: cannot be stored: {os.strerror(number)} (/cache/blobs/x)"
    )


def test_a_killed_download_leaves_nothing_that_looks_whole(
    site: Site, tmp_path: Path, environment: dict[str, str]
) -> None:
    """A process is killed amid the weights; the next one goes on and ends."""
    repository = write_huggingface(tmp_path / "repository", "OtherForConditionalGeneration")
    site.add_repository("sample/other", repository)
    weights = f"/sample/other/resolve/{COMMIT}/model.safetensors"
    site.stalled.add(weights)
    program = [sys.executable, "-c", PULL, "other"]
    environment = environment | {"HF_ENDPOINT": site.url}
    first = subprocess.Popen(program, env=environment, stdout=subprocess.PIPE)
    assert site.half_sent.wait(30)
    first.kill()
    first.communicate()
    (snapshot,) = (tmp_path / "hf" / "hub").glob("models--*/snapshots/*")
    assert (snapshot / "config.json").is_file()
    assert not is_whole(snapshot)
    site.stalled.clear()
    site.released.set()
    second = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert second.stderr == ""
    assert second.stdout == f"{snapshot}\n"
    assert is_whole(snapshot)


PULL = """
import sys
from asrcli.models.checkpoints import find_checkpoint
from tests.models.conftest import Recorder
print(find_checkpoint(sys.argv[1], reporter=Recorder()).path)
"""
