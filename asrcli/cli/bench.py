"""``asr bench``: how fast a model is on this machine, and where the time goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from asrcli.cli import arguments as given
from asrcli.errors import UsageError
from asrcli.options import Options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from asrcli.audio.sources import Source
    from asrcli.bench import Measurement
    from asrcli.peers import PeerMeasurement
    from asrcli.recognizer import Recognizer

FORMATS = ("table", "json")
NUM_COPIES = 16  # of the built-in clip: a full batch on a CPU

_Inputs = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="INPUT", help="Audio or video files, and folders; else a built-in clip."
    ),
]
_Rounds = Annotated[
    int, typer.Option("--rounds", metavar="NUMBER", min=1, help="Times that all is transcribed.")
]
_Format = Annotated[
    str, typer.Option("-f", "--format", metavar="FORMAT", help=f"{' or '.join(FORMATS)}.")
]
_Compare = Annotated[
    str | None,
    typer.Option("--compare", metavar="PROGRAM", help="faster-whisper, if it is installed."),
]
_CompareModel = Annotated[
    str | None,
    typer.Option("--compare-model", metavar="NAME", help="Its model: a name it knows or a folder."),
]


def bench(
    inputs: _Inputs = None,
    rounds: _Rounds = 3,
    format: _Format = "table",
    compare: _Compare = None,
    compare_model: _CompareModel = None,
    model: given.Model = "whisper",
    language: given.Language = None,
    window: given.Window = None,
    no_vad: given.NoVad = False,
    beam_size: given.BeamSize = 1,
    pattern: given.Pattern = None,
    device: given.Device = "auto",
    dtype: given.Dtype = "auto",
    batch_size: given.BatchSize = None,
    quiet: given.Quiet = False,
    verbose: given.Verbose = False,
) -> None:
    """Measure how fast a model is here: speed, memory, and where the time goes.

    The model is loaded and warmed up first; the figures are those of the round of median speed.
    """
    from asrcli.cli.checks import check_names, errors_of_all
    from asrcli.cli.loading import Settings, load
    from asrcli.cli.stdout import print_result
    from asrcli.console import StderrConsole

    if format not in FORMATS:
        raise UsageError(f"format {format!r} is unknown", hint=f"one of: {', '.join(FORMATS)}")
    check_names(device, dtype)
    if compare is not None:
        from asrcli.peers import check_peer

        check_peer(compare)
    elif compare_model is not None:
        raise UsageError("--compare-model needs --compare", hint="--compare faster-whisper")
    options = Options(language=language, window=window, vad=not no_vad, beam_size=beam_size)
    sources = _find(inputs, pattern or ())
    console = StderrConsole(quiet=quiet, verbose=verbose)
    if errors := errors_of_all(sources):
        raise errors[0]
    settings = Settings(model=model, device=device, dtype=dtype, batch_size=batch_size)
    with load(settings, options, console) as recognizer:
        from asrcli.bench import measure

        with console.busy("measuring"):
            found = measure(recognizer, sources, options, num_rounds=rounds)
        peer = None
        if compare is not None:
            with console.busy(f"measuring {compare}"):
                peer = _measure_peer(recognizer, sources, options, rounds, compare_model)
    print_result(_render(found, peer, format), "bench")


def _find(inputs: Sequence[str] | None, patterns: Sequence[str]) -> list[Source]:
    """What is transcribed.

    Raises:
        UsageError: there is nothing, or it comes through a pipe, which cannot be read twice.
    """
    from importlib.resources import files
    from pathlib import Path

    from asrcli.audio.sources import Source, expand

    if not inputs:
        clip = Path(str(files("asrcli") / "clips" / "english.flac"))
        return [Source("built-in clip", clip, Path(clip.name))] * NUM_COPIES
    sources = expand(inputs, patterns=patterns)
    if any(source.path is None for source in sources):
        raise UsageError("standard input cannot be read several times", hint="name a file")
    return sources


def _measure_peer(
    recognizer: Recognizer,
    sources: Sequence[Source],
    options: Options,
    num_rounds: int,
    model: str | None,
) -> PeerMeasurement:
    import torch

    from asrcli.peers import measure_peer

    return measure_peer(
        [source.path for source in sources if source.path is not None],
        model=model or recognizer.name.rpartition(":")[2],
        device="cuda" if recognizer.device.type == "cuda" else "cpu",
        num_threads=torch.get_num_threads(),
        language=options.language,
        num_rounds=num_rounds,
    )


def _render(found: Measurement, peer: PeerMeasurement | None, format: str) -> str:
    if format == "json":
        from asrcli.bench_report import render_json

        return render_json(found, peer)
    from asrcli.bench_report import render_table

    return render_table(found, peer)
