"""Very small Qwen3-ASRs of random weights, in transformers' layout and in Qwen's own."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor

from tests.checkpoints.processors import qwen3_asr_model, qwen3_asr_processor

NUM_SHARDS = 3
LANGUAGE_GAIN = 3.0  # with less, a network whose output is its embedding repeats its last id
ORIGINAL_NAMES = {
    "model.multi_modal_projector.linear_1.": "thinker.audio_tower.proj1.",
    "model.multi_modal_projector.linear_2.": "thinker.audio_tower.proj2.",
    "model.audio_tower.": "thinker.audio_tower.",
    "model.language_model.": "thinker.model.",
    "lm_head.": "thinker.lm_head.",
}


@cache
def reference_processor() -> Any:
    return qwen3_asr_processor()


@cache
def reference_model(seed: int = 0) -> Any:
    """A network in which every weight counts: at the usual scale little would be seen of most."""
    model = qwen3_asr_model(reference_processor()).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                gain = LANGUAGE_GAIN if "language_model.layers" in name else 1.0
                parameter.copy_(gain * noise * parameter[0].numel() ** -0.5)
            else:
                is_norm = name.endswith("weight")
                parameter.copy_(0.1 * noise + is_norm)
    return model


def clip(num_samples: int) -> NDArray[np.float32]:
    """A tone that wanders, in noise: other samples for each length."""
    random = np.random.default_rng(num_samples)
    time = np.arange(num_samples) / 16_000
    pitch = 300 + 200 * np.sin(2 * np.pi * random.uniform(0.5, 3) * time)
    noise = 0.02 * random.standard_normal(num_samples)
    return (0.2 * np.sin(2 * np.pi * pitch * time) + noise).astype(np.float32)


def write(folder: Path, model: Any = None) -> Path:
    """A checkpoint in transformers' layout."""
    reference_processor().save_pretrained(folder)
    (model or reference_model()).save_pretrained(folder)
    return folder


def write_original(folder: Path, saved: Path, *, num_shards: int = 1) -> Path:
    """The checkpoint ``saved`` in Qwen's own layout: other names, other files, a nested config."""
    folder.mkdir()
    _write_tokenizer(folder, saved)
    config = json.loads((saved / "config.json").read_text())
    generation = {"do_sample": False, "eos_token_id": config["eos_token_id"]}
    _write_json(folder / "generation_config.json", generation)
    _write_json(folder / "config.json", _nest(config))
    extractor = {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": config["audio_config"]["num_mel_bins"],
        "hop_length": 160,
        "n_fft": 400,
        "nb_max_frames": 3000,
        "sampling_rate": 16_000,
    }
    _write_json(folder / "preprocessor_config.json", extractor)
    _write_weights(folder, load_file(saved / "model.safetensors"), num_shards)
    return folder


def _nest(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration as the published repositories have it, fields of older classes included."""
    audio = {**config["audio_config"], "max_source_positions": 1500, "conv_chunksize": 500}
    audio["model_type"] = "qwen3_asr_audio_encoder"
    del audio["max_position_embeddings"]
    text = {**config["text_config"], "model_type": "qwen3_asr_text", "num_experts": 128}
    rotary = text.pop("rope_parameters")
    text["rope_theta"] = rotary["rope_theta"]
    sections = {"mrope_section": [8, 4, 4], "mrope_interleaved": True, "interleaved": True}
    text["rope_scaling"] = {"rope_type": "default", "type": "default", **sections}
    return {
        "architectures": config["architectures"],
        "model_type": "qwen3_asr",
        "support_languages": ["Chinese", "English"],
        "thinker_config": {
            "audio_config": audio,
            "text_config": text,
            "audio_token_id": config["audio_token_id"],
            "initializer_range": 0.02,
            "model_type": "qwen3_asr",
        },
    }


def _write_tokenizer(folder: Path, saved: Path) -> None:
    """vocab.json, merges.txt and tokenizer_config.json in the place of tokenizer.json."""
    tokenizer = json.loads((saved / "tokenizer.json").read_text("utf-8"))
    model = tokenizer["model"]
    _write_json(folder / "vocab.json", model["vocab"])
    merges = "\n".join(" ".join(pair) for pair in model["merges"])
    (folder / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", "utf-8")
    added = {str(token.pop("id")): token for token in tokenizer["added_tokens"]}
    settings = {
        "add_prefix_space": False,
        "added_tokens_decoder": added,
        "additional_special_tokens": ["<|im_start|>", "<|im_end|>", "<|audio_pad|>"],
        "audio_token": "<|audio_pad|>",
        "bos_token": None,
        "clean_up_tokenization_spaces": False,
        "eos_token": "<|im_end|>",
        "errors": "replace",
        "pad_token": "<|endoftext|>",
        "split_special_tokens": False,
        "tokenizer_class": "Qwen2Tokenizer",
        "unk_token": None,
    }
    _write_json(folder / "tokenizer_config.json", settings)


def _write_weights(folder: Path, tensors: dict[str, Tensor], num_shards: int) -> None:
    embedding = tensors["model.language_model.embed_tokens.weight"]
    tensors = {"lm_head.weight": embedding.clone(), **tensors}  # theirs is stored twice
    renamed = {_original_name(name): tensor for name, tensor in tensors.items()}
    if num_shards == 1:
        save_file(renamed, folder / "model.safetensors")
        return
    names = sorted(renamed)
    weight_map = {}
    for number in range(num_shards):
        shard = f"model-{number + 1:05}-of-{num_shards:05}.safetensors"
        part = names[number::num_shards]
        save_file({name: renamed[name] for name in part}, folder / shard)
        weight_map.update(dict.fromkeys(part, shard))
    _write_json(folder / "model.safetensors.index.json", {"weight_map": weight_map})


def _original_name(name: str) -> str:
    for ours, theirs in ORIGINAL_NAMES.items():
        if name.startswith(ours):
            return theirs + name.removeprefix(ours)
    raise AssertionError(f"{name} has no original name")


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=2), "utf-8")
