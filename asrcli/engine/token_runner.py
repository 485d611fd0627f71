"""Runs decoder-only networks: audio embeddings take their places in the prompt, ids follow them."""

from __future__ import annotations

from collections.abc import Sequence as Rows
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from asrcli.engine.graphs import StepGraphs, pad_length, pad_rows
from asrcli.engine.token_cache import TokenCache, TokenShape
from asrcli.engine.transfer import upload, use_here
from asrcli.errors import EngineError
from asrcli.stages import Stages

if TYPE_CHECKING:
    from asrcli.engine.scheduler import Sequence


class SplicingNetwork(Protocol):
    """What the runner asks of a network of the decoder-only kind; see ``DecoderOnly``."""

    device: torch.device
    dtype: torch.dtype
    token_shape: TokenShape
    max_length: int

    def encode(self, features: Rows[Tensor]) -> list[Tensor]: ...
    def embed(self, token_ids: Tensor) -> Tensor: ...
    def prefill(
        self, prompts: Tensor, lengths: Rows[int], cache: TokenCache, first_row: int
    ) -> Tensor: ...
    def decode(
        self,
        token_ids: Tensor,
        lengths: Rows[int],
        cache: TokenCache,
        positions: Tensor | None = None,
    ) -> Tensor: ...
    def logits(self, states: Tensor) -> Tensor: ...


class TokenRunner:
    """Feeds sequences to a network and keeps their rows; see ``Runner``.

    Args:
        num_slots: rows at most.
        max_tokens: tokens that the cache may hold in all.
        stages: where the time goes.
        graphs: runs the decode steps; None takes one where the network runs on a GPU.
    """

    def __init__(
        self,
        network: SplicingNetwork,
        num_slots: int,
        max_tokens: int,
        *,
        encode_batch_size: int,
        stages: Stages | None = None,
        graphs: StepGraphs | None = None,
    ) -> None:
        self.network = network
        self.stages = stages or Stages()
        self.num_slots = num_slots
        self.max_tokens = max_tokens
        self.encode_batch_size = encode_batch_size
        self.cache = TokenCache(network.token_shape, network.device, network.dtype)
        if graphs is None and network.device.type == "cuda":
            graphs = StepGraphs(network.device, num_slots)
        self.graphs: StepGraphs | None = graphs
        self._recorded_version = self.cache.version

    @property
    def aligns_rows(self) -> bool:
        """Audio is part of the row."""
        return False

    @property
    def max_length(self) -> int:
        """Ids that one request can come to, its prompt included."""
        return min(self.network.max_length, self.max_tokens)

    def prefill(self, newcomers: Rows[Sequence], room: int) -> Tensor:
        """Encode the newcomers' audio and take in their prompts; see ``Runner``."""
        first_row = newcomers[0].slot
        self._make_room(first_row, first_row + len(newcomers), room)
        prompts = []
        with self.stages.measure("encoder"):
            for begin in range(0, len(newcomers), self.encode_batch_size):
                batch = newcomers[begin : begin + self.encode_batch_size]
                features = [use_here(each.request.input_features) for each in batch]
                encoded = self.network.encode(features)
                lengths = list(map(len, encoded))
                self.stages.count(
                    encoded_positions=sum(lengths), encoded_pairs=sum(n * n for n in lengths)
                )
                prompts += [self._splice(*pair) for pair in zip(batch, encoded, strict=True)]
        lengths = [len(prompt) for prompt in prompts]
        self.stages.count(prompt_positions=sum(lengths), prompt_pairs=sum(n * n for n in lengths))
        with self.stages.measure("prefill"):
            states = self.network.prefill(torch.cat(prompts), lengths, self.cache, first_row)
            return self.network.logits(states)

    def decode(self, running: Rows[Sequence]) -> Tensor:
        """Take in the last id of every running row; see ``Runner``."""
        token_ids = [sequence.token_ids[-1] for sequence in running]
        lengths = [sequence.length for sequence in running]
        self.stages.count(steps=1, tokens=len(lengths), read_positions=sum(lengths))
        with self.stages.measure("decode"):
            if self.graphs is not None:
                return self._decode_in_place(self.graphs, token_ids, lengths)
            ids = upload(token_ids, self.network.device)
            return self.network.logits(self.network.decode(ids, lengths, self.cache))

    def _decode_in_place(
        self, graphs: StepGraphs, token_ids: Rows[int], lengths: Rows[int]
    ) -> Tensor:
        """A step by graphs, which are good for as long as the cache stays where it is."""
        network, cache = self.network, self.cache
        if self._recorded_version != cache.version:
            graphs.drop()
            self._recorded_version = cache.version
        num_rows = pad_rows(len(token_ids), cache.num_rows)
        room = pad_length(max(lengths), cache.room)

        def step(token_ids: Tensor, positions: Tensor) -> Tensor:
            states = network.decode(token_ids, [room] * num_rows, cache, positions)
            return network.logits(states)

        return graphs.run(token_ids, [n - 1 for n in lengths], num_rows, room, step)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids over another slot."""
        self.cache.move(source, target, length)

    def fork(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids, audio and all, to the slot behind the last."""
        self._make_room(target, target + 1, self.cache.room)
        self.cache.move(source, target, length)

    def move_audio(self, source: int, target: int) -> None:
        """Nothing to do: the audio is part of the row."""

    def clear(self, slot: int, audio_slot: int) -> None:
        """Wipe out all that a slot holds."""
        self.cache.wipe(slot)

    def shrink(self, num_slots: int) -> None:
        """Go on with fewer slots, and with memory in proportion; what they held is lost."""
        self.max_tokens = self.max_tokens * num_slots // self.num_slots
        self.num_slots = num_slots
        if self.graphs is not None:
            self.graphs.drop()
        self.cache.clear()
        if self.network.device.type == "cuda":
            torch.cuda.empty_cache()

    def _make_room(self, num_live: int, num_rows: int, room: int) -> None:
        """Have rows of that room; twice as many as before where more are wanted, to copy seldom."""
        num_allocated = self.cache.num_rows
        if num_rows > num_allocated or room != self.cache.room:
            most = min(self.num_slots, max(num_rows, self.max_tokens // room))
            wanted = num_allocated if num_rows <= num_allocated else max(num_rows, 2 * num_live)
            if self.graphs is not None:  # all at once: what is recorded is lost with each change
                wanted = most
            self.cache.fit(min(wanted, most), room, num_live)

    def _splice(self, sequence: Sequence, encoded: Tensor) -> Tensor:
        """Embeddings of a prompt, with those of its audio in their places: [length, width]."""
        request = sequence.request
        token_ids = upload(request.prompt_token_ids, self.network.device)
        prompt = self.network.embed(token_ids)
        if request.audio_span is None:
            raise EngineError(f"request {request.request_id}: its prompt has no place for audio")
        begin, end = request.audio_span
        if end - begin > len(encoded):
            raise EngineError(
                f"request {request.request_id}: {end - begin} places for audio in the prompt, "
                f"but {len(encoded)} embeddings"
            )
        prompt[begin:end] = encoded[: end - begin]
        return prompt
