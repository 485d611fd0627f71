"""``asr evaluate``: how far transcripts are from what was said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from asrcli.cli import arguments as given
from asrcli.cli.evaluation_run import Run
from asrcli.cli.score_report import FORMATS, plan_report
from asrcli.errors import UsageError
from asrcli.evaluation.normalizers import NORMALIZERS, check_normalizer
from asrcli.evaluation.scoring import METRICS, check_metric
from asrcli.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asrcli.evaluation.references import References

_Inputs = Annotated[
    list[str] | None,
    typer.Argument(metavar="INPUT", help="Audio or video files, and folders of them."),
]
_References = Annotated[
    str | None,
    typer.Option(
        "--references",
        metavar="PLACE",
        help="A folder of .txt files, or a manifest (.tsv, .jsonl); else name.txt beside each.",
    ),
]
_Transcripts = Annotated[
    str | None,
    typer.Option(
        "--transcripts",
        metavar="FOLDER",
        help="Score the transcripts that lie there (.json, .srt, .vtt, .txt); no model runs.",
    ),
]
_Normalizer = Annotated[
    str, typer.Option("--normalizer", metavar="NAME", help=f"{', '.join(NORMALIZERS)}.")
]
_Metric = Annotated[
    str,
    typer.Option("--metric", metavar="NAME", help=f"{', '.join(METRICS)}: which error rate leads."),
]
_Format = Annotated[
    str | None, typer.Option("-f", "--format", metavar="FORMAT", help=f"{' or '.join(FORMATS)}.")
]
_Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="FILE", help="Not stdout, but a file.")
]
_Worst = Annotated[
    int,
    typer.Option("--worst", metavar="NUMBER", min=0, help="Files shown word by word in a table."),
]


_MODEL_OPTIONS = frozenset(
    {
        "model", "multilingual", "task", "prompt", "prompt_file", "hotwords",
        "condition_on_previous_text", "window", "no_vad", "no_fallback",
        "beam_size",
        "device", "dtype", "batch_size",
    }
)  # fmt: skip
"""What means nothing where no model runs; a language does, as texts are compared by its rules."""


def evaluate(
    context: typer.Context,
    inputs: _Inputs = None,
    references: _References = None,
    transcripts: _Transcripts = None,
    normalizer: _Normalizer = "auto",
    metric: _Metric = "auto",
    format: _Format = None,
    output: _Output = None,
    worst: _Worst = 3,
    model: given.Model = "whisper",
    language: given.Language = None,
    multilingual: given.Multilingual = False,
    task: given.Task = "transcribe",
    prompt: given.Prompt = None,
    prompt_file: given.PromptFile = None,
    hotwords: given.Hotwords = None,
    condition_on_previous_text: given.ConditionOnPreviousText = False,
    window: given.Window = None,
    no_vad: given.NoVad = False,
    no_fallback: given.NoFallback = False,
    beam_size: given.BeamSize = 1,
    pattern: given.Pattern = None,
    device: given.Device = "auto",
    dtype: given.Dtype = "auto",
    batch_size: given.BatchSize = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Compare transcripts with what was said: word and character error rates.

    What was said stands in name.txt beside each recording, or where --references points. Without
    INPUT, all recordings of a manifest are taken.
    """
    from asrcli.cli.checks import check_names
    from asrcli.cli.loading import Settings
    from asrcli.cli.prompts import choose_prompt, join_hotwords
    from asrcli.console import StderrConsole
    from asrcli.evaluation.transcripts import find_transcripts

    check_normalizer(normalizer)
    check_metric(metric)
    if transcripts is None:
        check_names(device, dtype)
        options = Options(
            language=language,
            multilingual=multilingual,
            task=task,
            prompt=choose_prompt(prompt, prompt_file),
            hotwords=join_hotwords(hotwords),
            condition_on_previous_text=condition_on_previous_text,
            window=window,
            vad=not no_vad,
            fallback=not no_fallback,
            beam_size=beam_size,
        )
    else:
        _refuse_model_options(context)
        options = Options(language=language)
    found = _find(inputs, pattern or (), references, has_transcripts=transcripts is not None)
    there = None if transcripts is None else find_transcripts(found.found, Path(transcripts))
    others = there.inputs if there is not None else (Path(prompt_file),) if prompt_file else ()
    report = plan_report(format, output, worst, [*found.inputs, *others])
    console = StderrConsole(quiet=quiet, verbose=verbose)
    run = Run(found, options, normalizer, metric, console)
    if there is None:
        run.transcribe(Settings(model=model, device=device, dtype=dtype, batch_size=batch_size))
    else:
        run.read(there)
    run.finish(report)


def _refuse_model_options(context: typer.Context) -> None:
    """Raise UsageError for an option of the model; what the environment sets is for other runs."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        is_given = source is not None and source.name == "COMMANDLINE"
        if is_given and parameter.name in _MODEL_OPTIONS:
            option = max(parameter.opts, key=len)
            raise UsageError(
                f"{option} is for a model, and with --transcripts no model runs",
                hint="leave out one of the two",
            )


def _find(
    inputs: Sequence[str] | None,
    patterns: Sequence[str],
    place: str | None,
    *,
    has_transcripts: bool,
) -> References:
    """The recordings that are meant, with their references."""
    from asrcli.audio.sources import expand
    from asrcli.evaluation.references import find_references, references_in

    folder_or_manifest = None if place is None else Path(place)
    if inputs:
        return find_references(expand(inputs, patterns=patterns), folder_or_manifest)
    if has_transcripts and folder_or_manifest is not None and os.path.isdir(folder_or_manifest):  # noqa: PTH112
        return references_in(folder_or_manifest, patterns)
    return find_references(None, folder_or_manifest, patterns=patterns)
