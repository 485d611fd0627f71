"""A small encoder–decoder of random weights, and ways to watch it and to make it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from asrcli.engine.audio import EncodedAudio
from asrcli.engine.cache import SlotCache
from asrcli.engine.encoder_decoder import (
    DecoderLayer,
    EncoderDecoder,
    EncoderDecoderWeights,
    EncoderLayer,
)
from asrcli.engine.layers import LayerNorm, Linear
from asrcli.engine.request import Hypothesis, LogitsRule, Request, Sampling

WIDTH, NUM_HEADS, NUM_LAYERS = 32, 2, 2
NUM_MEL_BINS, NUM_FRAMES = 8, 40
VOCABULARY, MAX_LENGTH = 120, 48
EOS = frozenset(range(2))
"""Several ends, so that rows of random weights end at many lengths."""


class NeverTwice:
    """Bars what a row has said before, without which random weights go round in circles."""

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        for row, produced in enumerate(token_ids):
            logits[row, list(produced)] = -torch.inf


NEVER_TWICE = NeverTwice()


class _Random:
    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def tensor(self, *sizes: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*sizes, generator=self._generator)

    def linear(self, num_in: int, num_out: int) -> Linear:
        weight = self.tensor(num_out, num_in, scale=num_in**-0.5)
        return Linear(weight, self.tensor(num_out, scale=0.1))

    def norm(self) -> LayerNorm:
        return LayerNorm(1 + self.tensor(WIDTH, scale=0.1), self.tensor(WIDTH, scale=0.1))

    def layer(self) -> dict[str, Any]:
        return {
            "attention_norm": self.norm(),
            "qkv": self.linear(WIDTH, 3 * WIDTH),
            "attention_out": self.linear(WIDTH, WIDTH),
            "feed_forward_norm": self.norm(),
            "feed_forward_in": self.linear(WIDTH, 2 * WIDTH),
            "feed_forward_out": self.linear(2 * WIDTH, WIDTH),
        }

    def audio_attention(self) -> dict[str, Any]:
        return {
            "audio_norm": self.norm(),
            "audio_query": self.linear(WIDTH, WIDTH),
            "audio_key_value": self.linear(WIDTH, 2 * WIDTH),
            "audio_out": self.linear(WIDTH, WIDTH),
        }


def build_network(seed: int = 0) -> EncoderDecoder:
    random = _Random(seed)
    stem = random.tensor(WIDTH, NUM_MEL_BINS, 3, scale=0.3)
    second = random.tensor(WIDTH, WIDTH, 3, scale=0.1)
    weights = EncoderDecoderWeights(
        convolutions=((stem, random.tensor(WIDTH), 1), (second, random.tensor(WIDTH), 2)),
        audio_positions=random.tensor(NUM_FRAMES // 2, WIDTH),
        encoder_layers=tuple(EncoderLayer(**random.layer()) for _ in range(NUM_LAYERS)),
        encoder_norm=random.norm(),
        token_embedding=(embedding := random.tensor(VOCABULARY, WIDTH)),
        token_positions=random.tensor(MAX_LENGTH, WIDTH, scale=2.0),
        decoder_layers=tuple(
            DecoderLayer(**random.layer(), **random.audio_attention()) for _ in range(NUM_LAYERS)
        ),
        # Random signs: the output projection is the embedding, and would say each id again.
        decoder_norm=LayerNorm(random.tensor(WIDTH), random.tensor(WIDTH, scale=0.1)),
        output=Linear(embedding),
        num_heads=NUM_HEADS,
    )
    return EncoderDecoder(weights)


def build_request(
    number: int,
    *,
    temperature: float = 0.0,
    max_new_tokens: int = 20,
    rules: tuple[LogitsRule, ...] = (NEVER_TWICE,),
    on_token: Callable[[Hypothesis], None] | None = None,
    prompt_length: int | None = None,
) -> Request:
    """A request with audio and a prompt of its own; prompts are 1 to 7 ids long."""
    random = torch.Generator().manual_seed(1000 + number)
    length = 1 + number * 5 % 7 if prompt_length is None else prompt_length
    prompt = torch.randint(len(EOS), VOCABULARY, (length,), generator=random).tolist()
    return Request(
        request_id=number,
        prompt_token_ids=tuple(prompt),
        input_features=torch.randn(NUM_MEL_BINS, NUM_FRAMES, generator=random),
        sampling=Sampling(
            max_new_tokens=max_new_tokens,
            eos_token_ids=EOS,
            temperature=temperature,
            seed=number,
            logits_rules=rules,
        ),
        no_speech=(length // 2, 17),
        on_token=on_token,
    )


@dataclass
class WatchedNetwork:
    """A network that counts its passes, and fails where it is told to.

    Attributes:
        encoded: how many windows each pass of the encoder was given.
        prefilled, decoded: how many rows each pass of the decoder was given.
        fault: asked before each pass of the decoder; an error that it gives is raised.
    """

    network: EncoderDecoder = field(default_factory=build_network)
    encoded: list[int] = field(default_factory=list)
    prefilled: list[int] = field(default_factory=list)
    decoded: list[int] = field(default_factory=list)
    fault: Callable[[Sequence[int], bool], Exception | None] = lambda rows, is_prefill: None

    def __post_init__(self) -> None:
        self.device, self.dtype = self.network.device, self.network.dtype
        self.cache_shape = self.network.cache_shape

    def encode(self, features: Tensor, silence_stride: int) -> EncodedAudio:
        self.encoded.append(len(features))
        return self.network.encode(features, silence_stride)

    def write_audio(self, encoded: EncodedAudio, cache: SlotCache, first_slot: int) -> None:
        self.network.write_audio(encoded, cache, first_slot)

    def decode(
        self,
        token_ids: Tensor,
        positions: Tensor,
        audio: Sequence[int],
        cache: SlotCache,
        first_slot: int,
        length: int,
    ) -> Tensor:
        is_prefill = bool(positions[0, 0] == 0)
        error = self.fault(token_ids[:, 0].tolist(), is_prefill)
        if error is not None:
            raise error
        (self.prefilled if is_prefill else self.decoded).append(len(token_ids))
        return self.network.decode(token_ids, positions, audio, cache, first_slot, length)

    def logits(self, states: Tensor) -> Tensor:
        return self.network.logits(states)
