"""The contract between a model family and the rest: all that a new family has to offer.

A family is one module with a ``FAMILY`` object, announced by the entry-point group
``asrcli.models``; the built-in ones come in by the same door. Importing that module must not import
torch: ``asr models`` reads every family's facts and has to answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.engine.decoder_only import DecoderOnly
    from asrcli.engine.request import Hypothesis, Request
    from asrcli.engine.slot_runner import CrossAttentionNetwork
    from asrcli.options import Options
    from asrcli.transcript import Segment
    from asrcli.windows import Window


Detection = Literal["recording", "window", "none"]
"""How a model finds the language out.

"recording": the first window with speech tells, and the model is told it for the others. "window":
the model writes it down for each window by itself. "none": nobody learns it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alias:
    """A short name for a published checkpoint.

    Attributes:
        name: what ``--model`` takes, e.g. "whisper:base".
        hub_id: the repository on the Hugging Face hub.
        num_parameters: how many weights it has.
        languages: how many languages it knows; 1 means English alone.
    """

    name: str
    hub_id: str
    num_parameters: int
    languages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """A model on this machine.

    Attributes:
        name: what it is called in messages and results: alias, hub id or folder.
        path: its folder.
        format: "huggingface" or "ctranslate2".
        architecture: the class name that its configuration states.
    """

    name: str
    path: Path
    format: str
    architecture: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFiles:
    """What lies in a checkpoint's folder, in Hugging Face's names whatever its format.

    Attributes:
        config, generation_config, preprocessor_config: the JSON objects; empty where missing.
        tokenizer_path: tokenizer.json.
        tensors: weights by name, on the CPU, as stored (memory-mapped where the format can).
    """

    config: Mapping[str, Any]
    generation_config: Mapping[str, Any]
    preprocessor_config: Mapping[str, Any]
    tokenizer_path: Path
    tensors: Mapping[str, Tensor]


class Processor(Protocol):
    """Audio and options in, request out."""

    @property
    def max_duration(self) -> float:
        """Seconds of audio that one request can hold."""

    @property
    def default_duration(self) -> float:
        """Seconds at which a recording is cut unless the user chooses."""

    @property
    def detection(self) -> Detection:
        """How the language is found out where none is given."""

    def num_tokens(self, duration: float) -> int:
        """Tokens that a request for so many seconds can come to, without what the user adds."""

    def check(self, options: Options) -> tuple[str, ...]:
        """Raise UsageError for an option that this checkpoint cannot serve.

        Returns:
            Warnings about options that it serves in part, one line each.
        """

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        """Turn a window into a request. Without ``options.language`` the model detects it."""


class Adapter(Protocol):
    """Ids in, segments out: the inverse of the processor."""

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        """Turn what the network produced into segments, in seconds of the recording.

        ``window.start`` is added here and nowhere else.
        """

    def draft(self, hypothesis: Hypothesis) -> str:
        """The text so far, of a hypothesis that is still being produced."""

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        """ISO code of the language that was given or detected; None while it is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A loaded checkpoint: both halves of the conversation and the network between them."""

    processor: Processor
    adapter: Adapter
    network: CrossAttentionNetwork | DecoderOnly


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What a model family is and can do, and how one of its checkpoints is loaded.

    Attributes:
        name: e.g. "whisper".
        architectures: the exact class names of checkpoints that it can load.
        aliases: its published checkpoints, smallest first.
        times: what times it gives: "segments", "windows" (those of the cuts), "none".
        language_choice: whether it can be told which language is spoken.
        hotwords: whether it can be told words to expect.
        streaming: whether its text can be watched while it grows, id by id.
        max_duration: seconds of audio that it can take in at once.
        load: (checkpoint, files, device, dtype) to a loaded model; device and dtype are torch's.
    """

    name: str
    architectures: tuple[str, ...]
    aliases: tuple[Alias, ...]
    times: str
    language_choice: bool
    hotwords: bool
    max_duration: float
    load: Callable[[Checkpoint, ModelFiles, Any, Any], Model]
    streaming: bool = True
