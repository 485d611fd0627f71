"""Weights of a language model (Llama, Qwen3), from Hugging Face's names to the engine's network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from asrcli.engine.decoder_only import LanguageLayer, LanguageWeights
from asrcli.engine.layers import Linear, RmsNorm
from asrcli.errors import CheckpointError
from asrcli.models.weight_reader import WeightReader

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
    reader = WeightReader(tensors, device, dtype)
    return _Layers(reader, config).read()


class _Layers:
    """Puts the weights where the network wants them."""

    def __init__(self, reader: WeightReader, config: Mapping[str, Any]) -> None:
        self._reader = reader
        self._config = config
        self._num_heads = int(config["num_attention_heads"])
        self._head_dim = int(
            config.get("head_dim") or int(config["hidden_size"]) // self._num_heads
        )
        self._epsilon = float(config.get("rms_norm_eps", 1e-6))

    def read(self) -> LanguageWeights:
        config, reader = self._config, self._reader
        own_output = OUTPUT.removesuffix(".weight") if reader.has(OUTPUT) else None
        token_embedding, output = reader.embedding(f"{PREFIX}embed_tokens", own_output)
        return LanguageWeights(
            token_embedding=token_embedding,
            layers=tuple(
                self._layer(f"{PREFIX}layers.{index}.")
                for index in range(int(config["num_hidden_layers"]))
            ),
            norm=self._norm(f"{PREFIX}norm"),
            output=output,
            num_heads=self._num_heads,
            num_key_value_heads=int(config["num_key_value_heads"]),
            head_dim=self._head_dim,
            rotary_frequencies=self._frequencies().to(reader.device),
            max_length=int(config["max_position_embeddings"]),
        )

    def _layer(self, name: str) -> LanguageLayer:
        attention = f"{name}self_attn."
        has_norms = self._reader.has(f"{attention}q_norm.weight")
        scale = self._head_dim**-0.5
        return LanguageLayer(
            attention_norm=self._norm(f"{name}input_layernorm"),
            qkv=self._linear(
                *(f"{attention}{part}_proj" for part in "qkv"),
                query_scale=1.0 if has_norms else scale,
            ),
            head_norm=self._head_norm(attention, scale) if has_norms else None,
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
        return 1.0 / base**steps

    def _linear(self, *names: str, query_scale: float = 1.0) -> Linear:
        """Whether there are biases is up to the checkpoint."""
        return self._reader.linear(*names, query_scale=query_scale, without_bias=("_proj",))

    def _head_norm(self, attention: str, query_scale: float) -> RmsNorm:
        """The norms of queries and of keys as one, over all their heads."""
        query = self._norm(f"{attention}q_norm", scale=query_scale).weight
        key = self._norm(f"{attention}k_norm").weight
        num_keys = int(self._config["num_key_value_heads"])
        heads = (query.expand(self._num_heads, -1), key.expand(num_keys, -1))
        return RmsNorm(torch.cat(heads), self._epsilon)

    def _norm(self, name: str, scale: float = 1.0) -> RmsNorm:
        return RmsNorm(self._reader.tensor(f"{name}.weight", scale=scale), self._epsilon)
