"""Weights of a language model (Llama, Qwen3), from Hugging Face's names to the engine's network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from asrcli.engine.decoder_only import LanguageLayer, LanguageWeights
from asrcli.engine.layers import Linear, RmsNorm
from asrcli.errors import CheckpointError

PREFIX = "model.language_model."
OUTPUT = "lm_head.weight"


def read_language_model(
    tensors: Mapping[str, Tensor],
    config: Mapping[str, Any],
    device: torch.device,
    dtype: torch.dtype,
) -> LanguageWeights:
    """The language model of a checkpoint.

    Args:
        tensors: all weights, the language model's under ``PREFIX``.
        config: the checkpoint's ``text_config``.

    Raises:
        KeyError: a weight or a setting is missing; its name is the argument.
        CheckpointError: positions are scaled in a way that is not known here.
    """
    return _Reader(tensors, config, device, dtype).read()


class _Reader:
    """Looks weights up by name and fuses those that are used together."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        config: Mapping[str, Any],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._tensors = tensors
        self._config = config
        self._device = device
        self._dtype = dtype
        self._num_heads = int(config["num_attention_heads"])
        self._head_dim = int(
            config.get("head_dim") or int(config["hidden_size"]) // self._num_heads
        )
        self._epsilon = float(config.get("rms_norm_eps", 1e-6))

    def read(self) -> LanguageWeights:
        config = self._config
        embedding = self._cast(self._tensors[f"{PREFIX}embed_tokens.weight"])
        output = self._tensors.get(OUTPUT)
        return LanguageWeights(
            token_embedding=embedding,
            layers=tuple(
                self._layer(f"{PREFIX}layers.{index}.")
                for index in range(int(config["num_hidden_layers"]))
            ),
            norm=self._norm(f"{PREFIX}norm"),
            output=embedding if output is None else self._cast(output),
            num_heads=self._num_heads,
            num_key_value_heads=int(config["num_key_value_heads"]),
            head_dim=self._head_dim,
            rotary_frequencies=self._frequencies(),
            max_length=int(config["max_position_embeddings"]),
        )

    def _layer(self, name: str) -> LanguageLayer:
        attention = f"{name}self_attn."
        has_norms = f"{attention}q_norm.weight" in self._tensors
        scale = self._head_dim**-0.5
        projections = [f"{attention}{part}_proj" for part in ("q", "k", "v")]
        query_scale = 1.0 if has_norms else scale
        return LanguageLayer(
            attention_norm=self._norm(f"{name}input_layernorm"),
            qkv=self._linear(*projections, scales=(query_scale, 1.0, 1.0)),
            query_norm=self._norm(f"{attention}q_norm", scale=scale) if has_norms else None,
            key_norm=self._norm(f"{attention}k_norm") if has_norms else None,
            attention_out=self._linear(f"{attention}o_proj"),
            feed_forward_norm=self._norm(f"{name}post_attention_layernorm"),
            gate_up=self._linear(f"{name}mlp.gate_proj", f"{name}mlp.up_proj"),
            down=self._linear(f"{name}mlp.down_proj"),
        )

    def _frequencies(self) -> Tensor:
        """Radians a position, float32 [head_dim / 2] (Su et al. 2021)."""
        rotary = self._config.get("rope_parameters") or self._config.get("rope_scaling") or {}
        kind = rotary.get("rope_type", rotary.get("type", "default"))
        # Sections of a multimodal rotation all turn alike where there are only text and audio.
        if kind not in ("default", "mrope"):
            raise CheckpointError(f"rotary positions of type {kind!r} are unknown")
        base = float(rotary.get("rope_theta") or self._config.get("rope_theta") or 10_000.0)
        steps = torch.arange(0, self._head_dim, 2, dtype=torch.float32) / self._head_dim
        return (1.0 / base**steps).to(self._device)

    def _linear(self, *names: str, scales: tuple[float, ...] | None = None) -> Linear:
        """Affine maps of one input, stacked and each scaled; a missing bias is zeros."""
        factors = scales or (1.0,) * len(names)
        weights = [self._tensors[f"{name}.weight"] for name in names]
        biases = [self._tensors.get(f"{name}.bias") for name in names]
        weight = self._scaled(weights, factors)
        if all(bias is None for bias in biases):
            return Linear(weight)
        filled = [
            torch.zeros(len(weight)) if bias is None else bias
            for weight, bias in zip(weights, biases, strict=True)
        ]
        return Linear(weight, self._scaled(filled, factors))

    def _scaled(self, parts: list[Tensor], factors: tuple[float, ...]) -> Tensor:
        """Parts of a stack, multiplied in float32 where they are, cast before they are joined."""
        return torch.cat(
            [
                self._cast(part if factor == 1.0 else part.float() * factor)
                for part, factor in zip(parts, factors, strict=True)
            ]
        )

    def _norm(self, name: str, scale: float = 1.0) -> RmsNorm:
        return RmsNorm(self._scaled([self._tensors[f"{name}.weight"]], (scale,)), self._epsilon)

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, self._dtype)
