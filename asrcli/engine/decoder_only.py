"""The decoder-only kind of network: audio embeddings stand in the prompt in the place of ids.

A pre-norm transformer with rotary positions, grouped queries and gated feed-forward (Llama, Touvron
et al. 2023; with norms on queries and keys where the checkpoint has them), run on a checkpoint's
own weights. What encodes the audio comes with the model and is called here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
import torch.nn.functional as F  # noqa: N812  (the field's name for it)
from torch import Tensor

from asrcli.engine.layers import Linear, RmsNorm
from asrcli.engine.packing import pack
from asrcli.engine.prompts import PromptLayout
from asrcli.engine.runner import round_up
from asrcli.engine.token_cache import TokenCache, TokenShape
from asrcli.engine.transfer import upload

QUERIES_AT_ONCE = 256  # of a prompt: bounds the memory of the scores of a long one


class AudioTower(Protocol):
    """Encodes windows of unequal length without a window's result depending on the others."""

    def __call__(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Features of each window, [num_mel_bins, num_frames], to [num_positions, width] of each.

        What it gives beyond the positions that a request's prompt has room for is of padding.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageLayer:
    """Self-attention and gated feed-forward.

    Attributes:
        qkv: queries, keys and values, stacked. The queries are scaled by 1/sqrt(head_dim) in their
            weights, or in ``head_norm`` where there is one.
        head_norm: over each head of the queries and the keys, weight [heads + kv heads, head_dim];
            None where the model has none.
        gate_up: the gate and what it gates, stacked.
    """

    attention_norm: RmsNorm
    qkv: Linear
    head_norm: RmsNorm | None
    attention_out: Linear
    feed_forward_norm: RmsNorm
    gate_up: Linear
    down: Linear


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageWeights:
    """All weights of the language model, in the dtype and on the device that they run in.

    Attributes:
        token_embedding: [vocabulary, width], in any format.
        layers, norm: the decoder.
        output: to the scores of all ids; the embedding where they are tied.
        num_heads, num_key_value_heads, head_dim: of every attention.
        rotary_frequencies: float32 [head_dim / 2], radians a position.
        max_length: positions that the model was made for.
    """

    token_embedding: Tensor
    layers: tuple[LanguageLayer, ...]
    norm: RmsNorm
    output: Linear
    num_heads: int
    num_key_value_heads: int
    head_dim: int
    rotary_frequencies: Tensor
    max_length: int


class DecoderOnly:
    """Runs the network over windows and over rows of a cache."""

    def __init__(self, tower: AudioTower, weights: LanguageWeights) -> None:
        self.tower = tower
        self.weights = pack(weights)
        self.device = weights.norm.weight.device
        self.dtype = weights.norm.weight.dtype
        self.max_length = weights.max_length
        self.lays_out_prompts = self.device.type == "cuda"  # few kernels, at the cost of padding
        self.token_shape = TokenShape(
            num_layers=len(weights.layers),
            num_heads=weights.num_key_value_heads,
            head_dim=weights.head_dim,
            num_sharing=weights.num_heads // weights.num_key_value_heads,
        )

    def encode(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Audio embeddings of windows; see ``AudioTower``."""
        return self.tower(features)

    def embed(self, token_ids: Tensor) -> Tensor:
        """Embeddings [..., width] of ids [...]."""
        return F.embedding(token_ids, self.weights.token_embedding).to(self.dtype)

    def prefill(
        self, prompts: Tensor, lengths: Sequence[int], cache: TokenCache, first_row: int
    ) -> Tensor:
        """Take whole prompts into consecutive rows.

        Prompts of unequal length lie behind one another, so that none is padded.

        Args:
            prompts: [sum(lengths), width], embeddings of ids and of audio.
            lengths: of each prompt.
            cache: where keys and values are kept.
            first_row: row of the first prompt.

        Returns:
            State of each prompt's last position, [num_prompts, width].
        """
        layout = PromptLayout(lengths, self.device) if self.lays_out_prompts else None
        positions = torch.cat([torch.arange(n, device=self.device) for n in lengths])
        rotation = self._rotation(positions)
        states = prompts
        ends = upload(lengths, self.device).cumsum(0) - 1
        last_layer = len(self.weights.layers) - 1
        for index, layer in enumerate(self.weights.layers):
            query, key, value = self._project(layer, states, rotation)
            if layout is not None:
                rows, places = first_row + layout.rows[:, None], layout.places[:, None]
                cache.held.put(index, rows, places, key[:, None], value[:, None])
                attention = layout.attend(query, key, value)
            else:
                begin = 0
                for row, length in enumerate(lengths, start=first_row):
                    part = slice(begin, begin + length)
                    begin += length
                    slots = slice(row, row + 1)
                    cache.held.fill(index, slots, key[None, part], value[None, part])
                attention = self._attend_prompts(query, key, value, lengths)
            if index == last_layer:  # nobody looks at the other positions any more
                attention, states = attention[ends], states[ends]
            states = states + layer.attention_out(attention)
            states = states + _feed_forward(layer, states)
        return self.weights.norm(states)

    def decode(
        self,
        token_ids: Tensor,
        lengths: Sequence[int],
        cache: TokenCache,
        positions: Tensor | None = None,
    ) -> Tensor:
        """Take one id into each of the rows 0 to n - 1.

        Args:
            token_ids: [num_rows].
            lengths: ids in each row then; the new one is the last.
            cache: where keys and values are kept.
            positions: int64 [num_rows], of the new ids; with them, lengths may be larger, and a
                step takes nothing from the host but its shape.

        Returns:
            States [num_rows, width], for ``logits``.
        """
        num_rows = len(token_ids)
        rows = torch.arange(num_rows, device=self.device)[:, None]
        if positions is None:
            positions = upload(lengths, self.device) - 1
        positions = positions[:, None]
        # Few lengths, or where the rows lie would be worked out anew in every step.
        known = cache.held.find(
            list(range(num_rows)), [round_up(length, cache.room) for length in lengths]
        )
        hidden = torch.arange(known.length, device=self.device) > positions
        mask = torch.zeros(hidden.shape, device=self.device, dtype=self.dtype)
        mask = mask.masked_fill_(hidden, -torch.inf)[:, None, None]
        rotation = self._rotation(positions[:, 0])
        states = self.embed(token_ids)
        for index, layer in enumerate(self.weights.layers):
            query, key, value = self._project(layer, states, rotation)
            cache.held.put(index, rows, positions, key[:, None], value[:, None])
            attended = cache.held.attend(index, query[:, :, None], known, mask)
            states = states + layer.attention_out(attended[:, 0])
            states = states + _feed_forward(layer, states)
        return self.weights.norm(states)

    def logits(self, states: Tensor) -> Tensor:
        """Scores of every id, float32 [..., vocabulary], for states [..., width]."""
        return self.weights.output(states).float()

    def _rotation(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Cosines and sines [n, 1, head_dim] of positions [n], reckoned in float32."""
        angles = positions[:, None].float() * self.weights.rotary_frequencies
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        return angles.cos().to(self.dtype), angles.sin().to(self.dtype)

    def _project(
        self, layer: LanguageLayer, states: Tensor, rotation: tuple[Tensor, Tensor]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States [n, width] to queries [n, heads, head_dim], keys and values [n, kv heads, …]."""
        heads, few = self.weights.num_heads, self.weights.num_key_value_heads
        qkv = layer.qkv(layer.attention_norm(states))
        split = qkv.view(len(states), -1, self.weights.head_dim)
        turned, value = torch.split(split, [heads + few, few], dim=1)
        if layer.head_norm is not None:
            turned = layer.head_norm(turned)
        query, key = torch.split(_rotate(turned, rotation), [heads, few], dim=1)
        return query, key, value

    def _attend_prompts(
        self, query: Tensor, key: Tensor, value: Tensor, lengths: Sequence[int]
    ) -> Tensor:
        """Causal attention within prompts that lie behind one another, one after the other.

        Args:
            query: [sum(lengths), heads, head_dim], scaled already.
            key, value: [sum(lengths), kv heads, head_dim].

        Returns:
            [sum(lengths), heads * head_dim].
        """
        attended = []
        parts = (torch.split(each, list(lengths)) for each in (query, key, value))
        for queries, keys, values in zip(*parts, strict=True):
            # In one piece: products of slices would copy them again, and slowly.
            keys, values = (each.transpose(0, 1).contiguous() for each in (keys, values))
            attended.append(self._attend_prompt(queries, keys, values))
        return torch.cat(attended)

    def _attend_prompt(self, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """Causal attention within one prompt, some queries at a time.

        Args:
            query: [length, heads, head_dim], scaled already.
            keys, values: [kv heads, length, head_dim].

        Returns:
            [length, heads * head_dim].
        """
        length, heads, head_dim = query.shape
        few = len(keys)
        attended = torch.empty(length, heads * head_dim, device=query.device, dtype=query.dtype)
        for begin in range(0, length, QUERIES_AT_ONCE):
            end = min(begin + QUERIES_AT_ONCE, length)
            part = query[begin:end].transpose(0, 1).reshape(few, -1, head_dim)
            scores = torch.matmul(part, keys[:, :end].transpose(1, 2)).view(heads, -1, end)
            places = torch.arange(end, device=query.device)
            scores.masked_fill_(places > places[begin:, None], -torch.inf)
            weights = torch.softmax(scores, dim=-1).view(few, -1, end)
            mixed = torch.matmul(weights, values[:, :end]).view(heads, -1, head_dim)
            attended[begin:end] = mixed.transpose(0, 1).flatten(1)
        return attended


def _rotate(states: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """Turn the halves of each head against each other by its position's angles."""
    cosines, sines = rotation
    first, second = states.chunk(2, dim=-1)
    return states * cosines + torch.cat((-second, first), dim=-1) * sines


def _feed_forward(layer: LanguageLayer, states: Tensor) -> Tensor:
    gate, up = layer.gate_up(layer.feed_forward_norm(states)).chunk(2, dim=-1)
    return layer.down(F.silu(gate) * up)
