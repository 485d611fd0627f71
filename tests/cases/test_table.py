"""The list of cases names tests that there are."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import tests.cases

TESTS = Path(__file__).parents[1]
NUMBERS = (
    1, 2, 3, 5, 7, 8, 9, 11, 12, 14, 17, 19, 22, 23, 24, 25, 27, 29, 30, 31, 32, 34, 36, 37, 39, 41,
    42, 44, 47, 48,
)  # fmt: skip
CASE = re.compile(r"(B\d\d) (\S.*\.)")
TEST = re.compile(r"    (\S+\.py)::(test_\w+)")
LATER = re.compile(r"    later: (\S.*)")


def read_table(text: str) -> dict[str, list[str]]:
    """What stands below each case."""
    table: dict[str, list[str]] = {}
    rows: list[str] = []
    for line in text.split("\n\n", 2)[2].splitlines():
        case = CASE.fullmatch(line)
        if case:
            rows = table.setdefault(case[1], [])
        elif line.strip():
            rows.append(line)
    return table


TABLE = read_table(tests.cases.__doc__ or "")


@cache
def functions_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_case_is_there() -> None:
    assert list(TABLE) == [f"B{number:02}" for number in NUMBERS]
    assert all(rows for rows in TABLE.values())


@pytest.mark.parametrize("case", TABLE)
def test_the_tests_exist(case: str) -> None:
    for row in TABLE[case]:
        named = TEST.fullmatch(row)
        if named is None:
            assert LATER.fullmatch(row), row
            continue
        assert named[2] in functions_of(TESTS / named[1]), row


def test_no_module_of_cases_is_left_out() -> None:
    named = {row.split("::")[0].strip() for rows in TABLE.values() for row in rows}
    modules = {path.relative_to(TESTS).as_posix() for path in Path(__file__).parent.glob("test_*")}
    assert modules - named == {"cases/test_table.py"}
