"""Which model families there are, and which of them reads a checkpoint.

Families announce themselves by the entry-point group ``asrcli.models``; the built-in ones too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType

from asrcli.errors import CheckpointError
from asrcli.models.base import Alias, Family

GROUP = "asrcli.models"

_logger = logging.getLogger(__name__)


@cache
def families() -> Mapping[str, Family]:
    """Every family by name, built-in ones first.

    One that cannot be loaded is left out and named in an error line of the log, which goes to
    stderr: a broken package of a third party must not take the others along.
    """
    return MappingProxyType(_load_families(entry_points(group=GROUP)))


def find_family(architecture: str) -> Family:
    """The family that reads checkpoints of this class, by its exact name.

    Raises:
        CheckpointError: none does. There is no falling back to a family that might.
    """
    for family in families().values():
        if architecture in family.architectures:
            return family
    known = [name for family in families().values() for name in family.architectures]
    raise CheckpointError(
        f"architecture {architecture} is unknown", hint=f"known: {', '.join(known) or 'none'}"
    )


@cache
def aliases() -> Mapping[str, tuple[Family, Alias]]:
    """Every alias with its family, in the order in which the families list them."""
    return MappingProxyType(
        {alias.name: (family, alias) for family in families().values() for alias in family.aliases}
    )


def _load_families(points: Iterable[EntryPoint]) -> dict[str, Family]:
    found: dict[str, Family] = {}
    for point in sorted(set(points), key=lambda point: (not _is_built_in(point), point.name)):
        try:
            family = _load(point)
            _check_is_new(family, found)
        except Exception as error:  # whatever a stranger's module raises on import
            _logger.error("model family %s (%s): %s", point.name, point.value, _one_line(error))
        else:
            found[family.name] = family
    return found


def _is_built_in(point: EntryPoint) -> bool:
    return point.value.startswith("asrcli.")


def _load(point: EntryPoint) -> Family:
    family = point.load()
    if not isinstance(family, Family):
        raise TypeError(f"not a Family but {type(family).__name__}")
    return family


def _check_is_new(family: Family, found: Mapping[str, Family]) -> None:
    if family.name in found:
        raise ValueError(f"the name {family.name} is taken")
    taken = {alias.name for other in found.values() for alias in other.aliases}
    taken.update(name for other in found.values() for name in other.architectures)
    for name in (*family.architectures, *(alias.name for alias in family.aliases)):
        if name in taken:
            raise ValueError(f"{name} is taken by another family")


def _one_line(error: Exception) -> str:
    lines = str(error).splitlines() or [""]
    return f"{type(error).__name__}: {lines[0]}"
