from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from huggingface_hub import constants

from asrcli.errors import CheckpointError
from asrcli.models.checkpoints import cached_path, find_checkpoint
from tests.models.conftest import Recorder
from tests.models.servers import COMMIT, Site
from tests.models.tiny_whisper import write_huggingface


def cache(own_caches: Path, repo_id: str) -> Path:
    """A complete copy in the hub's cache."""
    repository = own_caches / "hub" / f"models--{repo_id.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(COMMIT)
    return write_huggingface(repository / "snapshots" / COMMIT)


def fail(name: str, reporter: Recorder) -> CheckpointError:
    with pytest.raises(CheckpointError) as caught:
        find_checkpoint(name, reporter=reporter)
    assert "\n" not in str(caught.value)
    return caught.value


def test_alias_from_the_cache_of_the_hub(own_caches: Path, reporter: Recorder) -> None:
    folder = cache(own_caches, "sample/whisper-base")
    checkpoint = find_checkpoint("whisper:base", reporter=reporter)
    assert (checkpoint.name, checkpoint.path) == ("whisper:base", folder)
    assert cached_path("whisper:base") == folder
    assert (reporter.notes, reporter.downloads) == ([], [])


def test_alias_from_the_own_cache(own_caches: Path, reporter: Recorder) -> None:
    folder = write_huggingface(own_caches / "asr" / "models" / "whisper-base")
    assert find_checkpoint("whisper:base", reporter=reporter).path == folder
    assert cached_path("whisper:base") == folder
    hub_copy = cache(own_caches, "sample/whisper-base")
    assert find_checkpoint("whisper:base", reporter=reporter).path == hub_copy


def test_hub_id_with_a_revision(own_caches: Path, reporter: Recorder) -> None:
    folder = cache(own_caches, "some/model")
    checkpoint = find_checkpoint(f"some/model@{COMMIT}", reporter=reporter)
    assert (checkpoint.name, checkpoint.path) == (f"some/model@{COMMIT}", folder)


def test_download_where_it_is_not_cached(hub: Site, tmp_path: Path, reporter: Recorder) -> None:
    hub.add_repository("sample/whisper-tiny", write_huggingface(tmp_path / "repository"))
    assert cached_path("whisper:tiny") is None
    checkpoint = find_checkpoint("whisper:tiny", reporter=reporter)
    assert checkpoint.name == "whisper:tiny"
    assert checkpoint.path == cached_path("whisper:tiny")
    num_asked = len(hub.asked)
    assert find_checkpoint("whisper:tiny", reporter=reporter) == checkpoint
    assert len(hub.asked) == num_asked


def test_unknown_architecture_stops_before_the_weights(
    hub: Site, tmp_path: Path, reporter: Recorder
) -> None:
    hub.add_repository("some/model", write_huggingface(tmp_path / "repository", "GPT2LMHeadModel"))
    assert str(fail("some/model", reporter)) == "architecture GPT2LMHeadModel is unknown"
    assert not any("safetensors" in line for line in hub.asked)


def test_a_repository_without_a_model(hub: Site, tmp_path: Path, reporter: Recorder) -> None:
    repository = write_huggingface(tmp_path / "repository")
    (repository / "model.safetensors").unlink()
    hub.add_repository("some/model", repository)
    assert str(fail("some/model", reporter)).endswith(f"{COMMIT}: model.safetensors is missing")


