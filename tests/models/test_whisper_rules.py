"""The rules against transformers' processors: which ids each leaves in a row."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers.generation.logits_process import (
    SuppressTokensAtBeginLogitsProcessor,
    SuppressTokensLogitsProcessor,
    WhisperTimeStampLogitsProcessor,
)

from asrcli.engine import barring
from asrcli.models import whisper_rules
from asrcli.models.whisper_rules import MustReach, Preamble, Suppress, TimestampGrammar

NUM_TEXT, EOS, NO_TIMESTAMPS, FIRST_TIME = 20, 20, 29, 30
VOCABULARY = FIRST_TIME + 41  # 0.00 to 0.80 s
SPECIAL = list(range(EOS + 1, FIRST_TIME))
ALWAYS = sorted([3, 7, *SPECIAL])
FIRST = [5, EOS]
MAX_INITIAL = 10
LANGUAGES, TRANSCRIBE = (22, 23, 24), 26
PROMPT = [21, 22, 26]

SUPPRESS = Suppress(ALWAYS, FIRST, 0)
ANYWHERE = 10_000  # steps: later than any time that there is
REACH = MustReach(ANYWHERE, first_timestamp=FIRST_TIME, eos=EOS)
GRAMMAR = TimestampGrammar(first_timestamp=FIRST_TIME, eos=EOS, max_initial=MAX_INITIAL, begin=0)


def theirs(logits: Tensor, history: list[int]) -> Tensor:
    config = SimpleNamespace(
        no_timestamps_token_id=NO_TIMESTAMPS,
        eos_token_id=EOS,
        bos_token_id=EOS,
        max_initial_timestamp_index=MAX_INITIAL,
    )
    ids = torch.tensor([PROMPT + history])
    begin = len(PROMPT)
    scores = SuppressTokensLogitsProcessor(ALWAYS)(ids, logits[None].clone())
    scores = SuppressTokensAtBeginLogitsProcessor(FIRST, begin)(ids, scores)
    processed: Tensor = WhisperTimeStampLogitsProcessor(config, begin_index=begin)(ids, scores)
    return processed[0]


def ours(logits: Tensor, history: list[int]) -> Tensor:
    scores = logits[None].clone()
    REACH(scores, [history])
    SUPPRESS(scores, [history])
    GRAMMAR(scores, [history])
    return scores[0]


def allowed(scores: Tensor) -> set[int]:
    return set(scores.isfinite().nonzero()[:, 0].tolist())


def begins_a_later_segment(history: list[int]) -> bool:
    return len(history) > 1 and history[-1] >= FIRST_TIME and history[-2] >= FIRST_TIME


def random_logits(seed: int, slant: float = 0.0) -> Tensor:
    """Logits, with times made likelier by ``slant``."""
    logits = 3 * torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed))
    logits[FIRST_TIME:] += slant
    return logits


def check(logits: Tensor, history: list[int]) -> None:
    expected = theirs(logits, history)
    found = ours(logits, history)
    if begins_a_later_segment(history):
        # The one difference, on purpose: a segment that is begun is written, not left to a next
        # window that would begin with it.
        expected[EOS] = -torch.inf
    assert allowed(found) == allowed(expected), history
    kept = sorted(allowed(found))
    assert torch.equal(found[kept], logits[kept])


ANY_HISTORY = st.lists(
    st.one_of(
        st.integers(0, NUM_TEXT - 1),
        st.integers(FIRST_TIME, VOCABULARY - 1),
        st.sampled_from([FIRST_TIME, FIRST_TIME + 1, VOCABULARY - 1]),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=400)
@given(ANY_HISTORY, st.integers(0, 10_000), st.sampled_from([-6.0, -2.0, 0.0, 3.0]))
def test_any_history(history: list[int], seed: int, slant: float) -> None:
    check(random_logits(seed, slant), history)


@pytest.mark.parametrize("slant", [-4.0, -1.5, 0.0])
@pytest.mark.parametrize("seed", range(10))
def test_histories_as_a_model_writes_them(seed: int, slant: float) -> None:
    generator = torch.Generator().manual_seed(seed)
    history: list[int] = []
    for step in range(30):
        logits = random_logits(1000 * seed + step, slant)
        check(logits, history)
        probabilities = theirs(logits, history).softmax(-1)
        token_id = int(torch.multinomial(probabilities, 1, generator=generator))
        if token_id == EOS:
            break
        history.append(token_id)
    assert history[0] >= FIRST_TIME


def test_the_first_time_is_early() -> None:
    assert allowed(ours(random_logits(0), [])) == set(
        range(FIRST_TIME, FIRST_TIME + MAX_INITIAL + 1)
    )
    unbound = TimestampGrammar(first_timestamp=FIRST_TIME, eos=EOS, max_initial=None, begin=0)
    scores = random_logits(0)[None]
    unbound(scores, [[]])
    assert allowed(scores[0]) == set(range(FIRST_TIME, VOCABULARY))


def test_a_time_is_forced_when_all_times_outweigh_any_text() -> None:
    logits = torch.full((VOCABULARY,), -30.0)
    logits[4] = 1.0
    logits[FIRST_TIME + 3 : FIRST_TIME + 9] = 0.0  # six of e^0 against one of e^1
    history = [FIRST_TIME, 4, 6]
    assert allowed(ours(logits, history)) == set(range(FIRST_TIME + 1, VOCABULARY))
    logits[4] = 2.0
    assert 4 in allowed(ours(logits, history))


def test_times_do_not_go_back_and_a_segment_may_begin_where_the_last_one_ended() -> None:
    logits = torch.zeros(VOCABULARY)
    times = {i for i in allowed(ours(logits, [FIRST_TIME + 2, 4])) if i >= FIRST_TIME}
    assert times == set(range(FIRST_TIME + 3, VOCABULARY))
    times = {i for i in allowed(ours(logits, [FIRST_TIME, 4, FIRST_TIME + 5])) if i >= FIRST_TIME}
    assert times == set(range(FIRST_TIME + 5, VOCABULARY))


def test_the_end_is_barred_only_after_the_start_of_a_later_segment() -> None:
    logits = torch.zeros(VOCABULARY)
    logits[FIRST_TIME:] = -9.0
    assert EOS in allowed(ours(logits, [FIRST_TIME]))
    assert EOS in allowed(ours(logits, [FIRST_TIME, 4]))
    closed = [FIRST_TIME, 4, FIRST_TIME + 5]
    logits[EOS] = 9.0
    assert EOS in allowed(ours(logits, closed))
    assert EOS not in allowed(ours(logits, [*closed, FIRST_TIME + 5]))
    assert allowed(ours(logits, [*closed, FIRST_TIME + 5])) == set(range(NUM_TEXT)) - set(ALWAYS)


STAGES: list[list[int]] = [
    [],
    [23],
    [23, TRANSCRIBE],
    [23, TRANSCRIBE, FIRST_TIME],
    [22, TRANSCRIBE, FIRST_TIME, 4],
    [24, TRANSCRIBE, FIRST_TIME, 4, FIRST_TIME + 7],
    [24, TRANSCRIBE, FIRST_TIME, 4, FIRST_TIME + 7, FIRST_TIME + 7],
]
PREAMBLE = Preamble(LANGUAGES, (TRANSCRIBE,))


def apply_all(logits: Tensor, histories: list[list[int]]) -> Tensor:
    begin = PREAMBLE.length
    REACH(logits, histories)
    PREAMBLE(logits, histories)
    Suppress(ALWAYS, FIRST, begin)(logits, histories)
    TimestampGrammar(
        first_timestamp=FIRST_TIME,
        eos=EOS,
        max_initial=MAX_INITIAL,
        begin=begin,
    )(logits, histories)
    return logits


@pytest.mark.parametrize("slant", [-4.0, 0.0, 4.0])
def test_rows_in_different_stages_are_treated_as_alone(slant: float) -> None:
    logits = torch.stack([random_logits(seed, slant) for seed in range(len(STAGES))])
    together = apply_all(logits.clone(), STAGES)
    for row, history in enumerate(STAGES):
        alone = apply_all(logits[row : row + 1].clone(), [history])
        assert torch.equal(together[row], alone[0])
    backwards = apply_all(logits.flip(0).clone(), STAGES[::-1])
    assert torch.equal(backwards.flip(0), together)


@pytest.mark.parametrize("slant", [-4.0, 0.0, 4.0])
def test_all_rows_at_once_as_on_a_gpu(slant: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same ids are barred by masks over all ids as by slices of single rows."""
    logits = torch.stack([random_logits(seed, slant) for seed in range(len(STAGES))])
    expected = apply_all(logits.clone(), STAGES)
    monkeypatch.setattr(whisper_rules, "bar_ranges", barring.bar_ranges_at_once)
    monkeypatch.setattr(whisper_rules, "bar_where", barring.bar_where_at_once)
    assert torch.equal(apply_all(logits.clone(), STAGES), expected)
    assert torch.equal(apply_all(logits[3:].clone(), STAGES[3:]), expected[3:])


