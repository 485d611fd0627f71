"""``asr transcribe``: files, folders and pipes to text and subtitles."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asrcli.errors import AsrError, UsageError
from asrcli.options import TASKS, TIMESTAMPS, Options
from asrcli.writers import FORMATS, guess_format, render, render_shared, resolve_format
from asrcli.writers.outputs import Plan, plan_outputs, prepare, write_atomically

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asrcli.audio.reading import RawFormat
    from asrcli.audio.sources import Source
    from asrcli.console import StderrConsole
    from asrcli.pipeline import Result
    from asrcli.progress import BatchProgress
    from asrcli.recognizer import Recognizer


def transcribe(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT...", help="Audio or video files, folders, or - for standard input."
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            "-m", "--model", envvar="ASR_MODEL", help="A short name, a hub id or a local folder."
        ),
    ] = "whisper",
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "-f", "--format", envvar="ASR_FORMAT", help=f"{', '.join(FORMATS)}; may be repeated."
        ),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", help="Folder (or file) for results; - for stdout."),
    ] = None,
    language: Annotated[
        str | None,
        typer.Option(
            "-l", "--language", envvar="ASR_LANGUAGE", help="Code or name; detected if not given."
        ),
    ] = None,
    task: Annotated[
        str, typer.Option("--task", help=f"{' or '.join(TASKS)} (to English).")
    ] = "transcribe",
    prompt: Annotated[
        str | None, typer.Option("--prompt", help="Text that sets spelling and style.")
    ] = None,
    timestamps: Annotated[
        str, typer.Option("--timestamps", help=f"{' or '.join(TIMESTAMPS)}.")
    ] = "segment",
    temperature: Annotated[
        float, typer.Option("--temperature", help="0 takes the likeliest text; above, it is drawn.")
    ] = 0.0,
    seed: Annotated[int, typer.Option("--seed", help="Where drawing starts.")] = 0,
    pattern: Annotated[
        list[str] | None,
        typer.Option("--pattern", help="Which files of a folder, e.g. '*.mp3'; may be repeated."),
    ] = None,
    raw: Annotated[
        str | None,
        typer.Option("--raw", metavar="FORMAT", help="Inputs are PCM without a header: s16le ..."),
    ] = None,
    sampling_rate: Annotated[
        int, typer.Option("--sampling-rate", help="Of raw PCM, in Hz.")
    ] = 16_000,
    channels: Annotated[int, typer.Option("--channels", help="Of raw PCM.")] = 1,
    device: Annotated[
        str, typer.Option("--device", envvar="ASR_DEVICE", help="auto, cpu, cuda, cuda:N or mps.")
    ] = "auto",
    dtype: Annotated[
        str,
        typer.Option("--dtype", envvar="ASR_DTYPE", help="auto, float32, bfloat16 or float16."),
    ] = "auto",
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size", envvar="ASR_BATCH_SIZE", min=1, help="Windows at once; by memory."
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")] = False,
    verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")] = False,
) -> None:
    """Transcribe files, folders and pipes.

    One input's text goes to stdout; several inputs', or a folder's, to files beside the media, or
    under -o.
    """
    from asrcli.audio.sources import expand
    from asrcli.console import StderrConsole

    console = StderrConsole(quiet=quiet, verbose=verbose)
    options = Options(
        language=language,
        task=task,
        prompt=prompt,
        timestamps=timestamps,
        temperature=temperature,
        seed=seed,
    )
    names = _formats(formats, output)
    sources = expand(inputs, patterns=pattern or ())
    plan = plan_outputs(
        sources,
        formats=names,
        output=output,
        any_folder=any(Path(name).is_dir() for name in inputs if name != "-"),
    )
    _check_inputs(sources)
    raw_format = _raw_format(raw, sampling_rate, channels)
    prepare(plan)
    settings = _Settings(model=model, device=device, dtype=dtype, batch_size=batch_size)
    with _load(settings, options, console) as recognizer:
        num_failed = _Batch(sources, plan, console).run(recognizer, options, raw_format)
    if num_failed:
        raise typer.Exit(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Settings:
    """How the model is to be run."""

    model: str
    device: str
    dtype: str
    batch_size: int | None


def _formats(names: Sequence[str] | None, output: str | None) -> list[str]:
    """The formats asked for, each once; else what the name of the output file says, or text."""
    if names:
        # One value may hold several: that is all an environment variable can do.
        resolved = (resolve_format(part) for name in names for part in name.split(","))
        return list(dict.fromkeys(resolved))
    guessed = guess_format(output) if output else None
    return [guessed or "text"]


def _raw_format(name: str | None, sampling_rate: int, num_channels: int) -> RawFormat | None:
    if name is None:
        if (sampling_rate, num_channels) != (16_000, 1):
            raise UsageError("--sampling-rate and --channels describe raw PCM", hint="--raw s16le")
        return None
    from asrcli.audio.reading import RawFormat

    return RawFormat(name, sampling_rate, num_channels)


def _check_inputs(sources: Sequence[Source]) -> None:
    """Say at once that there is nothing to do, instead of loading a model first."""
    missing = [s for s in sources if s.path is not None and not s.path.exists()]
    if len(missing) == len(sources):
        names = ", ".join(source.name for source in missing[:3])
        more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
        raise AsrError(f"{names}{more}: no such file")


def _load(settings: _Settings, options: Options, console: StderrConsole) -> Recognizer:
    """Load the model, having checked that it can do what is asked."""
    from asrcli.console import ConsoleReporter
    from asrcli.recognizer import Recognizer

    recognizer = Recognizer(
        settings.model,
        device=settings.device,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        reporter=ConsoleReporter(console),
    )
    try:
        for warning in recognizer.check(options):
            console.warn(warning)
    except UsageError:
        recognizer.close()
        raise
    console.line(recognizer.description)
    return recognizer


class _Batch:
    """Transcribes sources, writes each one's results as soon as they are there, and sums up."""

    def __init__(self, sources: Sequence[Source], plan: Plan, console: StderrConsole) -> None:
        self._sources = sources
        self._plan = plan
        self._console = console
        self._failures: list[str] = []
        self._is_first_on_stdout = True

    def run(self, recognizer: Recognizer, options: Options, raw: RawFormat | None) -> int:
        """Transcribe all; returns how many failed, wholly or in part."""
        from asrcli.pipeline import transcribe_sources
        from asrcli.progress import BatchProgress, measure

        duration = 0.0
        with BatchProgress(self._console, len(self._sources)) as progress:
            if self._console.is_live:
                measure(self._sources, progress, raw)
            results = transcribe_sources(
                self._sources, recognizer, options, raw=raw, progress=progress
            )
            for index, result in enumerate(results):
                progress.finish(result.source)
                self._take(index, result)
                duration += result.transcript.duration if result.transcript else 0.0
        self._sum_up(duration, progress)
        return len(self._failures)

    def _take(self, index: int, result: Result) -> None:
        """Write a result, or say what went wrong with it."""
        try:
            if result.transcript is None:
                raise result.error or AsrError("no result")
            self._write(index, result)
        except AsrError as error:
            self._fail(error)
        except Exception as error:  # a fault of ours in one file: the others go on
            if self._console.verbose:
                self._console.rich.print_exception()
            name = type(error).__name__
            self._fail(AsrError(f"{result.source.name}: internal error ({name}: {error})"))

    def _fail(self, error: AsrError) -> None:
        self._failures.append(str(error))
        self._console.error(error)

    def _write(self, index: int, result: Result) -> None:
        transcript, source = result.transcript, result.source
        assert transcript is not None
        targets = []
        for output in self._plan.outputs[index]:
            if output.path is None:
                self._print(result, output.format)
                continue
            replaced = write_atomically(output.path, render(transcript, output.format))
            targets.append(f"{output.path}{' (replaced)' if replaced else ''}")
        for warning in transcript.warnings:
            self._console.warn(f"{source.name}: {warning}")
        if result.damage:
            self._failures.append(f"{source.name}: {result.damage[0]}")
        if not transcript.segments:
            self._console.note(f"{source.name}: no speech")
        if targets:
            self._console.line(_done_line(result, ", ".join(targets)))

    def _print(self, result: Result, format: str) -> None:
        assert result.transcript is not None
        if self._plan.shares_stdout:
            text = render_shared(
                result.transcript,
                format,
                source_name=result.source.name,
                is_first=self._is_first_on_stdout,
            )
        else:
            text = render(result.transcript, format)
        if text:
            self._is_first_on_stdout = False
            sys.stdout.write(text)
            sys.stdout.flush()

    def _sum_up(self, duration: float, progress: BatchProgress) -> None:
        """A line for the whole batch, and one for each failure if there were others beside it."""
        if len(self._sources) == 1:
            return
        from asrcli.console import clock

        num_failed = len(self._failures)
        failed = f", {num_failed} failed" if num_failed else ""
        speed = duration / progress.elapsed if progress.elapsed else 0.0
        line = (
            f"{len(self._sources) - num_failed} of {len(self._sources)} files done{failed} · "
            f"{clock(duration)} of audio in {clock(progress.elapsed)} · {speed:.0f}× real time"
        )
        if num_failed:
            self._console.rich.print(line)
            for failure in self._failures:
                self._console.rich.print(f"  {failure}")
        else:
            self._console.line(line)


def _done_line(result: Result, targets: str) -> str:
    from asrcli.console import clock

    assert result.transcript is not None
    num_segments = len(result.transcript.segments)
    duration = clock(result.transcript.duration)
    return f"{result.source.name} → {targets}  {duration} of audio, {num_segments} segments"
