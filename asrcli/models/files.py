"""Reading a checkpoint's folder, whatever its format, into Hugging Face's names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asrcli.errors import CheckpointError
from asrcli.models.base import Checkpoint, ModelFiles
from asrcli.models.folders import CTRANSLATE2, read_json, weight_files
from asrcli.models.tokenizers import tokenizer_path

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.models.ctranslate2_whisper import WhisperArrays


def read_model_files(checkpoint: Checkpoint) -> ModelFiles:
    """Open a checkpoint that ``find_checkpoint`` has found.

    Raises:
        CheckpointError: a file in it is damaged.
    """
    if checkpoint.format == CTRANSLATE2:
        return _read_ctranslate2(checkpoint.path)
    folder = checkpoint.path
    return ModelFiles(
        config=read_json(folder / "config.json"),
        generation_config=_optional_json(folder / "generation_config.json"),
        preprocessor_config=_preprocessor_config(folder),
        tokenizer_path=tokenizer_path(folder),
        tensors=_read_weights(weight_files(folder)),
    )


class _Tensors(Mapping[str, "Tensor"]):
    """Arrays as tensors, each read when it is asked for."""

    def __init__(self, arrays: WhisperArrays) -> None:
        self._arrays = arrays

    def __getitem__(self, name: str) -> Tensor:
        import torch

        return torch.from_numpy(self._arrays[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)


def _read_ctranslate2(folder: Path) -> ModelFiles:
    from asrcli.models import ctranslate2_whisper

    whisper = ctranslate2_whisper.read(folder)
    configs = whisper.configs()
    return ModelFiles(
        config=configs["config"],
        generation_config=configs["generation_config"],
        preprocessor_config=_preprocessor_config(folder) or configs["preprocessor_config"],
        tokenizer_path=folder / "tokenizer.json",
        tensors=_Tensors(whisper.arrays),
    )


def _optional_json(path: Path) -> dict[str, Any]:
    return read_json(path) if path.is_file() else {}


def _preprocessor_config(folder: Path) -> dict[str, Any]:
    """From its own file, or from the processor's, where transformers 5 puts it."""
    path = folder / "preprocessor_config.json"
    if path.is_file():
        return read_json(path)
    nested = _optional_json(folder / "processor_config.json").get("feature_extractor")
    return nested if isinstance(nested, dict) else {}


def _read_weights(paths: list[Path]) -> Mapping[str, Tensor]:
    opened = [
        _loaded(path, _load_safetensors if path.suffix == ".safetensors" else _load_pickle)
        for path in paths
    ]
    return opened[0] if len(opened) == 1 else _Shards(opened)


class _Shards(Mapping[str, "Tensor"]):
    """The tensors of several files."""

    def __init__(self, files: list[Mapping[str, Tensor]]) -> None:
        self._files = {name: file for file in files for name in file}

    def __getitem__(self, name: str) -> Tensor:
        return self._files[name][name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)


def _loaded(path: Path, load: Callable[[Path], Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    try:
        return load(path)
    except CheckpointError:
        raise
    except Exception as error:  # both libraries raise many kinds for damaged files
        raise CheckpointError(
            f"{path} cannot be read: {str(error).splitlines()[0] if str(error) else 'damaged'}",
            hint="fetch or copy it again",
        ) from error


def _load_safetensors(path: Path) -> Mapping[str, Tensor]:
    from asrcli.models.safetensors_file import SafetensorsFile

    return SafetensorsFile(path)


def _load_pickle(path: Path) -> dict[str, Tensor]:
    """torch's own format; only weights are accepted, since a pickle can run code."""
    import torch

    with path.open("rb") as file:
        is_archive = file.read(2) == b"PK"  # the old format cannot be memory-mapped
    state = torch.load(path, map_location="cpu", weights_only=True, mmap=is_archive)
    if not isinstance(state, dict) or not all(isinstance(v, torch.Tensor) for v in state.values()):
        raise CheckpointError(f"{path} does not hold a table of weights")
    return state
