"""Very small Whispers, written by the tests in both formats."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel

D_MODEL, FFN_DIM, NUM_MEL_BINS, NUM_HEADS = 16, 32, 8, 4
NUM_ENCODER_LAYERS, NUM_DECODER_LAYERS = 1, 2
ENGLISH, MULTILINGUAL = 64, 51872
"""Numbers of ids: below and above that of the English models."""

TOKENS = (
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|haw|>",
    "<|translate|>",
    "<|transcribe|>",
    "<|startofprev|>",
    "<|nospeech|>",
    "<|notimestamps|>",
)
WORDS = ("hello", "world", "[UNK]")

Arrays = dict[str, NDArray[Any]]
_TYPE_IDS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "bfloat16": 5}


def token_id(token: str) -> int:
    return len(WORDS) + TOKENS.index(token)


def write_tokenizer(folder: Path) -> None:
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in TOKENS])
    tokenizer.save(str(folder / "tokenizer.json"))


def arrays(num_ids: int = ENGLISH, seed: int = 0) -> Arrays:
    """Random float32 weights by CTranslate2's names."""
    random = np.random.default_rng(seed)
    shapes: dict[str, tuple[int, ...]] = {
        "encoder/conv1/weight": (D_MODEL, NUM_MEL_BINS, 3),
        "encoder/conv1/bias": (D_MODEL,),
        "encoder/conv2/weight": (D_MODEL, D_MODEL, 3),
        "encoder/conv2/bias": (D_MODEL,),
        "encoder/position_encodings/encodings": (15, D_MODEL),
        "decoder/position_encodings/encodings": (20, D_MODEL),
        "decoder/embeddings/weight": (num_ids, D_MODEL),
        **_norm("encoder/layer_norm"),
        **_norm("decoder/layer_norm"),
    }
    for i in range(NUM_ENCODER_LAYERS):
        shapes |= _layer(f"encoder/layer_{i}")
    for i in range(NUM_DECODER_LAYERS):
        shapes |= _layer(f"decoder/layer_{i}")
        shapes |= _linear(f"decoder/layer_{i}/attention/linear_0", D_MODEL, D_MODEL)
        shapes |= _linear(f"decoder/layer_{i}/attention/linear_1", 2 * D_MODEL, D_MODEL)
        shapes |= _linear(f"decoder/layer_{i}/attention/linear_2", D_MODEL, D_MODEL)
        shapes |= _norm(f"decoder/layer_{i}/attention/layer_norm")
    return {name: random.normal(size=s).astype(np.float32) for name, s in shapes.items()}


def _layer(name: str) -> dict[str, tuple[int, ...]]:
    return {
        **_linear(f"{name}/self_attention/linear_0", 3 * D_MODEL, D_MODEL),
        **_linear(f"{name}/self_attention/linear_1", D_MODEL, D_MODEL),
        **_norm(f"{name}/self_attention/layer_norm"),
        **_linear(f"{name}/ffn/linear_0", FFN_DIM, D_MODEL),
        **_linear(f"{name}/ffn/linear_1", D_MODEL, FFN_DIM),
        **_norm(f"{name}/ffn/layer_norm"),
    }


def _linear(name: str, rows: int, columns: int) -> dict[str, tuple[int, ...]]:
    return {f"{name}/weight": (rows, columns), f"{name}/bias": (rows,)}


def _norm(name: str) -> dict[str, tuple[int, ...]]:
    return {f"{name}/gamma": (D_MODEL,), f"{name}/beta": (D_MODEL,)}


def quantise(weights: Mapping[str, NDArray[Any]], dtype: str) -> Arrays:
    """Store weights as CTranslate2's converter does, bfloat16 as its bits in uint16."""
    stored: Arrays = {}
    for name, array in weights.items():
        if dtype == "bfloat16":
            stored[name] = (array.view(np.uint32) >> 16).astype(np.uint16)
        elif dtype.startswith("float"):
            stored[name] = array.astype(dtype)
        elif not name.endswith("weight"):
            stored[name] = array
        elif dtype == "int8":
            scale = 127 / np.abs(array.reshape(len(array), -1)).max(axis=1)
            rows = scale.reshape(-1, *[1] * (array.ndim - 1))
            stored[name] = np.rint(array * rows).astype(np.int8)
            stored[f"{name}_scale"] = scale.astype(np.float32)
        else:
            step = np.float32(2**10 / np.abs(array).max())
            stored[name] = np.rint(array * step).astype(np.int16)
            stored[f"{name}_scale"] = np.array(step, np.float32)
    return stored


def model_bin(
    variables: Mapping[str, NDArray[Any]],
    *,
    aliases: Mapping[str, str] | None = None,
    spec: str = "WhisperSpec",
    version: int = 6,
) -> bytes:
    """The bytes of a model.bin."""
    out = struct.pack("<I", version) + _string(spec) + struct.pack("<II", 3, len(variables))
    for name, array in variables.items():
        dtype = "bfloat16" if array.dtype == np.uint16 else str(array.dtype)
        out += _string(name) + struct.pack("<B", array.ndim)
        out += struct.pack(f"<{array.ndim}I", *array.shape)
        out += struct.pack("<BI", _TYPE_IDS[dtype], array.nbytes) + array.tobytes()
    aliases = aliases or {}
    return (
        out
        + struct.pack("<I", len(aliases))
        + b"".join(_string(name) + _string(target) for name, target in aliases.items())
    )


def _string(text: str) -> bytes:
    data = text.encode() + b"\0"
    return struct.pack("<H", len(data)) + data


def write_ctranslate2(folder: Path, dtype: str = "float16", num_ids: int = ENGLISH) -> Arrays:
    """A folder in CTranslate2's format; the float32 weights that went into it."""
    folder.mkdir(parents=True, exist_ok=True)
    weights = arrays(num_ids)
    variables = quantise(weights, dtype)
    heads = np.array(NUM_HEADS, np.int16)
    variables |= {"encoder/num_heads": heads, "decoder/num_heads": heads}
    tied = {"decoder/projection/weight": "decoder/embeddings/weight"}
    (folder / "model.bin").write_bytes(model_bin(variables, aliases=tied))
    settings = {"suppress_ids": [0, 2], "suppress_ids_begin": [1], "alignment_heads": [[1, 3]]}
    (folder / "config.json").write_text(json.dumps(settings | {"lang_ids": [5, 6]}))
    write_tokenizer(folder)
    return weights


def write_huggingface(folder: Path, architecture: str = "WhisperForConditionalGeneration") -> Path:
    """A folder in Hugging Face's format, with two weights: enough to be found, not to be run."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"architectures": [architecture]}))
    (folder / "generation_config.json").write_text(json.dumps({"max_length": 448}))
    write_tokenizer(folder)
    save_file(
        {"a": np.arange(6, dtype=np.float32), "b": np.ones((2, 3), np.float16)},
        folder / "model.safetensors",
    )
    return folder
