"""Real speech for the tests: five sentences that volunteers read for LibriVox, from PyPI.

They lie in the source package of pocketsphinx. pip fetches it, so that the user's index, proxy and
certificates count, and checks its hash; only the recordings and their texts are taken out of it.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from asrcli.audio.reading import open_audio
from asrcli.audio.sources import expand
from asrcli.models.cache import cache_folder, publish, working_folder
from asrcli.windows import Window

RATE = 16_000
NUM_SENTENCES = 5
PACKAGE, VERSION = "pocketsphinx", "5.1.1"
SHA256 = "675778b309a22dfc9b7d37f7621976bba491d2a5f8c59696bd77fd6d07271355"
SAMPLES = Path(__file__).parents[1] / "samples"
SHARED_AUDIO = Path(__file__).parents[2] / "shared" / "audio"

# Before pip keeps a source package it asks the package's build backend for name and version. This
# one answers instead, so that nothing of the package is built or run.
BACKEND = "scikit_build_core"
BUILD = f'''
from pathlib import Path

def build_wheel(*arguments, **settings):
    raise NotImplementedError

build_sdist = build_wheel

def prepare_metadata_for_build_wheel(folder, config_settings=None):
    info = Path(folder, "{PACKAGE}-{VERSION}.dist-info")
    info.mkdir(parents=True)
    text = "Metadata-Version: 2.1\\nName: {PACKAGE}\\nVersion: {VERSION}\\n"
    (info / "METADATA").write_text(text)
    return info.name
'''

_recording_ids = itertools.count(1_000_000_000)  # far from those that the pipeline gives


class Sentence(NamedTuple):
    """A recording of a sentence, and what it says in lower case without marks."""

    path: Path
    text: str


def fetch_sentences() -> list[Sentence]:
    """The five sentences, from the cache folder or from PyPI."""
    final = cache_folder() / "tests" / f"{PACKAGE}-{VERSION}"
    if not _is_whole(final):
        with working_folder(final) as work:
            _unpack(_download(work), work / "speech")
            publish(work / "speech", final, _is_whole)
    paths = sorted(final.glob("*.wav"))
    return [Sentence(path, path.with_suffix(".txt").read_text().strip()) for path in paths]


def _is_whole(folder: Path) -> bool:
    return len(list(folder.glob("*.wav"))) == len(list(folder.glob("*.txt"))) == NUM_SENTENCES


def _download(work: Path) -> Path:
    backend = work / "backend" / BACKEND
    backend.mkdir(parents=True)
    (backend / "__init__.py").touch()
    (backend / "build.py").write_text(BUILD)
    requirements = work / "requirements.txt"
    requirements.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--no-binary", ":all:", "--no-build-isolation"]
    command += ["-r", str(requirements), "-d", str(work / "package")]
    environment = os.environ | {"PYTHONPATH": str(backend.parent), "PIP_REQUIRE_VIRTUALENV": "0"}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"the tests need real speech, and pip cannot fetch it:\n{result.stderr}")
    (archive,) = (work / "package").iterdir()
    return archive


def _unpack(archive: Path, folder: Path) -> None:
    folder.mkdir()
    with tarfile.open(archive) as package:
        for member in package:
            path = Path(member.name)
            if path.parent.name == "librivox" and path.suffix in (".wav", ".txt"):
                content = package.extractfile(member)
                assert content is not None
                (folder / path.name).write_bytes(content.read())
    if not _is_whole(folder):
        raise RuntimeError(f"{archive.name} does not hold the speech that the tests expect")


def read(path: Path) -> NDArray[np.float32]:
    """A whole recording, float32 [num_samples] at 16 kHz."""
    (source,) = expand([path])
    with open_audio(source) as reader:
        return np.concatenate(list(reader.blocks()))


def window_of(
    samples: NDArray[np.float32],
    *,
    start: float = 0.0,
    index: int = 0,
    recording_id: int | None = None,
) -> Window:
    """A window that holds these samples; without a number, of a recording of its own."""
    return Window(
        recording_id=next(_recording_ids) if recording_id is None else recording_id,
        index=index,
        samples=samples,
        start=start,
        end=start + len(samples) / RATE,
    )


def cuts(sentences: Sequence[Sentence]) -> list[NDArray[np.float32]]:
    """Eight real clips of 1.5 to 12 s: the sentences, parts of them, and two in one."""
    first, second, third, fourth, fifth = (read(sentence.path) for sentence in sentences)
    return [
        first,
        second,
        third,
        fifth,
        first[: round(1.5 * RATE)],
        fourth[round(0.7 * RATE) :],
        np.concatenate([first, third])[: 12 * RATE],
        np.concatenate([second, fifth]),
    ]
