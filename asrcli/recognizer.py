"""One checkpoint, ready to transcribe: its processor, the engine and its adapter."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import torch

from asrcli.backends.base import Recognition
from asrcli.detection import LanguageDetection
from asrcli.engine.device import choose_device, choose_dtype
from asrcli.engine.loop import Engine
from asrcli.engine.memory import choose_num_slots, keep_freed_memory
from asrcli.engine.runner import Runner
from asrcli.models.checkpoints import Reporter, find_checkpoint
from asrcli.models.files import read_model_files
from asrcli.models.registry import find_family
from asrcli.options import Options
from asrcli.pipeline import transcribe_source

if TYPE_CHECKING:
    from asrcli.engine.request import Hypothesis
    from asrcli.models.base import Checkpoint, Model
    from asrcli.transcript import Transcript
    from asrcli.windows import Window

NO_SPEECH_THRESHOLD = 0.6  # a window that is likelier than this to be silent names no language


class _Silent:
    """A reporter for callers without a terminal: a script has nobody to talk to."""

    def note(self, message: str) -> None: ...

    def download(self, name: str, total: int | None) -> _Silent:
        return self

    def __enter__(self) -> Callable[[int], None]:
        return lambda num_bytes: None

    def __exit__(self, *exception: object) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Job:
    """A window on its way through the recognizer."""

    window: Window
    options: Options
    on_partial: Callable[[str], None] | None
    future: Future[Recognition]


class Recognizer:
    """A loaded model that many recordings share, all in one batch.

    Args:
        model: an alias ("whisper:base"), a hub id or a local folder; "whisper" takes the one that
            suits the device.
        device: "auto", "cpu", "cuda", "cuda:N" or "mps".
        dtype: "auto", "float32", "bfloat16" or "float16".
        batch_size: windows at once; None takes as many as are worth having and fit the memory.
        reporter: hears of choices and downloads.

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
        if self.device.type == "cpu":
            keep_freed_memory()
        checkpoint = find_checkpoint(
            model, gpu=self.device.type != "cpu", reporter=reporter or _Silent()
        )
        self._name = checkpoint.name
        self._model = _load(checkpoint, self.device, self.dtype)
        self._engine = _start_engine(self._model, self.device, batch_size)
        self._detection = LanguageDetection(self._queue)
        self._request_ids = itertools.count()
        # One thread prepares features ahead of the engine; more would take its cores away.
        self._preparation = ThreadPoolExecutor(1, thread_name_prefix="asr-features")

    @property
    def name(self) -> str:
        """The checkpoint's name."""
        return self._name

    @property
    def description(self) -> str:
        """One line for people: what runs where, and how."""
        dtype = str(self.dtype).removeprefix("torch.")
        threads = f" · {torch.get_num_threads()} threads" if self.device.type == "cpu" else ""
        return f"{self._name} · {self.device} · {dtype}{threads}"

    @property
    def max_duration(self) -> float:
        """Seconds that a window may last."""
        return self._model.processor.max_duration

    @property
    def max_in_flight(self) -> int:
        """Windows to have under way: those that run and as many that wait, ready to follow."""
        return 2 * self._engine.scheduler.num_slots

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
        return self._model.processor.check(options)

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[Recognition]:
        """Take a window; see ``Backend.submit``."""
        job = _Job(window=window, options=options, on_partial=on_partial, future=Future())
        if options.language is None:
            self._detection.submit(window.recording_id, job)
        else:
            self._queue(job, options.language)
        return job.future

    def close(self) -> None:
        """Give up what is still waiting and free the model."""
        self._preparation.shutdown(cancel_futures=True)
        self._engine.close()

    def __enter__(self) -> Recognizer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _queue(self, job: _Job, language: str | None) -> None:
        prepared = self._preparation.submit(self._prepare, job, language)
        prepared.add_done_callback(lambda done: _pass_on_failure(done, job.future))

    def _prepare(self, job: _Job, language: str | None) -> None:
        """Turn a job into a request; where the language is not known, listen for it as well."""
        if language is None and job.options.prompt is not None:
            self._listen_first(job)
            return
        options = replace(job.options, language=language)
        self._run(job, options, lambda hypothesis: self._finish(job, options, hypothesis))

    def _listen_first(self, job: _Job) -> None:
        """Detect the language without the prompt, whose own language would sway the model."""
        options = replace(job.options, prompt=None, max_new_tokens=1)

        def finish(hypothesis: Hypothesis) -> None:
            language = self._model.adapter.language(hypothesis, options)
            self._queue(job, language or "en")

        self._run(job, options, finish)

    def _run(self, job: _Job, options: Options, finish: Callable[[Hypothesis], None]) -> None:
        request = self._model.processor.prepare(next(self._request_ids), job.window, options)
        listener = _Listener(self, job, is_listening=options.language is None)
        if listener.is_listening or job.on_partial is not None:
            request = replace(request, on_token=listener)
        future = self._engine.submit(request)

        def done(future: Future[Hypothesis]) -> None:
            if listener.is_listening:  # not a word about the language: the next window has to tell
                self._detection.heard(job.window.recording_id, None)
            if not _pass_on_failure(future, job.future):
                try:
                    finish(future.result())
                except Exception as error:  # the one who waits for this window must hear of it
                    job.future.set_exception(error)

        future.add_done_callback(done)

    def _finish(self, job: _Job, options: Options, hypothesis: Hypothesis) -> None:
        segments = self._model.adapter.parse(hypothesis, job.window, options)
        warnings: tuple[str, ...] = ()
        if hypothesis.finish_reason == "length" and segments:
            window = job.window
            warnings = (
                f"{window.start:.1f}-{window.end:.1f} s: the text reached its greatest length "
                "and may be cut short",
            )
        language = self._model.adapter.language(hypothesis, options)
        job.future.set_result(
            Recognition(segments=tuple(segments), language=language, warnings=warnings)
        )

    def hear(self, job: _Job, hypothesis: Hypothesis) -> bool:
        """Tell the detection what a hypothesis says of the language; whether it said anything."""
        if (hypothesis.no_speech_prob or 0.0) > NO_SPEECH_THRESHOLD:
            self._detection.heard(job.window.recording_id, None)
            return True
        language = self._model.adapter.language(hypothesis, replace(job.options, language=None))
        if language is not None:
            self._detection.heard(job.window.recording_id, language)
        return language is not None

    def draft(self, hypothesis: Hypothesis) -> str:
        """The text of a hypothesis so far."""
        return self._model.adapter.draft(hypothesis)


