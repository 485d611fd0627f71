"""The one rule from seconds to printed times, so that all formats name the same instant."""

from __future__ import annotations


def to_milliseconds(seconds: float) -> int:
    """The nearest whole millisecond; a time before the start of the recording is its start.

    Raises:
        ValueError, OverflowError: ``seconds`` is not finite.
    """
    return max(0, round(seconds * 1000))


def time_string(milliseconds: int, decimal_mark: str) -> str:
    """Hours, minutes, seconds and milliseconds: "00:01:02,345", and "100:00:00,000" when need be.

    The time is split after it was rounded, so that no part can come to 60 or to 1000.

    Args:
        milliseconds: at least 0.
        decimal_mark: "," in SubRip, "." in WebVTT.
    """
    seconds, milliseconds = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{decimal_mark}{milliseconds:03}"
