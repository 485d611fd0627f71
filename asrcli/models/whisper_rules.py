"""Whisper's rules for its next id: what is never said, how times are written, how it is begun."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.engine.request import LogitsRule
    from asrcli.models.whisper_vocabulary import Vocabulary

NEVER = -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Preamble:
    """Forces the ids that stand between the start token and the text when the model chooses the
    language itself: its likeliest language, then the ids given.

    Attributes:
        language_ids: ids that name a language.
        then: what follows it, one id a step: the task, and "no timestamps" where none are wanted.
    """

    language_ids: tuple[int, ...]
    then: tuple[int, ...]

    @property
    def length(self) -> int:
        """How many ids are forced."""
        return 1 + len(self.then)

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        for row, produced in enumerate(token_ids):
            if len(produced) >= self.length:
                continue
            if produced:
                forced = self.then[len(produced) - 1]
            else:
                choices = list(self.language_ids)
                forced = choices[int(logits[row, choices].argmax())]
            logits[row] = NEVER
            logits[row, forced] = 0.0


class Suppress:
    """Bars ids: some always, some as the first of the text.

    Args:
        always: ids that never occur in a text.
        first: ids that it must not begin with.
        begin: how many forced ids come before the text.
    """

    def __init__(self, always: Sequence[int], first: Sequence[int], begin: int) -> None:
        self._always = list(always)
        self._first = list(first)
        self._begin = begin

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        rows = [row for row, produced in enumerate(token_ids) if len(produced) >= self._begin]
        if len(rows) == len(token_ids):
            logits[:, self._always] = NEVER
        else:  # a row in its preamble needs the very ids that are barred later
            for row in rows:
                logits[row, self._always] = NEVER
        for row in rows:
            if len(token_ids[row]) == self._begin:
                logits[row, self._first] = NEVER


class MustReach:
    """Has a text go on behind the start of a segment before it has come to some time.

    The model was trained to stop after the start of a segment that its 30 s cut off, since the
    reference comes back for it. Here nobody does: it has to write it.

    Args:
        steps: of 0.02 s that a text has to come to; with 0 it may stop anywhere.
        first_timestamp, eos: as in ``TimestampGrammar``, which comes behind this.
    """

    def __init__(self, steps: int, *, first_timestamp: int, eos: int) -> None:
        self._end = first_timestamp + steps
        self._first_timestamp = first_timestamp
        self._eos = eos

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        for row, produced in enumerate(token_ids):
            last = produced[-2:]
            begins_segment = len(last) == 2 and all(i >= self._first_timestamp for i in last)
            if begins_segment and last[1] < self._end:
                logits[row, self._eos] = NEVER


class TimestampGrammar:
    """Times come in pairs, never go back, and are written where they are likelier than any text.

    The rules of the reference (openai/whisper ``decoding.py``, ``ApplyTimestampRules``): the text
    begins with a time; a time that ends a segment is followed by the one that begins the next, or
    by the end; and once all times together outweigh the likeliest other id, a time it is.

    Args:
        first_timestamp: id of 0.00 s; all ids from there on are times.
        eos: id of the end; all ids below are text.
        max_initial: steps of 0.02 s that the first time may be at most.
        begin: how many forced ids come before the text.
    """

    def __init__(
        self, *, first_timestamp: int, eos: int, max_initial: int | None, begin: int
    ) -> None:
        self._first_timestamp = first_timestamp
        self._eos = eos
        self._max_initial = max_initial
        self._begin = begin

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        active = []
        for row, produced in enumerate(token_ids):
            if len(produced) >= self._begin:
                active.append(row)
                self._forbid(logits[row], produced[self._begin :])
        part = logits if len(active) == len(token_ids) else logits[active]
        times = part[:, self._first_timestamp :].logsumexp(dim=-1)
        best_other = part[:, : self._first_timestamp].amax(dim=-1)
        for index in (times > best_other).nonzero()[:, 0].tolist():
            logits[active[index], : self._first_timestamp] = NEVER

    def _forbid(self, logits: Tensor, produced: Sequence[int]) -> None:
        """Bar what may not follow ``produced`` in one row, logits [vocabulary]."""
        first = self._first_timestamp
        if not produced:
            logits[:first] = NEVER
            if self._max_initial is not None:
                logits[first + self._max_initial + 1 :] = NEVER
            return
        is_time = produced[-1] >= first
        pair_is_closed = len(produced) < 2 or produced[-2] >= first
        if is_time and pair_is_closed:
            logits[first:] = NEVER
            return
        if is_time:
            logits[: self._eos] = NEVER
        latest = next((token for token in reversed(produced) if token >= first), first - 1)
        # A time may be repeated only to begin the next segment where the last one ended.
        logits[first : latest + (0 if is_time else 1)] = NEVER


def build_rules(
    vocabulary: Vocabulary,
    settings: Mapping[str, Any],
    timestamps: str,
    detect: bool,
    task: str,
) -> tuple[LogitsRule, ...]:
    """The rules for one kind of request.

    Args:
        vocabulary: the checkpoint's ids.
        settings: its configuration and generation configuration, in one.
        timestamps: "none" or "segment".
        detect: whether the model names the language first.
        task: what it then does with the speech.
    """
    rules: list[LogitsRule] = []
    begin = 0
    if detect:
        then = [vocabulary.token_id(f"<|{task}|>")]
        then += [vocabulary.first_timestamp - 1] if timestamps == "none" else []
        preamble = Preamble(tuple(vocabulary.languages.values()), tuple(then))
        rules.append(preamble)
        begin = preamble.length
    # Ids between text and times steer the model; none of them has a place in its answer.
    special = range(vocabulary.eos + 1, vocabulary.first_timestamp)
    always = {*special, *(settings.get("suppress_tokens") or ())}
    first = settings.get("begin_suppress_tokens") or (vocabulary.eos,)
    rules.append(Suppress(sorted(always), first, begin))
    if timestamps != "none":
        rules.append(
            TimestampGrammar(
                first_timestamp=vocabulary.first_timestamp,
                eos=vocabulary.eos,
                max_initial=settings.get("max_initial_timestamp_index", 50),
                begin=begin,
            )
        )
    return tuple(rules)
