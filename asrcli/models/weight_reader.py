"""Looking weights up by name, in the format they run in; fusing those that are used together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import torch
from torch import Tensor

from asrcli.engine.device import unquantized
from asrcli.engine.layers import LayerNorm, Linear
from asrcli.engine.packing import can_pack, pack_linear
from asrcli.engine.quantizing import quantize_linear
from asrcli.errors import CheckpointError

MIN_STEP_WEIGHTS = 2_000_000
"""Numbers of a map for a decode step's few rows that are worth being integers: to lay a smaller
one's input out as integers takes longer than to read twice as many bytes of weights."""

MIN_OUTPUTS = 768
"""Outputs of a map for whole windows that are worth its input being laid out as integers, where
bfloat16 is multiplied fast as well: 1413 rows of 512 by as many take 1.5 to 1.7 ms either way, by
1536 outputs 3.3 instead of 5.0 ms."""


class WeightReader:
    """Gives a checkpoint's weights in ``dtype`` on ``device``.

    Args:
        tensors: weights by name.
        dtype: of the affine maps' weights; with int8 the rest is in the format that goes with it.
        prefix: what all names begin with.

    Attributes:
        is_exact: whether the network is to run as exactly as it was trained.

    Raises:
        KeyError: in every method, where a weight is missing; its name is the argument.
    """

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        device: torch.device,
        dtype: torch.dtype,
        *,
        prefix: str = "",
    ) -> None:
        self.device = device
        self._tensors = tensors
        self._dtype = unquantized(dtype)
        self._quantizes = dtype is torch.int8
        self.is_exact = dtype is torch.float32
        self._prefix = prefix

    def has(self, name: str) -> bool:
        """Whether there is a weight of that name."""
        return f"{self._prefix}{name}" in self._tensors

    def tensor(self, name: str, *, scale: float = 1.0) -> Tensor:
        """A weight, multiplied in float32 where it is to be scaled."""
        return self._cast(self._tensors[f"{self._prefix}{name}"], scale)

    def embedding(self, name: str, output: str | None = None) -> tuple[Tensor, Linear]:
        """What gives ids their embeddings, and the map from states to scores of all ids.

        Single rows of the first are looked up: on a CPU where they are stored, in the file.

        Args:
            name: of the embedding.
            output: name of the map, if it is not the embedding.
        """
        last = output or name
        scores = self.linear(last, without_bias=(last,), in_steps=True)
        if self.device.type == "cpu":
            return self._tensors[f"{self._prefix}{name}.weight"], scores
        return scores.weight if output is None else self.tensor(f"{name}.weight"), scores

    def norm(self, name: str) -> LayerNorm:
        """A layer norm."""
        return LayerNorm(self.tensor(f"{name}.weight"), self.tensor(f"{name}.bias"))

    def linear(
        self,
        *names: str,
        query_scale: float = 1.0,
        without_bias: tuple[str, ...] = (),
        in_steps: bool = False,
    ) -> Linear:
        """Affine maps of one input, stacked; packed at once, so that few plain weights are kept.

        Args:
            query_scale: multiplies what ends in "q_proj": queries carry their 1/sqrt(head_dim).
            without_bias: ends of names that may lack a bias, which then is zeros; where none of the
                maps has one, the stack has none either.
            in_steps: whether what passes through is mostly the few rows of a decode step.
        """
        scales = [query_scale if name.endswith("q_proj") else 1.0 for name in names]
        weights = [
            self.tensor(f"{name}.weight", scale=scale)
            for name, scale in zip(names, scales, strict=True)
        ]
        biased = [self.has(f"{name}.bias") or not name.endswith(without_bias) for name in names]
        if not any(biased):
            return self._finish(Linear(_stack(weights)), in_steps)
        biases = [
            self.tensor(f"{name}.bias", scale=scale)
            if is_biased
            else self._cast(torch.zeros(len(weight)), 1.0)
            for name, scale, is_biased, weight in zip(names, scales, biased, weights, strict=True)
        ]
        return self._finish(Linear(_stack(weights), _stack(biases)), in_steps)

    def _finish(self, linear: Linear, in_steps: bool) -> Linear:
        if in_steps:
            is_worth_it = linear.weight.numel() >= MIN_STEP_WEIGHTS
        else:
            is_worth_it = len(linear.weight) >= MIN_OUTPUTS or not can_pack(linear.weight)
        return quantize_linear(linear) if self._quantizes and is_worth_it else pack_linear(linear)

    def _cast(self, tensor: Tensor, scale: float) -> Tensor:
        scaled = tensor if scale == 1.0 else tensor.float() * scale
        return scaled.to(self.device, self._dtype)


def _stack(tensors: list[Tensor]) -> Tensor:
    return tensors[0] if len(tensors) == 1 else torch.cat(tensors)


def missing(name: str, folder: Path | None = None) -> CheckpointError:
    """What to say of a weight or a setting that a checkpoint lacks."""
    where = "" if folder is None else f"{folder}: "
    return CheckpointError(
        f"{where}{name} is missing from the checkpoint",
        hint="the files may be damaged or of another kind of model; fetch them again",
    )
