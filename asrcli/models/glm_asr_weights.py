"""GLM-ASR's weights, from Hugging Face's names to the network of the engine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.encoder_decoder import EncoderLayer
from asrcli.engine.layers import LayerNorm, Linear
from asrcli.errors import CheckpointError
from asrcli.models.glm_asr_encoder import Tower, TowerWeights
from asrcli.models.language_model_weights import read_language_model

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
        tower = _Reader(tensors, files.config, device, dtype).read()
        language_model = read_language_model(tensors, files.config["text_config"], device, dtype)
    except KeyError as error:
        raise CheckpointError(
            f"{folder}: {error.args[0]} is missing from the checkpoint",
            hint="the files may be damaged or of another kind of model; fetch them again",
        ) from None
    except CheckpointError as error:
        raise CheckpointError(f"{folder}: {error}", hint=error.hint) from error
    return DecoderOnly(Tower(tower), language_model)


def _name(stored: str) -> str:
    for theirs, ours in STORED_PREFIXES:
        if stored.startswith(theirs):
            return ours + stored.removeprefix(theirs)
    return stored


class _Reader:
    """Looks the tower's weights up by name and fuses those that are used together."""

    def __init__(
        self,
        tensors: Mapping[str, Tensor],
        config: Mapping[str, Any],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self._tensors = tensors
        self._config = config["audio_config"]
        self._device = device
        self._dtype = dtype
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
        tower, projector = "model.audio_tower", "model.multi_modal_projector"
        return TowerWeights(
            convolutions=tuple(
                (
                    self._tensor(f"{tower}.conv{number}.weight"),
                    self._tensor(f"{tower}.conv{number}.bias"),
                    stride,
                )
                for number, stride in ((1, 1), (2, 2))
            ),
            layers=tuple(
                self._layer(f"{tower}.layers.{index}")
                for index in range(int(self._config["num_hidden_layers"]))
            ),
            norm=self._norm(f"{tower}.norm"),
            projector_in=self._fuse(f"{projector}.linear_1"),
            projector_out=self._fuse(f"{projector}.linear_2"),
            num_heads=self._num_heads,
            rotary_frequencies=self._frequencies(),
        )

    def _layer(self, name: str) -> EncoderLayer:
        attention = f"{name}.self_attn"
        return EncoderLayer(
            attention_norm=self._norm(f"{name}.input_layernorm"),
            qkv=self._fuse(f"{attention}.q_proj", f"{attention}.k_proj", f"{attention}.v_proj"),
            attention_out=self._fuse(f"{attention}.o_proj"),
            feed_forward_norm=self._norm(f"{name}.post_attention_layernorm"),
            feed_forward_in=self._fuse(f"{name}.mlp.fc1"),
            feed_forward_out=self._fuse(f"{name}.mlp.fc2"),
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
        return (1.0 / base**steps).to(self._device)

    def _fuse(self, *names: str) -> Linear:
        """Affine maps of one input, stacked; a map without a bias (the keys') gets zeros."""
        weights, biases = [], []
        for name in names:
            scale = self._head_dim**-0.5 if name.endswith("q_proj") else 1.0
            weight = self._tensors[f"{name}.weight"]
            bias = self._bias(name, len(weight))
            weights.append(self._scaled(weight, scale))
            biases.append(self._scaled(bias, scale))
        return Linear(torch.cat(weights), torch.cat(biases))

    def _scaled(self, tensor: Tensor, scale: float) -> Tensor:
        return self._cast(tensor if scale == 1.0 else tensor.float() * scale)

    def _bias(self, name: str, length: int) -> Tensor:
        if name.endswith("k_proj"):
            return self._tensors.get(f"{name}.bias", torch.zeros(length))
        return self._tensors[f"{name}.bias"]

    def _norm(self, name: str) -> LayerNorm:
        return LayerNorm(self._tensor(f"{name}.weight"), self._tensor(f"{name}.bias"))

    def _tensor(self, name: str) -> Tensor:
        return self._cast(self._tensors[name])

    def _cast(self, tensor: Tensor) -> Tensor:
        return tensor.to(self._device, self._dtype)
