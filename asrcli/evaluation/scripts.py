"""Scripts and what they say about a text: its language, and whether words stand apart in it."""

from __future__ import annotations

WITHOUT_SPACES = frozenset({"zh", "yue", "ja", "th", "lo", "km", "my"})
"""Languages that set no spaces between words: they have no word error rate."""

BY_CHARACTERS = WITHOUT_SPACES | {"ko"}
"""Languages whose leading figure is the character error rate; spaces do not count in it.

Korean sets spaces, but where they go is much a matter of taste.
"""

# First and last code point, and the language that is written with them.
_RANGES = (
    (0x0E00, 0x0E7F, "th"),
    (0x0E80, 0x0EFF, "lo"),
    (0x1000, 0x109F, "my"),
    (0x1100, 0x11FF, "ko"),
    (0x1780, 0x17FF, "km"),
    (0x3040, 0x30FF, "ja"),
    (0x3130, 0x318F, "ko"),
    (0x3400, 0x4DBF, "zh"),
    (0x4E00, 0x9FFF, "zh"),
    (0xAC00, 0xD7AF, "ko"),
    (0x20000, 0x323AF, "zh"),
)


def guess_language(text: str) -> str | None:
    """The language that a text's script gives away, an ISO 639 code; None where it does not.

    More than half of the letters must be of that script. Chinese characters with any kana among
    them are Japanese.
    """
    letters = [letter for letter in text if letter.isalpha()]
    found = [code for letter in letters if (code := _language_of(letter)) is not None]
    if not found or 2 * len(found) <= len(letters):
        return None
    if "ja" in found and {"ja", "zh"}.issuperset(found):
        return "ja"
    return max(sorted(set(found)), key=found.count)


def _language_of(letter: str) -> str | None:
    point = ord(letter)
    if point < _RANGES[0][0]:
        return None
    return next((code for first, last, code in _RANGES if first <= point <= last), None)
