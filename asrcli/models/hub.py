"""The Hugging Face hub: what its cache holds, and fetching what it does not.

Looking into the cache reads folders and opens no socket. Fetching takes the files that are needed
and no others, first the small ones and then the weights, so that a stopped download lacks weights,
which ``check_folder`` notices.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from asrcli.models.folders import CTRANSLATE2_WEIGHTS, SINGLE_WEIGHTS
from asrcli.models.hub_client import (
    HubId,
    HubUnreachableError,
    explained,
    fetch,
    list_files,
    why_unreachable,
    without_library_talk,
)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARDS = tuple(
    re.compile(rf"{stem}-\d+-of-\d+\.{suffix}")
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin"))
)
_SMALL_SUFFIXES = (".json", ".jinja", ".txt")


class Reporter(Protocol):
    """Who tells the user what goes on."""

    def note(self, message: str) -> None:
        """Say one line."""

    def download(
        self, name: str, total: int | None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Show the progress of one download: call the result with the number of further bytes."""


def cached_snapshot(hub_id: HubId) -> Path | None:
    """The folder of a repository in the hub's cache, whole or not; None where there is none."""
    from huggingface_hub import constants

    folder = Path(constants.HF_HUB_CACHE) / f"models--{hub_id.repo_id.replace('/', '--')}"
    commit = hub_id.revision
    if not _COMMIT.fullmatch(commit):
        try:
            commit = (folder / "refs" / commit).read_text().strip()
        except OSError:
            return None
    snapshot = folder / "snapshots" / commit
    return snapshot if commit and snapshot.is_dir() else None


@dataclass(slots=True)
class Hub:
    """The hub, asked at most once whether it is there.

    Args:
        reporter: shows the progress of downloads.
    """

    reporter: Reporter
    _why_not: str | None = field(default=None, init=False)
    _asked: bool = field(default=False, init=False)

    def require(self, hub_id: HubId) -> None:
        """Find out in PROBE_TIMEOUT seconds whether the hub can be reached.

        Raises:
            HubUnreachableError: it cannot, and ``hub_id`` has to come from elsewhere.
        """
        if not self._asked:
            self._why_not = why_unreachable()
            self._asked = True
        if self._why_not is not None:
            raise HubUnreachableError(hub_id, f"not on this machine, and {self._why_not}")

    def download(self, hub_id: HubId, check_config: Callable[[Path], None]) -> Path:
        """Fetch what a checkpoint needs into the hub's cache.

        Args:
            hub_id: the repository.
            check_config: called with the folder before the weights are fetched; what it raises
                stops the download.

        Returns:
            The folder. Whether it is a whole checkpoint has yet to be checked.

        Raises:
            HubUnreachableError: the hub does not answer, or stops to.
            CheckpointError: no such repository or revision, no access, or no room on the disk.
        """
        self.require(hub_id)
        with explained(hub_id), without_library_talk():
            sizes = list_files(hub_id)
            weights = choose_weights(sizes)
            small = [name for name in sizes if _is_small(name)]
            cached = cached_snapshot(hub_id)
            wanted = [name for name in (*small, *weights) if not _is_file(cached, name)]
            total = sum(sizes[name] or 0 for name in wanted)
            with self.reporter.download(str(hub_id), total or None) as advance:
                folder = fetch(hub_id, small, advance)
                check_config(folder)
                return fetch(hub_id, weights, advance) if weights else folder


def choose_weights(names: Iterable[str]) -> list[str]:
    """The files of one copy of the weights among those of a repository, the best format first.

    Repositories hold the same weights several times over: other libraries' formats, and other
    precisions such as ``model.fp32-00001-of-00002.safetensors``.
    """
    names = sorted(names)
    for single, shard in zip(SINGLE_WEIGHTS, _SHARDS, strict=True):
        if single in names:
            return [single]
        shards = [name for name in names if shard.fullmatch(name)]
        if shards:
            return shards
    return [CTRANSLATE2_WEIGHTS] if CTRANSLATE2_WEIGHTS in names else []


def _is_small(name: str) -> bool:
    return "/" not in name and name.endswith(_SMALL_SUFFIXES)


def _is_file(folder: Path | None, name: str) -> bool:
    return folder is not None and (folder / name).is_file()
