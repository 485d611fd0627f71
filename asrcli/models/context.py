"""What a model is told before it listens, cut to what it can take."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.options import Options

PREVIOUS_SHARE = 1 / 4
"""What is kept free for what was said before, where windows are to be told."""


def hints_room(options: Options, at_most: int) -> int:
    """Ids that hotwords and prompt may come to, of ``at_most`` in all; alike in every window."""
    if options.condition_on_previous_text:
        return at_most - round(at_most * PREVIOUS_SHARE)
    return at_most


def fit_context(encode: Callable[[str], list[int]], options: Options, at_most: int) -> list[int]:
    """Ids of hotwords, prompt and what was said before; at most so many.

    What the user says stays, and what was said before takes the room that is left. Each is cut on
    its left, as what stands next to the audio counts for most; but hotwords keep half of the room.
    """
    room = hints_room(options, at_most)
    if len(encode(options.hints)) <= room:
        whole = encode(options.context)
        if len(whole) <= at_most:
            return whole
        hints = encode(options.hints)
    else:
        prompt = encode((options.prompt or "").strip())
        hotwords = encode((options.hotwords or "").strip())
        hotwords = _end(hotwords, max(room // 2, room - len(prompt)))
        hints = hotwords + _end(prompt, room - len(hotwords))
    return hints + _end(encode((options.previous_text or "").strip()), at_most - len(hints))


def _end(ids: list[int], num_ids: int) -> list[int]:
    """The last of them."""
    return ids[max(0, len(ids) - num_ids) :]
