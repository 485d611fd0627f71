"""Where results go: decided and proven before any work, then written whole or not at all.

``plan_outputs`` decides from names alone, ``prepare`` proves that every place can be written, and
``write_atomically`` puts a text there under a temporary name first, so that a file with its final
name is always complete.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Protocol

from asrcli.errors import OutputError, UsageError
from asrcli.writers import SUFFIXES, guess_format, resolve_format

STDOUT = "-"

_MEDIA = """
    .3g2 .3ga .3gp .8svx .aa3 .aac .aax .ac3 .adts .aif .aifc .aiff .alac .amr .ape .asf .au
    .avi .awb .caf .divx .dsf .dts .dv .eac3 .f4a .f4v .flac .flv .g722 .g723 .g729 .gsm .m2t
    .m2ts .m2v .m4a .m4b .m4p .m4r .m4v .mka .mkv .mov .mp1 .mp2 .mp3 .mp4 .mpa .mpc .mpe .mpeg
    .mpega .mpg .mpga .mts .mxf .nist .oga .ogg .ogm .ogv .ogx .oma .opus .qt .ra .raw .rf64 .rm
    .rmvb .snd .sph .spx .tak .ts .tta .vob .voc .w64 .wav .wave .weba .webm .wma .wmv .wtv .wv
"""
MEDIA_SUFFIXES = frozenset(_MEDIA.split())
"""Suffixes that a result's own takes the place of; any other is part of the name and stays."""


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


def plan_outputs(
    sources: Sequence[Source], *, formats: Sequence[str], output: str | None, any_folder: bool
) -> Plan:
    """Decide where every result goes, without a change to the disk.

    Args:
        sources: what is transcribed.
        formats: names of formats, as ``resolve_format`` takes them; doubles count once.
        output: the place that the user named: a folder, a file that ends as the format does, or
            "-" for standard output. None: standard output for one file in one format, else
            beside the media.
        any_folder: whether the user named a folder, so that the number of files is by chance.

    Raises:
        UsageError: the places cannot be meant: two results in one, a result over a source, or
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
    _check_clashes(sources, plan)
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


def _check_clashes(sources: Sequence[Source], plan: Plan) -> None:
    """Refuse two results at one place, and a result in the place of a source."""
    inputs = {_real(source.path): source.name for source in sources if source.path is not None}
    owners: dict[str, str] = {}
    hint = "rename one of them, or give one a run and an -o FOLDER of its own"
    for source, outputs in zip(sources, plan.outputs, strict=True):
        for path in (output.path for output in outputs if output.path is not None):
            name, place = shown(source.name), _real(path)
            if place in inputs:
                lost = shown(inputs[place])
                message = f"the result of {name} would overwrite the input {lost} at {shown(path)}"
                raise UsageError(message, hint="rename it, or choose a folder with -o FOLDER")
            if place in owners:
                message = f"{owners[place]} and {name} would both be written to {shown(path)}"
                raise UsageError(message, hint=hint)
            owners[place] = name


def prepare(plan: Plan) -> None:
    """Create the folders that are missing and prove that every file of the plan can be written.

    Nothing but folders is left behind. Files that are there already are left as they are.

    Raises:
        OutputError: one cannot; in one line that names it.
    """
    folders = {_target(path).parent: path.parent for path in plan.paths}
    for folder, name in folders.items():
        if os.path.isfile(folder):  # noqa: PTH113 - Path.is_file raises for a name too long
            raise OutputError(
                f"{shown(name)}: is a file, not a folder for results", hint="name another with -o"
            )
        with _explained(name, "cannot be created"):
            folder.mkdir(parents=True, exist_ok=True)
        with _explained(name, "cannot be written to"), _temporary(folder) as proof:
            proof.touch(exist_ok=False)
    for path in plan.paths:
        with _explained(path, "cannot be written"):
            _check_target(path)


def _check_target(path: Path) -> None:
    """Refuse what cannot or should not be replaced. A missing file is fine; OSError if not."""
    try:
        path.stat()
    except FileNotFoundError:
        return
    if path.is_dir():
        raise OutputError(f"{shown(path)}: is a folder", hint="name another place with -o")
    if not path.is_file():
        raise OutputError(f"{shown(path)}: is no regular file", hint="use -o - and redirect it")
    if not os.access(path, os.W_OK):
        raise OutputError(f"{shown(path)}: is write-protected", hint="name another place with -o")


def write_atomically(path: Path, text: str) -> bool:
    """Write a whole text file, or nothing.

    The text is written as UTF-8 under a hidden name in the same folder and then renamed. Line feeds
    stay as they are; permissions are those of any new file. A link is followed, and the file that
    it points to is replaced.

    Returns:
        Whether there was a file of that name, which is now gone.

    Raises:
        OutputError: it cannot be written, for example since the disk is full. What was at ``path``
            before is still there, and nothing else is.
    """
    target = _target(path)
    with _explained(path, "cannot be written"), _temporary(target.parent) as draft:
        with draft.open("xb") as file:
            file.write(text.encode("utf-8", errors="replace"))
        replaces = target.exists()
        draft.replace(target)
    return replaces


@contextlib.contextmanager
def _temporary(folder: Path) -> Iterator[Path]:
    """A hidden name for a new file, which is gone on the way out unless it was renamed.

    It is short whatever the target's is, as file systems bound the length of names.
    """
    path = folder / f".asr-{secrets.token_hex(8)}.tmp"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def _explained(path: Path, trouble: str) -> Iterator[None]:
    """Turn an OSError into an OutputError about ``path``."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"{shown(path)}: {trouble}: {reason}") from error


def _target(path: Path) -> Path:
    """The file itself where ``path`` is a link to it."""
    return Path(_real(path))


def _real(path: Path) -> str:
    return os.path.realpath(path)


def shown(name: str | Path) -> str:
    """A name that any terminal can print on one line; what it cannot is escaped."""
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in str(name))
