"""A row that runs in circles: the same ids over and over, to the bound on its length."""

from __future__ import annotations

from collections.abc import Sequence

CHECK_STEP = 8  # ids between two looks at a row
NUM_REPEATS = 6  # what is said five times may have been said five times
MIN_LENGTH = 48  # ids that all repeats have together: "no no no no no no no" is nothing yet
MAX_PERIOD = 96  # ids; a long sentence


def find_loop(token_ids: Sequence[int], num_text_ids: int) -> int | None:
    """Where the first round of the circle ends that a row runs in at its end.

    Args:
        token_ids: what the row has produced.
        num_text_ids: ids from here on are no text, such as times, and are not compared.

    Returns:
        How many of the ids remain if only the first round is kept; None where there is no circle.
    """
    places = [place for place, token_id in enumerate(token_ids) if token_id < num_text_ids]
    text = [token_ids[place] for place in places]
    for period in range(1, min(MAX_PERIOD, len(text) // NUM_REPEATS) + 1):
        num_same = _num_same(text, period)
        if num_same >= (NUM_REPEATS - 1) * period and num_same + period >= MIN_LENGTH:
            return places[len(text) - num_same - 1] + 1
    return None


def _num_same(ids: Sequence[int], period: int) -> int:
    """How many ids at the end are those that stand one period before them."""
    num_same = 0
    for later, earlier in zip(reversed(ids), reversed(ids[:-period])):  # noqa: B905 - the shorter
        if later != earlier:
            break
        num_same += 1
    return num_same
