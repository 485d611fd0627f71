"""Texts made comparable: case, punctuation and, in English, numbers, contractions and spelling.

The rules are those that Whisper's authors published (https://arxiv.org/abs/2212.04356, appendix C),
as the package whisper-normalizer carries them, so that figures can be compared with others'.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import cache

from asrcli.errors import UsageError

NORMALIZERS = ("auto", "english", "multilingual", "none")


def check_normalizer(name: str) -> None:
    """Raise UsageError unless ``name`` is one of ``NORMALIZERS``."""
    if name not in NORMALIZERS:
        raise UsageError(
            f"normalizer {name!r} is unknown", hint=f"one of: {', '.join(NORMALIZERS)}"
        )


def choose_normalizer(name: str, language: str | None) -> str:
    """What "auto" means for a language (an ISO 639 code, or None); any other name is itself."""
    if name != "auto":
        return name
    return "english" if language == "en" else "multilingual"


def normalize(text: str, normalizer: str) -> str:
    """A text as it is compared, words with one space between them.

    Args:
        text: as it was written or transcribed.
        normalizer: "english": lower case, no punctuation, no marks on letters, no words in
            brackets, no "uh"; numbers in digits, contractions in full, American spelling.
            "multilingual": lower case, no punctuation, no words in brackets; marks stay, since
            they are vowels in many scripts. "none": Unicode's composed form, nothing else.
    """
    if normalizer != "none":
        text = _english()(text) if normalizer == "english" else _multilingual()(text)
    return " ".join(unicodedata.normalize("NFC", text).split())


@cache
def _english() -> Callable[[str], str]:
    from whisper_normalizer.english import EnglishTextNormalizer  # type: ignore[import-untyped]

    normalizer: Callable[[str], str] = EnglishTextNormalizer()
    return normalizer


@cache
def _multilingual() -> Callable[[str], str]:
    from whisper_normalizer.basic import BasicTextNormalizer  # type: ignore[import-untyped]

    normalizer: Callable[[str], str] = BasicTextNormalizer(preserve_marks=True)
    return normalizer
