"""Which ids of a Whisper checkpoint mean what; all of it asked of its tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from asrcli.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

HUB_CODES = {"jv": "jw"}  # Whisper names Javanese by a code that ISO withdrew


@dataclass(frozen=True)
class Vocabulary:
    """The ids of a checkpoint that mean something to its processor and its adapter."""

    tokenizer: Tokenizer
    multilingual: bool

    def token_id(self, *names: str) -> int:
        """Id of the first of these special tokens that the tokenizer knows."""
        for name in names:
            token_id = self.tokenizer.token_to_id(name)
            if token_id is not None:
                return int(token_id)
        raise CheckpointError(f"the tokenizer has no token {names[0]}")

    @cached_property
    def eos(self) -> int:
        """End of the text; all ids below are text."""
        return self.token_id("<|endoftext|>")

    @cached_property
    def first_timestamp(self) -> int:
        """0.00 s; all ids from here on are times."""
        return self.token_id("<|notimestamps|>") + 1

    @cached_property
    def languages(self) -> Mapping[str, int]:
        """ISO code to id, in the order of the ids; empty for an English-only checkpoint."""
        if not self.multilingual:
            return {}
        iso_codes = {theirs: ours for ours, theirs in HUB_CODES.items()}
        start, translate = self.token_id("<|startoftranscript|>"), self.token_id("<|translate|>")
        names = (str(self.tokenizer.id_to_token(i)) for i in range(start + 1, translate))
        codes = (name.strip("<|>") for name in names)
        return {iso_codes.get(code, code): start + 1 + offset for offset, code in enumerate(codes)}
