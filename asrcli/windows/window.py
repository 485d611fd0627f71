"""A window: a cut of a recording, and how it is cut once more."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from asrcli.audio.reading import SAMPLING_RATE

if TYPE_CHECKING:
    from numpy.typing import NDArray

HUSH_FRAME = SAMPLING_RATE // 100
HUSH_SHARE = 0.1  # of the root mean square of the audio around: 20 dB below it
MIN_HUSH = 0.16  # s
QUIET_DURATION = 0.1  # s: the stretch whose energy is compared, so that words stay whole
PHRASE_END = 0.3  # s: and the one around it, so that phrases do
ABOUT = 2.0  # times the energy of the quietest place is about as quiet
SILENT_SHARE = 0.03  # of the root mean square of all audio: 30 dB below it
MAX_OVERLAP = 3.0  # s before a cut without a pause that the next window holds as well
MIN_REST = 0.7  # s of speech; less may be breath, or the end of a word whose time is a little off
REST_PADDING = 0.3  # s of audio ahead of it


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A cut of a recording, short enough for the model.

    Attributes:
        recording_id: which recording it belongs to, unique within the process.
        index: position among the recording's windows, from 0.
        samples: float32 [num_samples], 16 kHz mono.
        start, end: seconds from the start of the recording.
        speech: (start, end) of its stretches of speech, in seconds of the recording; None where
            nobody has looked for any.
        overlap: seconds at its start that the window before it holds as well.
    """

    recording_id: int
    index: int
    samples: NDArray[np.float32]
    start: float
    end: float
    speech: tuple[tuple[float, float], ...] | None = None
    overlap: float = 0.0


def halve(window: Window) -> tuple[Window, Window]:
    """Cut a window in two, in its middle third: in a pause, or with some audio in both halves."""
    num_samples = len(window.samples)
    middle, resume = find_seam(
        window.samples, num_samples // 3, num_samples - num_samples // 3, num_samples // 8
    )
    end, start = (window.start + place / SAMPLING_RATE for place in (middle, resume))
    return (
        replace(window, samples=window.samples[:middle], end=end, speech=_within(window, end=end)),
        replace(
            window,
            samples=window.samples[resume:],
            start=start,
            speech=_within(window, start=start),
            overlap=end - start,
        ),
    )


def unheard_of(window: Window, spans: Iterable[tuple[float, float]]) -> list[Window]:
    """What of a window's speech lies in none of the spans of its text (s), as windows in order.

    A model may take a pause for the end of all speech, and what is quieter behind it for nothing,
    or leap over a voice to the next.
    """
    gaps = (rest_of(window, *gap) for gap in find_gaps(spans, window.start, window.end))
    return [gap for gap in gaps if gap is not None]


def rest_of(window: Window, start: float, end: float) -> Window | None:
    """What of a window's speech lies between two times (s), as a window; None if next to none."""
    speech = _within(window, start=start, end=end) or ()
    if sum(last - first for first, last in speech) < MIN_REST:
        return None
    begin = round((max(start, speech[0][0] - REST_PADDING) - window.start) * SAMPLING_RATE)
    samples = window.samples[begin : round((end - window.start) * SAMPLING_RATE)]
    start = window.start + begin / SAMPLING_RATE
    return replace(window, samples=samples, start=start, end=end, speech=speech)


def _within(
    window: Window, *, start: float = 0.0, end: float = math.inf
) -> tuple[tuple[float, float], ...] | None:
    """What of a window's speech lies between two times."""
    if window.speech is None:
        return None
    clipped = ((max(start, first), min(end, last)) for first, last in window.speech)
    return tuple((first, last) for first, last in clipped if first < last)


def find_gaps(
    spans: Iterable[tuple[float, float]], start: float, end: float
) -> list[tuple[float, float]]:
    """What no span covers between two times (s): the audit of a recording's windows and silences.

    Less than half a sample is rounding.
    """
    gaps = []
    for first, last in sorted(spans):
        if start >= end:
            break
        if first - start > 0.5 / SAMPLING_RATE:
            gaps.append((start, min(first, end)))
        start = max(start, last)
    if end - start > 0.5 / SAMPLING_RATE:
        gaps.append((start, end))
    return gaps


