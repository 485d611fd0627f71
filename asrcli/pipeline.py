"""A batch of recordings, from sources to transcripts, on one page.

Each recording is read, split and submitted window by window, a bounded number of windows ahead of
the model. What comes back is stitched together per recording, in the order of the sources. One that
fails takes nothing with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from asrcli.audio.reading import SAMPLING_RATE
from asrcli.audio.sources import AS_IT_IS, Reading, Source, expand
from asrcli.backends.base import Backend, Recognition
from asrcli.errors import AsrError, EngineError, UsageError
from asrcli.feeding import Feeder, Progress, Recording
from asrcli.options import Options
from asrcli.stages import Stages
from asrcli.transcript import Segment, Transcript
from asrcli.windows import Stitcher

OnSegments = Callable[[Source, tuple[Segment, ...]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one source: a transcript or an error.

    Attributes:
        damage: what was lost of the audio or of its words, one line each; the transcript holds the
            rest.
    """

    source: Source
    transcript: Transcript | None = None
    error: Exception | None = None
    damage: tuple[str, ...] = ()


def transcribe_sources(
    sources: Sequence[Source],
    backend: Backend,
    options: Options,
    *,
    reading: Reading = AS_IT_IS,
    progress: Progress | None = None,
    on_segments: OnSegments | None = None,
    stages: Stages | None = None,
) -> Iterator[Result]:
    """Transcribe recordings in one batch; results come in the order of the sources.

    Closing the iterator stops the reading; what was submitted is left to the backend.

    Args:
        sources: what is read.
        backend: where windows are transcribed.
        options: how.
        reading: as what they are read, and which parts of them.
        progress: hears how it gets on.
        on_segments: called with a source's segments as soon as they are final, in order: while the
            rest of the recording is still being transcribed, and before its result comes.
        stages: where the time for reading goes.
    """
    feeder = Feeder(sources, backend, options, reading, progress, stages)
    feeder.start()
    try:
        for recording in feeder.recordings:
            yield _collect(recording, backend.name, options, on_segments)
    finally:
        feeder.stop()


def transcribe_source(path: str | Path, backend: Backend, options: Options) -> Transcript:
    """Transcribe one recording.

    Raises:
        AsrError: it cannot be read or transcribed.
    """
    sources = expand([path])
    if len(sources) != 1:
        raise UsageError(
            f"{path}: holds {len(sources)} recordings, not one",
            hint="transcribe them one after the other, or all with: asr transcribe",
        )
    source = sources[0]
    (result,) = transcribe_sources(sources, backend, options)
    if result.transcript is None:
        raise result.error or AsrError(f"{source.name}: no result")
    return result.transcript


def _collect(
    recording: Recording, model: str, options: Options, on_segments: OnSegments | None
) -> Result:
    """Wait for a recording's windows and put them together."""
    stitcher, recognitions, errors = Stitcher(), list[Recognition](), list[Exception]()
    end = 0.0

    def tell(segments: tuple[Segment, ...]) -> None:
        if on_segments is not None and segments:
            on_segments(recording.source, segments)

    while (pending := recording.pending.get()) is not None:
        end = pending.end
        try:
            recognition = pending.future.result()
        except Exception as error:  # what is known of the recording's other windows stays
            errors.append(error)
            recognition = _lost(f"{pending.start:.1f}-{end:.1f} s", error)
        recognitions.append(recognition)
        tell(stitcher.add(recognition.segments, pending.overlap))
    if recording.error is not None:
        errors.append(recording.error)
        recognitions.append(_lost(f"from {end:.1f} s on", recording.error))
    if errors and len(errors) == len(recognitions):
        return Result(source=recording.source, error=_named(errors[0], recording.source))
    tell(stitcher.finish())
    transcript = _build(recording, recognitions, stitcher, model, options)
    losses = tuple(loss for recognition in recognitions for loss in recognition.losses)
    return Result(source=recording.source, transcript=transcript, damage=recording.damage + losses)


def _lost(when: str, error: Exception) -> Recognition:
    """What stands for audio that could not be transcribed."""
    line = " ".join(str(error).split())
    if not isinstance(error, AsrError):
        line = f"internal error ({type(error).__name__}: {line})"
    return Recognition(segments=(), losses=(f"{when}: not transcribed: {line}",))


def _named(error: Exception, source: Source) -> Exception:
    """An error that names the recording; the loop knows windows only."""
    if isinstance(error, EngineError):
        return EngineError(f"{source.name}: {error}", hint=error.hint)
    return error


def _build(
    recording: Recording,
    recognitions: Sequence[Recognition],
    stitcher: Stitcher,
    model: str,
    options: Options,
) -> Transcript:
    spoken = (recognition.language for recognition in recognitions if recognition.segments)
    return Transcript(
        text=stitcher.text,
        language=options.language or next(spoken, None),
        task=options.task,
        duration=recording.num_samples / SAMPLING_RATE,
        segments=stitcher.segments,
        model=model,
        warnings=(
            *recording.warnings,
            *(warning for recognition in recognitions for warning in recognition.warnings),
            *stitcher.warnings,
            *(loss for recognition in recognitions for loss in recognition.losses),
        ),
        retries=tuple(retry for recognition in recognitions for retry in recognition.retries),
    )
