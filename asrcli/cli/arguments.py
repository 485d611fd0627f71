"""What commands take: arguments and options with their help, in the order of the help page."""

from __future__ import annotations

from typing import Annotated

import typer

from asrcli.options import AUDIO_CONTEXTS, TASKS, TIMESTAMPS
from asrcli.writers import FORMATS

Inputs = Annotated[
    list[str],
    typer.Argument(metavar="INPUT", help="Audio or video files, folders, or - for standard input."),
]
Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="NAME",
        envvar="ASR_MODEL",
        help="A short name, a hub id or a local folder.",
    ),
]
Formats = Annotated[
    list[str] | None,
    typer.Option(
        "-f",
        "--format",
        metavar="FORMAT",
        envvar="ASR_FORMAT",
        help=f"{', '.join(FORMATS)}; may be repeated.",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o", "--output", metavar="PLACE", help="Folder (or file) for results; - for stdout."
    ),
]
SkipExisting = Annotated[
    bool,
    typer.Option(
        "--skip-existing", help="Pass over files whose results are all there and complete."
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace results that are there; done by default.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="List what would be read and written; do nothing.")
]
Language = Annotated[
    str | None,
    typer.Option(
        "-l",
        "--language",
        metavar="LANGUAGE",
        envvar="ASR_LANGUAGE",
        help="Code or name; detected if not given.",
    ),
]
Multilingual = Annotated[
    bool,
    typer.Option("--multilingual", help="Detect the language anew in every window."),
]
Task = Annotated[
    str, typer.Option("--task", metavar="TASK", help=f"{' or '.join(TASKS)} (to English).")
]
Prompt = Annotated[
    str | None, typer.Option("--prompt", metavar="TEXT", help="Text that sets spelling and style.")
]
PromptFile = Annotated[
    str | None,
    typer.Option("--prompt-file", metavar="FILE", help="The same from a file of UTF-8 text."),
]
Hotwords = Annotated[
    list[str] | None,
    typer.Option(
        "--hotwords",
        metavar="TEXT",
        help="Words to expect, names above all; may be repeated.",
    ),
]
ConditionOnPreviousText = Annotated[
    bool,
    typer.Option(
        "--condition-on-previous-text",
        help="Tell each window what was said before it; those of a file then take turns.",
    ),
]
Timestamps = Annotated[
    str, typer.Option("--timestamps", metavar="KIND", help=f"{' or '.join(TIMESTAMPS)}.")
]
AudioContext = Annotated[
    str,
    typer.Option(
        "--audio-context",
        metavar="LENGTH",
        help=f"{' or '.join(AUDIO_CONTEXTS)}; auto is faster on short clips.",
    ),
]
Window = Annotated[
    float | None,
    typer.Option(
        "--window",
        metavar="SECONDS",
        envvar="ASR_WINDOW",
        help="Seconds at which recordings are cut; the model's own.",
    ),
]
NoVad = Annotated[
    bool,
    typer.Option("--no-vad", help="Let the model hear what holds no speech, too."),
]
NoFallback = Annotated[
    bool,
    typer.Option("--no-fallback", help="Take every text as it comes, however wrong it looks."),
]
Temperature = Annotated[
    float,
    typer.Option(
        "--temperature", metavar="NUMBER", help="0 takes the likeliest text; above, it is drawn."
    ),
]
BeamSize = Annotated[
    int,
    typer.Option(
        "--beam-size",
        metavar="NUMBER",
        help="Texts followed at once, for the likeliest of all; slower.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", metavar="NUMBER", help="Where drawing starts.")]
Pattern = Annotated[
    list[str] | None,
    typer.Option(
        "--pattern",
        metavar="PATTERN",
        help="Which files of a folder, e.g. '*.mp3'; may be repeated.",
    ),
]
Clips = Annotated[
    list[str] | None,
    typer.Option(
        "--clip",
        metavar="START-END",
        help="Only this part, e.g. 1:30-2:00; times stay the file's; may be repeated.",
    ),
]
Track = Annotated[
    int | None,
    typer.Option(
        "--track", metavar="NUMBER", min=1, help="Which audio track of a video, from 1 on."
    ),
]
Raw = Annotated[
    str | None,
    typer.Option("--raw", metavar="FORMAT", help="Inputs are PCM without a header: s16le ..."),
]
SamplingRate = Annotated[
    int, typer.Option("--sampling-rate", metavar="HZ", help="Of raw PCM, in Hz.")
]
Channels = Annotated[int, typer.Option("--channels", metavar="NUMBER", help="Of raw PCM.")]
Device = Annotated[
    str,
    typer.Option(
        "--device", metavar="DEVICE", envvar="ASR_DEVICE", help="auto, cpu, cuda, cuda:N or mps."
    ),
]
Dtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="DTYPE",
        envvar="ASR_DTYPE",
        help="auto, float32, bfloat16, float16, or int8 (on a CPU).",
    ),
]
BatchSize = Annotated[
    int | None,
    typer.Option(
        "--batch-size",
        metavar="NUMBER",
        envvar="ASR_BATCH_SIZE",
        min=1,
        help="Windows at once; by memory.",
    ),
]
Quiet = Annotated[bool, typer.Option("-q", "--quiet", help="Say nothing but errors.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]
