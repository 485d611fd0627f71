"""A checkpoint's tokenizer, as chat models need it: framing and text kept apart."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from asrcli.errors import CheckpointError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_CONTROL = re.compile(r"<\|.*\|>")


@dataclass(frozen=True)
class Vocabulary:
    """The ids of a checkpoint that mean something to its processor and its adapter."""

    tokenizer: Tokenizer

    @property
    def num_ids(self) -> int:
        """Ids that there are."""
        return int(self.tokenizer.get_vocab_size(with_added_tokens=True))

    def token_id(self, name: str) -> int:
        """Id of a token. Raises CheckpointError where the tokenizer has none of that name."""
        token_id = self.tokenizer.token_to_id(name)
        if token_id is None:
            raise CheckpointError(f"the tokenizer has no token {name}")
        return int(token_id)

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which nothing is framing, whatever it looks like."""
        return list(self._plain.encode(text, add_special_tokens=False).ids)

    def text_ids(self, token_ids: Iterable[int]) -> list[int]:
        """Those ids that stand for text."""
        return [token_id for token_id in token_ids if token_id not in self._control_ids]

    def decode(self, token_ids: Iterable[int]) -> str:
        """Text of ids, less a character that the bound on ids broke off."""
        text: str = self.tokenizer.decode(self.text_ids(token_ids), skip_special_tokens=True)
        return text.rstrip("\ufffd")

    @cached_property
    def _control_ids(self) -> frozenset[int]:
        added = self.tokenizer.get_added_tokens_decoder()
        return frozenset(
            token_id
            for token_id, token in added.items()
            if token.special or _CONTROL.fullmatch(token.content)
        )

    @cached_property
    def _plain(self) -> Tokenizer:
        """The tokenizer without any of the tokens that were added to it; the model is shared.

        Not without some of them: those that are left would be given other ids.
        """
        plain = type(self.tokenizer)(self.tokenizer.model)
        if self.tokenizer.normalizer is not None:
            plain.normalizer = self.tokenizer.normalizer
        if self.tokenizer.pre_tokenizer is not None:
            plain.pre_tokenizer = self.tokenizer.pre_tokenizer
        return plain
