from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asrcli.transcript import MIN_SEGMENT_DURATION, ROUNDING, Segment
from asrcli.windows import Cutter, Window, cut, join_texts, stitch
from tests.speech import RATE

Samples = NDArray[np.float32]


def noise(num_samples: int, seed: int = 0) -> Samples:
    return np.random.default_rng(seed).uniform(-0.5, 0.5, num_samples).astype(np.float32)


def blocks(samples: Samples, size: int = 2 * RATE) -> Iterator[Samples]:
    for begin in range(0, len(samples), size):
        yield samples[begin : begin + size]


def check_cover(windows: list[Window], samples: Samples, max_duration: float = 30.0) -> None:
    """No gap, no overlap but what is stated, none too long, and times that are positions."""
    assert [window.index for window in windows] == list(range(len(windows)))
    position = 0
    for window in windows:
        assert 0 < len(window.samples) <= max_duration * RATE
        assert window.samples.dtype == np.float32
        assert 0 <= window.overlap <= min(3.0, max_duration / 4)
        begin = position - round(window.overlap * RATE)
        assert window.start == begin / RATE
        position = begin + len(window.samples)
        assert window.end == position / RATE
        assert np.array_equal(window.samples, samples[begin:position])
    assert position == len(samples)


@settings(deadline=None, max_examples=40)
@given(
    num_samples=st.integers(0, 5 * RATE),
    max_duration=st.sampled_from([0.5, 1.0, 1.7]),
    size=st.integers(37, 3 * RATE),
    seed=st.integers(0, 100),
)
def test_windows_cover_the_recording(
    num_samples: int, max_duration: float, size: int, seed: int
) -> None:
    samples = noise(num_samples, seed)
    windows = list(cut(blocks(samples, size), recording_id=7, max_duration=max_duration))
    check_cover(windows, samples, max_duration)
    assert all(window.recording_id == 7 for window in windows)
    in_one = list(cut([samples], recording_id=7, max_duration=max_duration))
    assert [w.end for w in windows] == [w.end for w in in_one]  # borders of blocks do not matter


@pytest.mark.parametrize("seed", range(3))
def test_two_minutes(seed: int) -> None:
    samples = noise(120 * RATE + 12_345 * seed, seed)
    windows = list(cut(blocks(samples), recording_id=0))
    check_cover(windows, samples)
    assert all(25.0 <= w.end - w.start <= 30.0 for w in windows[:-1])
    assert all(1.4 <= w.overlap <= 3.0 for w in windows[1:])  # noise without a pause
    odd_blocks = itertools.chain(blocks(samples[:100_001], 701), [samples[100_001:]])
    assert [w.end for w in cut(odd_blocks, recording_id=0)] == [w.end for w in windows]


