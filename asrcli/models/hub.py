"""The Hugging Face hub: what its cache holds, and fetching what it does not.

Looking into the cache reads folders and opens no socket. Fetching takes the files that are needed
and no others, first the small ones and then the weights, so that a stopped download lacks weights,
which ``check_folder`` notices.
"""

from __future__ import annotations

import errno
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from asrcli.errors import CheckpointError
from asrcli.models.folders import CTRANSLATE2_WEIGHTS, SINGLE_WEIGHTS

PROBE_TIMEOUT = 3.0
"""Seconds in which the hub has to answer at all."""

_HUB_ID = re.compile(r"(?P<repo_id>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_SHARDS = tuple(
    re.compile(rf"{stem}-\d+-of-\d+\.{suffix}")
    for stem, suffix in (("model", "safetensors"), ("pytorch_model", "bin"))
)
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")
_SMALL_SUFFIXES = (".json", ".jinja", ".txt")


class Reporter(Protocol):
    """Who tells the user what goes on."""

    def note(self, message: str) -> None:
        """Say one line."""

    def download(
        self, name: str, total: int | None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """Show the progress of one download: call the result with the number of further bytes."""


class HubUnreachableError(CheckpointError):
    """The hub does not answer, or must not be asked. What else there is can be tried.

    Args:
        hub_id: what was wanted of it.
        reason: why it cannot be had, to go on after the name of the model.
    """

    def __init__(self, hub_id: HubId, reason: str) -> None:
        super().__init__(f"{hub_id}: {reason}")
        self.reason = reason


@dataclass(frozen=True, slots=True)
class HubId:
    """A repository on the hub and a branch, tag or commit of it."""

    repo_id: str
    revision: str = "main"

    @classmethod
    def parse(cls, text: str) -> HubId | None:
        """From ``org/name`` or ``org/name@revision``; None for anything else."""
        match = _HUB_ID.fullmatch(text)
        if match is None:
            return None
        return cls(match["repo_id"], match["revision"] or "main")

    def __str__(self) -> str:
        return self.repo_id if self.revision == "main" else f"{self.repo_id}@{self.revision}"


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


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the network."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


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
            self._why_not = _why_unreachable()
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
        with _explained(hub_id), _without_library_talk():
            sizes = _list_files(hub_id)
            weights = choose_weights(sizes)
            small = [name for name in sizes if _is_small(name)]
            cached = cached_snapshot(hub_id)
            wanted = [name for name in (*small, *weights) if not _is_file(cached, name)]
            total = sum(sizes[name] or 0 for name in wanted)
            with self.reporter.download(str(hub_id), total or None) as advance:
                folder = _fetch(hub_id, small, advance)
                check_config(folder)
                return _fetch(hub_id, weights, advance) if weights else folder


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


def _why_unreachable() -> str | None:
    """What keeps us from the hub, in a few words; None if it answers.

    It runs in a thread since looking up a name heeds no timeout. Any answer will do, and the
    library's own client is used, with its proxies and certificates.
    """
    if is_offline():
        return "HF_HUB_OFFLINE forbids the network"
    outcome: list[Exception | None] = []

    def probe() -> None:
        from huggingface_hub import constants, get_session

        try:
            get_session().head(constants.ENDPOINT, timeout=PROBE_TIMEOUT)
            outcome.append(None)
        except Exception as error:  # of a library that differs from one release to the next
            outcome.append(error)

    thread = threading.Thread(target=probe, name="asr-hub-probe", daemon=True)
    thread.start()
    thread.join(PROBE_TIMEOUT)
    error = outcome[0] if outcome else TimeoutError("no answer")
    return None if error is None else f"the hub cannot be reached ({_first_line(error)})"


def _list_files(hub_id: HubId) -> dict[str, int | None]:
    """Names and sizes of what a repository holds."""
    from huggingface_hub import HfApi, constants

    api = HfApi(endpoint=constants.ENDPOINT)
    info = api.model_info(hub_id.repo_id, revision=hub_id.revision, files_metadata=True)
    return {file.rfilename: file.size for file in info.siblings or []}


def _fetch(hub_id: HubId, names: list[str], advance: Callable[[int], None]) -> Path:
    from huggingface_hub import constants, snapshot_download

    return Path(
        snapshot_download(
            hub_id.repo_id,
            revision=hub_id.revision,
            allow_patterns=names,
            endpoint=constants.ENDPOINT,
            tqdm_class=_progress_bar(advance),
        )
    )


def _progress_bar(advance: Callable[[int], None]) -> type[Any]:
    """A class that the library takes for its progress bar, and that hands the bytes on.

    The library makes several: only the one for bytes on the disk counts.
    """
    from huggingface_hub.utils.tqdm import tqdm

    class Bar(tqdm):
        def __init__(self, *arguments: Any, **settings: Any) -> None:
            self.counts = settings.get("name") == "huggingface_hub.snapshot_download"
            super().__init__(*arguments, **settings | {"disable": True})  # type: ignore[no-untyped-call]

        def update(self, n: float | None = 1) -> None:
            if self.counts and n:
                advance(int(n))

    return Bar


@contextmanager
def _without_library_talk() -> Iterator[None]:
    logger = logging.getLogger("huggingface_hub")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)


@contextmanager
def _explained(hub_id: HubId) -> Iterator[None]:
    """Turn what the library raises into one line."""
    from huggingface_hub import errors

    # its bases are OSError and the HTTPError of httpx or httpx2, which one depends on the release
    failures = tuple(b for b in errors.HfHubHTTPError.__bases__ if issubclass(b, Exception))
    try:
        yield
    except CheckpointError:
        raise
    except errors.GatedRepoError as error:
        raise CheckpointError(
            f"{hub_id}: the hub asks for a licence to be accepted",
            hint=f"accept it on the page of {hub_id.repo_id} and set HF_TOKEN",
        ) from error
    except errors.RepositoryNotFoundError as error:
        raise CheckpointError(
            f"{hub_id}: no such model on the hub", hint="a private one needs HF_TOKEN"
        ) from error
    except errors.RevisionNotFoundError as error:
        raise CheckpointError(
            f"{hub_id.repo_id}: no revision {hub_id.revision} on the hub"
        ) from error
    except errors.HFValidationError as error:
        raise CheckpointError(f"{hub_id}: not a name that the hub allows") from error
    except failures as error:
        raise _transfer_error(hub_id, error) from error


def _transfer_error(hub_id: HubId, error: BaseException) -> CheckpointError:
    local = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM)
    if isinstance(error, OSError) and error.errno in local:
        return CheckpointError(f"{hub_id}: cannot be stored: {error.strerror} ({error.filename})")
    status = getattr(getattr(error, "response", None), "status_code", None)
    if status == 401:
        return CheckpointError(
            f"{hub_id}: the hub knows no such model, or does not show it",
            hint="check the name, and HF_TOKEN for a private one",
        )
    if status is not None:
        return HubUnreachableError(hub_id, f"the hub answers with an error (HTTP {status})")
    return HubUnreachableError(hub_id, f"the hub broke off ({_first_line(error)})")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return _ERRNO.sub("", lines[0]) if lines else type(error).__name__
