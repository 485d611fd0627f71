"""Runs encoder–decoder networks: a slot holds the audio that is attended to, and the ids so far."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Rows
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from asrcli.compute_threads import give_way
from asrcli.engine.audio import EncodedAudio, join
from asrcli.engine.cache import CacheShape, SlotCache
from asrcli.engine.graphs import StepGraphs, pad_rows
from asrcli.engine.key_values import BLOCK
from asrcli.engine.runner import round_up
from asrcli.engine.transfer import download, upload, use_here
from asrcli.stages import Stages

if TYPE_CHECKING:
    from asrcli.engine.scheduler import Sequence

SHORT_PROMPT = 8  # ids; one without text ahead of it has three or four


class CrossAttentionNetwork(Protocol):
    """What the runner asks of a network of the encoder–decoder kind."""

    device: torch.device
    dtype: torch.dtype
    cache_shape: CacheShape

    def encode(self, features: Tensor, silence_stride: int) -> EncodedAudio: ...
    def write_audio(self, encoded: EncodedAudio, cache: SlotCache, first_slot: int) -> None: ...
    def decode(
        self,
        token_ids: Tensor,
        positions: Tensor,
        audio: Rows[int],
        cache: SlotCache,
        first_slot: int,
        length: int,
    ) -> Tensor: ...
    def logits(self, states: Tensor) -> Tensor: ...


class SlotRunner:
    """Feeds sequences to a network and keeps their slots; see ``Runner``.

    Args:
        stages: where the time goes.
        graphs: runs the decode steps; None takes one where the network runs on a GPU.
    """

    max_tokens = None  # every slot has the same room

    def __init__(
        self,
        network: CrossAttentionNetwork,
        num_slots: int,
        *,
        encode_batch_size: int,
        stages: Stages | None = None,
        graphs: StepGraphs | None = None,
    ) -> None:
        self.network = network
        self.stages = stages or Stages()
        self.encode_batch_size = encode_batch_size
        self.cache = self._allocate(num_slots)
        if graphs is None and network.device.type == "cuda":
            graphs = StepGraphs(network.device, num_slots)
        self.graphs: StepGraphs | None = graphs

    @property
    def aligns_rows(self) -> bool:
        """Graphs are of steps in which each row hears its own slot."""
        return self.graphs is not None

    @property
    def num_slots(self) -> int:
        """Slots that there are."""
        return self.cache.num_slots

    @property
    def max_length(self) -> int:
        """Ids that one request can come to, its prompt included."""
        return self.network.cache_shape.max_length

    def _allocate(self, num_slots: int) -> SlotCache:
        network = self.network
        return SlotCache(network.cache_shape, num_slots, network.device, network.dtype)

    def shrink(self, num_slots: int) -> None:
        """Replace the cache by a smaller one; what it held is lost."""
        if self.graphs is not None:
            self.graphs.drop()
        self.cache = self._allocate(0)  # the old one goes before the new one comes
        if self.network.device.type == "cuda":
            torch.cuda.empty_cache()
        self.cache = self._allocate(num_slots)

    def prefill(self, newcomers: Rows[Sequence], room: int) -> Tensor:
        """Encode the newcomers' audio and take in their prompts; see ``Runner``."""
        with self.stages.measure("encoder"):
            batches = list(self._encoder_batches(newcomers))
            encoded = [self._encode(batch) for batch in batches]
            for batch, each in zip(batches, encoded, strict=True):
                self.network.write_audio(each, self.cache, batch[0].audio_slot)
                for sequence, audio in zip(batch, each.windows(), strict=True):
                    sequence.audio = audio
        with self.stages.measure("prefill"):
            return self._read_prompts(newcomers)

    def _read_prompts(self, newcomers: Rows[Sequence]) -> Tensor:
        """Logits of each newcomer's first id; on the way, how likely it is that nobody speaks."""
        states = self._take_prompts(newcomers, newcomers[0].slot)
        asking = [row for row, each in enumerate(newcomers) if each.request.no_speech is not None]
        last = [len(sequence.request.prompt_token_ids) - 1 for sequence in newcomers]
        asked = [newcomers[row].request.no_speech or (0, 0) for row in asking]
        rows = [*range(len(newcomers)), *asking]
        places = upload([rows, [*last, *(position for position, _ in asked)]], states.device)
        logits = self.network.logits(states[places[0], places[1]])
        if asking:
            scores = logits[len(newcomers) :]
            ids = upload([[token_id] for _, token_id in asked], states.device)
            logprobs = scores.gather(1, ids)[:, 0] - scores.logsumexp(dim=-1)
            for row, probability in zip(asking, download(logprobs.exp()), strict=True):
                newcomers[row].no_speech_prob = probability
        return logits[: len(newcomers)]

    def _encoder_batches(self, newcomers: Rows[Sequence]) -> Iterator[list[Sequence]]:
        """Neighbours of one length, known or not, as many as the encoder takes at once."""

        def kind(sequence: Sequence) -> tuple[bool, torch.Size, int]:
            request = sequence.request
            return request.audio is None, request.input_features.shape, request.silence_stride

        for _, group in groupby(newcomers, key=kind):
            same = list(group)
            for begin in range(0, len(same), self.encode_batch_size):
                yield same[begin : begin + self.encode_batch_size]

    def _encode(self, batch: Rows[Sequence]) -> EncodedAudio:
        """What the encoder makes of a batch, or has made of it before."""
        give_way()
        known = [each.request.audio for each in batch if each.request.audio is not None]
        if known:
            return join(known)
        features = torch.stack([use_here(sequence.request.input_features) for sequence in batch])
        encoded = self.network.encode(features, batch[0].request.silence_stride)
        num_windows, num_positions, _ = encoded.states.shape
        self.stages.count(
            encoded_positions=num_windows * num_positions,
            encoded_pairs=num_windows * num_positions**2,
        )
        return encoded

    def _take_prompts(self, newcomers: Rows[Sequence], first_slot: int) -> Tensor:
        """Decode ragged prompts, padded on the right: what padding leaves in a slot lies behind the
        row's own positions, is masked, and is overwritten as the row grows. Few lengths, too, so
        that sums are taken in one order and a row does not depend on its company."""
        prompts = [sequence.request.prompt_token_ids for sequence in newcomers]
        longest = max(map(len, prompts))
        length = SHORT_PROMPT if longest <= SHORT_PROMPT else round_up(longest, self.max_length)
        padded = [prompt + prompt[-1:] * (length - len(prompt)) for prompt in prompts]
        device = self.network.device
        positions = torch.arange(length, device=device).expand(len(prompts), length)
        token_ids = upload(padded, device)
        audio = [sequence.audio_slot for sequence in newcomers]
        self._count_step(len(prompts), length, newcomers)
        return self.network.decode(token_ids, positions, audio, self.cache, first_slot, length)

    def decode(self, running: Rows[Sequence]) -> Tensor:
        """Take in the last id of every running row; see ``Runner``."""
        with self.stages.measure("decode"):
            return self._decode(running)

    def _count_step(self, num_rows: int, length: int, leads: Rows[Sequence]) -> None:
        self.stages.count(
            steps=1,
            tokens=num_rows,
            read_positions=num_rows * length,
            read_audio_positions=sum(map(_num_audio_positions, leads)),
        )

    def _decode(self, running: Rows[Sequence]) -> Tensor:
        last = [sequence.length - 1 for sequence in running]
        length = max(last) + 1
        leads = list({row.lead for row in running})
        self._count_step(len(running), length, leads)
        audio = [row.lead.audio_slot for row in running]
        token_ids = [sequence.token_ids[-1] for sequence in running]
        # Beams share audio: their rows do not lie as their audio does.
        if self.graphs is not None and audio == list(range(len(running))):
            return self._decode_in_place(self.graphs, token_ids, last, length)
        steps = upload([token_ids, last], self.network.device)[..., None]
        states = self.network.decode(steps[0], steps[1], audio, self.cache, 0, length)
        return self.network.logits(states[:, 0])

    def _decode_in_place(
        self, graphs: StepGraphs, token_ids: Rows[int], positions: Rows[int], length: int
    ) -> Tensor:
        """A step in which every row hears the audio of its own slot, by graphs."""
        network, cache = self.network, self.cache
        num_rows = pad_rows(len(token_ids), self.num_slots)
        slots = list(range(num_rows))
        room = -(-length // BLOCK) * BLOCK
        heard = cache.hear(slots)

        def step(token_ids: Tensor, positions: Tensor) -> Tensor:
            columns = token_ids[:, None], positions[:, None]
            return network.logits(network.decode(*columns, slots, cache, 0, room)[:, 0])

        shape = (room, heard.places.length, heard.mask is None)
        return graphs.run(token_ids, positions, num_rows, shape, step)

    def move(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids over another slot."""
        self.cache.ids.copy(source, target, length)

    def move_audio(self, source: int, target: int) -> None:
        """Move a request's audio to another audio slot."""
        self.cache.move_audio(source, target)

    def fork(self, source: int, target: int, length: int) -> None:
        """Copy a row of ``length`` ids to the slot behind the last."""
        self.cache.ids.copy(source, target, length)

    def clear(self, slot: int, audio_slot: int) -> None:
        """Wipe out all that a row holds."""
        self.cache.wipe(slot, audio_slot)


def _num_audio_positions(lead: Sequence) -> int:
    return 0 if lead.audio is None else lead.audio.num_positions
