"""GLM-ASR's weights, from Hugging Face's names to the network of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.encoder_decoder import EncoderLayer
from asrcli.errors import CheckpointError
from asrcli.models.glm_asr_encoder import Tower, TowerWeights
from asrcli.models.language_model_weights import read_language_model
from asrcli.models.weight_reader import WeightReader, missing

if TYPE_CHECKING:
    from asrcli.models.base import ModelFiles

STORED_PREFIXES = (
    ("language_model.lm_head.", "lm_head."),
    ("language_model.model.", "model.language_model."),
    ("audio_tower.", "model.audio_tower."),
    ("multi_modal_projector.", "model.multi_modal_projector."),
)
"""How names begin in files, and in transformers' class: it renames them as it loads and saves."""


def build_network(files: ModelFiles, device: torch.device, dtype: torch.dtype) -> DecoderOnly:
    """The network of a checkpoint, its weights cast to ``dtype`` on ``device``.

    Raises:
        CheckpointError: the configuration or a weight is missing, or the network is of a build that
            is not known here.
    """
    folder = files.tokenizer_path.parent
    tensors = {_name(stored): tensor for stored, tensor in files.tensors.items()}
    try:
        tower = _Layers(WeightReader(tensors, device, dtype), files.config).read()
        language_model = read_language_model(tensors, files.config["text_config"], device, dtype)
    except KeyError as error:
        raise missing(error.args[0], folder) from None
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}", hint=error.hint) from error
    return DecoderOnly(Tower(tower), language_model)


def _name(stored: str) -> str:
    for theirs, ours in STORED_PREFIXES:
        if stored.startswith(theirs):
            return ours + stored.removeprefix(theirs)
    return stored


class _Layers:
    """Puts the tower's weights where it wants them."""

    def __init__(self, reader: WeightReader, config: Mapping[str, Any]) -> None:
        self._reader = reader
        self._config = config["audio_config"]
        self._num_heads = int(self._config["num_attention_heads"])
        width = int(self._config["hidden_size"])
        self._head_dim = int(self._config.get("head_dim") or width // self._num_heads)
        few = self._config.get("num_key_value_heads")
        if few not in (None, self._num_heads):
            raise CheckpointError(f"an encoder whose {few} heads of keys are shared is unknown")
        activations = (self._config.get("hidden_act"), config.get("projector_hidden_act"))
        for activation in activations:
            if activation not in (None, "gelu"):
                raise CheckpointError(f"the activation {activation!r} is unknown")

    def read(self) -> TowerWeights:
        tower, projector, reader = "model.audio_tower", "model.multi_modal_projector", self._reader
        return TowerWeights(
            convolutions=tuple(
                (
                    reader.tensor(f"{tower}.conv{number}.weight"),
                    reader.tensor(f"{tower}.conv{number}.bias"),
                    stride,
                )
                for number, stride in ((1, 1), (2, 2))
            ),
            layers=tuple(
                self._layer(f"{tower}.layers.{index}")
                for index in range(int(self._config["num_hidden_layers"]))
            ),
            norm=reader.norm(f"{tower}.norm"),
            projector_in=reader.linear(f"{projector}.linear_1"),
            projector_out=reader.linear(f"{projector}.linear_2"),
            num_heads=self._num_heads,
            rotary_frequencies=self._frequencies().to(reader.device),
        )

    def _layer(self, name: str) -> EncoderLayer:
        attention, reader = f"{name}.self_attn", self._reader
        return EncoderLayer(
            attention_norm=reader.norm(f"{name}.input_layernorm"),
            qkv=reader.linear(
                *(f"{attention}.{part}_proj" for part in "qkv"),
                query_scale=self._head_dim**-0.5,
                without_bias=("k_proj",),
            ),
            attention_out=reader.linear(f"{attention}.o_proj"),
            feed_forward_norm=reader.norm(f"{name}.post_attention_layernorm"),
            feed_forward_in=reader.linear(f"{name}.mlp.fc1"),
            feed_forward_out=reader.linear(f"{name}.mlp.fc2"),
        )

    def _frequencies(self) -> Tensor:
        """Radians a position, of the part of a head that turns (Su et al. 2021)."""
        rotary = self._config.get("rope_parameters") or {}
        kind = rotary.get("rope_type", "default")
        if kind != "default":
            raise CheckpointError(f"rotary positions of type {kind!r} are unknown")
        share = rotary.get("partial_rotary_factor", self._config.get("partial_rotary_factor", 0.5))
        num_turned = int(self._head_dim * float(share))
        base = float(rotary.get("rope_theta", self._config.get("rope_theta", 10_000.0)))
        steps = torch.arange(0, num_turned, 2, dtype=torch.float32) / num_turned
        return 1.0 / base**steps
