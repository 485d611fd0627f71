"""A small decoder-only network of random weights, and ways to watch it and to make it fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from asrcli.engine.decoder_only import DecoderOnly, LanguageLayer, LanguageWeights
from asrcli.engine.layers import Linear, RmsNorm
from asrcli.engine.request import Hypothesis, Request, Sampling
from asrcli.engine.token_cache import TokenCache
from tests.engine.tiny_network import EOS, NEVER_TWICE

WIDTH, HEADS, FEW_HEADS, HEAD_DIM, NUM_LAYERS = 32, 4, 2, 8, 2
NUM_MEL_BINS, VOCABULARY, MAX_LENGTH = 8, 120, 1024


class _Random:
    def __init__(self, seed: int) -> None:
        self._generator = torch.Generator().manual_seed(seed)

    def tensor(self, *sizes: int, scale: float = 1.0) -> Tensor:
        return scale * torch.randn(*sizes, generator=self._generator)

    def linear(self, num_in: int, num_out: int) -> Linear:
        return Linear(self.tensor(num_out, num_in, scale=num_in**-0.5))

    def norm(self, width: int) -> RmsNorm:
        return RmsNorm(1 + self.tensor(width, scale=0.1), 1e-6)

    def head_norm(self) -> RmsNorm:
        query, key = self.norm(HEAD_DIM).weight, self.norm(HEAD_DIM).weight
        return RmsNorm(torch.cat((query.expand(HEADS, -1), key.expand(FEW_HEADS, -1))), 1e-6)

    def layer(self) -> LanguageLayer:
        return LanguageLayer(
            attention_norm=self.norm(WIDTH),
            qkv=self.linear(WIDTH, (HEADS + 2 * FEW_HEADS) * HEAD_DIM),
            head_norm=self.head_norm(),
            attention_out=self.linear(HEADS * HEAD_DIM, WIDTH),
            feed_forward_norm=self.norm(WIDTH),
            gate_up=self.linear(WIDTH, 128),
            down=self.linear(64, WIDTH),
        )


class PairTower:
    """Every two frames are one position."""

    def __init__(self, random: _Random) -> None:
        self._linear = random.linear(2 * NUM_MEL_BINS, WIDTH)

    def __call__(self, features: Sequence[Tensor]) -> list[Tensor]:
        return [self._linear(one.T.reshape(-1, 2 * NUM_MEL_BINS)) for one in features]


def build_decoder_only(seed: int = 0) -> DecoderOnly:
    random = _Random(seed)
    return DecoderOnly(
        PairTower(random),
        LanguageWeights(
            token_embedding=random.tensor(VOCABULARY, WIDTH),
            layers=tuple(random.layer() for _ in range(NUM_LAYERS)),
            norm=random.norm(WIDTH),
            output=Linear(random.tensor(VOCABULARY, WIDTH)),
            num_heads=HEADS,
            num_key_value_heads=FEW_HEADS,
            head_dim=HEAD_DIM,
            rotary_frequencies=1.0 / 10_000 ** (torch.arange(0, HEAD_DIM, 2) / HEAD_DIM),
            max_length=MAX_LENGTH,
        ),
    )


def build_spliced_request(
    number: int,
    *,
    num_positions: int | None = None,
    max_new_tokens: int = 20,
    temperature: float = 0.0,
    on_token: Callable[[Hypothesis], None] | None = None,
) -> Request:
    """A request whose prompt and audio have lengths of their own: 2 to 241 positions of audio."""
    random = torch.Generator().manual_seed(2000 + number)
    before, behind = 1 + number * 5 % 7, 2 + number * 3 % 4
    num_positions = 2 + number * 37 % 240 if num_positions is None else num_positions
    ids = torch.randint(len(EOS), VOCABULARY, (before + behind,), generator=random).tolist()
    return Request(
        request_id=number,
        prompt_token_ids=(*ids[:before], *[0] * num_positions, *ids[before:]),
        # A frame or two more than there are places: what they give is dropped.
        input_features=torch.randn(NUM_MEL_BINS, 2 * num_positions + 2, generator=random),
        audio_span=(before, before + num_positions),
        sampling=Sampling(
            max_new_tokens=max_new_tokens,
            eos_token_ids=EOS,
            temperature=temperature,
            seed=number,
            logits_rules=(NEVER_TWICE,),
        ),
        on_token=on_token,
    )


@dataclass
class WatchedDecoderOnly:
    """A network that keeps a log of its passes, and fails where it is told to.

    Attributes:
        log: ("encode", windows), ("prefill", tokens) and ("decode", rows), in order.
        most_tokens: the largest that the cache has been, in tokens.
        fault: asked with the number of rows in the cache; an error that it gives is raised.
    """

    network: DecoderOnly = field(default_factory=build_decoder_only)
    log: list[tuple[str, int]] = field(default_factory=list)
    most_tokens: int = 0
    fault: Callable[[int], Exception | None] = lambda num_rows: None

    def __post_init__(self) -> None:
        self.device, self.dtype = self.network.device, self.network.dtype
        self.token_shape, self.max_length = self.network.token_shape, self.network.max_length
        self.embed, self.logits = self.network.embed, self.network.logits

    def encode(self, features: Sequence[Tensor]) -> list[Tensor]:
        self.log.append(("encode", len(features)))
        return self.network.encode(features)

    def prefill(
        self, prompts: Tensor, lengths: Sequence[int], cache: TokenCache, first_row: int
    ) -> Tensor:
        self._watch("prefill", len(prompts), first_row + len(lengths), cache)
        return self.network.prefill(prompts, lengths, cache, first_row)

    def decode(
        self,
        token_ids: Tensor,
        lengths: Sequence[int],
        cache: TokenCache,
        positions: Tensor | None = None,
    ) -> Tensor:
        self._watch("decode", len(token_ids), len(token_ids), cache)
        return self.network.decode(token_ids, lengths, cache, positions)

    def _watch(self, what: str, amount: int, num_rows: int, cache: TokenCache) -> None:
        error = self.fault(num_rows)
        if error is not None:
            raise error
        self.log.append((what, amount))
        self.most_tokens = max(self.most_tokens, cache.num_rows * cache.room)
