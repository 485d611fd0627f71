"""How fast a model transcribes on this machine, and how near that is to what the machine can do.

The bound is what the arithmetic of the encoder takes at the speed of a large matrix product, and
what the decoder's weights and caches take to be read once a step, both measured here just before.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.device import unquantized
from asrcli.engine.encoder_decoder import EncoderDecoder
from asrcli.engine.layers import Linear
from asrcli.engine.quantizing import quantize_linear
from asrcli.errors import AsrError
from asrcli.memory_use import peak_memory
from asrcli.pipeline import transcribe_sources
from asrcli.stages import STAGES

if TYPE_CHECKING:
    from asrcli.audio.sources import Source
    from asrcli.options import Options
    from asrcli.recognizer import Recognizer
    from asrcli.transcript import Segment

PRODUCT_SIZE = {"cpu": 1536, "cuda": 8192, "mps": 4096}  # rows and columns of the matrices
COPY_BYTES = {"cpu": 1 << 28, "cuda": 1 << 31, "mps": 1 << 29}  # more than any cache holds
NUM_TRIALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a device can do.

    Attributes:
        flops: floating-point operations a second, in a large matrix product.
        bandwidth: bytes that are read a second.
        map_ops: operations a second in affine maps, where their weights are integers; else None.
    """

    flops: float
    bandwidth: float
    map_ops: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What some work demands.

    Attributes:
        map_ops: operations of affine maps in the encoder and on prompts.
        flops: other floating-point operations there.
        num_bytes: that the decoder's steps read.
    """

    map_ops: int
    flops: int
    num_bytes: int

    def seconds(self, machine: Machine) -> float:
        """How long it takes such a machine at least."""
        maps = self.map_ops / (machine.map_ops or machine.flops)
        return maps + self.flops / machine.flops + self.num_bytes / machine.bandwidth


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One run over all recordings.

    Attributes:
        duration: seconds of audio.
        seconds: that the run took, with the model loaded.
        first_text: seconds until the first words were final; None if there were none.
        stages: seconds by stage; what runs beside the engine counts as well.
        num_tokens: ids that the decoder was given.
        bound: seconds that the arithmetic and the reads of memory take at least; None if unknown.
    """

    duration: float
    seconds: float
    first_text: float | None
    stages: dict[str, float]
    num_tokens: int
    bound: float | None = None

    @property
    def speed(self) -> float:
        """Seconds of audio a second (RTFx)."""
        return self.duration / self.seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """What was measured in several rounds.

    Attributes:
        description: model, device, dtype and threads.
        num_files: recordings a round.
        peak_memory: bytes that the process has had at most, on a GPU those of the device; None
            where the system does not say.
    """

    description: str
    num_files: int
    machine: Machine
    rounds: tuple[Round, ...]
    peak_memory: int | None

    @property
    def median(self) -> Round:
        """The round of median speed."""
        ordered = sorted(self.rounds, key=lambda round: round.seconds)
        return ordered[(len(ordered) - 1) // 2]


def measure(
    recognizer: Recognizer, sources: Sequence[Source], options: Options, *, num_rounds: int
) -> Measurement:
    """Transcribe recordings several times, and once before that as a warm-up.

    Raises:
        AsrError: one of them cannot be transcribed.
    """
    _run(recognizer, sources[:1], options)
    runs = [_run(recognizer, sources, options) for _ in range(num_rounds)]
    peak = _peak_memory(recognizer.device)  # measuring the machine takes some as well
    machine = measure_machine(recognizer.device, recognizer.dtype)
    rounds = (
        replace(round, bound=find_bound(recognizer.network, counts, machine))
        for round, counts in runs
    )
    return Measurement(
        description=recognizer.description,
        num_files=len(sources),
        machine=machine,
        rounds=tuple(rounds),
        peak_memory=peak,
    )


def _run(
    recognizer: Recognizer, sources: Sequence[Source], options: Options
) -> tuple[Round, dict[str, int]]:
    """One round, its bound not yet known, and what was done in it."""
    stages = recognizer.stages
    stages.reset()
    first: list[float] = []
    begin = time.perf_counter()

    def hear(source: Source, segments: tuple[Segment, ...]) -> None:
        if not first:
            first.append(time.perf_counter() - begin)

    duration = 0.0
    results = transcribe_sources(sources, recognizer, options, on_segments=hear, stages=stages)
    for result in results:
        if result.transcript is None:
            raise result.error or AsrError(f"{result.source.name}: no result")
        duration += result.transcript.duration
    seconds = time.perf_counter() - begin
    counts = stages.counts
    round = Round(
        duration=duration,
        seconds=seconds,
        first_text=first[0] if first else None,
        stages=stages.seconds,
        num_tokens=counts.get("tokens", 0),
    )
    return round, counts


def find_bound(network: object, counts: dict[str, int], machine: Machine) -> float | None:
    """Seconds that what was done takes at least, on such a machine; None for a foreign network.

    Args:
        counts: as the runner keeps them: positions that the encoder and prompts had, and their
            squares; steps, and the positions of ids and of audio that these read.
    """
    if isinstance(network, DecoderOnly):
        return _cost_of_decoder_only(network, Counter(counts)).seconds(machine)
    if isinstance(network, EncoderDecoder):
        return _cost_of_encoder_decoder(network, Counter(counts)).seconds(machine)
    return None


def _cost_of_decoder_only(network: DecoderOnly, done: Counter[str]) -> Cost:
    weights = network.weights
    width = weights.num_heads * weights.head_dim
    tower = num_weights(getattr(network.tower, "weights", ()))
    read = (weight_bytes(weights.layers) + weight_bytes(weights.output)) * done["steps"]
    return Cost(
        map_ops=2 * tower * done["encoded_positions"]
        + 2 * num_weights(weights.layers) * done["prompt_positions"],
        # Half of the pairs are masked.
        flops=2 * len(weights.layers) * width * done["prompt_pairs"],
        num_bytes=read + network.token_shape.token_bytes(network.dtype) * done["read_positions"],
    )


def _cost_of_encoder_decoder(network: EncoderDecoder, done: Counter[str]) -> Cost:
    weights, shape = network.weights, network.cache_shape
    width = shape.num_heads * shape.head_dim
    audio = tuple(layer.audio_key_value for layer in weights.decoder_layers)
    stem, frames = 0, 1  # frames of a convolution's output for each position of the encoder
    for weight, _, stride in reversed(weights.convolutions):
        stem += weight.numel() * frames
        frames *= stride
    attention = 4 * len(weights.encoder_layers) * width * done["encoded_pairs"]
    decoder = weight_bytes(weights.decoder_layers) - weight_bytes(audio)
    read = [
        store.slot_bytes(network.dtype) * done[count] // store.room
        for store, count in ((shape.ids, "read_positions"), (shape.audio, "read_audio_positions"))
    ]
    maps = num_weights(weights.encoder_layers) + num_weights(audio)
    return Cost(
        map_ops=2 * maps * done["encoded_positions"],
        flops=2 * stem * done["encoded_positions"] + attention,
        num_bytes=(decoder + weight_bytes(weights.output)) * done["steps"] + sum(read),
    )


def num_weights(value: Any) -> int:
    """Numbers in all affine maps of some weights (dataclasses and tuples of them)."""
    return sum(each.weight.numel() for each in _maps(value))


def weight_bytes(value: Any) -> int:
    """Bytes of all affine maps of some weights."""
    return sum(each.weight.numel() * each.weight.dtype.itemsize for each in _maps(value))


def _maps(value: Any) -> Iterator[Linear]:
    if isinstance(value, Linear):
        yield value
    elif isinstance(value, tuple):
        for part in value:
            yield from _maps(part)
    elif is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield from _maps(getattr(value, field.name))


def measure_machine(device: torch.device, dtype: torch.dtype) -> Machine:
    """Time a large matrix product and a sum over a large array, in the dtype that is used."""
    size = PRODUCT_SIZE[device.type]
    first = torch.ones(size, size, device=device, dtype=unquantized(dtype))
    product = torch.empty_like(first)
    array = torch.zeros(COPY_BYTES[device.type] // 8, device=device, dtype=torch.int64)
    map_ops = None
    with torch.inference_mode():
        multiply = _time(lambda: torch.mm(first, first, out=product), device)
        read = _time(lambda: array.max(), device)
        if dtype is torch.int8:
            linear, numbers = quantize_linear(Linear(first)), first.to(torch.uint8)
            integers = _time(lambda: linear.multiply(numbers, first.dtype), device)
            map_ops = 2 * size**3 / integers
    return Machine(flops=2 * size**3 / multiply, bandwidth=array.nbytes / read, map_ops=map_ops)


def _time(work: Callable[[], object], device: torch.device) -> float:
    """Median of the seconds that some work takes."""
    durations = []
    for _ in range(NUM_TRIALS + 1):
        with _timed(device) as took:
            work()
        durations.append(took())
    return statistics.median(durations[1:])  # the first one warms up


@contextmanager
def _timed(device: torch.device) -> Iterator[Callable[[], float]]:
    begin = time.perf_counter()
    end = begin
    yield lambda: end - begin
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
    end = time.perf_counter()


def _peak_memory(device: torch.device) -> int | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return peak_memory()


def other_seconds(round: Round) -> float:
    """What of a round no stage of the engine's own thread accounts for."""
    engine = STAGES[STAGES.index("encoder") :]
    return max(0.0, round.seconds - sum(round.stages[stage] for stage in engine))
