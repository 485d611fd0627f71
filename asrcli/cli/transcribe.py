"""``asr transcribe``: files, folders and pipes to text and subtitles."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from asrcli.errors import UsageError
from asrcli.options import AUDIO_CONTEXTS, TASKS, TIMESTAMPS, Options
from asrcli.writers import FORMATS, guess_format, resolve_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asrcli.audio.reading import RawFormat
    from asrcli.audio.sources import Source
    from asrcli.cli.loading import Settings
    from asrcli.console import StderrConsole
    from asrcli.writers.outputs import Plan


# What the command takes, in the order of the help page.
_Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Audio or video files, folders, or - for standard input."),
]
_Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="NAME",
        envvar="ASR_MODEL",
        help="A short name, a hub id or a local folder.",
    ),
]
_Formats = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--format",
        metavar="FORMAT",
        envvar="ASR_FORMAT",
        help=f"{', '.join(FORMATS)}; may be repeated.",
    ),
]
_Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="PLACE", help="Folder (or file) for results; - for stdout."
    ),
]
_Language = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--language",
        metavar="LANGUAGE",
        envvar="ASR_LANGUAGE",
        help="Code or name; detected if not given.",
    ),
]
_Task = Annotated[
    str, typer.Option("--task", metavar="TASK", help=f"{' or '.join(TASKS)} (to English).")
]
_Prompt = Annotated[
    str | None, typer.Option("--prompt", metavar="TEXT", help="Text that sets spelling and style.")
]
_Hotwords = Annotated[
    list[str] | None,
    typer.Option(
        "--hotwords",
        metavar="TEXT",
        help="Words to expect, names above all; may be repeated.",
    ),
]
_Timestamps = Annotated[
    str, typer.Option("--timestamps", metavar="KIND", help=f"{' or '.join(TIMESTAMPS)}.")
]
_AudioContext = Annotated[
    str,
    typer.Option(
        "--audio-context",
        metavar="LENGTH",
        help=f"{' or '.join(AUDIO_CONTEXTS)}; auto is faster on short clips.",
    ),
]
_Window = Annotated[
    float | None,
    typer.Option(
        "--window",
        metavar="SECONDS",
        envvar="ASR_WINDOW",
        help="Seconds at which recordings are cut; the model's own.",
    ),
]
_Temperature = Annotated[
    float,
    typer.Option(
        "--temperature", metavar="NUMBER", help="0 takes the likeliest text; above, it is drawn."
    ),
]
_Seed = Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Where drawing starts.")]
_Pattern = Annotated[
    list[str] | None,
    typer.Option(
        "--pattern",
        metavar="PATTERN",
        help="Which files of a folder, e.g. '*.mp3'; may be repeated.",
    ),
]
_Raw = Annotated[
    str | None,
    typer.Option("--raw", metavar="FORMAT", help="Inputs are PCM without a header: s16le ..."),
]
_SamplingRate = Annotated[
    int, typer.Option("--sampling-rate", metavar="HZ", help="Of raw PCM, in Hz.")
]
_Channels = Annotated[int, typer.Option("--channels", metavar="NUMBER", help="Of raw PCM.")]
_Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", envvar="ASR_DEVICE", help="auto, cpu, cuda, cuda:N or mps."
    ),
]
_Dtype = Annotated[
    str,
    typer.Option(
        "--dtype", metavar="DTYPE", envvar="ASR_DTYPE", help="auto, float32, bfloat16 or float16."
    ),
]
_BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        metavar="NUMBER",
        envvar="ASR_BATCH_SIZE",
        min=1,
        help="Windows at once; by memory.",
    ),
]
_Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]
_Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]


def transcribe(
    inputs: _Inputs,
    model: _Model = "whisper",
    formats: _Formats = None,
    output: _Output = None,
    language: _Language = None,
    task: _Task = "transcribe",
    prompt: _Prompt = None,
    hotwords: _Hotwords = None,
    timestamps: _Timestamps = "segment",
    audio_context: _AudioContext = "auto",
    window: _Window = None,
    temperature: _Temperature = 0.0,
    seed: _Seed = 0,
    pattern: _Pattern = None,
    raw: _Raw = None,
    sampling_rate: _SamplingRate = 16_000,
    channels: _Channels = 1,
    device: _Device = "auto",
    dtype: _Dtype = "auto",
    batch_size: _BatchSize = None,
    quiet: _Quiet = False,
    verbose: _Verbose = False,
) -> None:
    """Transcribe files, folders and pipes.

    One input's text goes to stdout; several inputs', or a folder's, to files beside the media, or
    under -o.
    """
    from asrcli.audio.sources import expand
    from asrcli.cli.checks import check_names
    from asrcli.cli.loading import Settings
    from asrcli.console import StderrConsole
    from asrcli.writers.outputs import plan_outputs

    console = StderrConsole(quiet=quiet, verbose=verbose)
    options = Options(
        language=language,
        task=task,
        prompt=prompt,
        hotwords=_as_one(hotwords),
        timestamps=timestamps,
        audio_context=audio_context,
        window=window,
        temperature=temperature,
        seed=seed,
    )
    settings = Settings(model=model, device=device, dtype=dtype, batch_size=batch_size)
    check_names(device, dtype)
    names = _formats(formats, output)
    raw_format = _raw_format(raw, sampling_rate, channels)
    sources = expand(inputs, patterns=pattern or ())
    any_folder = any(name != "-" and os.path.isdir(name) for name in inputs)  # noqa: PTH112
    plan = plan_outputs(sources, formats=names, output=output, any_folder=any_folder)
    _run(sources, plan, options, settings, raw_format, console)


def _run(
    sources: Sequence[Source],
    plan: Plan,
    options: Options,
    settings: Settings,
    raw_format: RawFormat | None,
    console: StderrConsole,
) -> None:
    """Do what was asked, having found out all that can be wrong before the model is loaded."""
    from asrcli.cli.batch import Batch
    from asrcli.cli.checks import check_stdout, errors_of_all
    from asrcli.cli.loading import load
    from asrcli.writers.outputs import prepare

    check_stdout(plan)
    prepare(plan)
    if errors := errors_of_all(sources, raw_format):
        for error in errors:
            console.error(error)
        raise typer.Exit(1)
    with load(settings, options, console) as recognizer:
        num_failed = Batch(sources, plan, console).run(recognizer, options, raw_format)
    if num_failed:
        raise typer.Exit(1)


def _formats(names: Sequence[str] | None, output: str | None) -> list[str]:
    """The formats asked for, each once; else what the name of the output file says, or text."""
    if names:
        # One value may hold several: that is all an environment variable can do.
        resolved = (resolve_format(part) for name in names for part in name.split(","))
        return list(dict.fromkeys(resolved))
    guessed = guess_format(output) if output else None
    return [guessed or "text"]


def _as_one(hotwords: Sequence[str] | None) -> str | None:
    """All words to expect as one text; None where there are none."""
    return ", ".join(words.strip() for words in hotwords or () if words.strip()) or None


def _raw_format(name: str | None, sampling_rate: int, num_channels: int) -> RawFormat | None:
    if name is None:
        if (sampling_rate, num_channels) != (16_000, 1):
            raise UsageError("--sampling-rate and --channels describe raw PCM", hint="--raw s16le")
        return None
    from asrcli.audio.reading import RawFormat

    return RawFormat(name, sampling_rate, num_channels)
