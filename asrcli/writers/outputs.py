"""Where results go, decided from names alone, before any work and without a change to the disk."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

from asrcli.errors import UsageError
from asrcli.writers import SUFFIXES, guess_format, resolve_format
from asrcli.writers.files import shown

STDOUT = "-"

_MEDIA = """
    .3g2 .3ga .3gp .8svx .aa3 .aac .aax .ac3 .adts .aif .aifc .aiff .alac .amr .ape .asf .au
    .avi .awb .caf .divx .dsf .dts .dv .eac3 .f4a .f4v .flac .flv .g722 .g723 .g729 .gsm .m2t
    .m2ts .m2v .m4a .m4b .m4p .m4r .m4v .mka .mkv .mov .mp1 .mp2 .mp3 .mp4 .mpa .mpc .mpe .mpeg
    .mpega .mpg .mpga .mts .mxf .nist .oga .ogg .ogm .ogv .ogx .oma .opus .qt .ra .raw .rf64 .rm
    .rmvb .snd .sph .spx .tak .ts .tta .vob .voc .w64 .wav .wave .weba .webm .wma .wmv .wtv .wv
"""
MEDIA_SUFFIXES = frozenset(_MEDIA.split())
"""Suffixes that a result's own takes the place of; any other is part of the name and stays.

They are those of the media that folders are searched for, and ".raw": a.raw that was named by
itself gives a.srt as well, though no folder is searched for such files.
"""


class Source(Protocol):
    """A recording to transcribe, as ``asrcli.audio.sources`` finds it."""

    @property
    def name(self) -> str:
        """How the user knows it."""

    @property
    def path(self) -> Path | None:
        """Where it lies; None is standard input."""

    @property
    def relative(self) -> Path:
        """Where it lies below the folder that was named; a file that was named has its name."""


@dataclass(frozen=True, slots=True)
class Output:
    """One result of one source: a format and its place; ``path`` None is standard output."""

    format: str
    path: Path | None


@dataclass(frozen=True, slots=True)
class Plan:
    """The places of all results.

    Attributes:
        outputs: one tuple for each source, in the order of the sources.
        shares_stdout: whether standard output is for any number of sources, one after another:
            then ``asrcli.writers.render_shared`` renders what goes there, else ``render``.
    """

    outputs: tuple[tuple[Output, ...], ...]
    shares_stdout: bool = False

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file that will be written, in order."""
        return tuple(o.path for group in self.outputs for o in group if o.path is not None)

    def part(self, indices: Iterable[int]) -> Plan:
        """The plan of those sources alone."""
        return Plan(tuple(self.outputs[index] for index in indices), self.shares_stdout)


def plan_outputs(
    sources: Sequence[Source],
    *,
    formats: Sequence[str],
    output: str | None,
    any_folder: bool,
    other_inputs: Iterable[str | Path] = (),
) -> Plan:
    """Decide where every result goes, without a change to the disk.

    Args:
        sources: what is transcribed.
        formats: names of formats, as ``resolve_format`` takes them; doubles count once.
        output: the place that the user named: a folder, a file that ends as the format does, or
            "-" for standard output. None: standard output for one file in one format, else
            beside the media.
        any_folder: whether the user named a folder, so that the number of files is by chance.
        other_inputs: further files of the user's that no result may take the place of.

    Raises:
        UsageError: the places cannot be meant: two results in one, a result over an input, or
            standard output for more than it can hold.
    """
    chosen = tuple(dict.fromkeys(resolve_format(name) for name in formats))
    if output == "":
        raise UsageError("the output is an empty name", hint="name a file, a folder, or - with -o")
    many = len(sources) > 1 or any_folder
    if output == STDOUT:
        _check_stdout(sources, chosen)
    elif output is None and not many and len(chosen) == 1:
        output = STDOUT
    if output == STDOUT:
        to_stdout = tuple(Output(format, None) for format in chosen)
        return Plan(tuple(to_stdout for _ in sources), shares_stdout=many)
    if output is not None and _names_file(output, len(sources), chosen):
        plan = Plan(((Output(chosen[0], Path(output)),),))
    else:
        folder = None if output is None else Path(output)
        plan = Plan(
            tuple(tuple(Output(f, _place(source, f, folder)) for f in chosen) for source in sources)
        )
    _check_clashes(sources, plan, other_inputs)
    return plan


def _check_stdout(sources: Sequence[Source], formats: Sequence[str]) -> None:
    if len(formats) > 1:
        raise UsageError(
            f"standard output cannot hold several formats ({', '.join(formats)})",
            hint="choose one, or write to a folder with -o FOLDER",
        )
    if len(sources) > 1 and not {"text", "json"}.issuperset(formats):
        raise UsageError(
            f"standard output cannot hold {formats[0]} of {len(sources)} files",
            hint="choose text or json, or write to a folder with -o FOLDER",
        )


def _names_file(output: str, num_sources: int, formats: Sequence[str]) -> bool:
    """Whether ``output`` names the one result itself rather than a folder for results.

    Raises:
        UsageError: it looks like a file of results, but of another format or for too many of them.
    """
    # Path.is_dir would raise for a name that is too long.
    is_folder = output.endswith(("/", os.sep)) or os.path.isdir(output)  # noqa: PTH112
    format = None if is_folder else guess_format(output)
    if format is None:
        return False
    hint = f"name a folder, or end it with {os.sep} if this is one"
    if num_sources != 1 or len(formats) != 1:
        what = f"{num_sources} files" if num_sources != 1 else f"{len(formats)} formats"
        raise UsageError(f"{shown(output)} is one file, but the results are of {what}", hint=hint)
    if format != formats[0]:
        message = f"{shown(output)} ends as {format} does, but the format is {formats[0]}"
        raise UsageError(message, hint=f"choose -f {format}; or {hint}")
    return True


def _place(source: Source, format: str, folder: Path | None) -> Path:
    if folder is not None:
        media = folder / source.relative
    elif source.path is not None:
        media = source.path
    else:
        raise UsageError(
            "standard input has no folder for results beside it",
            hint="name a folder with -o FOLDER, or -o - and one format for standard output",
        )
    suffix = PurePath(media.name).suffix
    stem = media.name[: -len(suffix)] if suffix.strip().casefold() in MEDIA_SUFFIXES else media.name
    return media.parent / (stem + SUFFIXES[format])


def _check_clashes(
    sources: Sequence[Source], plan: Plan, other_inputs: Iterable[str | Path]
) -> None:
    """Refuse two results at one place, and a result in the place of an input."""
    named = [(path, str(path)) for path in other_inputs]
    named += [(source.path, source.name) for source in sources if source.path is not None]
    inputs = {os.path.realpath(path): name for path, name in named}
    owners: dict[str, str] = {}
    hint = "rename one of them, or give one a run and an -o FOLDER of its own"
    for source, outputs in zip(sources, plan.outputs, strict=True):
        for path in (output.path for output in outputs if output.path is not None):
            name, place = shown(source.name), os.path.realpath(path)
            if place in inputs:
                lost = shown(inputs[place])
                message = f"the result of {name} would overwrite the input {lost} at {shown(path)}"
                raise UsageError(message, hint="rename it, or choose a folder with -o FOLDER")
            if place in owners:
                message = f"{owners[place]} and {name} would both be written to {shown(path)}"
                raise UsageError(message, hint=hint)
            owners[place] = name
