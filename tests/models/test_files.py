from __future__ import annotations

import json
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import BPE
from transformers import WhisperConfig, WhisperForConditionalGeneration

from asrcli.errors import CheckpointError
from asrcli.models.base import ModelFiles
from asrcli.models.files import read_model_files
from asrcli.models.folders import check_folder
from tests.models import tiny_whisper
from tests.models.tiny_whisper import (
    D_MODEL,
    MULTILINGUAL,
    TOKENS,
    token_id,
    write_ctranslate2,
    write_huggingface,
)


def read(folder: Path) -> ModelFiles:
    return read_model_files(check_folder(folder))


def test_huggingface(tmp_path: Path) -> None:
    files = read(write_huggingface(tmp_path))
    assert files.config["architectures"] == ["WhisperForConditionalGeneration"]
    assert files.generation_config == {"max_length": 448}
    assert files.preprocessor_config == {}
    assert files.tokenizer_path == tmp_path / "tokenizer.json"
    assert files.tensors["a"].tolist() == [0, 1, 2, 3, 4, 5]
    assert files.tensors["b"].dtype == torch.float16


def test_the_processor_of_transformers_5_holds_the_features(tmp_path: Path) -> None:
    write_huggingface(tmp_path)
    nested = {"feature_extractor": {"feature_size": 128}, "processor_class": "WhisperProcessor"}
    (tmp_path / "processor_config.json").write_text(json.dumps(nested))
    assert read(tmp_path).preprocessor_config == {"feature_size": 128}
    (tmp_path / "preprocessor_config.json").write_text('{"feature_size": 80}')
    assert read(tmp_path).preprocessor_config == {"feature_size": 80}


@pytest.mark.parametrize("archive", [True, False])
def test_pickles_in_shards(tmp_path: Path, archive: bool) -> None:
    (write_huggingface(tmp_path) / "model.safetensors").unlink()
    names = ("pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin")
    index = {"weight_map": dict(zip("ab", names, strict=True))}
    (tmp_path / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    for value, (key, name) in enumerate(index["weight_map"].items()):
        tensors = {key: torch.full((2,), value)}
        torch.save(tensors, tmp_path / name, _use_new_zipfile_serialization=archive)
    assert {k: v.tolist() for k, v in read(tmp_path).tensors.items()} == {"a": [0, 0], "b": [1, 1]}


class _Trap:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path("trapped").touch, ())


def test_a_pickle_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (write_huggingface(tmp_path) / "model.safetensors").unlink()
    (tmp_path / "pytorch_model.bin").write_bytes(pickle.dumps({"a": _Trap()}, protocol=2))
    with pytest.raises(CheckpointError, match=r"pytorch_model\.bin cannot be read"):
        read(tmp_path)
    assert not (tmp_path / "trapped").exists()


def test_ctranslate2_fits_the_network_of_transformers(tmp_path: Path) -> None:
    """The names and shapes are right if the published network takes them all."""
    write_ctranslate2(tmp_path)
    files = read(tmp_path)
    network = WhisperForConditionalGeneration(WhisperConfig(**files.config))
    result = network.load_state_dict(dict(files.tensors), strict=False)
    assert (result.missing_keys, result.unexpected_keys) == (["proj_out.weight"], [])
    assert network.config.encoder_attention_heads == tiny_whisper.NUM_HEADS
    assert network.config.decoder_layers == tiny_whisper.NUM_DECODER_LAYERS


@pytest.mark.parametrize(
    ("dtype", "tolerance", "result"),
    [
        ("float32", 0.0, torch.float32),
        ("float16", 2e-3, torch.float16),
        ("bfloat16", 3e-2, torch.float32),
        ("int8", 2e-2, torch.float32),
        ("int16", 3e-3, torch.float32),
    ],
)
def test_ctranslate2_weights(
    tmp_path: Path, dtype: str, tolerance: float, result: torch.dtype
) -> None:
    weights = write_ctranslate2(tmp_path, dtype)
    tensors = read(tmp_path).tensors

    def check(name: str, expected: np.ndarray) -> None:
        assert tensors[name].dtype == result
        np.testing.assert_allclose(tensors[name].float().numpy(), expected, atol=tolerance)

    with warnings.catch_warnings(record=True) as caught:
        name, source = "model.decoder.layers.1", "decoder/layer_1"
        query, key, value = np.split(weights[f"{source}/self_attention/linear_0/weight"], 3)
        check(f"{name}.self_attn.q_proj.weight", query)
        check(f"{name}.self_attn.k_proj.weight", key)
        check(f"{name}.self_attn.v_proj.weight", value)
        key, value = np.split(weights[f"{source}/attention/linear_1/weight"], 2)
        check(f"{name}.encoder_attn.k_proj.weight", key)
        check(f"{name}.encoder_attn.v_proj.weight", value)
        check(f"{name}.encoder_attn.q_proj.weight", weights[f"{source}/attention/linear_0/weight"])
        check(
            f"{name}.encoder_attn.out_proj.weight", weights[f"{source}/attention/linear_2/weight"]
        )
        check(f"{name}.fc2.weight", weights[f"{source}/ffn/linear_1/weight"])
        check("model.encoder.conv1.weight", weights["encoder/conv1/weight"])
        check("model.decoder.embed_tokens.weight", weights["decoder/embeddings/weight"])
    assert caught == []


