"""Which transcript is that of which recording, told by where the two lie."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from asrcli.audio.sources import Source
from asrcli.evaluation.texts import TextFiles, names_for

SUFFIXES = (".json", ".srt", ".vtt", ".txt")
"""Endings of transcripts, the one that tells the most first: it is taken if there are several."""


@dataclass(frozen=True, slots=True)
class Rival:
    """A transcript that a recording cannot have, and the recording that stands in the way.

    Attributes:
        is_owner: whether it is that recording's own; else it may be of either.
    """

    path: Path
    other: Source
    is_owner: bool


@dataclass(slots=True)
class Matches:
    """What was found for recordings; one that is in neither has nothing.

    Attributes:
        paths: a recording's own transcript.
        rivals: why a recording has none of its own.
        num_dropped: how many folders were left out in front of the paths of ``shortened``.
        shortened: the recordings whose transcripts lie further up than they do.
    """

    paths: dict[Source, Path] = field(default_factory=dict)
    rivals: dict[Source, Rival] = field(default_factory=dict)
    num_dropped: int = 0
    shortened: tuple[Source, ...] = ()

    def settles(self, source: Source) -> bool:
        """Whether a transcript was found for a recording, be it its own or not."""
        return source in self.paths or source in self.rivals


def match(sources: Sequence[Source], folder: Path, texts: Iterable[Path]) -> Matches:
    """Find the transcripts of recordings.

    All exact places come first, those that bear a recording's whole name (a.wav.txt) before those
    without its suffix. What is left may lie further up, since folders of results often begin
    further down in the tree: the same number of folders is left out for all, the one that finds
    the most. No transcript is given to two recordings, and none that may be either's to any.

    Args:
        sources: recordings, each once.
        folder: what is searched.
        texts: files that are no transcripts, whatever their names: the references.
    """
    search = _Search(folder, frozenset(os.path.realpath(text) for text in texts))
    found = search.assign(sources, 0, {})
    left = [source for source in sources if not found.settles(source)]
    depth = max((len(source.relative.parts) for source in left), default=1)
    owners = {_key(rival.path): rival.other for rival in found.rivals.values()}
    owners |= {_key(path): source for source, path in found.paths.items()}
    tries = [search.assign(left, dropped, owners) for dropped in range(1, depth)]
    if tries:  # of equally good ones, max takes the first, which leaves out the least
        best = max(tries, key=lambda each: (len(each.paths), len(each.rivals)))
        found.paths |= best.paths
        found.rivals |= best.rivals
        found.num_dropped, found.shortened = best.num_dropped, tuple(best.paths)
    return found


class _Search:
    """Looks into one folder of transcripts."""

    def __init__(self, folder: Path, texts: frozenset[str]) -> None:
        self._folder = folder
        self._texts = texts
        self._files = TextFiles()

    def assign(
        self, sources: Sequence[Source], dropped: int, owners: Mapping[str, Source]
    ) -> Matches:
        """Find transcripts under paths less ``dropped`` folders, save those that have an owner."""
        matches, owners = Matches(num_dropped=dropped), dict(owners)
        for names_of in (_whole_name, names_for):
            claims: dict[str, list[tuple[Source, Path]]] = {}
            for source in sources:
                if matches.settles(source):
                    continue
                place = PurePath(*source.relative.parts[dropped:])
                path = next(self._look_up(place, names_of(place)), None) if place.name else None
                if path is None:
                    continue
                owner = owners.get(_key(path))
                if owner is None:
                    claims.setdefault(_key(path), []).append((source, path))
                else:
                    matches.rivals[source] = Rival(path, owner, is_owner=True)
            owners |= _settle(claims, matches)
        return matches

    def _look_up(self, place: PurePath, names: Iterable[str]) -> Iterator[Path]:
        for suffix in SUFFIXES:
            for name in names:
                path = self._files.find(self._folder / place.parent / f"{name}{suffix}")
                if path is not None and os.path.realpath(path) not in self._texts:
                    yield path


def _whole_name(place: PurePath) -> tuple[str, ...]:
    return (place.name,)


def _settle(claims: Mapping[str, list[tuple[Source, Path]]], matches: Matches) -> dict[str, Source]:
    """Give a transcript to the only one who claims it; returns whose each now is, or may be."""
    for claimants in claims.values():
        if len(claimants) == 1:
            matches.paths.update(claimants)
            continue
        for index, (source, path) in enumerate(claimants):
            other, _ = claimants[1 if index == 0 else 0]
            matches.rivals[source] = Rival(path, other, is_owner=False)
    return {key: claimants[0][0] for key, claimants in claims.items()}


def _key(path: Path) -> str:
    """What the files with one recording's transcript in several formats have in common."""
    return os.path.splitext(os.path.realpath(path))[0]  # noqa: PTH122