@pytest.mark.parametrize("quiet_at", [25.5, 27.0, 28.3, 29.6])
def test_the_cut_is_in_the_middle_of_the_quietest_stretch(quiet_at: float) -> None:
    samples = noise(40 * RATE)
    begin = round(quiet_at * RATE)
    samples[begin : begin + RATE // 10] *= 0.01
    samples[20 * RATE : 24 * RATE] = 0  # quieter still, but too early
    samples[round(26.2 * RATE) : round(26.25 * RATE)] = 0  # silent, but too short
    first, second = cut(blocks(samples), recording_id=0)
    assert first.end == pytest.approx(quiet_at + 0.05, abs=1 / RATE)
    assert second.overlap > 0  # that was no pause


@pytest.mark.parametrize(("pause", "is_one"), [(0.0, False), (0.12, False), (0.2, True)])
@pytest.mark.parametrize("hush", [0.0, 0.001])
def test_windows_overlap_where_there_is_no_pause(pause: float, is_one: bool, hush: float) -> None:
    """The second begins in a quiet place, early enough to hold the words around the cut whole."""
    samples = noise(40 * RATE)
    samples[27 * RATE : round((27.0 + pause) * RATE)] *= hush
    samples[round(25.2 * RATE) : round(25.35 * RATE)] *= 0.1
    first, second = cut(blocks(samples), recording_id=0)
    check_cover([first, second], samples)
    if is_one:
        assert second.start == first.end == pytest.approx(27.1, abs=0.01)
    else:
        assert 1.4 <= second.overlap <= 3.0
    if pause == 0.12:
        assert second.start == pytest.approx(25.275, abs=0.03)


def test_the_quietest_of_several_places_is_taken() -> None:
    samples = noise(31 * RATE)
    for place, loudness in ((25.5, 0.1), (27.0, 0.03), (29.0, 0.05)):
        samples[round(place * RATE) : round((place + 0.1) * RATE)] *= loudness
    first, _ = cut(blocks(samples), recording_id=0)
    assert first.end == pytest.approx(27.05, abs=1 / RATE)


def test_silence_wastes_little_of_a_window() -> None:
    samples = np.zeros(70 * RATE, np.float32)
    windows = list(cut(blocks(samples), recording_id=0))
    check_cover(windows, samples)
    assert len(windows) == 3
    assert windows[0].end == pytest.approx(29.4, abs=0.001)


def test_thirty_seconds_are_one_window_and_one_sample_more_are_two() -> None:
    samples = noise(30 * RATE + 1)
    (window,) = cut(blocks(samples[:-1]), recording_id=0)
    assert (window.start, window.end) == (0.0, 30.0)
    first, second = cut(blocks(samples), recording_id=0)
    assert second.end == 30.0 + 1 / RATE
    assert second.end - first.end >= 0.1  # no sliver
    check_cover([first, second], samples)


@settings(deadline=None, max_examples=25)
@given(extra=st.integers(1, 5 * RATE), seed=st.integers(0, 5), scale=st.sampled_from([0.0, 1.0]))
def test_there_is_no_sliver(extra: int, seed: int, scale: float) -> None:
    """Even the last window of a recording that is a little too long for one holds a word."""
    samples = np.tile(noise(RATE, seed), 36)[: 30 * RATE + extra] * np.float32(scale)
    windows = list(cut([samples], recording_id=0))
    check_cover(windows, samples)
    ends = [0.0, *(window.end for window in windows)]
    assert all(b - a >= 0.1 for a, b in itertools.pairwise(ends))


def test_nothing_in_nothing_out() -> None:
    assert list(cut([], recording_id=0)) == []
    assert list(cut([noise(0)], recording_id=0)) == []


def test_a_cutter_counts_what_it_took_in_and_keeps_no_more_than_a_window() -> None:
    cutter = Cutter(3)
    total = 0
    for block in blocks(noise(100 * RATE)):
        cutter.add(block)
        total += len(block)
        assert cutter.end == total
        assert sum(len(b) for b in cutter._blocks) <= 30 * RATE
    cutter.finish()
    assert cutter.end == total
    assert cutter.finish() == []


def test_a_window_does_not_hold_the_audio_around_it() -> None:
    for window in cut([noise(95 * RATE)], recording_id=0):
        base = window.samples.base
        assert base is None or base.nbytes <= 30 * RATE * 4


# ---- stitch


def segment(start: float, end: float, text: str, number: int = 0) -> Segment:
    return Segment(id=number, start=start, end=end, text=text)


def test_stitch_numbers_segments_anew_in_their_order() -> None:
    text, segments = stitch(
        [[segment(0, 1, "One"), segment(1, 2.5, "two.", 1)], [], [segment(30, 31, "Three.")]]
    )
    assert text == "One two. Three."
    assert [(s.id, s.start, s.end, s.text) for s in segments] == [
        (0, 0, 1, "One"), (1, 1, 2.5, "two."), (2, 30, 31, "Three."),
    ]  # fmt: skip


def test_stitch_keeps_what_else_a_segment_holds() -> None:
    original = Segment(
        id=4, start=1.0, end=2.0, text="a", tokens=(5, 6), avg_logprob=-0.3, language="en"
    )
    _, (found,) = stitch([[original]])
    assert (found.tokens, found.avg_logprob, found.language) == ((5, 6), -0.3, "en")


def test_times_never_go_back() -> None:
    _, segments = stitch(
        [[segment(0, 5.02, "a")], [segment(5.0, 6.0, "b"), segment(5.5, 6.8, "c")]]
    )
    assert [(s.start, s.end) for s in segments] == [(0, 5.02), (5.02, 6.0), (6.0, 6.8)]


@given(
    st.lists(st.lists(st.tuples(st.floats(0, 100), st.floats(0.02, 30)), max_size=4), max_size=5)
)
def test_whatever_comes_in_times_go_on(pieces: list[list[tuple[float, float]]]) -> None:
    windows = [[segment(start, start + long, "x") for start, long in piece] for piece in pieces]
    text, segments = stitch(windows)
    times = [time for s in segments for time in (s.start, s.end)]
    assert times == sorted(times)
    assert all(s.end - s.start >= MIN_SEGMENT_DURATION - ROUNDING for s in segments)
    assert len(text.split()) == sum(map(len, windows))  # joined or not, no word is lost
    assert [s.id for s in segments] == list(range(len(segments)))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], ""),
        (["", " "], ""),
        (["Hello", "world."], "Hello world."),
        ([" Hello ", "", "  world. "], "Hello world."),
        (["おはよう", "ございます。", "カタカナ"], "おはようございます。カタカナ"),
        (["今天", "天气很好。"], "今天天气很好。"),
        (["안녕하세요.", "반갑습니다."], "안녕하세요. 반갑습니다."),
        (["我用", "Python", "写代码"], "我用 Python 写代码"),
        (["ｱｲｳ", "！", "𠮷野"], "ｱｲｳ！𠮷野"),
        (["これは。", "안녕"], "これは。 안녕"),
        (["สวัสดี", "ครับ"], "สวัสดี ครับ"),
    ],
)
def test_join_texts(texts: list[str], expected: str) -> None:
    assert join_texts(texts) == expected


def test_cut_and_stitch_are_inverse() -> None:
    """Segments that tell where their windows lie come together as the whole."""
    samples = noise(100 * RATE)
    windows = list(cut(blocks(samples), recording_id=0))
    _, segments = stitch([segment(w.start, w.end, str(w.index))] for w in windows)
    assert segments[0].start == 0.0
    assert segments[-1].end == 100.0
    assert all(a.end == b.start for a, b in itertools.pairwise(segments))
