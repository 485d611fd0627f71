"""The encoder–decoder kind of network: audio is encoded once, ids are decoded against it.

A pre-norm transformer with learned positions and exact GELU (Radford et al. 2022, figure 1), run on
a checkpoint's own weights. It is compact on purpose: the stock modules spend as long on Python and
on reallocating their cache as on arithmetic, and their cache interface changes between releases.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Rows
from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.audio import EncodedAudio
from asrcli.engine.byte_bags import can_sum_bytes
from asrcli.engine.cache import CacheShape, SlotCache
from asrcli.engine.key_values import BLOCK
from asrcli.engine.layers import LayerNorm, Linear, attend_all
from asrcli.engine.packing import pack
from asrcli.engine.silence import LOOK_AHEAD, add_silence
from asrcli.engine.transfer import send


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderLayer:
    """Self-attention and feed-forward; the queries' rows of ``qkv`` carry the 1/sqrt(head_dim)."""

    attention_norm: LayerNorm
    qkv: Linear
    attention_out: Linear
    feed_forward_norm: LayerNorm
    feed_forward_in: Linear
    feed_forward_out: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderLayer(EncoderLayer):
    """An encoder layer with attention to the audio in between."""

    audio_norm: LayerNorm
    audio_query: Linear
    audio_key_value: Linear
    audio_out: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderDecoderWeights:
    """All weights, in the dtype and on the device that they are to run in.

    Attributes:
        convolutions: (weight, bias, stride) of the stem, in order.
        audio_positions: [num_audio_positions, width], added behind the stem.
        encoder_layers, encoder_norm: the encoder.
        token_embedding: [vocabulary, width], in any format.
        token_positions: [max_length, width].
        decoder_layers, decoder_norm: the decoder.
        output: to the scores of all ids; mostly the embedding.
        num_heads: of every attention.
        audio_in_bytes: whether what the decoder attends to of the audio is kept in eight bits,
            where that can be done.
    """

    convolutions: tuple[tuple[Tensor, Tensor, int], ...]
    audio_positions: Tensor
    encoder_layers: tuple[EncoderLayer, ...]
    encoder_norm: LayerNorm
    token_embedding: Tensor
    token_positions: Tensor
    decoder_layers: tuple[DecoderLayer, ...]
    decoder_norm: LayerNorm
    output: Linear
    num_heads: int
    audio_in_bytes: bool = False