def find_seam(
    samples: NDArray[np.float32], begin: int, end: int, max_overlap: int
) -> tuple[int, int]:
    """Where between two places to end a window, and where to begin the next, as sample indices.

    One place in the longest hush; where there is none, the quietest place and an earlier one, so
    that each word between them is whole in one of the two windows.
    """
    pause = find_pause(samples, begin, end)
    if pause is not None:
        return pause, pause
    place = find_phrase_end(samples, begin, end)
    overlap = min(round(MAX_OVERLAP * SAMPLING_RATE), max_overlap)
    return place, find_phrase_end(samples, place - overlap, place - overlap // 2)


def find_quietest(samples: NDArray[np.float32], begin: int, end: int) -> int:
    """The middle of the quietest stretch between two places, as a sample index."""
    places, loudness, _ = _quiet_places(samples, begin, end)
    return _last_least(places, loudness)


def find_phrase_end(samples: NDArray[np.float32], begin: int, end: int) -> int:
    """A quiet place between two in speech without a pause, as a sample index.

    A mouth closes within words as well. So of all places that are about as quiet as the quietest,
    or next to silent, it is the one around which it is quietest: there a phrase may end.
    """
    places, loudness, energy = _quiet_places(samples, begin, end)
    silence = SILENT_SHARE**2 * energy[-1] / len(samples)
    around = _loudness(energy, places, round(PHRASE_END * SAMPLING_RATE))
    around[loudness > max(ABOUT * loudness.min(), silence)] = np.inf
    return _last_least(places, around)


def _quiet_places(
    samples: NDArray[np.float32], begin: int, end: int
) -> tuple[NDArray[np.int_], NDArray[np.float64], NDArray[np.float64]]:
    """Where between two places a cut may be, how loud it is there, and all energy up to a sample.

    Returns:
        int [num_places], float64 [num_places], float64 [num_samples + 1].
    """
    width = min(round(QUIET_DURATION * SAMPLING_RATE), end - begin)
    places = np.arange(begin, end - width + 1) + width // 2
    energy = np.concatenate(([0.0], np.cumsum(np.square(samples, dtype=np.float64))))
    return places, _loudness(energy, places, width), energy


def _last_least(places: NDArray[np.int_], values: NDArray[np.float64]) -> int:
    """Of equally quiet places (digital silence) the last one: it wastes the least of a window."""
    return int(places[len(places) - 1 - int(np.argmin(values[::-1]))])


def _loudness(
    energy: NDArray[np.float64], places: NDArray[np.int_], width: int
) -> NDArray[np.float64]:
    """The mean energy of so many samples around each of the places.

    Args:
        energy: float64 [num_samples + 1], that of all samples before each one.
        places: int [num_places], sample indices.
    """
    first = np.maximum(places - width // 2, 0)
    last = np.minimum(places - width // 2 + width, len(energy) - 1)
    mean: NDArray[np.float64] = (energy[last] - energy[first]) / (last - first)
    return mean


def find_pause(samples: NDArray[np.float32], begin: int, end: int) -> int | None:
    """A place in the longest hush between two others, as a sample index; None if there is none.

    Args:
        samples: float32 [num_samples], whose loudness is the measure.

    The mouth that closes for a "p" makes a hush as well, but a shorter one.
    """
    num_frames = (end - begin) // HUSH_FRAME
    frames = samples[begin : begin + num_frames * HUSH_FRAME].reshape(num_frames, HUSH_FRAME)
    loudness = np.sqrt(np.mean(np.square(samples, dtype=np.float64)))
    is_loud = np.sqrt(np.mean(np.square(frames, dtype=np.float64), axis=1)) > HUSH_SHARE * loudness
    edges = np.concatenate(([-1], np.flatnonzero(is_loud), [num_frames]))
    lengths = np.diff(edges) - 1
    longest = len(lengths) - 1 - int(np.argmax(lengths[::-1]))  # of equals the last
    if lengths[longest] * HUSH_FRAME < MIN_HUSH * SAMPLING_RATE:
        return None
    first, last = int(edges[longest]) + 1, int(edges[longest + 1])
    middle = (first + last) * HUSH_FRAME // 2
    # Its middle; or near its end, as that wastes less of a window.
    return begin + max(middle, last * HUSH_FRAME - SAMPLING_RATE // 2)
