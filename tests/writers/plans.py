"""Sources and plans for the tests of the places of results."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from asrcli.writers.outputs import Plan, plan_outputs


@dataclasses.dataclass(frozen=True)
class Recording:
    """What the plan needs of a source."""

    name: str
    path: Path | None
    relative: Path


STDIN = Recording("stdin", None, Path("stdin"))


def named(*paths: str | Path) -> list[Recording]:
    """Files that were named one by one."""
    return [Recording(str(path), Path(path), Path(Path(path).name)) for path in paths]


def found(folder: str, *paths: str) -> list[Recording]:
    """Files that were found in a folder."""
    return [Recording(f"{folder}/{path}", Path(folder, path), Path(path)) for path in paths]


def plan(
    sources: list[Recording], *formats: str, output: str | None = None, any_folder: bool = False
) -> Plan:
    return plan_outputs(sources, formats=formats, output=output, any_folder=any_folder)


def targets(plan: Plan) -> list[list[str | None]]:
    return [[None if o.path is None else str(o.path) for o in group] for group in plan.outputs]
