from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants

from asrcli.models import registry
from tests.models.servers import Site, serve

ROOT = Path(__file__).parents[2]
FAMILIES = {"whisper": "WHISPER", "other": "OTHER"}
Announce = Callable[[dict[str, str]], None]


@dataclass
class Recorder:
    """A reporter that keeps what it is told."""

    notes: list[str] = field(default_factory=list)
    downloads: list[tuple[str, int | None]] = field(default_factory=list)
    num_bytes: int = 0

    def note(self, message: str) -> None:
        self.notes.append(message)

    @contextmanager
    def download(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        self.downloads.append((name, total))

        def advance(num_bytes: int) -> None:
            self.num_bytes += num_bytes

        yield advance


@pytest.fixture
def reporter() -> Recorder:
    return Recorder()


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Iterator[Announce]:
    """Have these objects of ``sample_families`` announced by entry points, and no others."""

    def set_points(names: dict[str, str]) -> None:
        points = [
            EntryPoint(name, f"tests.models.sample_families:{value}", registry.GROUP)
            for name, value in names.items()
        ]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        registry.families.cache_clear()
        registry.aliases.cache_clear()

    yield set_points
    registry.families.cache_clear()
    registry.aliases.cache_clear()


@pytest.fixture
def own_caches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, announce: Announce
) -> Iterator[Path]:
    """The sample families, and empty caches of the hub and of asrcli: ``hub`` and ``asr`` in it."""
    announce(FAMILIES)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # where nothing listens
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "asr"))
    yield tmp_path
    huggingface_hub.close_session()


@pytest.fixture
def site() -> Iterator[Site]:
    with serve() as site:
        yield site


@pytest.fixture
def hub(own_caches: Path, site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A hub that answers, so far without a repository."""
    template = constants.HUGGINGFACE_CO_URL_TEMPLATE.replace(
        constants._HF_DEFAULT_ENDPOINT, site.url
    )
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "ENDPOINT", site.url)
    return site


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """For a process of its own that sees the family "other" and empty caches."""
    package = tmp_path / "packages" / "sample_families-1.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: sample-families\nVersion: 1\n")
    entry_point = "other = tests.models.sample_families:OTHER"
    (package / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{entry_point}\n")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HF_", "PIP_", "ASR_"))}
    return kept | {
        "PYTHONPATH": os.pathsep.join([str(package.parent), str(ROOT)]),
        "ASR_CACHE": str(tmp_path / "asr"),
        "HF_HOME": str(tmp_path / "hf"),
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_NO_CACHE_DIR": "1",
    }