class _Listener:
    """Follows a request id by id, for its language and for those who watch the text grow."""

    def __init__(self, recognizer: Recognizer, job: _Job, *, is_listening: bool) -> None:
        self._recognizer = recognizer
        self._job = job
        self.is_listening = is_listening

    def __call__(self, hypothesis: Hypothesis) -> None:
        if self.is_listening:
            self.is_listening = not self._recognizer.hear(self._job, hypothesis)
        if self._job.on_partial is not None:
            self._job.on_partial(self._recognizer.draft(hypothesis))


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


def _load(checkpoint: Checkpoint, device: torch.device, dtype: torch.dtype) -> Model:
    family = find_family(checkpoint.architecture)
    return family.load(checkpoint, read_model_files(checkpoint), device, dtype)


def _start_engine(model: Model, device: torch.device, batch_size: int | None) -> Engine:
    """An engine with as many slots as asked for, or as fit; sizes of a step suit the device."""
    network = model.network
    num_slots = batch_size or choose_num_slots(
        network.cache_shape.slot_bytes(network.dtype), device
    )
    # On a CPU one window at a time is as fast as eight, and its result cannot depend on company.
    encode_batch_size, max_prefill = (16, 64) if device.type == "cuda" else (1, 4)
    runner = Runner(network, num_slots, encode_batch_size=encode_batch_size)
    return Engine(runner, max_prefill=max_prefill)


def _pass_on_failure(done: Future[Hypothesis] | Future[None], waiting: Future[Recognition]) -> bool:
    """Hand the failure of a step to the one who waits for the result; whether there was one."""
    if done.cancelled():
        waiting.cancel()
        return True
    error = done.exception()
    if error is not None:
        waiting.set_exception(error)
    return error is not None
