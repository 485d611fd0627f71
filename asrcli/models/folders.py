"""Whether a folder holds a whole checkpoint, and which.

A download or copy that was stopped leaves files out or cuts them short. Both are found here, by
reading headers only, so that nobody waits for a load that must fail.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from asrcli.errors import CheckpointError
from asrcli.models.base import Checkpoint

HUGGINGFACE = "huggingface"
CTRANSLATE2 = "ctranslate2"

CTRANSLATE2_WEIGHTS = "model.bin"
SINGLE_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")

_ARCHITECTURES = {"WhisperSpec": "WhisperForConditionalGeneration"}
"""CTranslate2's names of what a ``model.bin`` holds, in Hugging Face's."""


def check_folder(folder: Path, name: str | None = None) -> Checkpoint:
    """What a folder holds.

    Args:
        folder: a local folder.
        name: what to call it; the folder itself if None.

    Raises:
        CheckpointError: no folder, something missing (all of it is named), cut short or damaged.
    """
    try:
        return _check(folder, name or str(folder))
    except OSError as error:
        raise CheckpointError(f"{error.filename or folder}: {error.strerror}") from error


def is_whole(folder: Path) -> bool:
    """Whether ``check_folder`` has nothing to say against a folder."""
    try:
        check_folder(folder)
    except CheckpointError:
        return False
    return True


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object. Raises CheckpointError where it cannot be read or is none."""
    try:
        value = json.loads(path.read_bytes())
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise CheckpointError(f"{path} is not valid JSON", hint="fetch it again") from error
    if not isinstance(value, dict):
        raise CheckpointError(f"{path} holds no JSON object")
    return value


def weight_files(folder: Path) -> list[Path]:
    """The files with weights in Hugging Face's formats, whether they are there or not.

    The first of: model.safetensors, its shards by their index, pytorch_model.bin, its shards.
    Empty where there are none.
    """
    for single, index in zip(SINGLE_WEIGHTS, INDEXES, strict=True):
        if (folder / single).is_file():
            return [folder / single]
        if (folder / index).is_file():
            weight_map = read_json(folder / index).get("weight_map")
            if not isinstance(weight_map, dict) or not weight_map:
                raise CheckpointError(f"{folder / index} names no shards")
            return [folder / str(shard) for shard in sorted(set(weight_map.values()))]
    return []


def tokenizer_files(folder: Path) -> list[Path]:
    """tokenizer.json, or else the files that one can be made of; empty where there are none."""
    if (folder / "tokenizer.json").is_file():
        return [folder / "tokenizer.json"]
    parts = [folder / "vocab.json", folder / "merges.txt"]
    return parts if all(part.is_file() for part in parts) else []


def _check(folder: Path, name: str) -> Checkpoint:
    if not folder.is_dir():
        raise _no_folder(folder)
    missing = _missing(folder)
    if missing:
        raise CheckpointError(
            f"{folder}: {_listed(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            hint=_missing_hint(missing),
        )
    config = read_json(folder / "config.json")
    if _is_ctranslate2(folder, config):
        architecture = _ctranslate2_architecture(folder)
        return Checkpoint(name=name, path=folder, format=CTRANSLATE2, architecture=architecture)
    for path in (*weight_files(folder), *tokenizer_files(folder)):
        _check_complete(path)
    return Checkpoint(
        name=name, path=folder, format=HUGGINGFACE, architecture=_architecture(folder, config)
    )


def _no_folder(folder: Path) -> CheckpointError:
    if folder.exists():
        return CheckpointError(
            f"{folder} is a file, not the folder of a model",
            hint="folders in Hugging Face or CTranslate2 format can be loaded",
        )
    return CheckpointError(f"{folder}: no such folder")


def _missing(folder: Path) -> list[str]:
    """Names of the files that have to be there and are not."""
    missing = [] if (folder / "config.json").is_file() else ["config.json"]
    weights = weight_files(folder)
    if weights:
        missing += [path.name for path in weights if not path.is_file()]
    elif not (folder / CTRANSLATE2_WEIGHTS).is_file():
        missing.append(SINGLE_WEIGHTS[0])
    return missing if tokenizer_files(folder) else [*missing, "tokenizer.json"]


def _listed(names: list[str]) -> str:
    *others, last = names
    return f"{', '.join(others)} and {last}" if others else last


def _missing_hint(missing: Iterable[str]) -> str:
    if SINGLE_WEIGHTS[0] in missing:
        return "pytorch_model.bin, shards with their index or CTranslate2's model.bin will do too"
    return "fetch or copy it again; a download may have stopped half-way"


def _is_ctranslate2(folder: Path, config: dict[str, Any]) -> bool:
    if not (folder / CTRANSLATE2_WEIGHTS).is_file():
        return False
    return not weight_files(folder) or "architectures" not in config


def _ctranslate2_architecture(folder: Path) -> str:
    from asrcli.models.ctranslate2 import read_model_file

    path = folder / CTRANSLATE2_WEIGHTS
    _check_is_no_pointer(path)
    _check_complete(folder / "tokenizer.json")
    spec = read_model_file(path).spec
    try:
        return _ARCHITECTURES[spec]
    except KeyError:
        known = ", ".join(_ARCHITECTURES)
        raise CheckpointError(f"{path} holds an unknown {spec}", hint=f"known: {known}") from None


def _architecture(folder: Path, config: dict[str, Any]) -> str:
    architectures = config.get("architectures")
    if not isinstance(architectures, list) or not architectures:
        raise CheckpointError(f"{folder / 'config.json'} states no architecture")
    return str(architectures[0])


def _check_complete(path: Path) -> None:
    _check_is_no_pointer(path)
    if path.suffix == ".safetensors":
        whole = _is_whole_safetensors(path)
    elif path.suffix == ".bin":
        whole = _is_whole_pickle(path)
    elif path.suffix == ".json":
        whole = _last_byte(path) == b"}"
    else:
        whole = path.stat().st_size > 0
    if not whole:
        raise CheckpointError(f"{path} is incomplete", hint="fetch or copy it again")


def _check_is_no_pointer(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(24) == b"version https://git-lfs.":
            raise CheckpointError(
                f"{path} is a pointer of Git LFS, not the file", hint="git lfs pull fetches it"
            )


def _is_whole_safetensors(path: Path) -> bool:
    """Whether the file is as long as its header says: u64 length, JSON with offsets, data."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > size - 8:
            return False
        header = file.read(length)
    try:
        entries = json.loads(header)
        ends = [entry["data_offsets"][1] for key, entry in entries.items() if key[:2] != "__"]
    except (ValueError, AttributeError, KeyError, TypeError, IndexError) as error:
        raise CheckpointError(f"{path} is damaged", hint="fetch or copy it again") from error
    return size >= 8 + length + max(ends, default=0)


def _is_whole_pickle(path: Path) -> bool:
    """Whether torch's archive has its directory, which comes last. The old format has none."""
    with path.open("rb") as file:
        start = file.read(2)
    return zipfile.is_zipfile(path) if start == b"PK" else len(start) == 2


def _last_byte(path: Path) -> bytes:
    """The last byte that is no white space."""
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - 64))
        return file.read().rstrip()[-1:]
