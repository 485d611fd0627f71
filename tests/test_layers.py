"""Who may import whom, where third parties live, and how large anything may grow."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import asrcli

PACKAGE = Path(asrcli.__file__).parent
MAX_LINES, MAX_FUNCTION_LINES = 350, 60
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc"}

# A part may import the parts named here, and itself. A module is of the part with the longest name
# that fits.
MAY_IMPORT: dict[str, set[str]] = {
    "asrcli": {"errors", "options", "recognizer", "transcript"},
    "errors": set(),
    "transcript": set(),
    "stages": set(),
    "compute_threads": set(),
    "languages": {"errors"},
    "options": {"errors", "languages"},
    "detection": set(),
    "guards": {"backends.base", "words"},
    "speech_times": {"transcript"},
    "retries": {"backends.base", "guards", "transcript", "windows"},
    "second_hearing": {"backends.base", "guards"},
    "halves": {"backends.base", "guards", "windows"},
    "audio": {"errors", "compute_threads"},
    "words": set(),
    "windows": {"audio", "transcript", "words"},
    "engine": {"errors", "stages", "compute_threads"},
    "models": {
        "engine", "windows", "transcript", "options", "errors", "languages", "audio.reading",
    },
    "backends.base": {"options", "transcript", "windows"},
    "backends": {"backends.base", "recognizer", "errors"},
    "feeding": {
        "audio", "windows", "backends.base", "options", "errors", "stages", "compute_threads",
    },
    "pipeline": {
        "feeding", "audio", "windows", "backends", "options", "transcript", "errors", "stages",
    },
    "jobs": {"backends.base", "engine", "options", "windows"},
    "attempts": {
        "jobs",
        "windows",
        "guards",
        "second_hearing",
        "halves",
        "retries",
        "speech_times",
        "detection",
        "compute_threads",
        "backends",
        "models",
        "engine",
        "options",
        "errors",
    },
    "recognizer": {
        "attempts", "models", "engine", "pipeline", "backends", "options", "errors", "stages",
        "compute_threads",
    },
    "writers": {"transcript", "errors"},
    "evaluation": {"audio.sources", "errors", "languages", "writers"},
    "console": {"errors"},
    "progress": {"console", "audio", "errors"},
    "bench": {
        "audio.sources", "engine", "errors", "memory_use", "pipeline", "recognizer", "stages",
    },
    "bench_report": {"bench", "peers", "stages"},
    "peers": {"errors", "memory_use"},
    "memory_use": set(),
    "__main__": {"cli"},
    "cli": {
        "errors", "transcript", "languages", "options", "audio", "windows", "models", "backends",
        "pipeline", "recognizer", "writers", "console", "progress", "evaluation", "asrcli",
        "bench", "bench_report", "peers",
    },
}  # fmt: skip

HOMES: dict[str, set[str]] = {
    "typer": {"cli"},
    "rich": {"console", "progress", "cli"},
    "transformers": {"models", "engine"},
    "torch": {
        "engine",
        "models",
        "recognizer",
        "bench",
        "cli.models",
        "cli.bench",
        "audio.vad",
        "compute_threads",
    },
    "av": {"audio"},
    "soundfile": {"audio"},
    "soxr": {"audio"},
    "librosa": {"models.log_mel"},
    "tokenizers": {"models"},
    "safetensors": {"models", "audio.vad"},
    "huggingface_hub": {"models"},
    "platformdirs": {"models.cache"},
    "silero_vad": {"audio"},
    "jiwer": {"evaluation.scoring"},
    "whisper_normalizer": {"evaluation.normalizers"},
    "numpy": {"audio", "windows", "models"},
}
LAZY = {("rich", "cli.models"), ("jiwer", "evaluation"), ("whisper_normalizer", "evaluation"),
        ("torch", "cli.models"), ("torch", "cli.bench"), ("torch", "models.files"),
        ("torch", "audio"), ("torch", "compute_threads"),
        ("safetensors", "audio"), ("transformers", "models")}  # fmt: skip


class Import(NamedTuple):
    """``importer`` takes something from ``imported``; names inside asrcli are without "asrcli."."""

    importer: str
    imported: str
    is_ours: bool
    is_lazy: bool
    line: int


def modules() -> dict[str, Path]:
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        found[name or "asrcli"] = path
    return found


MODULES = modules()


def walk(node: ast.AST, *, in_function: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """Import statements that run, with whether they wait for a call."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child, in_function
        elif isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            for statement in child.orelse:
                yield from walk(statement, in_function=in_function)
        else:
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            yield from walk(child, in_function=in_function or is_function)


