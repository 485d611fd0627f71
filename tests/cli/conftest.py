from __future__ import annotations

from collections.abc import Callable

import pytest

from asrcli.cli import running
from asrcli.models.base import Checkpoint
from tests.cli.runs import Outcome

Run = Callable[..., Outcome]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """``asr`` within this process, for what needs no model."""
    # It would silence what pytest is to report.
    monkeypatch.setattr(running, "silence_libraries", lambda: None)

    def run(*arguments: str) -> Outcome:
        code = running.run_here(list(arguments))
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def model(base_checkpoint: Checkpoint) -> str:
    """The name of a model that is on this machine."""
    return base_checkpoint.name