def test_each_row_has_its_own_end_to_reach() -> None:
    steps = [8, 9, 10, 0]
    history = [FIRST_TIME, 1, FIRST_TIME + 8, FIRST_TIME + 8]
    rules = [MustReach(each, first_timestamp=FIRST_TIME, eos=EOS) for each in steps]
    together = torch.stack([random_logits(seed) for seed in range(4)])
    alone = together.clone()
    MustReach.apply_each(rules, together, [history] * 4)
    for row, rule in enumerate(rules):
        rule(alone[row : row + 1], [history])
    assert torch.equal(together, alone)
    assert together[:, EOS].isfinite().tolist() == [True, False, False, True]


def test_after_its_preamble_a_row_is_as_one_with_a_given_language() -> None:
    for seed, history in enumerate(STAGES[2:]):
        logits = random_logits(seed)
        found = apply_all(logits[None].clone(), [history])[0]
        assert torch.equal(found, ours(logits, history[2:]))


def test_the_preamble_takes_the_likeliest_language_then_the_task() -> None:
    logits = torch.stack([random_logits(5)] * 3)
    logits[:, 23] = 2.5
    logits[:, [22, 24]] = 0.0
    logits[:, 4] = 20.0  # the likeliest id of all is not a language
    apply_all(logits, [[], [23], [23, TRANSCRIBE]])
    assert allowed(logits[0]) == {23}
    assert allowed(logits[1]) == {TRANSCRIBE}
    assert allowed(logits[2]) == set(range(FIRST_TIME, FIRST_TIME + MAX_INITIAL + 1))