def imported_names(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.Import):
        return [alias.name for alias in statement.names]
    assert isinstance(statement, ast.ImportFrom)
    assert statement.level == 0, "imports are written out"
    module = statement.module or ""
    names = [f"{module}.{alias.name}" for alias in statement.names]
    # "from asrcli.audio import riff" means the module, "from asrcli.errors import X" a name in it.
    return [name if name.removeprefix("asrcli.") in MODULES else module for name in names]


def imports() -> list[Import]:
    found = []
    for importer, path in MODULES.items():
        for statement, is_lazy in walk(ast.parse(path.read_text("utf-8"))):
            for name in imported_names(statement):
                is_ours = name == "asrcli" or name.startswith("asrcli.")
                imported = name.removeprefix("asrcli.") if is_ours else name.split(".")[0]
                found.append(Import(importer, imported, is_ours, is_lazy, statement.lineno))
    return found


IMPORTS = imports()


def is_part(module: str, part: str) -> bool:
    return module == part or module.startswith(f"{part}.")


def part_of(module: str) -> str:
    fitting = [part for part in MAY_IMPORT if is_part(module, part)]
    assert fitting, f"asrcli.{module} is of no part that the layers know"
    return max(fitting, key=len)


def tell(found: list[Import]) -> list[str]:
    return [f"{each.importer}:{each.line} imports {each.imported}" for each in found]


def test_the_walk_sees_what_is_there() -> None:
    pairs = {(each.importer, each.imported, each.is_lazy) for each in IMPORTS}
    assert ("recognizer", "engine.loop", False) in pairs
    assert ("audio.opening", "audio.riff", False) in pairs
    assert ("engine.loop", "torch", False) in pairs
    assert ("models.whisper", "models.log_mel", True) in pairs
    assert ("models.base", "options", False) not in pairs  # for type checkers only
    assert len(IMPORTS) > 200


def test_every_module_is_of_a_part() -> None:
    assert {part_of(module) for module in MODULES} <= set(MAY_IMPORT)


def test_who_may_import_whom() -> None:
    wrong = []
    for each in IMPORTS:
        part = part_of(each.importer)
        allowed = MAY_IMPORT[part] | {part}
        if each.is_ours and not any(is_part(each.imported, other) for other in allowed):
            wrong.append(each)
    assert not tell(wrong)


def test_third_parties_live_at_home() -> None:
    wrong = [
        each
        for each in IMPORTS
        if each.imported in HOMES
        and not each.is_ours
        and not any(is_part(each.importer, home) for home in HOMES[each.imported])
    ]
    assert not tell(wrong)


def test_what_is_heavy_waits_until_it_is_needed() -> None:
    wrong = [
        each
        for each in IMPORTS
        if not each.is_ours
        and not each.is_lazy
        and any(each.imported == name and is_part(each.importer, home) for name, home in LAZY)
    ]
    assert not tell(wrong)


def test_no_circles() -> None:
    """Modules that import each other as they load."""
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for each in IMPORTS:
        if each.is_ours and not each.is_lazy and each.imported in MODULES:
            graph[each.importer].add(each.imported)
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for imported in sorted(graph[module]):
                visit(imported, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


def test_module_names_say_something() -> None:
    assert not [m for m in MODULES if VAGUE_NAMES & set(m.lower().split("."))]


@pytest.mark.parametrize("module", MODULES)
def test_nothing_grows_too_large(module: str) -> None:
    source = MODULES[module].read_text("utf-8")
    assert len(source.splitlines()) <= MAX_LINES
    functions = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    # A command declares its options in its signature, which may be as long as there are options.
    first = {f: f.body[0].lineno if is_part(module, "cli") else f.lineno for f in functions}
    long = {f.name: (f.end_lineno or 0) - line + 1 for f, line in first.items()}
    assert not {name: lines for name, lines in long.items() if lines > MAX_FUNCTION_LINES}
