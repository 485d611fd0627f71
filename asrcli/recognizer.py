"""One checkpoint, ready to transcribe: its processor, the engine and its adapter."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from asrcli.attempts import Attempts
from asrcli.compute_threads import in_passing
from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.device import choose_device, choose_dtype, set_up
from asrcli.engine.loop import Engine
from asrcli.engine.memory import (
    choose_num_slots,
    choose_num_tokens,
    keep_freed_memory,
    max_slots,
)
from asrcli.engine.slot_runner import CrossAttentionNetwork, SlotRunner
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import UsageError
from asrcli.models.checkpoints import Reporter, find_checkpoint
from asrcli.models.files import read_model_files
from asrcli.models.registry import find_family
from asrcli.options import MAX_BEAM_SIZE, MIN_WINDOW, Options
from asrcli.pipeline import transcribe_source
from asrcli.stages import Stages

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.models.base import Checkpoint, Model
    from asrcli.transcript import Transcript
    from asrcli.windows import Window


class _Silent:
    """A reporter for callers without a terminal: a script has nobody to talk to."""

    def note(self, message: str) -> None: ...

    def download(self, name: str, total: int | None) -> _Silent:
        return self

    def __enter__(self) -> Callable[[int], None]:
        return lambda num_bytes: None

    def __exit__(self, *exception: object) -> None: ...


class Recognizer:
    """A loaded model that many recordings share, all in one batch.

    Args:
        model: an alias ("whisper:base"), a hub id or a local folder; "whisper" takes the one that
            suits the device.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        dtype: "auto", "float32", "bfloat16", "float16" or "int8".
        batch_size: windows at once; None takes as many as are worth having and fit the memory.
        reporter: hears of choices and downloads.

    Attributes:
        stages: where the time goes, from features to ids.

    Raises:
        CheckpointError: the model cannot be found, fetched or loaded.
        UsageError: the device or the dtype is unknown or not to be had.
    """

    def __init__(
        self,
        model: str = "whisper",
        *,
        device: str = "auto",
        dtype: str = "auto",
        batch_size: int | None = None,
        reporter: Reporter | None = None,
    ) -> None:
        self.device = choose_device(device)
        self.dtype = choose_dtype(dtype, self.device)
        checkpoint = find_checkpoint(
            model, gpu=self.device.type != "cpu", reporter=reporter or _Silent()
        )
        self._name = checkpoint.name
        self._model = in_passing(lambda: _load(checkpoint, self.device, self.dtype))
        if self.device.type == "cpu":  # from here on: what loading takes, it gives back
            keep_freed_memory()
        self.stages = Stages()
        self._engine = _start_engine(self._model.network, self.device, batch_size, self.stages)
        self._attempts = Attempts(self._model, self._engine)
        # Runs at the end of the process as well: threads that still compute then would crash it.
        self._finalizer = weakref.finalize(self, _close, self._attempts, self._engine)

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self._name

    @property
    def network(self) -> CrossAttentionNetwork | DecoderOnly:
        """The network that runs."""
        return self._model.network

    @property
    def description(self) -> str:
        """One line for people: what runs where, and how."""
        dtype = str(self.dtype).removeprefix("torch.")
        threads = f" · {torch.get_num_threads()} threads" if self.device.type == "cpu" else ""
        return f"{self._name} · {self.device} · {dtype}{threads}"

    def window_duration(self, options: Options) -> float:
        """Seconds at which recordings are cut: as asked for, else as suits model and memory.

        The default is halved until two windows fit the memory for keys and values.
        """
        if options.window is not None:
            return options.window
        processor, max_tokens = self._model.processor, self._engine.scheduler.max_tokens
        duration = processor.default_duration
        while max_tokens is not None and 2 * processor.num_tokens(duration) > max_tokens:
            if duration < 2 * MIN_WINDOW:
                break
            duration /= 2
        return duration

    def max_in_flight(self, options: Options) -> int:
        """Windows to have under way: those that run and as many that wait, ready to follow."""
        scheduler = self._engine.scheduler
        num_rows = scheduler.max_requests or scheduler.num_slots
        if scheduler.max_tokens is not None:
            need = self._model.processor.num_tokens(self.window_duration(options))
            num_rows = max(1, min(num_rows, scheduler.max_tokens // need))
        return 2 * num_rows

    def transcribe(self, path: str | Path, options: Options | None = None) -> Transcript:
        """Transcribe one recording, of any length, audio or video.

        Raises:
            AudioError: it cannot be read.
            UsageError: the model cannot do what the options ask for.
        """
        options = options or Options()
        self.check(options)
        return transcribe_source(path, self, options)

    def check(self, options: Options) -> tuple[str, ...]:
        """Raise UsageError for what the model cannot do; return warnings about the rest."""
        longest = self._model.processor.max_duration
        if options.window is not None and options.window > longest:
            raise UsageError(
                f"{self._name} takes in at most {longest:g} s at once, not {options.window:g}",
                hint=f"--window {longest:g} or less",
            )
        return self._model.processor.check(options)

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[Recognition]:
        """Take a window; see ``Backend.submit``."""
        return self._attempts.submit(window, options, on_partial)

    def close(self) -> None:
        """Give up what is still waiting and free the model."""
        self._finalizer()

    def __enter__(self) -> Recognizer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def transcribe(
    path: str | Path,
    *,
    model: str = "whisper",
    options: Options | None = None,
    device: str = "auto",
    dtype: str = "auto",
) -> Transcript:
    """Transcribe one recording with a model that is loaded for it and freed again.

    Args:
        path: audio or video of any length.
        model, device, dtype: as in ``Recognizer``, which serves many recordings.
        options: language, task and the like.

    Raises:
        AsrError: one line says what is wrong.
    """
    with Recognizer(model, device=device, dtype=dtype) as recognizer:
        return recognizer.transcribe(path, options)


def _close(attempts: Attempts, engine: Engine) -> None:
    attempts.close()
    engine.close()


def _load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Model:
    family = find_family(checkpoint.architecture)
    return family.load(checkpoint, read_model_files(checkpoint), device, dtype)


def _start_engine(
    network: CrossAttentionNetwork | DecoderOnly,
    device: torch.device,
    batch_size: int | None,
    stages: Stages,
) -> Engine:
    """An engine with as many rows as asked for, or as fit; sizes of a step suit the device."""
    # On a CPU one window at a time is as fast as eight, and its result cannot depend on company.
    encode_batch_size, max_prefill = (16, 64) if device.type == "cuda" else (1, 4)
    set_up(device)
    if isinstance(network, DecoderOnly):
        max_tokens = choose_num_tokens(network.token_shape.token_bytes(network.dtype), device)
        num_slots = max(batch_size, MAX_BEAM_SIZE) if batch_size else max_slots(device)
        return Engine(
            TokenRunner(
                network,
                num_slots,
                max_tokens,
                encode_batch_size=encode_batch_size,
                stages=stages,
            ),
            max_prefill=max_prefill,
            max_prefill_tokens=16_384 if device.type == "cuda" else 2_048,
            max_requests=batch_size,
        )
    slot_bytes = network.cache_shape.slot_bytes(network.dtype)
    num_slots = choose_num_slots(slot_bytes, device)
    if batch_size is not None:  # a request with beams takes as many slots, however few run at once
        num_slots = max(batch_size, min(num_slots, MAX_BEAM_SIZE))
    runner = SlotRunner(network, num_slots, encode_batch_size=encode_batch_size, stages=stages)
    return Engine(runner, max_prefill=max_prefill, max_requests=batch_size)
