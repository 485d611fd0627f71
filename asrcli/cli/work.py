"""What there is to do: which recordings, read how, with results in which places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asrcli.audio.sources import AS_IT_IS, Reading, expand
from asrcli.errors import UsageError
from asrcli.writers.completeness import are_complete
from asrcli.writers.outputs import Plan, plan_outputs

if TYPE_CHECKING:
    from asrcli.audio.clips import Clip
    from asrcli.audio.reading import RawFormat
    from asrcli.audio.sources import Source


NOTHING = Plan(())


@dataclass(frozen=True, slots=True)
class Work:
    """Recordings to transcribe.

    Attributes:
        sources: those to do, in order.
        plan: the places of their results, in the same order.
        reading: how they are read.
        skipped: those that are left alone, as their results are complete.
        skipped_plan: the places of these results.
    """

    sources: tuple[Source, ...]
    plan: Plan
    reading: Reading = AS_IT_IS
    skipped: tuple[Source, ...] = ()
    skipped_plan: Plan = NOTHING

    @property
    def num_files(self) -> int:
        """Recordings in all, those that are skipped too."""
        return len(self.sources) + len(self.skipped)


def plan_work(
    inputs: Sequence[str],
    *,
    patterns: Sequence[str],
    formats: Sequence[str],
    output: str | None,
    reading: Reading,
    skip_existing: bool,
    prompt_file: str | None = None,
) -> Work:
    """Find the recordings, decide where results go, and leave out what is complete if so asked.

    No result goes where `prompt_file` is.

    Raises:
        UsageError: the inputs or the places cannot be meant.
    """
    sources = tuple(expand(inputs, patterns=patterns))
    any_folder = any(name != "-" and os.path.isdir(name) for name in inputs)  # noqa: PTH112
    plan = plan_outputs(
        sources,
        formats=formats,
        output=output,
        any_folder=any_folder,
        other_inputs=() if prompt_file is None else (prompt_file,),
    )
    if not skip_existing:
        return Work(sources, plan, reading)
    if not plan.paths:
        raise UsageError(
            "--skip-existing is about files, and the results go to standard output",
            hint="name a folder for results with -o",
        )
    complete = [
        are_complete(outputs, source.path)
        for source, outputs in zip(sources, plan.outputs, strict=True)
    ]
    kept = [index for index, is_complete in enumerate(complete) if not is_complete]
    skipped = [index for index, is_complete in enumerate(complete) if is_complete]
    return Work(
        tuple(sources[index] for index in kept),
        plan.part(kept),
        reading,
        tuple(sources[index] for index in skipped),
        plan.part(skipped),
    )


def choose_reading(
    raw: str | None,
    sampling_rate: int,
    num_channels: int,
    *,
    clips: Sequence[str],
    track: int | None,
) -> Reading:
    """Check what is said of how to read.

    Raises:
        UsageError: it cannot be meant.
    """
    return Reading(
        raw=_raw_format(raw, sampling_rate, num_channels, track=track),
        clips=_read_clips(clips),
        track=track,
    )


def _read_clips(texts: Sequence[str]) -> tuple[Clip, ...]:
    if not texts:
        return ()
    from asrcli.audio.clips import parse_clip

    return tuple(parse_clip(text) for text in texts)


def _raw_format(
    name: str | None, sampling_rate: int, num_channels: int, *, track: int | None
) -> RawFormat | None:
    if name is None:
        if (sampling_rate, num_channels) != (16_000, 1):
            raise UsageError("--sampling-rate and --channels describe raw PCM", hint="--raw s16le")
        return None
    if track is not None:
        raise UsageError("--track chooses among a file's audio tracks, and raw PCM has none")
    from asrcli.audio.reading import RawFormat

    return RawFormat(name, sampling_rate, num_channels)
