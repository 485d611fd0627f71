"""The calls into huggingface_hub, with its errors in one line each and its talk kept quiet."""

from __future__ import annotations

import errno
import logging
import re
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from asrcli.errors import CheckpointError

PROBE_TIMEOUT = 3.0
"""Seconds in which the hub has to answer at all."""

_HUB_ID = re.compile(r"(?P<repo_id>[\w.-]+/[\w.-]+)(@(?P<revision>[\w./-]+))?")
_ERRNO = re.compile(r"^\[Errno -?\d+\] ")


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


class HubUnreachableError(CheckpointError):
    """The hub does not answer, or must not be asked. What else there is can be tried.

    Args:
        hub_id: what was wanted of it.
        reason: why it cannot be had, to go on after the name of the model.
    """

    def __init__(self, hub_id: HubId, reason: str) -> None:
        super().__init__(f"{hub_id}: {reason}")
        self.reason = reason


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids the network."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def why_unreachable() -> str | None:
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


def list_files(hub_id: HubId) -> dict[str, int | None]:
    """Names and sizes of what a repository holds."""
    from huggingface_hub import HfApi, constants

    api = HfApi(endpoint=constants.ENDPOINT)
    info = api.model_info(hub_id.repo_id, revision=hub_id.revision, files_metadata=True)
    return {file.rfilename: file.size for file in info.siblings or []}


def fetch(hub_id: HubId, names: list[str], advance: Callable[[int], None]) -> Path:
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
def without_library_talk() -> Iterator[None]:
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
def explained(hub_id: HubId) -> Iterator[None]:
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
        raise transfer_error(hub_id, error) from error


def transfer_error(hub_id: HubId, error: BaseException) -> CheckpointError:
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
