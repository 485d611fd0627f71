"""Whisper's rules for its next id: what is never said, how times are written, how it is begun."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from asrcli.engine.barring import NEVER, Ids, bar_ids, bar_ranges, bar_where, to_index

if TYPE_CHECKING:
    from torch import Tensor

    from asrcli.engine.request import LogitsRule
    from asrcli.models.whisper_vocabulary import Vocabulary


class Preamble:
    """Forces the ids that stand between the start token and the text when the model chooses the
    language itself: its likeliest language, then the ids given.

    Args:
        language_ids: ids that name a language.
        then: what follows it, one id a step: the task, and "no timestamps" where none are wanted.
    """

    def __init__(self, language_ids: Sequence[int], then: Sequence[int]) -> None:
        self._languages = Ids(language_ids)
        self._then = tuple(then)

    @property
    def length(self) -> int:
        """How many ids are forced."""
        return 1 + len(self._then)

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        numbers = {row: len(ids) for row, ids in enumerate(token_ids) if len(ids) < self.length}
        if not numbers:
            return
        device = logits.device
        rows = to_index(list(numbers), device)
        languages = self._languages.on(device)
        likeliest = languages[logits[rows[:, None], languages].argmax(dim=-1)]
        # The id of each row; where it is a language, the row's own likeliest.
        given = to_index([self._then[n - 1] if n else -1 for n in numbers.values()], device)
        logits[rows] = NEVER
        logits[rows, likeliest.where(given < 0, given)] = 0.0


class Suppress:
    """Bars ids: some always, some as the first of the text.

    Args:
        always: ids that never occur in a text.
        first: ids that it must not begin with.
        begin: how many forced ids come before the text.
    """

    def __init__(self, always: Sequence[int], first: Sequence[int], begin: int) -> None:
        self._always = Ids(always)
        self._first = Ids(first)
        self._begin = begin

    def __call__(self, logits: Tensor, token_ids: Sequence[Sequence[int]]) -> None:
        # A row in its preamble needs the very ids that are barred later.
        rows = [row for row, produced in enumerate(token_ids) if len(produced) >= self._begin]
        bar_ids(logits, rows, self._always)
        bar_ids(logits, [row for row in rows if len(token_ids[row]) == self._begin], self._first)


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
        self.apply_each([self] * len(token_ids), logits, token_ids)

    @staticmethod
    def apply_each(
        rules: Sequence[MustReach], logits: Tensor, token_ids: Sequence[Sequence[int]]
    ) -> None:
        """Apply to each row a rule of its own."""
        held_back = [
            (row, rule._eos, rule._eos + 1)
            for row, (rule, produced) in enumerate(zip(rules, token_ids, strict=True))
            if rule._holds_back(produced)
        ]
        bar_ranges(logits, held_back)

    def _holds_back(self, produced: Sequence[int]) -> bool:
        """Whether a text stands behind the start of a segment that it has to write."""
        if len(produced) < 2 or produced[-2] < self._first_timestamp:
            return False
        return self._first_timestamp <= produced[-1] < self._end


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
        num_ids = logits.shape[1]
        active = [len(produced) >= self._begin for produced in token_ids]
        ranges = [
            (row, begin, min(end, num_ids))
            for row, produced in enumerate(token_ids)
            if active[row]
            for begin, end in self._barred(produced[self._begin :], num_ids)
        ]
        bar_ranges(logits, ranges)
        times = logits[:, self._first_timestamp :].logsumexp(dim=-1)
        outweighs = times > logits[:, : self._first_timestamp].amax(dim=-1)
        if not all(active):
            outweighs &= to_index(active, logits.device).bool()
        bar_where(logits, outweighs, self._first_timestamp)

    def _barred(self, produced: Sequence[int], num_ids: int) -> list[tuple[int, int]]:
        """Ranges of ids that may not follow ``produced``, of a vocabulary of ``num_ids``."""
        first = self._first_timestamp
        if not produced:
            if self._max_initial is None:
                return [(0, first)]
            return [(0, first), (first + self._max_initial + 1, num_ids)]
        is_time = produced[-1] >= first
        pair_is_closed = len(produced) < 2 or produced[-2] >= first
        if is_time and pair_is_closed:
            return [(first, num_ids)]
        latest = next((token for token in reversed(produced) if token >= first), first - 1)
        # A time may be repeated only to begin the next segment where the last one ended.
        earlier = (first, latest + (0 if is_time else 1))
        return [(0, self._eos), earlier] if is_time else [earlier]


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
