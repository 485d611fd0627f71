from __future__ import annotations

import random
from concurrent.futures import Future
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from asrcli.engine.audio import EncodedAudio
from asrcli.engine.request import Hypothesis
from asrcli.engine.scheduler import Scheduler, Sequence, Status
from tests.engine.tiny_network import build_request

REQUEST = build_request(0)


def sequence() -> Sequence:
    return Sequence(REQUEST, Future[Hypothesis]())


def check_slots(scheduler: Scheduler) -> None:
    slots = [running.slot for running in scheduler.running]
    assert slots == list(range(len(slots)))
    assert len(slots) <= scheduler.num_slots
    assert [lead.audio_slot for lead in scheduler.heard] == list(range(len(slots)))
    assert set(scheduler.heard) == set(scheduler.running)
    assert all(running.status is Status.RUNNING for running in scheduler.running)
    assert all((each.status, each.slot) == (Status.WAITING, -1) for each in scheduler.waiting)


ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 4)),
        st.tuples(st.just("admit"), st.integers(1, 5)),
        st.tuples(st.just("finish"), st.integers(0, 10)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(num_slots=st.integers(1, 6), actions=ACTIONS)
def test_any_order_of_coming_and_going(num_slots: int, actions: list[tuple[str, int]]) -> None:
    scheduler = Scheduler(num_slots)
    added: list[Sequence] = []
    admitted: list[Sequence] = []
    finished: list[Sequence] = []
    held: dict[int, Sequence] = {}  # what a cache would hold in its slots
    heard: dict[int, Sequence] = {}  # and in those of the audio

    def admit(at_most: int) -> None:
        free = num_slots - len(scheduler.running)
        expected = min(at_most, free, len(scheduler.waiting))
        newcomers = scheduler.admit(at_most)
        assert len(newcomers) == expected
        assert newcomers == scheduler.running[len(scheduler.running) - expected :]
        held.update({newcomer.slot: newcomer for newcomer in newcomers})
        heard.update({newcomer.audio_slot: newcomer for newcomer in newcomers})
        admitted.extend(newcomers)

    def finish(index: int) -> None:
        ended = scheduler.running[index % len(scheduler.running)]
        moved = scheduler.finish(ended)
        if moved is not None:
            held[moved[1]] = held[moved[0]]
        moved = scheduler.free_audio(ended)
        if moved is not None:
            heard[moved[1]] = heard[moved[0]]
        assert (ended.status, ended.slot) == (Status.FINISHED, -1)
        finished.append(ended)

    for action, number in actions:
        if action == "add":
            for _ in range(number):
                added.append(sequence())
                scheduler.add(added[-1])
        elif action == "admit":
            admit(number)
        elif scheduler.running:
            finish(number)
        check_slots(scheduler)
        assert all(held[running.slot] is running for running in scheduler.running)
        assert all(heard[lead.audio_slot] is lead for lead in scheduler.heard)
    while scheduler.waiting or scheduler.running:
        admit(num_slots)
        finish(0)
        check_slots(scheduler)
    assert admitted == added  # first come, first served
    assert len(finished) == len(added)
    assert {id(each) for each in finished} == {id(each) for each in added}


def test_the_last_row_has_no_need_to_move() -> None:
    scheduler = Scheduler(3)
    sequences = [sequence() for _ in range(3)]
    for each in sequences:
        scheduler.add(each)
    scheduler.admit(3)
    assert scheduler.finish(sequences[2]) is None
    assert scheduler.finish(sequences[0]) == (1, 0)
    assert scheduler.running == [sequences[1]]


def test_shrinking_starts_again_ahead_of_those_who_wait() -> None:
    scheduler = Scheduler(4)
    sequences = [sequence() for _ in range(6)]
    for each in sequences:
        scheduler.add(each)
    scheduler.admit(4)
    for each in scheduler.running:
        each.token_ids, each.logprobs, each.no_speech_prob = [7, 8], [-0.1, -0.2], 0.5
    scheduler.shrink(2)
    check_slots(scheduler)
    assert list(scheduler.waiting) == sequences
    assert sequences[0].hypothesis() == Hypothesis(
        request_id=0, token_ids=(), logprobs=(), finish_reason=None
    )
    assert scheduler.admit(4) == sequences[:2]


def test_what_is_heard_again_goes_ahead_of_those_who_wait() -> None:
    scheduler = Scheduler(1)
    first, second, third = (sequence() for _ in range(3))
    again = replace(REQUEST, audio=EncodedAudio(torch.zeros(1, 2, 3)))
    heard_before = Sequence(again, Future[Hypothesis]())
    for each in (first, second):
        scheduler.add(each)
    scheduler.admit(1)
    for each in (third, heard_before):
        scheduler.add(each)
    assert list(scheduler.waiting) == [heard_before, second, third]


def test_length_counts_prompt_and_new_ids() -> None:
    each = sequence()
    each.token_ids = [1, 2, 3]
    assert each.length == len(REQUEST.prompt_token_ids) + 3


@pytest.mark.parametrize("seed", range(20))
def test_rows_are_put_in_the_order_of_their_audio(seed: int) -> None:
    scheduler = Scheduler(9)
    for _ in range(8):
        scheduler.add(sequence())
    scheduler.admit(8)
    random.Random(seed).shuffle(scheduler.heard)
    for place, row in enumerate(scheduler.heard):
        row.audio_slot = place
    content: list[Sequence | None] = [*scheduler.running, None]
    for source, target in scheduler.align():
        content[target] = content[source]
    assert content[:8] == scheduler.running == scheduler.heard
    assert [row.slot for row in scheduler.running] == list(range(8))
    assert scheduler.align() == []


def test_rows_stay_where_no_slot_is_free_or_beams_run() -> None:
    for num_slots, num_beams in ((3, 1), (8, 2)):
        scheduler = Scheduler(num_slots)
        beams = replace(REQUEST, sampling=replace(REQUEST.sampling, num_beams=num_beams))
        for request in (REQUEST, REQUEST, beams):
            scheduler.add(Sequence(request, Future[Hypothesis]()))
        scheduler.admit(3)
        scheduler.heard.reverse()
        before = list(scheduler.running)
        assert scheduler.align() == []
        assert scheduler.running == before
