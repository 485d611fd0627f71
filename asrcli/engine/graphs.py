"""Decode steps as CUDA graphs: the hundreds of kernels of a step are launched by one call.

A graph reads and writes fixed places in memory. So a step's ids and positions are copied into
buffers that stay, its logits come out in one that stays, and its rows are padded to one of few
numbers; each shape that a step can have is recorded when it is first met. All graphs draw on one
pool of memory, since no two of them ever run at once and nothing but the logits outlives a step.

A row of padding takes in an id at position 0 of a slot that no row uses. Whoever gets that slot
writes its own position 0 before anything is read there, so nothing of it is ever seen.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from collections.abc import Sequence as Rows

import torch
from torch import Tensor

from asrcli.engine.transfer import gpu_beside_engine, open_stream, upload_into

Step = Callable[[Tensor, Tensor], Tensor]
"""Takes ids and positions, both int64 [num_rows], into rows 0 and up; gives float32 logits
[num_rows, vocabulary]. It must not need anything from the host but what its shape tells."""

ROW_STEP = 32
LENGTH_STEP = 128
STEPS_PER_OCTAVE = 4


class StepGraphs:
    """Runs steps over buffers that stay, by graphs where the device has them.

    Elsewhere the same step runs over the same buffers without being recorded.

    Args:
        num_rows: of a step at most.
        records: whether steps are recorded on a GPU; without, kernels are launched one by one.

    Attributes:
        num_recorded: graphs so far, those that were dropped included.
        failure: why steps are no longer recorded; None while all is well.
    """

    def __init__(self, device: torch.device, num_rows: int, *, records: bool = True) -> None:
        self.num_recorded = 0
        self.failure: str | None = None
        self._device = device
        self._records = records and device.type == "cuda"
        self._num_rows = num_rows
        self._inputs = torch.zeros(num_rows, 2, device=device, dtype=torch.long)
        self._logits: Tensor | None = None
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}
        if self._records:
            self._side = open_stream(device)
            self._pool = torch.cuda.graph_pool_handle()

    def run(
        self, token_ids: Rows[int], positions: Rows[int], num_rows: int, shape: Hashable, step: Step
    ) -> Tensor:
        """Run a step.

        Args:
            token_ids, positions: of the rows.
            num_rows: these and those of padding.
            shape: all else that the step's kernels depend on.

        Returns:
            Logits of the rows, float32 [len(token_ids), vocabulary], until the next step.
        """
        padding = [(0, 0)] * (num_rows - len(token_ids))
        pairs = [*zip(token_ids, positions, strict=True), *padding]
        upload_into(self._inputs[:num_rows], pairs)
        self._run(num_rows, shape, step)
        assert self._logits is not None
        return self._logits[: len(token_ids)]

    def drop(self) -> None:
        """Forget all graphs, before what they read is laid out anew."""
        if self._records:
            torch.cuda.synchronize(self._device)  # one of them may be running
        self._graphs.clear()
        if self._records:
            self._pool = torch.cuda.graph_pool_handle()

    def _run(self, num_rows: int, shape: Hashable, step: Step) -> None:
        """Have a step's logits where they are looked for."""
        if self._records:
            with torch.cuda.device(self._device):
                self._replay(num_rows, shape, step)
        if not self._records:  # from the start, or because recording has just failed
            logits = self._call(num_rows, step)
            self._output(logits).copy_(logits)

    def _call(self, num_rows: int, step: Step) -> Tensor:
        inputs = self._inputs[:num_rows]
        return step(inputs[:, 0], inputs[:, 1])

    def _output(self, logits: Tensor) -> Tensor:
        """Where logits are put."""
        if self._logits is None:
            self._logits = logits.new_zeros(self._num_rows, logits.shape[1])
        return self._logits[: len(logits)]

    def _replay(self, num_rows: int, shape: Hashable, step: Step) -> None:
        graph = self._graphs.get((num_rows, shape))
        if graph is None:
            try:
                graph = self._record(num_rows, step)
            except torch.OutOfMemoryError:
                raise
            except RuntimeError as error:
                # What ends the recording fails as well, and hides the reason.
                if isinstance(error.__context__, torch.OutOfMemoryError):
                    raise error.__context__ from None
                self._records, self.failure = False, str(error.__context__ or error)
                self._graphs.clear()
                return
            self._graphs[num_rows, shape] = graph
        graph.replay()

    def _record(self, num_rows: int, step: Step) -> torch.cuda.CUDAGraph:
        """Run a step once, so that all that is set up on first use is there, and record it."""
        here = torch.cuda.current_stream()
        self._side.wait_stream(here)
        with torch.cuda.stream(self._side):
            logits = self._call(num_rows, step)
        here.wait_stream(self._side)
        output = self._output(logits)  # of the memory of the stream at hand, not of the pool
        del logits
        graph = torch.cuda.CUDAGraph()
        recording = torch.cuda.graph(
            graph, pool=self._pool, stream=self._side, capture_error_mode="thread_local"
        )
        with gpu_beside_engine, recording:
            output.copy_(self._call(num_rows, step))
        self.num_recorded += 1
        return graph


def pad_rows(num_rows: int, at_most: int) -> int:
    """The next of few numbers of rows: powers of two, then multiples of 32."""
    if num_rows <= ROW_STEP:
        return min(1 << (num_rows - 1).bit_length(), at_most)
    return min(-(-num_rows // ROW_STEP) * ROW_STEP, at_most)


def pad_length(length: int, at_most: int) -> int:
    """The next of few lengths, at most a quarter longer: four between a power of two and the next,
    and multiples of 128."""
    step = max(LENGTH_STEP, (1 << (length - 1).bit_length()) // (2 * STEPS_PER_OCTAVE))
    return min(-(-length // step) * step, at_most)
