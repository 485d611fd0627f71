from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, new and empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
