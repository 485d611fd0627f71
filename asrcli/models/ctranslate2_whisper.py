"""CTranslate2's Whisper in Hugging Face's names: weights, configuration and generation settings.

In CTranslate2 the projections of one input are stacked: ``self_attention/linear_0`` is q, k and v,
``linear_1`` the output; ``attention`` (over the encoder) has q, then k and v, then the output.
Whisper's k has no bias, so its part of the stacked one is zero and left out here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asrcli.errors import CheckpointError
from asrcli.models.ctranslate2 import ModelFile, read_model_file
from asrcli.models.folders import read_json

ARCHITECTURE = "WhisperForConditionalGeneration"
SPEC = "WhisperSpec"

_ENGLISH_VOCABULARY = 51864
"""Ids of an English model; those of many languages have more (whisper/model.py of OpenAI)."""
_LANGUAGE = re.compile(r"<\|[a-z]{2,3}\|>")


@dataclass(frozen=True, slots=True)
class _Source:
    """One of ``num_parts`` equal parts of a variable, cut along its first dimension."""

    variable: str
    part: int = 0
    num_parts: int = 1


class WhisperArrays(Mapping[str, NDArray[Any]]):
    """Weights by Hugging Face's names, read and dequantised one at a time when asked for.

    Args:
        file: the ``model.bin``.

    Raises:
        CheckpointError: a weight that every Whisper has is missing.
    """

    def __init__(self, file: ModelFile) -> None:
        self._file = file
        self._sources = dict(_sources(file))
        for source in self._sources.values():
            file.shape(source.variable)

    def __getitem__(self, name: str) -> NDArray[Any]:
        source = self._sources[name]
        array = self._file.array(source.variable)
        if source.num_parts == 1:
            return array
        parts: list[NDArray[Any]] = np.split(array, source.num_parts)
        part: NDArray[Any] = parts[source.part].copy()
        return part

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@dataclass(frozen=True, slots=True)
class Whisper:
    """A folder in CTranslate2's format that holds a Whisper.

    Attributes:
        file: its model.bin.
        arrays: the weights by Hugging Face's names.
        settings: its config.json.
        tokens: ids of the tokenizer by their text.
    """

    file: ModelFile
    arrays: WhisperArrays
    settings: Mapping[str, Any]
    tokens: Mapping[str, int]

    def configs(self) -> dict[str, dict[str, Any]]:
        """What Hugging Face keeps in JSON files, by their names without the ending."""
        return {
            "config": config(self.file, self.tokens),
            "generation_config": generation_config(self.file, self.settings, self.tokens),
            "preprocessor_config": preprocessor_config(self.file),
            "tokenizer_config": tokenizer_config(),
        }


def read(folder: Path) -> Whisper:
    """Open a folder with model.bin, config.json and tokenizer.json.

    Raises:
        CheckpointError: it is no Whisper, or damaged.
    """
    file = read_model_file(folder / "model.bin")
    if file.spec != SPEC:
        raise CheckpointError(f"{file.path} holds a {file.spec}, not a {SPEC}")
    settings = read_json(folder / "config.json")
    return Whisper(file, WhisperArrays(file), settings, _special_tokens(folder))


def config(file: ModelFile, tokens: Mapping[str, int]) -> dict[str, Any]:
    """``config.json`` from the shapes of the weights and the ids of the tokenizer."""
    d_model, num_mel_bins, _ = file.shape("encoder/conv1/weight")
    end_id = _token_id(tokens, "<|endoftext|>")
    sizes = {f"{side}_{key}": value for side in _SIDES for key, value in _sizes(file, side).items()}
    return {
        "architectures": [ARCHITECTURE],
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "vocab_size": file.shape("decoder/embeddings/weight")[0],
        "num_mel_bins": num_mel_bins,
        "d_model": d_model,
        **sizes,
        "max_source_positions": file.shape("encoder/position_encodings/encodings")[0],
        "max_target_positions": file.shape("decoder/position_encodings/encodings")[0],
        "activation_function": "gelu",
        "scale_embedding": False,
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "pad_token_id": end_id,
        "decoder_start_token_id": _token_id(tokens, "<|startoftranscript|>"),
        "suppress_tokens": None,  # both are in generation_config.json
        "begin_suppress_tokens": None,
        "dtype": str(file.array("encoder/conv1/bias").dtype),
    }


def generation_config(
    file: ModelFile, settings: Mapping[str, Any], tokens: Mapping[str, int]
) -> dict[str, Any]:
    """``generation_config.json`` from CTranslate2's ``config.json`` and the tokenizer.

    The language ids of ``settings`` are not used: for English models they are those of the others.
    """
    end_id = _token_id(tokens, "<|endoftext|>")
    num_ids = file.shape("decoder/embeddings/weight")[0]
    no_timestamps_id = _token_id(tokens, "<|notimestamps|>")
    if no_timestamps_id >= num_ids:
        raise CheckpointError(f"{file.path.parent}: tokenizer.json is of another model")
    result: dict[str, Any] = {
        "bos_token_id": end_id,
        "eos_token_id": end_id,
        "pad_token_id": end_id,
        "decoder_start_token_id": _token_id(tokens, "<|startoftranscript|>"),
        "no_timestamps_token_id": no_timestamps_id,
        "prev_sot_token_id": _token_id(tokens, "<|startofprev|>"),
        "max_initial_timestamp_index": 50,  # 1 s in steps of 0.02 s
        "max_length": file.shape("decoder/position_encodings/encodings")[0],
        "is_multilingual": num_ids > _ENGLISH_VOCABULARY,
    }
    if num_ids > _ENGLISH_VOCABULARY:
        result["lang_to_id"] = {name: i for name, i in tokens.items() if _LANGUAGE.fullmatch(name)}
        result["task_to_id"] = {
            task: _token_id(tokens, f"<|{task}|>") for task in ("transcribe", "translate")
        }
    names = {
        "suppress_ids": "suppress_tokens",
        "suppress_ids_begin": "begin_suppress_tokens",
        "alignment_heads": "alignment_heads",
    }
    return result | {new: settings[old] for old, new in names.items() if settings.get(old)}


def preprocessor_config(file: ModelFile) -> dict[str, Any]:
    """``preprocessor_config.json``: Whisper's features, with the model's number of mel bins."""
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": file.shape("encoder/conv1/weight")[1],
        "sampling_rate": 16000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 30,
        "n_samples": 480000,
        "nb_max_frames": 3000,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }


def tokenizer_config() -> dict[str, Any]:
    """``tokenizer_config.json``: what stands beside tokenizer.json for transformers."""
    roles = ("bos_token", "eos_token", "pad_token", "unk_token")
    return {
        "tokenizer_class": "WhisperTokenizer",
        "processor_class": "WhisperProcessor",
        **dict.fromkeys(roles, "<|endoftext|>"),
    }


_SIDES = ("encoder", "decoder")


def _special_tokens(folder: Path) -> dict[str, int]:
    path = folder / "tokenizer.json"
    try:
        return {
            str(token["content"]): int(token["id"]) for token in read_json(path)["added_tokens"]
        }
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"{path} has no list of added tokens") from error


def _token_id(tokens: Mapping[str, int], token: str) -> int:
    try:
        return tokens[token]
    except KeyError:
        raise CheckpointError(f"tokenizer.json has no {token}: it is not Whisper's") from None


def _num_layers(file: ModelFile, side: str) -> int:
    found = re.compile(rf"{side}/layer_(\d+)/")
    return len({match[1] for name in file.variables if (match := found.match(name))})


def _sizes(file: ModelFile, side: str) -> dict[str, int]:
    """Layers, heads and inner width of one side."""
    if f"{side}/num_heads" in file.variables:
        num_heads = int(file.raw(f"{side}/num_heads"))
    else:
        num_heads = file.shape("encoder/conv1/weight")[0] // 64  # in every Whisper
    return {
        "layers": _num_layers(file, side),
        "attention_heads": num_heads,
        "ffn_dim": file.shape(f"{side}/layer_0/ffn/linear_0/weight")[0],
    }


def _sources(file: ModelFile) -> Iterator[tuple[str, _Source]]:
    for name in ("conv1", "conv2"):
        for end in ("weight", "bias"):
            yield f"model.encoder.{name}.{end}", _Source(f"encoder/{name}/{end}")
    # proj_out is tied to it, and Hugging Face stores it once as well
    yield "model.decoder.embed_tokens.weight", _Source("decoder/embeddings/weight")
    for side in _SIDES:
        positions = _Source(f"{side}/position_encodings/encodings")
        yield f"model.{side}.embed_positions.weight", positions
        yield from _norm(f"model.{side}.layer_norm", f"{side}/layer_norm")
        for i in range(_num_layers(file, side)):
            yield from _layer(f"model.{side}.layers.{i}", f"{side}/layer_{i}", side)


def _layer(name: str, source: str, side: str) -> Iterator[tuple[str, _Source]]:
    attention = f"{source}/self_attention"
    yield from _stacked(f"{name}.self_attn", f"{attention}/linear_0", "qkv")
    yield from _linear(f"{name}.self_attn.out_proj", f"{attention}/linear_1")
    yield from _norm(f"{name}.self_attn_layer_norm", f"{attention}/layer_norm")
    if side == "decoder":
        attention = f"{source}/attention"
        yield from _stacked(f"{name}.encoder_attn", f"{attention}/linear_0", "q")
        yield from _stacked(f"{name}.encoder_attn", f"{attention}/linear_1", "kv")
        yield from _linear(f"{name}.encoder_attn.out_proj", f"{attention}/linear_2")
        yield from _norm(f"{name}.encoder_attn_layer_norm", f"{attention}/layer_norm")
    yield from _linear(f"{name}.fc1", f"{source}/ffn/linear_0")
    yield from _linear(f"{name}.fc2", f"{source}/ffn/linear_1")
    yield from _norm(f"{name}.final_layer_norm", f"{source}/ffn/layer_norm")


def _stacked(name: str, source: str, letters: str) -> Iterator[tuple[str, _Source]]:
    for part, letter in enumerate(letters):
        yield f"{name}.{letter}_proj.weight", _Source(f"{source}/weight", part, len(letters))
        if letter != "k":
            yield f"{name}.{letter}_proj.bias", _Source(f"{source}/bias", part, len(letters))


def _linear(name: str, source: str) -> Iterator[tuple[str, _Source]]:
    yield f"{name}.weight", _Source(f"{source}/weight")
    yield f"{name}.bias", _Source(f"{source}/bias")


def _norm(name: str, source: str) -> Iterator[tuple[str, _Source]]:
    yield f"{name}.weight", _Source(f"{source}/gamma")
    yield f"{name}.bias", _Source(f"{source}/beta")
