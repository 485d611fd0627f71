"""The words of a text as they are compared: without case and punctuation, in any script."""

from __future__ import annotations

import unicodedata

_LETTER, _SYLLABLE, _MARK, _OTHER = "letter", "syllable", "mark", "other"


def find_words(text: str) -> list[tuple[str, int]]:
    """Each word in small letters, with where it ends in the text.

    Where a script has no spaces between words, each of its characters is one.
    """
    found: list[tuple[str, int]] = []
    word, ends_at_letter = "", False
    for place, character in enumerate(text):
        kind = _kind(character)
        if word and (kind in (_SYLLABLE, _OTHER) or (kind == _LETTER and ends_at_letter)):
            found.append((word.casefold(), place))
            word = ""
        if kind != _OTHER and (word or kind != _MARK):
            word += character
        if kind != _MARK:
            ends_at_letter = kind == _SYLLABLE
    return [*found, (word.casefold(), len(text))] if word else found


def split_words(text: str) -> list[str]:
    """Each word of a text in small letters."""
    return [word for word, _ in find_words(text)]


def is_unspaced(character: str) -> bool:
    """Whether a character belongs to a script that is written without any spaces."""
    code = ord(character)
    return (
        0x2E80 <= code <= 0x30FF  # Han radicals, CJK punctuation, hiragana, katakana
        or 0x31F0 <= code <= 0x31FF  # katakana extensions
        or 0x3400 <= code <= 0x9FFF  # Han
        or 0xF900 <= code <= 0xFAFF  # Han compatibility forms
        or 0xFF01 <= code <= 0xFF9F  # full-width punctuation, half-width katakana
        or 0x20000 <= code <= 0x3FFFF  # Han extensions
    )


def _kind(character: str) -> str:
    if unicodedata.category(character).startswith("M"):
        return _MARK  # part of the letter ahead of it
    if not character.isalnum():
        return _OTHER
    return _SYLLABLE if is_unspaced(character) or _has_spaces_by_phrase(character) else _LETTER


def _has_spaces_by_phrase(character: str) -> bool:
    """Whether a letter belongs to a script with spaces between phrases, and none between words."""
    code = ord(character)
    return (
        0x0E00 <= code <= 0x0EFF  # Thai, Lao
        or 0x1000 <= code <= 0x109F  # Burmese
        or 0x1780 <= code <= 0x17FF  # Khmer
    )
