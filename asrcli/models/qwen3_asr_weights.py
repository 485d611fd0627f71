"""Qwen3-ASR's weights, from either layout of its repositories to the network of the engine.

transformers' layout (repositories that end in ``-hf``) is the one that is read. Qwen's own nests
the configuration in ``thinker_config`` and gives the same weights other names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.encoder_decoder import EncoderLayer
from asrcli.engine.layers import Linear
from asrcli.errors import CheckpointError
from asrcli.models.language_model_weights import OUTPUT, PREFIX, read_language_model
from asrcli.models.qwen3_asr_encoder import Tower, TowerWeights
from asrcli.models.qwen3_asr_positions import CHUNK_LENGTH
from asrcli.models.weight_reader import WeightReader, missing

if TYPE_CHECKING:
    from asrcli.models.base import ModelFiles

TOWER = "model.audio_tower"
PROJECTOR = "model.multi_modal_projector"
ORIGINAL_PREFIXES = (
    ("thinker.audio_tower.proj1.", f"{PROJECTOR}.linear_1."),
    ("thinker.audio_tower.proj2.", f"{PROJECTOR}.linear_2."),
    ("thinker.model.", PREFIX),
    ("thinker.lm_head.", "lm_head."),
    ("thinker.", "model."),
)
"""How names begin in Qwen's own layout, and in transformers'; the first that fits counts."""


def unify(files: ModelFiles) -> ModelFiles:
    """The files with the names of transformers' layout, whichever they are in.

    Raises:
        CheckpointError: the configuration is not that of a recognizer.
    """
    config = dict(files.config)
    thinker = config.pop("thinker_config", None)
    if thinker is not None:
        if "classify_num" in thinker:
            raise CheckpointError(
                "this is a forced aligner, not a recognizer",
                hint="Qwen/Qwen3-ASR-0.6B and -1.7B recognize speech",
            )
        config.update(thinker)
    for part in ("audio_config", "text_config"):
        if not isinstance(config.get(part), dict):
            raise missing(f"{part} of config.json")
    tensors = {_rename(name): tensor for name, tensor in files.tensors.items()}
    if OUTPUT in tensors and _is_tied(config, tensors):
        del tensors[OUTPUT]  # it would be kept twice
    return replace(files, config=config, tensors=tensors)


def build_network(files: ModelFiles, device: torch.device, dtype: torch.dtype) -> DecoderOnly:
    """The network of a checkpoint in transformers' layout, its weights in ``dtype`` on ``device``.

    Raises:
        CheckpointError: the configuration or a weight is missing, or the network is of a build that
            is not known here.
    """
    tensors, config = files.tensors, files.config
    try:
        tower = _Layers(WeightReader(tensors, device, dtype), config["audio_config"]).read()
        if OUTPUT not in tensors and _stated_ties(config) == {False}:
            raise KeyError(OUTPUT)
        language_model = read_language_model(tensors, config["text_config"], device, dtype)
    except KeyError as error:
        raise missing(error.args[0]) from None
    return DecoderOnly(Tower(tower), language_model)


def _rename(name: str) -> str:
    for theirs, ours in ORIGINAL_PREFIXES:
        if name.startswith(theirs):
            return ours + name.removeprefix(theirs)
    return name


def _stated_ties(config: Mapping[str, Any]) -> set[bool]:
    """What the configuration says about whether the output is the embedding."""
    stated = (part.get("tie_word_embeddings") for part in (config, config["text_config"]))
    return {bool(each) for each in stated if each is not None}


def _is_tied(config: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> bool:
    """Whether the output is the embedding, by the configuration or in fact."""
    embedding = tensors.get(f"{PREFIX}embed_tokens.weight")
    if embedding is None:
        return False
    return True in _stated_ties(config) or torch.equal(tensors[OUTPUT], embedding)


class _Layers:
    """Puts the tower's weights where it wants them."""

    def __init__(self, reader: WeightReader, config: Mapping[str, Any]) -> None:
        self._reader = reader
        self._config = config
        self._num_heads = int(config["encoder_attention_heads"])
        self._query_scale = (int(config["d_model"]) // self._num_heads) ** -0.5
        activation = config.get("activation_function", "gelu")
        if activation != "gelu":
            raise CheckpointError(f"an encoder with the activation {activation!r} is unknown")

    def read(self) -> TowerWeights:
        reader = self._reader
        chunk_length = 2 * int(self._config.get("n_window", CHUNK_LENGTH // 2))
        return TowerWeights(
            convolutions=tuple(
                (
                    reader.tensor(f"{TOWER}.conv2d{number}.weight"),
                    reader.tensor(f"{TOWER}.conv2d{number}.bias"),
                )
                for number in (1, 2, 3)
            ),
            convolutions_out=Linear(reader.tensor(f"{TOWER}.conv_out.weight")),
            layers=tuple(
                self._layer(f"{TOWER}.layers.{index}")
                for index in range(int(self._config["encoder_layers"]))
            ),
            norm=reader.norm(f"{TOWER}.ln_post"),
            projector_in=reader.linear(f"{PROJECTOR}.linear_1"),
            projector_out=reader.linear(f"{PROJECTOR}.linear_2"),
            num_heads=self._num_heads,
            chunk_length=chunk_length,
            chunks_per_window=int(self._config.get("n_window_infer", 800)) // chunk_length,
        )

    def _layer(self, name: str) -> EncoderLayer:
        attention, reader = f"{name}.self_attn", self._reader
        return EncoderLayer(
            attention_norm=reader.norm(f"{attention}_layer_norm"),
            qkv=reader.linear(
                *(f"{attention}.{part}_proj" for part in "qkv"), query_scale=self._query_scale
            ),
            attention_out=reader.linear(f"{attention}.out_proj"),
            feed_forward_norm=reader.norm(f"{name}.final_layer_norm"),
            feed_forward_in=reader.linear(f"{name}.fc1"),
            feed_forward_out=reader.linear(f"{name}.fc2"),
        )
