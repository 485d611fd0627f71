"""Whisper's weights, from Hugging Face's names to the network of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from asrcli.engine.encoder_decoder import (
    DecoderLayer,
    EncoderDecoder,
    EncoderDecoderWeights,
    EncoderLayer,
)
from asrcli.engine.layers import Linear
from asrcli.models.weight_reader import WeightReader, missing

if TYPE_CHECKING:
    from asrcli.models.base import ModelFiles

PREFIX = "model."


def build_network(files: ModelFiles, device: torch.device, dtype: torch.dtype) -> EncoderDecoder:
    """The network of a checkpoint, its weights cast to ``dtype`` on ``device``.

    Raises:
        CheckpointError: the configuration or a weight is missing.
    """
    reader = WeightReader(files.tensors, device, dtype, prefix=PREFIX)
    try:
        return EncoderDecoder(_Layers(reader, files.config).read())
    except KeyError as error:
        raise missing(error.args[0], files.tokenizer_path.parent) from None


class _Layers:
    """Puts the weights where the network wants them."""

    def __init__(self, reader: WeightReader, config: Mapping[str, Any]) -> None:
        self._reader = reader
        self._config = config
        self._num_heads = int(config["encoder_attention_heads"])
        self._query_scale = (int(config["d_model"]) // self._num_heads) ** -0.5

    def read(self) -> EncoderDecoderWeights:
        config, reader = self._config, self._reader
        token_embedding, output = reader.embedding("decoder.embed_tokens")
        return EncoderDecoderWeights(
            convolutions=tuple(
                (
                    reader.tensor(f"encoder.conv{number}.weight"),
                    reader.tensor(f"encoder.conv{number}.bias"),
                    stride,
                )
                for number, stride in ((1, 1), (2, 2))
            ),
            audio_positions=reader.tensor("encoder.embed_positions.weight"),
            encoder_layers=tuple(
                EncoderLayer(**self._layer(f"encoder.layers.{index}", in_steps=False))
                for index in range(config["encoder_layers"])
            ),
            encoder_norm=reader.norm("encoder.layer_norm"),
            token_embedding=token_embedding,
            token_positions=reader.tensor("decoder.embed_positions.weight"),
            decoder_layers=tuple(
                DecoderLayer(
                    **self._layer(f"decoder.layers.{index}", in_steps=True),
                    **self._audio_attention(f"decoder.layers.{index}"),
                )
                for index in range(config["decoder_layers"])
            ),
            decoder_norm=reader.norm("decoder.layer_norm"),
            output=output,
            num_heads=self._num_heads,
            audio_in_bytes=not reader.is_exact,
        )

    def _layer(self, name: str, *, in_steps: bool) -> dict[str, Any]:
        attention, reader = f"{name}.self_attn", self._reader
        qkv = (f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj")
        return {
            "attention_norm": reader.norm(f"{attention}_layer_norm"),
            "qkv": self._fuse(*qkv, in_steps=in_steps),
            "attention_out": self._fuse(f"{attention}.out_proj", in_steps=in_steps),
            "feed_forward_norm": reader.norm(f"{name}.final_layer_norm"),
            "feed_forward_in": self._fuse(f"{name}.fc1", in_steps=in_steps),
            "feed_forward_out": self._fuse(f"{name}.fc2", in_steps=in_steps),
        }

    def _audio_attention(self, name: str) -> dict[str, Any]:
        attention = f"{name}.encoder_attn"
        audio = (f"{attention}.k_proj", f"{attention}.v_proj")
        return {
            "audio_norm": self._reader.norm(f"{attention}_layer_norm"),
            "audio_query": self._fuse(f"{attention}.q_proj", in_steps=True),
            "audio_key_value": self._fuse(*audio, in_steps=False),
            "audio_out": self._fuse(f"{attention}.out_proj", in_steps=True),
        }

    def _fuse(self, *names: str, in_steps: bool) -> Linear:
        return self._reader.linear(
            *names,
            query_scale=self._query_scale,
            without_bias=("k_proj",),
            in_steps=in_steps,
        )
