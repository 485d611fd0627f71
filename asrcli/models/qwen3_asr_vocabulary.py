"""Qwen3-ASR's words for languages, and which ids of a checkpoint mean what."""

from __future__ import annotations

from functools import cached_property

from asrcli.languages import resolve_language
from asrcli.models.vocabulary import Vocabulary

MARKER = "<asr_text>"
"""Stands between the language and the text. An ordinary entry of the vocabulary: not "special"."""

NAMES = (
    "Arabic", "Cantonese", "Chinese", "Czech", "Danish", "Dutch", "English", "Filipino", "Finnish",
    "French", "German", "Greek", "Hindi", "Hungarian", "Indonesian", "Italian", "Japanese",
    "Korean", "Macedonian", "Malay", "Persian", "Polish", "Portuguese", "Romanian", "Russian",
    "Spanish", "Swedish", "Thai", "Turkish", "Vietnamese",
)  # fmt: skip
"""The languages, by the names that the model was trained with."""

NO_LANGUAGE = "None"
"""What the model writes for the language where nobody speaks."""

NAMES_BY_CODE = {resolve_language(name): name for name in NAMES}
"""ISO 639 code to name; Filipino goes by the code of Tagalog."""

CODES_BY_NAME = {name.casefold(): code for code, name in NAMES_BY_CODE.items()}
"""Folded name to ISO 639 code."""


class Qwen3AsrVocabulary(Vocabulary):
    """Adds how an answer names its language."""

    def encode_language(self, language: str) -> list[int]:
        """Ids that say a language (ISO code) ahead of a text."""
        return [*self.encode(f"language {NAMES_BY_CODE[language]}"), self.marker]

    @cached_property
    def marker(self) -> int:
        """Id of ``MARKER``."""
        return self.token_id(MARKER)

    @cached_property
    def num_framing_tokens(self) -> int:
        """Ids at most that say a language ahead of a text."""
        return max(len(self.encode_language(code)) for code in NAMES_BY_CODE)
