from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import torch

from asrcli.errors import CheckpointError
from asrcli.models.folders import check_folder, is_whole
from tests.models.tiny_whisper import model_bin, write_ctranslate2, write_huggingface

SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def shard(folder: Path) -> Path:
    """The same checkpoint, its weights as two shards."""
    index = {"weight_map": {"a": SHARDS[0], "b": SHARDS[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    for name in SHARDS:
        (folder / name).write_bytes((folder / "model.safetensors").read_bytes())
    (folder / "model.safetensors").unlink()
    return folder


def message(folder: Path) -> str:
    with pytest.raises(CheckpointError) as caught:
        check_folder(folder)
    assert not is_whole(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_huggingface(tmp_path: Path) -> None:
    checkpoint = check_folder(write_huggingface(tmp_path, "SomeModel"), "some")
    assert checkpoint.name == "some"
    assert checkpoint.path == tmp_path
    assert checkpoint.format == "huggingface"
    assert checkpoint.architecture == "SomeModel"
    assert is_whole(tmp_path)


def test_huggingface_in_shards(tmp_path: Path) -> None:
    assert check_folder(shard(write_huggingface(tmp_path))).format == "huggingface"


def test_ctranslate2_states_its_architecture_in_the_weights(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    checkpoint = check_folder(tmp_path)
    assert checkpoint.name == str(tmp_path)
    assert checkpoint.format == "ctranslate2"
    assert checkpoint.architecture == "WhisperForConditionalGeneration"


def test_both_formats_in_one_folder_go_by_the_configuration(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    settings = (tmp_path / "config.json").read_text()
    write_huggingface(tmp_path)
    assert check_folder(tmp_path).format == "huggingface"
    (tmp_path / "config.json").write_text(settings)
    assert check_folder(tmp_path).format == "ctranslate2"


def test_vocabulary_and_merges_stand_for_tokenizer_json(tmp_path: Path) -> None:
    write_huggingface(tmp_path)
    (tmp_path / "tokenizer.json").rename(tmp_path / "vocab.json")
    assert message(tmp_path) == f"{tmp_path}: tokenizer.json is missing"
    (tmp_path / "merges.txt").write_text("#version: 0.2\n")
    assert is_whole(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (write_huggingface(tmp_path) / name).unlink()
    assert message(tmp_path) == f"{tmp_path}: {name} is missing"


def test_all_that_is_missing_is_named(tmp_path: Path) -> None:
    everything = "config.json, model.safetensors and tokenizer.json are missing"
    assert message(tmp_path) == f"{tmp_path}: {everything}"


def test_missing_shards_are_named(tmp_path: Path) -> None:
    folder = shard(write_huggingface(tmp_path))
    (folder / SHARDS[1]).unlink()
    assert message(folder) == f"{folder}: {SHARDS[1]} is missing"
    (folder / SHARDS[0]).unlink()
    assert message(folder) == f"{folder}: {SHARDS[0]} and {SHARDS[1]} are missing"


@pytest.mark.parametrize("keep", [0, 5, 40, -1])
def test_weights_cut_short_are_incomplete(tmp_path: Path, keep: int) -> None:
    path = write_huggingface(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    assert message(tmp_path) == f"{path} is incomplete"


def test_a_shard_cut_short_is_incomplete(tmp_path: Path) -> None:
    path = shard(write_huggingface(tmp_path)) / SHARDS[1]
    path.write_bytes(path.read_bytes()[:-3])
    assert message(tmp_path) == f"{path} is incomplete"


@pytest.mark.parametrize("keep", [0, 1, 100, -1])
def test_a_pickle_cut_short_is_incomplete(tmp_path: Path, keep: int) -> None:
    (write_huggingface(tmp_path) / "model.safetensors").unlink()
    path = tmp_path / "pytorch_model.bin"
    torch.save({"a": torch.ones(3)}, path)
    assert is_whole(tmp_path)
    path.write_bytes(path.read_bytes()[:keep])
    assert message(tmp_path) == f"{path} is incomplete"


def test_ctranslate2_cut_short_is_incomplete(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    path = tmp_path / "model.bin"
    path.write_bytes(path.read_bytes()[:-40])
    assert message(tmp_path) == f"{path} is incomplete"


@pytest.mark.parametrize("keep", [0, -10])
def test_a_tokenizer_cut_short_is_incomplete(tmp_path: Path, keep: int) -> None:
    path = write_huggingface(tmp_path) / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:keep])
    assert message(tmp_path) == f"{path} is incomplete"


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_pointer_of_git_lfs_is_called_so(tmp_path: Path, name: str) -> None:
    path = write_huggingface(tmp_path) / name
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 12\n")
    assert message(tmp_path) == f"{path} is a pointer of Git LFS, not the file"


@pytest.mark.parametrize("text", ["", '{"architectures": ["Whis', "{]"])
def test_json_that_does_not_parse(tmp_path: Path, text: str) -> None:
    path = write_huggingface(tmp_path) / "config.json"
    path.write_text(text)
    assert message(tmp_path) == f"{path} is not valid JSON"


@pytest.mark.parametrize("text", ["{}", '{"architectures": []}', '{"architectures": "x"}'])
def test_no_architecture(tmp_path: Path, text: str) -> None:
    path = write_huggingface(tmp_path) / "config.json"
    path.write_text(text)
    assert message(tmp_path) == f"{path} states no architecture"


def test_another_spec_of_ctranslate2(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    (tmp_path / "model.bin").write_bytes(model_bin({}, spec="TransformerSpec"))
    assert message(tmp_path) == f"{tmp_path / 'model.bin'} holds an unknown TransformerSpec"


def test_files_and_nothing_are_no_folders(tmp_path: Path) -> None:
    assert message(tmp_path / "absent") == f"{tmp_path / 'absent'}: no such folder"
    path = tmp_path / "ggml-base.bin"
    path.write_bytes(b"lmgg")
    assert message(path) == f"{path} is a file, not the folder of a model"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    folder = write_huggingface(tmp_path / "closed")
    folder.chmod(0)
    try:
        assert "Permission denied" in message(folder)
    finally:
        folder.chmod(0o700)
