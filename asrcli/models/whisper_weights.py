"""Whisper's weights, from Hugging Face's names to the network of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asrcli.engine.encoder_decoder import (
    DecoderLayer,
    EncoderDecoder,
    EncoderDecoderWeights,
    EncoderLayer,
)
from asrcli.engine.layers import LayerNorm, Linear
from asrcli.errors import CheckpointError

if TYPE_CHECKING:
    from asrcli.models.base import ModelFiles


def build_network(files: ModelFiles, device: torch.device, dtype: torch.dtype) -> EncoderDecoder:
    """The network of a checkpoint, its weights cast to ``dtype`` on ``device``.

    Raises:
        CheckpointError: the configuration or a weight is missing.
    """
    try:
        return EncoderDecoder(_Reader(files.tensors, files.config, device, dtype).read())
    except KeyError as error:
        raise CheckpointError(
            f"{files.tokenizer_path.parent}: {error.args[0]} is missing from the checkpoint",
            hint="the files may be damaged or of another kind of model; fetch them again",
        ) from None


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
        self._num_heads = int(config["encoder_attention_heads"])
        self._query_scale = (int(config["d_model"]) // self._num_heads) ** -0.5

    def read(self) -> EncoderDecoderWeights:
        config = self._config
        return EncoderDecoderWeights(
            convolutions=tuple(
                (
                    self._tensor(f"encoder.conv{number}.weight"),
                    self._tensor(f"encoder.conv{number}.bias"),
                    stride,
                )
                for number, stride in ((1, 1), (2, 2))
            ),
            audio_positions=self._tensor("encoder.embed_positions.weight"),
            encoder_layers=tuple(
                EncoderLayer(**self._layer(f"encoder.layers.{index}"))
                for index in range(config["encoder_layers"])
            ),
            encoder_norm=self._norm("encoder.layer_norm"),
            token_embedding=self._tensor("decoder.embed_tokens.weight"),
            token_positions=self._tensor("decoder.embed_positions.weight"),
            decoder_layers=tuple(
                DecoderLayer(
                    **self._layer(f"decoder.layers.{index}"),
                    **self._audio_attention(f"decoder.layers.{index}"),
                )
                for index in range(config["decoder_layers"])
            ),
            decoder_norm=self._norm("decoder.layer_norm"),
            num_heads=self._num_heads,
        )

    def _layer(self, name: str) -> dict[str, Any]:
        attention = f"{name}.self_attn"
        return {
            "attention_norm": self._norm(f"{attention}_layer_norm"),
            "qkv": self._fuse(f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
            "attention_out": self._fuse(f"{attention}.out_proj"),
            "feed_forward_norm": self._norm(f"{name}.final_layer_norm"),
            "feed_forward_in": self._fuse(f"{name}.fc1"),
            "feed_forward_out": self._fuse(f"{name}.fc2"),
        }

    def _audio_attention(self, name: str) -> dict[str, Any]:
        attention = f"{name}.encoder_attn"
        return {
            "audio_norm": self._norm(f"{attention}_layer_norm"),
            "audio_query": self._fuse(f"{attention}.q_proj"),
            "audio_key_value": self._fuse(f"{attention}.k_proj", f"{attention}.v_proj"),
            "audio_out": self._fuse(f"{attention}.out_proj"),
        }

    def _fuse(self, *names: str) -> Linear:
        """Affine maps of one input, stacked; a map without a bias (the keys') gets zeros."""
        weights, biases = [], []
        for name in names:
            scale = self._query_scale if name.endswith("q_proj") else 1.0
            weight = self._raw(f"{name}.weight").float()
            bias = self._tensors.get(f"model.{name}.bias")
            weights.append(weight * scale)
            biases.append(torch.zeros(len(weight)) if bias is None else bias.float() * scale)
        return Linear(self._cast(torch.cat(weights)), self._cast(torch.cat(biases)))

    def _norm(self, name: str) -> LayerNorm:
        return LayerNorm(self._tensor(f"{name}.weight"), self._tensor(f"{name}.bias"))

    def _tensor(self, name: str) -> Tensor:
        return self._cast(self._raw(name))

    def _raw(self, name: str) -> Tensor:
        return self._tensors[f"model.{name}"]

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, self._dtype)