class EncoderDecoder:
    """Runs the network over windows and over slots of a cache."""

    def __init__(self, weights: EncoderDecoderWeights) -> None:
        self.weights = pack(weights)
        self._stride = math.prod(stride for _, _, stride in weights.convolutions)
        self.device = weights.token_positions.device
        self.dtype = weights.token_positions.dtype
        self.vocabulary_size, width = weights.token_embedding.shape
        self.num_heads = weights.num_heads
        self.head_dim = width // weights.num_heads
        self.cache_shape = CacheShape(
            num_layers=len(weights.decoder_layers),
            num_heads=weights.num_heads,
            head_dim=self.head_dim,
            max_length=len(weights.token_positions),
            num_audio_positions=len(weights.audio_positions),
            audio_in_bytes=weights.audio_in_bytes and can_sum_bytes(self.device),
        )

    def encode(self, features: Tensor, silence_stride: int) -> EncodedAudio:
        """Encode windows.

        Args:
            features: [num_windows, num_mel_bins, num_frames]; fewer frames than the network was
                trained with end in silence, and it is taken to last: see ``asrcli.engine.silence``.
            silence_stride: positions of that silence of which one is encoded.
        """
        features = send(features, self.device).to(self.dtype)
        states, log_weights = self._embed_audio(features, silence_stride)
        # The audio's own positions have weight 1, and most scores are theirs.
        num_own = features.shape[-1] // self._stride
        of_silence = None if log_weights is None else log_weights[num_own:]
        for layer in self.weights.encoder_layers:
            qkv = layer.qkv(layer.attention_norm(states))
            query, key, value = (part.transpose(1, 2) for part in self._split_heads(qkv, 3))
            attended = attend_all(query, key, value, of_silence)
            states = states + layer.attention_out(attended)
            states = states + _feed_forward(layer, states)
        return EncodedAudio(self.weights.encoder_norm(states), log_weights)

    def _embed_audio(self, features: Tensor, silence_stride: int) -> tuple[Tensor, Tensor | None]:
        """What the encoder's layers are given of features, and the weights of its positions."""
        num_positions = features.shape[-1] // self._stride
        if num_positions == self.cache_shape.num_audio_positions:
            return self._convolve(features) + self.weights.audio_positions, None
        silence = features[..., -1:].expand(-1, -1, self._stride * LOOK_AHEAD)
        states = self._convolve(torch.cat([features, silence], dim=-1))
        return add_silence(states, num_positions, silence_stride, self.weights.audio_positions)

    def _convolve(self, features: Tensor) -> Tensor:
        states = features
        for weight, bias, stride in self.weights.convolutions:
            states = F.gelu(F.conv1d(states, weight, bias, stride=stride, padding=1))
        # Laid out anew here, or every sum and norm of every layer would do it again.
        return states.transpose(1, 2).contiguous()

    def write_audio(self, encoded: EncodedAudio, cache: SlotCache, first_slot: int) -> None:
        """Put what the decoder attends to into the audio slots ``first_slot`` and up."""
        num_windows, num_positions, _ = encoded.states.shape
        cache.begin_audio(first_slot, num_windows, num_positions, encoded.log_weights)
        slots = slice(first_slot, first_slot + num_windows)
        for index, layer in enumerate(self.weights.decoder_layers):
            key, value = self._split_heads(layer.audio_key_value(encoded.states), 2)
            cache.audio.fill(index, slots, key, value)

    def decode(
        self,
        token_ids: Tensor,
        positions: Tensor,
        audio: Rows[int],
        cache: SlotCache,
        first_slot: int,
        length: int,
    ) -> Tensor:
        """Take ids into consecutive slots.

        Args:
            token_ids: [num_rows, num_tokens].
            positions: [num_rows, num_tokens], the place of each id in its row.
            audio: the audio slot that each row attends to.
            cache: where keys and values are kept.
            first_slot: slot of the first row.
            length: ids in the longest of the rows then, or more.

        Returns:
            States [num_rows, num_tokens, width], for ``logits``.
        """
        num_rows = len(token_ids)
        slots = list(range(first_slot, first_slot + num_rows))
        # Made where it is needed: a step that is recorded takes nothing from the host.
        rows = torch.arange(first_slot, first_slot + num_rows, device=self.device)[:, None]
        # Whole blocks, or where the rows lie would be worked out anew in every step.
        known = cache.ids.find(slots, [-(-length // BLOCK) * BLOCK] * num_rows)
        mask = self._hide(torch.arange(known.length, device=self.device) > positions[:, :, None])
        heard = cache.hear(audio)
        states = F.embedding(token_ids, self.weights.token_embedding).to(self.dtype)
        states = states + F.embedding(positions, self.weights.token_positions)
        for index, layer in enumerate(self.weights.decoder_layers):
            query, key, value = self._split_heads(layer.qkv(layer.attention_norm(states)), 3)
            cache.ids.put(index, rows, positions, key, value)
            attended = cache.ids.attend(index, query.transpose(1, 2), known, mask)
            states = states + layer.attention_out(attended)
            (query,) = self._split_heads(layer.audio_query(layer.audio_norm(states)), 1)
            attended = cache.audio.attend(index, query.transpose(1, 2), heard.places, heard.mask)
            states = states + layer.audio_out(attended)
            states = states + _feed_forward(layer, states)
        return self.weights.decoder_norm(states)

    def logits(self, states: Tensor) -> Tensor:
        """Scores of every id, float32 [..., vocabulary], for states [..., width]."""
        return self.weights.output(states).float()

    def _hide(self, hidden: Tensor) -> Tensor:
        """A mask to add to scores [rows, heads, queries, keys] from bool [rows, queries, keys]."""
        mask = torch.zeros(hidden.shape, device=self.device, dtype=self.dtype)
        return mask.masked_fill_(hidden, -torch.inf)[:, None]

    def _split_heads(self, states: Tensor, parts: int) -> tuple[Tensor, ...]:
        """[rows, tokens, parts * width] to ``parts`` tensors [rows, tokens, heads, head_dim]."""
        return states.view(*states.shape[:2], parts, self.num_heads, self.head_dim).unbind(2)


def _feed_forward(layer: EncoderLayer, states: Tensor) -> Tensor:
    inner = layer.feed_forward_in(layer.feed_forward_norm(states))
    return layer.feed_forward_out(F.gelu(inner))
