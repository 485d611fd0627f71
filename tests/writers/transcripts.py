"""Transcripts for the tests of the writers."""

from __future__ import annotations

from collections.abc import Iterable

from asrcli.transcript import Segment, Transcript


def make(*rows: tuple[float, float, str]) -> Transcript:
    """A transcript of rows of start, end and text."""
    return of_segments(
        Segment(id=index, start=start, end=end, text=text)
        for index, (start, end, text) in enumerate(rows)
    )


def of_segments(segments: Iterable[Segment]) -> Transcript:
    kept = tuple(segments)
    return Transcript(
        text=" ".join(segment.text for segment in kept),
        language="en",
        task="transcribe",
        duration=max((segment.end for segment in kept), default=0.0),
        segments=kept,
        model="whisper:base",
    )


NOTHING = make()
