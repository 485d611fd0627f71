"""What a model is told before it listens, cut to what it can take."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.options import Options


def fit_context(encode: Callable[[str], list[int]], options: Options, at_most: int) -> list[int]:
    """Ids of hotwords, prompt and what was said before; at most so many.

    What does not fit is cut on the left, as what stands next to the audio counts for most; but
    hotwords, which are said once for all windows, keep up to half of the room.
    """
    whole = encode(options.context)
    if len(whole) <= at_most:
        return whole
    hotwords = encode(options.hotwords or "")[: at_most // 2]
    running = replace(options, hotwords=None).context
    return hotwords + encode(running)[len(hotwords) - at_most :]
