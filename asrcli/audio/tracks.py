"""Which of several audio tracks is read: the one that was asked for, or the best.

Tracks are the audio streams of a file, counted from 1 in the order in which the file has them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from asrcli.audio.notes import Notes
from asrcli.audio.sources import printable

_MAX_TITLE = 40
# "SoundHandler", "Core Media Audio", "ISO Media file produced by ...": no titles.
_PROGRAMS = re.compile("handler|media", re.IGNORECASE)
_UNKNOWN_LANGUAGES = frozenset({"", "und", "unk", "mis"})


class NoAudioStreamError(Exception):
    """The file is audio or video, and has no audio stream."""


class UndecodableAudioError(Exception):
    """The codec is unknown, or none of the audio could be decoded."""


class NoSuchTrackError(Exception):
    """How many tracks there are, in a few words; ``hint`` lists them, where it can be told."""

    def __init__(self, num_tracks: int, track: int, hint: str | None = None) -> None:
        tracks = "1 audio track" if num_tracks == 1 else f"{num_tracks} audio tracks"
        super().__init__(f"has {tracks}, not {track}")
        self.hint = hint


def check_only_track(track: int | None) -> None:
    """Raise NoSuchTrackError where a format that holds one track is asked for another."""
    if track not in (None, 1):
        raise NoSuchTrackError(1, track or 0)


def pick_track(container: Any, track: int | None, notes: Notes) -> Any:
    """Give the stream of PyAV's `container` that is to be read.

    Args:
        track: counted from 1; None takes the best that can be decoded. FFmpeg's rule for the best:
            the one marked as default, then the one with most data.
        notes: where there is a choice and nobody made it, get a line that says what was taken.

    Raises:
        NoAudioStreamError, NoSuchTrackError, UndecodableAudioError: see there.
    """
    streams = list(container.streams.audio)
    best = container.streams.best("audio")
    if best is None:
        raise NoAudioStreamError
    if track is not None:
        if not 1 <= track <= len(streams):
            raise NoSuchTrackError(len(streams), track, _list(streams))
        chosen = streams[track - 1]
    else:
        decodable = [stream for stream in (best, *streams) if stream.codec_context is not None]
        chosen = next(iter(decodable), best)
    if chosen.codec_context is None:
        raise UndecodableAudioError("its audio codec is not known")
    if track is None and len(streams) > 1:
        notes.warn(_tell(chosen, streams))
    return chosen


def _tell(chosen: Any, streams: Sequence[Any]) -> str:
    number = 1 + [stream.index for stream in streams].index(chosen.index)
    named = ", ".join(_names(chosen)) or ", ".join(_kind(chosen))
    return f"audio track {number} of {len(streams)} ({named}) was taken; --track chooses another"


def _list(streams: Sequence[Any]) -> str:
    """All tracks in one line, as a hint."""
    described = (
        f"{number} is {', '.join([*_names(stream), *_kind(stream)])}"
        for number, stream in enumerate(streams, 1)
    )
    return f"track {'; '.join(described)}"


def _names(stream: Any) -> list[str]:
    """Language and title, as far as the file says them."""
    language = printable(stream.metadata.get("language", "")).strip()
    title = printable(stream.metadata.get("title") or _title_in_mp4(stream)).strip()[:_MAX_TITLE]
    return [name for name in (language, title) if name.lower() not in _UNKNOWN_LANGUAGES]


def _title_in_mp4(stream: Any) -> str:
    """The handler's name, which is a title where no program put its own there."""
    name: str = stream.metadata.get("handler_name", "")
    return "" if _PROGRAMS.search(name) else name


def _kind(stream: Any) -> list[str]:
    """Codec and channels."""
    codec = stream.codec_context
    if codec is None:
        return ["unknown codec"]
    return [codec.name, codec.layout.name if codec.layout.nb_channels else "no channels"]
