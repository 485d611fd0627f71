"""tokenizer.json of a checkpoint, made where a repository has only what it is made of."""

from __future__ import annotations

import hashlib
from pathlib import Path

from asrcli.errors import CheckpointError
from asrcli.models.cache import cache_folder, publish, working_folder

_NAME = "tokenizer.json"
_INGREDIENTS = (
    "vocab.json",
    "merges.txt",
    "added_tokens.json",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "config.json",
)


def tokenizer_path(folder: Path) -> Path:
    """The folder's tokenizer.json, or one that transformers builds from vocab.json and merges.txt.

    What is built is kept in the cache folder under a hash of what it was built of.

    Raises:
        CheckpointError: it cannot be built.
    """
    own = folder / _NAME
    if own.is_file():
        return own
    final = cache_folder() / "tokenizers" / _fingerprint(folder)
    if not (final / _NAME).is_file():
        with working_folder(final) as work:
            _build(folder, work / "built")
            publish(work / "built", final, lambda other: (other / _NAME).is_file())
    return final / _NAME


def _fingerprint(folder: Path) -> str:
    digest = hashlib.sha256()
    for name in _INGREDIENTS:
        path = folder / name
        digest.update(f"{name}\0".encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:32]


def _build(folder: Path, target: Path) -> None:
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder), local_files_only=True)
        backend = tokenizer.backend_tokenizer
    except Exception as error:  # a library's many ways to refuse a folder
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise CheckpointError(
            f"{folder}: tokenizer.json is missing and cannot be made: {reason}"
        ) from error
    target.mkdir()
    backend.save(str(target / _NAME))
