"""What the loop asks of those that call a network's forward passes; there is one for each kind."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.engine.graphs import StepGraphs
    from asrcli.engine.scheduler import Scheduler, Sequence
    from asrcli.stages import Stages

LENGTH_STEP = 32  # ids


class Runner(Protocol):
    """Feeds sequences to a network and keeps their keys and values.

    Attributes:
        encode_batch_size: windows that the encoder takes at once.
        stages: where the time goes.
        graphs: runs the decode steps; None where they are run plainly.
    """

    encode_batch_size: int
    stages: Stages
    graphs: StepGraphs | None

    @property
    def aligns_rows(self) -> bool:
        """Whether a step gains by rows that stand as their audio does."""

    @property
    def num_slots(self) -> int:
        """Rows that can run at once."""

    @property
    def max_tokens(self) -> int | None:
        """Tokens that all rows together may need; None where every row has its own fixed room."""

    @property
    def max_length(self) -> int:
        """Ids that one request can come to, its prompt included."""

    def prefill(self, newcomers: Rows[Sequence], room: int) -> Tensor:
        """Encode the newcomers' audio and take in their prompts.

        Their slots follow each other, behind those of the rows that run. Sets ``no_speech_prob`` of
        those that ask for it.

        Args:
            room: tokens that every row, old or new, must be able to hold from now on.

        Returns:
            Logits of each one's first id, float32 [num_rows, vocabulary].
        """

    def decode(self, running: Rows[Sequence]) -> Tensor:
        """Take in the last id of every running row (slots 0 to n - 1).

        Returns:
            Logits of each one's next id, float32 [num_rows, vocabulary].
        """

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids over another slot, whose own row is over."""

    def move_audio(self, source: int, target: int) -> None:
        """Move a request's audio to another audio slot, where audio lies by itself."""

    def fork(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids to the slot behind the last."""

    def clear(self, slot: int, audio_slot: int) -> None:
        """Wipe out all that a row holds."""

    def shrink(self, num_slots: int) -> None:
        """Go on with fewer slots and less memory; what they held is lost."""


def round_up(length: int, at_most: int) -> int:
    """The next of few lengths: each new shape of a product is compiled, and kept, anew."""
    return min(-(-length // LENGTH_STEP) * LENGTH_STEP, at_most)


def release(sequence: Sequence, scheduler: Scheduler, runner: Runner) -> None:
    """Take a row out of the batch; the last one moves into its slot, and the last audio into that
    of a request that has ended."""
    moved = scheduler.finish(sequence)
    if moved is not None:
        source, target = moved
        runner.move(source, target, scheduler.running[target].length)
    moved = scheduler.free_audio(sequence.lead)
    if moved is not None:
        runner.move_audio(*moved)
