"""The network of the tests against the same layers written with torch's own modules."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from asrcli.engine.cache import SlotCache
from asrcli.engine.encoder_decoder import DecoderLayer, EncoderDecoder, EncoderLayer
from asrcli.engine.layers import attend_all
from asrcli.engine.silence import LOOK_AHEAD
from tests.engine.tiny_network import (
    MAX_LENGTH,
    NUM_FRAMES,
    NUM_HEADS,
    NUM_MEL_BINS,
    VOCABULARY,
    WIDTH,
    build_network,
)


def heads(states: Tensor) -> Tensor:
    split = states.view(*states.shape[:-1], NUM_HEADS, WIDTH // NUM_HEADS)
    return split.transpose(-3, -2)


def attend(query: Tensor, key: Tensor, value: Tensor, *, causal: bool = False) -> Tensor:
    attended = F.scaled_dot_product_attention(
        heads(query), heads(key), heads(value), is_causal=causal, scale=1.0
    )
    return attended.transpose(-3, -2).flatten(-2)


def self_attend(layer: EncoderLayer, states: Tensor, *, causal: bool) -> Tensor:
    query, key, value = layer.qkv(layer.attention_norm(states)).chunk(3, dim=-1)
    return states + layer.attention_out(attend(query, key, value, causal=causal))


def feed_forward(layer: EncoderLayer, states: Tensor) -> Tensor:
    inner = F.gelu(layer.feed_forward_in(layer.feed_forward_norm(states)))
    return states + layer.feed_forward_out(inner)


def attend_to_audio(layer: DecoderLayer, states: Tensor, encoded: Tensor) -> Tensor:
    key, value = layer.audio_key_value(encoded).chunk(2, dim=-1)
    attended = attend(layer.audio_query(layer.audio_norm(states)), key, value)
    return states + layer.audio_out(attended)


def reference(
    network: EncoderDecoder, features: Tensor, token_ids: Tensor, stride: int = 1
) -> Tensor:
    """Logits [num_tokens, vocabulary] of one row, all positions at once and without a cache.

    Behind features that are shorter than the network takes, every position of the last frame's
    silence is there, those of one span in one place.
    """
    weights = network.weights
    missing = NUM_FRAMES - features.shape[1]
    states = features[None]
    if missing:
        states = F.pad(states, (0, missing + 2 * LOOK_AHEAD), mode="replicate")
    for weight, bias, step in weights.convolutions:
        states = F.gelu(F.conv1d(states, weight, bias, stride=step, padding=1))
    num_positions = features.shape[1] // 2
    places = [*range(num_positions), *_places_of_silence(num_positions, stride)]
    encoded = states[0].T[: NUM_FRAMES // 2] + weights.audio_positions[places]
    for layer in weights.encoder_layers:
        encoded = feed_forward(layer, self_attend(layer, encoded, causal=False))
    encoded = weights.encoder_norm(encoded)
    states = weights.token_embedding[token_ids] + weights.token_positions[: len(token_ids)]
    for decoder_layer in weights.decoder_layers:
        states = self_attend(decoder_layer, states, causal=True)
        states = attend_to_audio(decoder_layer, states, encoded)
        states = feed_forward(decoder_layer, states)
    return weights.decoder_norm(states) @ weights.token_embedding.T


def _places_of_silence(begin: int, stride: int) -> list[int]:
    places: list[int] = []
    while begin < NUM_FRAMES // 2:
        length = min(stride, NUM_FRAMES // 2 - begin)
        places += [begin + length // 2] * length
        begin += length
    return places


def test_ids_one_by_one_in_any_slot_give_what_all_at_once_gives() -> None:
    network = build_network()
    torch.manual_seed(1)
    features = torch.randn(3, NUM_MEL_BINS, NUM_FRAMES)
    token_ids = torch.randint(VOCABULARY, (3, 12))
    cache = SlotCache(network.cache_shape, 5, network.device, network.dtype)
    network.write_audio(network.encode(features, 1), cache, 2)
    positions = torch.arange(12).expand(3, 12)
    audio = [2, 3, 4]
    states = [network.decode(token_ids[:, :5], positions[:, :5], audio, cache, 2, 5)]
    for i in range(5, 12):
        # Looking at more positions than are in use changes nothing: they are masked.
        length = min(MAX_LENGTH, i + 1 + i % 3)
        now = slice(i, i + 1)
        step = network.decode(token_ids[:, now], positions[:, now], audio, cache, 2, length)
        states.append(step)
    logits = network.logits(torch.cat(states, dim=1))
    for row in range(3):
        expected = reference(network, features[row], token_ids[row])
        torch.testing.assert_close(logits[row], expected, atol=1e-4, rtol=1e-4)


def test_bfloat16_on_a_cpu_takes_another_way_to_the_same_place() -> None:
    network = build_network()
    qkv = torch.randn(2, 20, 3 * WIDTH, generator=torch.Generator().manual_seed(3))
    for log_weights in (None, torch.arange(1.0, 21.0).log()):
        query, key, value = (part.transpose(1, 2) for part in network._split_heads(qkv, 3))
        exact = attend_all(query, key, value, log_weights)
        weights = None if log_weights is None else log_weights.bfloat16()
        coarse = attend_all(query.bfloat16(), key.bfloat16(), value.bfloat16(), weights)
        torch.testing.assert_close(coarse.float(), exact, atol=0.05, rtol=0.05)


@pytest.mark.parametrize("stride", [1, 3, 16])
def test_rows_with_shorter_audio_attend_to_all_the_silence_behind_it(stride: int) -> None:
    """Alone and beside others; what an earlier row left behind in a slot is not attended to."""
    network = build_network()
    torch.manual_seed(2)
    features = torch.randn(3, NUM_MEL_BINS, NUM_FRAMES)
    token_ids = torch.randint(VOCABULARY, (3, 4))
    num_frames = (NUM_FRAMES, NUM_FRAMES // 5, NUM_FRAMES - 4)
    cache = SlotCache(network.cache_shape, 3, network.device, network.dtype)
    network.write_audio(network.encode(torch.randn(3, NUM_MEL_BINS, NUM_FRAMES), 1), cache, 0)
    for row, frames in enumerate(num_frames):
        shorter = features[row : row + 1, :, :frames]
        shorter[..., -4:] = shorter[..., -1:]  # the audio's own silence
        network.write_audio(network.encode(shorter, stride), cache, row)
    audio = [0, 1, 2]
    positions = torch.arange(4).expand(3, 4)
    logits = network.logits(network.decode(token_ids, positions, audio, cache, 0, 4))
    for row, frames in enumerate(num_frames):
        expected = reference(network, features[row][:, :frames], token_ids[row], stride)
        torch.testing.assert_close(logits[row], expected, atol=1e-4, rtol=1e-4)