def test_folders(own_caches: Path, reporter: Recorder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(own_caches)
    monkeypatch.setenv("HOME", str(own_caches))
    write_huggingface(own_caches / "mine")
    write_huggingface(own_caches / "org" / "name")
    for name in ("mine", "./mine", "~/mine", str(own_caches / "mine"), "org/name", "mine/"):
        checkpoint = find_checkpoint(name, reporter=reporter)
        assert checkpoint.name == name
        assert (checkpoint.path / "config.json").is_file()


def test_a_folder_does_not_win_over_an_alias(
    own_caches: Path, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(own_caches)
    cached = cache(own_caches, "sample/other")
    write_huggingface(own_caches / "other")
    assert find_checkpoint("other", reporter=reporter).path == cached
    assert find_checkpoint("./other", reporter=reporter).path == Path("other")


@pytest.mark.parametrize("name", ["./absent", "/absent/model", "~/absent", "a/b/c", "~nobody/x"])
def test_absent_folders(own_caches: Path, reporter: Recorder, name: str) -> None:
    assert str(fail(name, reporter)).endswith("no such folder")


@pytest.mark.parametrize("name", ["whisper:bse", "nothing-like-it", "x" * 5000])
def test_unknown_names(own_caches: Path, reporter: Recorder, name: str) -> None:
    error = fail(name, reporter)
    assert str(error) == f"{name}: no such model and no such folder"
    close = "did you mean whisper:base or whisper?"
    assert error.hint == (close if name == "whisper:bse" else "asr models lists the short names")
    with pytest.raises(CheckpointError, match="no such model"):
        cached_path(name)


def test_an_empty_name(own_caches: Path, reporter: Recorder) -> None:
    assert str(fail(" ", reporter)) == "the name of the model is empty"


def test_absent_and_out_of_reach(own_caches: Path, reporter: Recorder) -> None:
    error = fail("some/model", reporter)
    assert str(error).startswith("some/model: not on this machine, and the hub cannot be reached (")
    assert error.hint == (
        "asr models pull some/model where the hub can be reached, or --model with a local folder"
    )
    assert str(fail("whisper:tiny", reporter)).startswith(
        "whisper:tiny (sample/whisper-tiny): not on this machine, and the hub cannot be reached"
    )


def test_half_a_copy_is_described(own_caches: Path, reporter: Recorder) -> None:
    folder = cache(own_caches, "some/model")
    (folder / "model.safetensors").unlink()
    assert cached_path("some/model") is None
    assert str(fail("some/model", reporter)).endswith(
        f"; of the copy in the cache, {folder}: model.safetensors is missing"
    )


def test_half_a_copy_is_completed(hub: Site, own_caches: Path, reporter: Recorder) -> None:
    hub.add_repository("some/model", write_huggingface(own_caches / "repository"))
    folder = find_checkpoint("some/model", reporter=reporter).path
    weights = folder / "model.safetensors"
    size = weights.stat().st_size
    weights.unlink()
    shutil.rmtree(folder.parents[1] / "blobs")
    assert find_checkpoint("some/model", reporter=reporter).path == folder
    assert weights.stat().st_size == size


def test_plain_whisper_on_a_cpu(own_caches: Path, reporter: Recorder) -> None:
    cache(own_caches, "sample/whisper-turbo")
    cache(own_caches, "sample/whisper-base")
    assert find_checkpoint("whisper", reporter=reporter).name == "whisper:base"
    assert not reporter.notes


def test_plain_whisper_on_a_gpu(own_caches: Path, reporter: Recorder) -> None:
    cache(own_caches, "sample/whisper-turbo")
    assert find_checkpoint("whisper", gpu=lambda: True, reporter=reporter).name == "whisper:turbo"
    assert not reporter.notes


def test_plain_whisper_on_a_gpu_is_fetched(hub: Site, tmp_path: Path, reporter: Recorder) -> None:
    hub.add_repository("sample/whisper-turbo", write_huggingface(tmp_path / "repository"))
    assert find_checkpoint("whisper", gpu=True, reporter=reporter).name == "whisper:turbo"
    assert [name for name, _ in reporter.downloads] == ["sample/whisper-turbo"]


def test_plain_whisper_on_a_gpu_falls_back_to_base(own_caches: Path, reporter: Recorder) -> None:
    cache(own_caches, "sample/whisper-base")
    assert find_checkpoint("whisper", gpu=True, reporter=reporter).name == "whisper:base"
    (note,) = reporter.notes
    assert note.startswith("whisper:base instead of whisper:turbo (not on this machine, and the")


def test_the_device_is_not_asked_where_it_does_not_matter(
    own_caches: Path, reporter: Recorder
) -> None:
    def ask() -> bool:
        raise AssertionError

    cache(own_caches, "sample/whisper-base")
    assert find_checkpoint("whisper:base", gpu=ask, reporter=reporter).name == "whisper:base"


def test_cached_path_of_a_name_that_depends_on_the_device(own_caches: Path) -> None:
    assert cached_path("whisper") is None
    base = cache(own_caches, "sample/whisper-base")
    assert cached_path("whisper") == base
    assert cached_path("whisper") != cache(own_caches, "sample/whisper-turbo")


def test_offline_forbids_wheels_too(
    own_caches: Path, reporter: Recorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert str(fail("whisper:base", reporter)) == (
        "whisper:base (sample/whisper-base): "
        "not on this machine, and HF_HUB_OFFLINE forbids the network"
    )
    assert reporter.downloads == []
