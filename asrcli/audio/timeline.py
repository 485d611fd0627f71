"""Keeps decoded audio at its true time, and tells where some is missing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from asrcli.audio.channels import Chunk
from asrcli.audio.notes import DamagedStretches, Notes, clock

# Formats whose timestamps only count what could be parsed, so lost bytes do not show in them.
_COUNTED_TIME = frozenset({"mp3", "aac", "ac3", "eac3", "dts", "mp2", "loas"})
# Formats whose timestamps are exact and without pauses: any gap is a loss.
_EXACT_TIME = frozenset({"ogg", "flac"})
# Formats whose length is found at their end: the end is there, whatever could be decoded.
_LENGTH_AT_END = frozenset({"ogg"})
# A recording may begin this much (s) after its container does before silence is put in front:
# codecs begin a frame or two late.
_START_TOLERANCE = 0.15
# Timestamps wander by less than this (s).
_GAP_TOLERANCE = 0.1
_EXACT_GAP_TOLERANCE = 0.05
# A gap without a fault in the stream is worth a note from here on (s).
_GAP_TO_TELL = 0.5
# Beyond this (s), or backward by the other, the clock jumped and no audio is missing.
_MAX_GAP = 3600.0
_MAX_BACKWARD = 1.0
# A gap up to this (s) is believed, whatever length the header states.
_LIKELY_GAP = 30.0
# A recording that ends this much (s) before its stated length is cut short.
_SHORT_BY = 0.25
# Less than this (s) at the very end holds nothing that was said.
_NOTHING = 0.02


class Timeline:
    """Goes along with the packets and frames of one audio stream.

    Args:
        format_name: the container's, as FFmpeg calls it.
        start_time: where the container's clock begins (s); None where it begins with the audio.
        stated: length (s) that the header states; None if it does not.

    Attributes:
        position: seconds of audio given out, silence included.
        num_faults: packets and stretches that could not be read.
    """

    def __init__(
        self, format_name: str, start_time: float | None, stated: float | None, notes: Notes
    ) -> None:
        self.position = 0.0
        self.num_faults = 0
        self._notes = notes
        self._stretches = DamagedStretches(notes)
        self._origin = start_time
        self._stated = stated
        self._silence: tuple[float, float] | None = None  # the last: where, and how much (s)
        self._counted = format_name in _COUNTED_TIME
        self._length_at_end = format_name in _LENGTH_AT_END
        exact = format_name in _EXACT_TIME
        self._tolerance = _EXACT_GAP_TOLERANCE if exact else _GAP_TOLERANCE
        self._gap_to_tell = _EXACT_GAP_TOLERANCE if exact else _GAP_TO_TELL
        self._fault_at: float | None = None  # where the faults began that are going on
        # Where the last packet and the one before it end by their own account, on that clock.
        self._ends: tuple[float | None, float | None] = (None, None)
        self._end: float | None = None  # of what `saw` was told of, on the container's clock
        self._num_bytes = 0
        self._num_decoded_bytes = 0
        self._decoded_seconds = 0.0

    def saw(self, packet: Any) -> None:
        """Keep where another stream, or audio that cannot be decoded, has got to."""
        if packet.pts is not None:
            end = (packet.pts + (packet.duration or 0)) * _tick(packet)
            self._end = max(end, self._end or end)

    def decoded(self, packet: Any) -> None:
        """Learn from a packet that was decoded how many bytes a second takes."""
        self._num_bytes += packet.size
        self._num_decoded_bytes += packet.size
        tick = _tick(packet)
        duration = (packet.duration or 0) * tick
        self._decoded_seconds += duration
        if packet.pts is not None:
            self._ends = (self._ends[1], packet.pts * tick + duration)
        if packet.is_corrupt:
            self.num_faults += 1
            self._stretches.add("damaged", self.position, self.position + duration)

    def fault(self, packet: Any | None) -> None:
        """Note a packet that cannot be decoded, or (None) a fault of the container."""
        self.num_faults += 1
        if self._fault_at is None:
            self._fault_at = self.position
        if packet is None:
            return
        self.saw(packet)
        self._num_bytes += packet.size
        if self._counted and self._origin is not None:
            # The clock counts this as one frame; its bytes say how much audio it was.
            duration = (packet.duration or 0) * _tick(packet)
            self._origin -= max(0.0, self._as_seconds(packet.size) - duration)

    def leave(self) -> None:
        """Tell what is known, where nobody wants the rest of the stream."""
        self._stretches.finish()

    def silence_before(self, frame: Any) -> Iterator[Chunk]:
        """Yield silence for what is missing before `frame`, and say so."""
        gap = self._gap(frame)
        if self._fault_at is not None:
            self._stretches.add("damaged", self._fault_at, self.position + gap)
            self._fault_at = None
        elif gap >= self._gap_to_tell and self.position > 0 and not self._is_meant(frame):
            self._stretches.add("missing", self.position, self.position + gap)
        rate, num_channels = frame.sample_rate, frame.layout.nb_channels
        num_samples = round(gap * rate)
        if num_samples:
            self._silence = self.position, gap
        for start in range(0, num_samples, rate):
            yield rate, np.zeros((min(rate, num_samples - start), num_channels), np.float32)
        self.position += num_samples / rate

    def passed(self, duration: float) -> None:
        """Count seconds of audio that were given out."""
        self.position += duration
        self._stretches.settle(self.position)

    def finish(self, num_bytes: int | None) -> None:
        """Tell, at the end of the stream, what is missing there.

        Args:
            num_bytes: size of a file that holds nothing but packets; None for any other.
        """
        self._stretches.finish()
        end, stated = self.position, self._stated
        if self._end is not None:
            end = max(end, self._end - (self._origin or 0.0))
        cut_short = stated is not None and stated - end > _SHORT_BY
        if cut_short and self._length_at_end:
            cut_short, self._fault_at = False, self.position
        if stated is not None and cut_short:
            self._notes.ends_early(self.position, stated)
        elif self._fault_at is not None:
            line = f"damaged from {clock(self._fault_at)} on: the rest could not be decoded"
            almost_all = stated is not None and abs(stated - self.position) < _NOTHING
            (self._notes.warn if almost_all else self._notes.lose)(line)
        if num_bytes is not None and self.num_faults:
            self._tell_passed_over(num_bytes)

    def _tell_passed_over(self, num_bytes: int) -> None:
        """Own up to bytes that FFmpeg left out without giving them a time."""
        seconds = self._as_seconds(num_bytes - self._num_bytes)
        if seconds >= 0.1:
            self._notes.lose(
                f"about {seconds:.1f} s of damaged audio was passed over;"
                " times after it are early by as much"
            )

    def _gap(self, frame: Any) -> float:
        """Give the seconds between what was given out and where `frame` belongs; 0 for none."""
        if frame.time is None:
            return 0.0
        if self._origin is None:
            self._origin = frame.time
        gap: float = frame.time - self._origin - self.position
        if not -_MAX_BACKWARD <= gap <= self._max_gap():
            self._tell_if_late(gap)
            self._origin = frame.time - self.position
            return 0.0
        tolerance = _START_TOLERANCE if self.position == 0 else self._tolerance
        return max(0.0, gap) if self._fault_at is not None or gap > tolerance else 0.0

    def _max_gap(self) -> float:
        """How much can be missing here: no more than is left of the stated length."""
        if self._stated is None:
            return _MAX_GAP
        return min(_MAX_GAP, max(_LIKELY_GAP, self._stated - self.position))

    def _tell_if_late(self, jump: float) -> None:
        """Own up to silence for which there was no cause: the clock is back where it was."""
        if self._silence is not None and abs(self._silence[1] + jump) < _MAX_BACKWARD:
            start, gap = self._silence
            self._notes.lose(
                f"a wrong time in the file put {gap:.1f} s of silence at {clock(start)};"
                " times after it are late by as much"
            )
            self._silence = None

    def _is_meant(self, frame: Any) -> bool:
        """Whether the packet before lasts up to `frame`: a pause (MP4 writes them so), no loss."""
        before = self._ends[0]
        return before is not None and frame.time - before < self._tolerance

    def _as_seconds(self, num_bytes: int) -> float:
        if not self._num_decoded_bytes:
            return 0.0
        return num_bytes * self._decoded_seconds / self._num_decoded_bytes


def _tick(packet: Any) -> float:
    """The unit of a packet's times, in seconds."""
    time_base = packet.time_base
    return time_base.numerator / time_base.denominator if time_base else 0.0
