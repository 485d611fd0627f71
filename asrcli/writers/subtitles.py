"""Subtitles: SubRip (.srt) and WebVTT (.vtt, https://www.w3.org/TR/webvtt1/)."""

from __future__ import annotations

from asrcli.transcript import Transcript
from asrcli.writers.cues import Cue, cut_cues
from asrcli.writers.times import time_string

_ARROW = "-->"  # stands between the times of a cue, and may stand nowhere else


def render_srt(transcript: Transcript) -> str:
    """SubRip; "" where nothing was said.

    The format has no way to escape: "-->" in a text, which would be read as a line of times, is
    written as "→".
    """
    blocks = []
    for number, cue in enumerate(cut_cues(transcript.segments), start=1):
        text = "\n".join(cue.lines).replace(_ARROW, "→")
        blocks.append(f"{number}\n{_times(cue, ',')}\n{text}\n")
    return "\n".join(blocks)


def render_vtt(transcript: Transcript) -> str:
    """WebVTT; the header alone where nothing was said."""
    blocks = ["WEBVTT\n"]
    for cue in cut_cues(transcript.segments):
        text = _escape("\n".join(cue.lines))
        blocks.append(f"{_times(cue, '.')}\n{text}\n")
    return "\n".join(blocks)


def _times(cue: Cue, decimal_mark: str) -> str:
    start, end = (time_string(time, decimal_mark) for time in (cue.start, cue.end))
    return f"{start} {_ARROW} {end}"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