def test_the_preamble_without_times() -> None:
    preamble = Preamble(LANGUAGES, (TRANSCRIBE, NO_TIMESTAMPS))
    suppress = Suppress(ALWAYS, FIRST, preamble.length)
    histories = [[], [22], [22, TRANSCRIBE], [22, TRANSCRIBE, NO_TIMESTAMPS]]
    histories.append([22, TRANSCRIBE, NO_TIMESTAMPS, 4])
    logits = torch.stack([random_logits(6)] * 5)
    preamble(logits, histories)
    suppress(logits, histories)
    assert len(allowed(logits[0])) == 1
    assert allowed(logits[1]) == {TRANSCRIBE}
    assert allowed(logits[2]) == {NO_TIMESTAMPS}
    assert allowed(logits[3]) == set(range(VOCABULARY)) - set(ALWAYS) - set(FIRST)
    assert allowed(logits[4]) == set(range(VOCABULARY)) - set(ALWAYS)


@pytest.mark.parametrize(("steps", "may_stop"), [(8, False), (9, True), (10, True)])
def test_a_text_may_stop_where_the_audio_does(steps: int, may_stop: bool) -> None:
    history = [FIRST_TIME, 1, FIRST_TIME + steps, FIRST_TIME + steps]
    scores = random_logits(0)[None]
    MustReach(9, first_timestamp=FIRST_TIME, eos=EOS)(scores, [history])
    GRAMMAR(scores, [history])
    assert (EOS in allowed(scores[0])) is may_stop
