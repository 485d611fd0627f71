"""The check itself, on small networks and without a GPU."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pytest
import torch
from torch import Tensor

from asrcli.engine.graphs import Step, StepGraphs
from tests.gpu import check


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def test_all_networks(capsys: pytest.CaptureFixture[str]) -> None:
    assert check.main(["--small", "--device", "cpu"]) == 0
    written = capsys.readouterr().out
    assert written.count("ids as launched by kernel   100.0% of windows") == 3
    assert "times as fast (goal 10)" in written
    assert written.endswith("ids are equal\n")


def test_other_ids_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Wrong(StepGraphs):
        """What would be recorded forgets where each id stands."""

        def __init__(self, device: torch.device, num_rows: int, *, records: bool = True) -> None:
            super().__init__(device, num_rows, records=records)
            self.forgets = records

        def run(
            self,
            token_ids: Sequence[int],
            positions: Sequence[int],
            num_rows: int,
            shape: Hashable,
            step: Step,
        ) -> Tensor:
            if self.forgets:
                positions = [0] * len(positions)
            return super().run(token_ids, positions, num_rows, shape, step)

    monkeypatch.setattr(check, "StepGraphs", Wrong)
    assert check.main(["--small", "--device", "cpu", "--only", "qwen3-asr"]) == 1
    assert "were not recorded: Qwen3-ASR-0.6B" in capsys.readouterr().out
