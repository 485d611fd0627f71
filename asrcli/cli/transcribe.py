"""``asr transcribe``: files, folders and pipes to text and subtitles."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from asrcli.cli import arguments as given
from asrcli.options import Options
from asrcli.writers import guess_format, resolve_format

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asrcli.cli.loading import Settings
    from asrcli.cli.work import Work
    from asrcli.console import StderrConsole


def transcribe(
    context: typer.Context,
    inputs: given.Inputs,
    model: given.Model = "whisper",
    formats: given.Formats = None,
    output: given.Output = None,
    skip_existing: given.SkipExisting = False,
    overwrite: given.Overwrite = False,
    dry_run: given.DryRun = False,
    language: given.Language = None,
    multilingual: given.Multilingual = False,
    task: given.Task = "transcribe",
    prompt: given.Prompt = None,
    prompt_file: given.PromptFile = None,
    hotwords: given.Hotwords = None,
    condition_on_previous_text: given.ConditionOnPreviousText = False,
    timestamps: given.Timestamps = "segment",
    audio_context: given.AudioContext = "auto",
    window: given.Window = None,
    no_vad: given.NoVad = False,
    no_fallback: given.NoFallback = False,
    temperature: given.Temperature = 0.0,
    beam_size: given.BeamSize = 1,
    seed: given.Seed = 0,
    pattern: given.Pattern = None,
    clips: given.Clips = None,
    track: given.Track = None,
    raw: given.Raw = None,
    sampling_rate: given.SamplingRate = 16_000,
    channels: given.Channels = 1,
    device: given.Device = "auto",
    dtype: given.Dtype = "auto",
    batch_size: given.BatchSize = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Transcribe files, folders and pipes.

    One input's text goes to stdout; several inputs', or a folder's, to files beside the media, or
    under -o.
    """
    from asrcli.cli.checks import check_existing, check_names
    from asrcli.cli.loading import Settings
    from asrcli.cli.prompts import choose_prompt, join_hotwords
    from asrcli.cli.resuming import spell_out
    from asrcli.cli.work import choose_reading, plan_work
    from asrcli.console import StderrConsole
    from asrcli.languages import states_script

    check_existing(skip_existing=skip_existing, overwrite=overwrite)
    options = Options(
        language=language,
        multilingual=multilingual,
        task=task,
        prompt=choose_prompt(prompt, prompt_file),
        hotwords=join_hotwords(hotwords),
        condition_on_previous_text=condition_on_previous_text,
        timestamps=timestamps,
        audio_context=audio_context,
        window=window,
        vad=not no_vad,
        fallback=not no_fallback,
        temperature=temperature,
        beam_size=beam_size,
        seed=seed,
    )
    settings = Settings(model=model, device=device, dtype=dtype, batch_size=batch_size)
    check_names(device, dtype)
    work = plan_work(
        inputs,
        patterns=pattern or (),
        formats=_formats(formats, output),
        output=output,
        reading=choose_reading(raw, sampling_rate, channels, clips=clips or (), track=track),
        skip_existing=skip_existing,
        prompt_file=prompt_file,
    )
    console = StderrConsole(quiet=quiet, verbose=verbose)
    if language is not None and states_script(language):
        console.warn(
            f"{language}: no model can be told the script; Chinese comes as the model writes it"
        )
    num_failed = (
        _preview(work, console)
        if dry_run
        else _do(work, options, settings, console, spell_out(context))
    )
    if num_failed:
        raise typer.Exit(1)


def _preview(work: Work, console: StderrConsole) -> int:
    """List what would be done; returns how many inputs could not be read."""
    from asrcli.cli.dry_run import list_work
    from asrcli.writers.places import check_places

    check_places(work.plan)
    return list_work(work, console)


def _do(
    work: Work,
    options: Options,
    settings: Settings,
    console: StderrConsole,
    arguments: Sequence[str] | None,
) -> int:
    """Do what was asked, having found out all that can be wrong before the model is loaded.

    Returns how many inputs failed.
    """
    from asrcli.cli.batch import Batch
    from asrcli.cli.checks import check_stdout, errors_of_all
    from asrcli.cli.loading import load
    from asrcli.cli.resuming import tell_of_skipped
    from asrcli.writers.places import prepare

    check_stdout(work.plan)
    prepare(work.plan)
    tell_of_skipped(work, console)
    batch = Batch(work, console, arguments=arguments)
    if not work.sources:
        batch.sum_up_nothing()
        return 0
    if errors := errors_of_all(work.sources, work.reading):
        for error in errors:
            console.error(error)
        return len(errors)
    with load(settings, options, console) as recognizer:
        return batch.run(recognizer, options)


def _formats(names: Sequence[str] | None, output: str | None) -> list[str]:
    """The formats asked for, each once; else what the name of the output file says, or text."""
    if names:
        # One value may hold several: that is all an environment variable can do.
        resolved = (resolve_format(part) for name in names for part in name.split(","))
        return list(dict.fromkeys(resolved))
    guessed = guess_format(output) if output else None
    return [guessed or "text"]