def test_ctranslate2_biases_and_norms(tmp_path: Path) -> None:
    weights = write_ctranslate2(tmp_path, "float32")
    tensors = read(tmp_path).tensors
    _, _, value = np.split(weights["encoder/layer_0/self_attention/linear_0/bias"], 3)
    name = "model.encoder.layers.0"
    assert np.array_equal(tensors[f"{name}.self_attn.v_proj.bias"].numpy(), value)
    assert f"{name}.self_attn.k_proj.bias" not in tensors
    norm = tensors[f"{name}.final_layer_norm.weight"].numpy()
    assert np.array_equal(norm, weights["encoder/layer_0/ffn/layer_norm/gamma"])
    positions = tensors["model.encoder.embed_positions.weight"].numpy()
    assert np.array_equal(positions, weights["encoder/position_encodings/encodings"])


def test_ctranslate2_settings_of_many_languages(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path, num_ids=MULTILINGUAL)
    files = read(tmp_path)
    end_id = token_id("<|endoftext|>")
    assert files.generation_config == {
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "pad_token_id": end_id,
        "decoder_start_token_id": token_id("<|startoftranscript|>"),
        "no_timestamps_token_id": token_id("<|notimestamps|>"),
        "prev_sot_token_id": token_id("<|startofprev|>"),
        "max_initial_timestamp_index": 50,
        "max_length": 20,
        "is_multilingual": True,
        "lang_to_id": {"<|en|>": token_id("<|en|>"), "<|haw|>": token_id("<|haw|>")},
        "task_to_id": {
            "transcribe": token_id("<|transcribe|>"),
            "translate": token_id("<|translate|>"),
        },
        "suppress_tokens": [0, 2],
        "begin_suppress_tokens": [1],
        "alignment_heads": [[1, 3]],
    }
    assert files.config["vocab_size"] == MULTILINGUAL
    assert files.config["d_model"] == D_MODEL
    assert files.preprocessor_config["feature_size"] == tiny_whisper.NUM_MEL_BINS
    assert files.tokenizer_path == tmp_path / "tokenizer.json"


def test_ctranslate2_settings_of_an_english_model(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    settings = read(tmp_path).generation_config
    assert settings["is_multilingual"] is False
    assert "lang_to_id" not in settings
    assert "task_to_id" not in settings


def test_ctranslate2_with_the_tokenizer_of_another_model(tmp_path: Path) -> None:
    write_ctranslate2(tmp_path)
    path = tmp_path / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    for token in tokenizer["added_tokens"]:
        token["id"] += 60000
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is of another model"):
        read(tmp_path)
    tokenizer["added_tokens"] = []
    path.write_text(json.dumps(tokenizer))
    with pytest.raises(CheckpointError, match=r"has no <\|endoftext\|>: it is not Whisper's"):
        read(tmp_path)


def test_tokenizer_json_is_made_of_vocabulary_and_merges(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "cache"))
    folder = write_huggingface(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    vocabulary = {"h": 0, "i": 1, "hi": 2, "Ġ": 3, "Ġhi": 4}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\nh i\nĠ hi\n")
    added = {token: len(vocabulary) + i for i, token in enumerate(TOKENS)}
    (folder / "added_tokens.json").write_text(json.dumps(added))
    settings = {"tokenizer_class": "GPT2Tokenizer", "model_type": "gpt2"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    path = read(folder).tokenizer_path
    assert path.is_relative_to(tmp_path / "cache")
    assert [p.name for p in path.parent.parent.iterdir()] == [path.parent.name]
    tokenizer = Tokenizer.from_file(str(path))
    assert isinstance(tokenizer.model, BPE)
    assert tokenizer.encode("hi hi", add_special_tokens=False).ids == [2, 4]
    made = path.stat().st_mtime_ns
    assert read(folder).tokenizer_path.stat().st_mtime_ns == made


def test_tokenizer_json_that_cannot_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "cache"))
    folder = write_huggingface(tmp_path / "model")
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text('{"h": "not a number"}')
    (folder / "merges.txt").write_text("#version: 0.2\n")
    with pytest.raises(CheckpointError, match=r"tokenizer\.json is missing and cannot be made"):
        read(folder)
    assert list((tmp_path / "cache" / "tokenizers").iterdir()) == []
