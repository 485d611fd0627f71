"""Steps that are recorded and replayed without a GPU, as strictly as by CUDA graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

from asrcli.engine.graphs import Step, StepGraphs


class TracedGraphs(StepGraphs):
    """Records a step as the list of its tensor operations, and runs these alone from then on.

    As with CUDA graphs, nothing of the step's Python runs again: a number that came from the host
    stays as it was, and tensors are those that the step used when it was recorded.

    Attributes:
        replays: how often each graph was run again after it was recorded.
        shapes: of all that was recorded, with its number of rows.
        num_drops: how often all graphs were dropped.
    """

    def __init__(self, num_rows: int) -> None:
        super().__init__(torch.device("cpu"), num_rows)
        self.replays: Counter[Hashable] = Counter()
        self.shapes: list[tuple[int, Any]] = []
        self.num_drops = 0
        self._traced: dict[Hashable, Any] = {}

    def drop(self) -> None:
        super().drop()
        self.num_drops += 1
        self._traced.clear()

    def _run(self, num_rows: int, shape: Hashable, step: Step) -> None:
        key = num_rows, shape
        if key in self._traced:
            self.replays[key] += 1
            super()._run(num_rows, shape, self._traced[key])
            return
        super()._run(num_rows, shape, step)  # what it has written, it writes again
        inputs = self._inputs[:num_rows]
        self._traced[key] = make_fx(step)(inputs[:, 0], inputs[:, 1])
        self.shapes.append(key)
        self.num_recorded += 1
