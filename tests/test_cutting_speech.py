"""Windows of recordings in which it is known where somebody speaks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from asrcli.audio.vad import FRAME_SAMPLES
from asrcli.windows import Cutter, Splitter, Window, find_gaps
from asrcli.windows.cutter import MAX_SILENCE, PADDING
from tests.speech import RATE, SAMPLES, read

Samples = NDArray[np.float32]
Spans = Sequence[tuple[float, float]]
FRAME = FRAME_SAMPLES / RATE  # s


def recording(duration: float, speech: Spans, seed: int = 0) -> tuple[Samples, list[float]]:
    """Noise, and the probabilities of speech in these (start, end) of it."""
    noise = np.random.default_rng(seed).uniform(-0.5, 0.5, round(duration * RATE))
    num_frames = -(-len(noise) // FRAME_SAMPLES)
    probabilities = [0.02] * num_frames
    for start, end in speech:
        for frame in range(round(start / FRAME), min(num_frames, round(end / FRAME))):
            probabilities[frame] = 0.97
    return noise.astype(np.float32), probabilities


def cut_all(
    samples: Samples,
    probabilities: list[float],
    *,
    max_duration: float = 30.0,
    size: int = 2 * RATE,
    position: int = 0,
) -> tuple[list[Window], Cutter]:
    cutter = Cutter(5, max_duration=max_duration, position=position, first_index=3, listens=True)
    windows, num_given = [], 0
    for begin in range(0, len(samples), size):
        num_known = min(len(samples), begin + size) // FRAME_SAMPLES  # only whole frames are known
        windows += cutter.add(samples[begin : begin + size], probabilities[num_given:num_known])
        num_given = num_known
    return windows + cutter.finish(probabilities[num_given:]), cutter


def cut_up(duration: float, speech: Spans, **settings: float) -> list[tuple[float, float]]:
    windows, _ = cut_all(*recording(duration, speech), **settings)  # type: ignore[arg-type]
    return [(window.start, window.end) for window in windows]


def near(*times: tuple[float, float], by: float = 0.04) -> object:
    return [pytest.approx(each, abs=by) for each in times]


def test_silence_on_both_sides_is_left_out() -> None:
    assert cut_up(20.0, [(5.0, 8.0)]) == near((4.7, 8.3))
    assert cut_up(20.0, []) == []
    assert cut_up(20.0, [(0.1, 19.9)]) == near((0.0, 20.0))


def test_pauses_inside_a_window_stay() -> None:
    assert cut_up(20.0, [(2.0, 5.0), (7.0, 9.0), (11.5, 12.0)]) == near((1.7, 12.3))


def test_after_a_long_pause_a_new_window_begins() -> None:
    pause = MAX_SILENCE + 0.5
    assert cut_up(20.0, [(2.0, 5.0), (5.0 + pause, 12.0)]) == near((1.7, 5.3), (8.2, 12.3))


def test_speech_is_packed_and_cut_in_a_pause() -> None:
    sentences = [(start, start + 3.5) for start in np.arange(0.0, 80.0, 4.0)]
    first, *_ = cut_up(80.0, sentences)
    assert first == pytest.approx((0.0, 27.75), abs=0.25)  # in the last pause that fits


def test_a_long_pause_is_better_than_a_late_one() -> None:
    speech = [(0.0, 24.0), (25.0, 28.0), (28.2, 60.0)]
    first, second, *_ = cut_up(60.0, speech)
    assert (first[1], second[0]) == pytest.approx((24.3, 24.7), abs=0.05)


def test_a_short_pause_is_cut_in_its_quietest_place() -> None:
    speech = [(0.0, 28.0), (28.45, 50.0)]
    samples, probabilities = recording(50.0, speech)
    samples[round(28.1 * RATE) : round(28.25 * RATE)] *= 0.01
    windows, _ = cut_all(samples, probabilities)
    assert windows[0].end == windows[1].start == pytest.approx(28.175, abs=0.03)


def test_without_a_pause_the_quietest_place_is_taken() -> None:
    samples, probabilities = recording(50.0, [(0.0, 50.0)])
    samples[round(26.5 * RATE) : round(26.62 * RATE)] *= 0.01
    windows, _ = cut_all(samples, probabilities)
    assert windows[0].end == pytest.approx(26.56, abs=0.02)
    assert 1.4 <= windows[1].overlap <= 3.0
    assert windows[1].start == pytest.approx(windows[0].end - windows[1].overlap)
    assert windows[1].speech is not None
    assert windows[1].speech[0][0] == windows[1].start


def test_windows_tell_where_somebody_speaks() -> None:
    windows, _ = cut_all(*recording(20.0, [(2.0, 5.0), (7.0, 9.0)]))
    assert [window.index for window in windows] == [3]
    assert windows[0].recording_id == 5
    assert list(windows[0].speech or ()) == near((2.0, 5.0), (7.0, 9.0))


def test_the_first_window_comes_before_the_recording_is_at_its_end() -> None:
    samples, probabilities = recording(60.0, [(1.0, 3.0), (40.0, 50.0)])
    cutter = Cutter(0, listens=True)
    num_frames = 7 * RATE // FRAME_SAMPLES
    (window,) = cutter.add(samples[: 7 * RATE], probabilities[:num_frames])
    assert window.end == pytest.approx(3.3, abs=0.04)


def test_little_is_kept_of_a_long_silence() -> None:
    cutter = Cutter(0, listens=True)
    for _ in range(100):
        cutter.add(np.zeros(2 * RATE, np.float32), [0.0] * (2 * RATE // FRAME_SAMPLES))
    assert sum(len(block) for block in cutter._blocks) < 10 * RATE


def test_speech_to_the_very_end() -> None:
    for extra in (0, 1, FRAME_SAMPLES - 1):
        samples, probabilities = recording(10.0 + extra / RATE, [(1.0, 11.0)])
        windows, _ = cut_all(samples, probabilities)
        assert windows[-1].end == len(samples) / RATE


@st.composite
def many_spans(draw: st.DrawFn) -> list[tuple[float, float]]:
    steps = draw(st.lists(st.floats(0.05, 6.0), max_size=24))
    borders = np.cumsum(steps)
    return [(float(a), float(b)) for a, b in zip(borders[::2], borders[1::2], strict=False)]


@settings(deadline=None, max_examples=60)
@given(
    speech=many_spans(),
    max_duration=st.sampled_from([1.0, 3.0, 8.0]),
    size=st.sampled_from([3_000, 32_000, 100_000]),
    position=st.sampled_from([0, 160_007]),
)
def test_every_second_is_in_a_window_or_silent(
    speech: list[tuple[float, float]], max_duration: float, size: int, position: int
) -> None:
    samples, probabilities = recording(60.0, speech)
    windows, cutter = cut_all(
        samples, probabilities, max_duration=max_duration, size=size, position=position
    )
    in_one, _ = cut_all(
        samples, probabilities, max_duration=max_duration, size=len(samples), position=position
    )
    origin = position / RATE
    assert cutter.end == position + len(samples)
    spans = [*((w.start, w.end) for w in windows), *cutter.silences]
    assert find_gaps(spans, origin, cutter.end / RATE) == []
    ordered = sorted([*((w.start + w.overlap, w.end) for w in windows), *cutter.silences])
    assert all(a[1] <= b[0] + 1e-9 for a, b in itertools.pairwise(ordered))
    for window in windows:
        begin = round(window.start * RATE) - position
        assert np.array_equal(window.samples, samples[begin : begin + len(window.samples)])
        assert window.end - window.start == pytest.approx(len(window.samples) / RATE)
        assert 0 < len(window.samples) <= max_duration * RATE
    for start, end in cutter.silences:  # nobody speaks there, nor right beside it
        frames = range(
            int(max(0.0, start - origin) / FRAME),
            min(len(probabilities), int((end - origin) / FRAME)),
        )
        runs = "".join("x" if probabilities[frame] > 0.5 else " " for frame in frames).split()
        assert all(len(run) < 3 for run in runs)
    assert [(w.start, w.end) for w in in_one] == [(w.start, w.end) for w in windows]


def test_gaps_are_found() -> None:
    spans = [(0.0, 2.0), (2.0, 3.0), (5.0, 6.0)]
    assert find_gaps(spans, 0.0, 6.0) == [(3.0, 5.0)]
    assert find_gaps(spans, 0.0, 8.0) == [(3.0, 5.0), (6.0, 8.0)]
    assert find_gaps(spans, -1.0, 3.0) == [(-1.0, 0.0)]
    assert find_gaps([], 1.0, 2.0) == [(1.0, 2.0)]
    assert find_gaps([(0.0, 4.0), (1.0, 2.0)], 0.0, 4.0) == []
    assert find_gaps([(0.0, 1.0), (1.0 + 1 / RATE, 2.0)], 0.0, 2.0) == [(1.0, 1.0 + 1 / RATE)]
    assert find_gaps([(0.0, 1.0), (1.0 + 1e-6, 2.0)], 0.0, 2.0) == []


def split(placed: list[tuple[int, Samples]], *, vad: bool = True) -> tuple[list[Window], Splitter]:
    splitter = Splitter(0, max_duration=30.0, vad=vad)
    return list(splitter.split(placed)), splitter


def test_the_splitter_listens() -> None:
    speech = read(SAMPLES / "english-slt.flac")
    silence = np.zeros(10 * RATE, np.float32)
    whole = np.concatenate([silence, speech, silence, silence, speech])
    windows, splitter = split([(b, whole[b : b + 30_000]) for b in range(0, len(whole), 30_000)])
    assert [(w.start, w.end) for w in windows] == [
        pytest.approx((10.0, 10 + len(speech) / RATE), abs=0.5),
        pytest.approx((30 + len(speech) / RATE, len(whole) / RATE), abs=0.5),
    ]
    assert splitter.num_samples == len(whole)
    assert splitter.unaccounted() == []


def test_the_splitter_begins_anew_after_a_jump() -> None:
    speech = read(SAMPLES / "english-slt.flac")
    windows, splitter = split([(RATE, speech), (100 * RATE, speech)])
    assert [window.index for window in windows] == [0, 1]
    first, second = windows
    assert second.start - first.start == pytest.approx(99.0)
    assert np.array_equal(first.samples, second.samples)
    assert splitter.num_samples == 100 * RATE + len(speech)
    assert splitter.unaccounted() == []


def test_without_listening_all_is_speech() -> None:
    windows, splitter = split([(0, np.zeros(10 * RATE, np.float32))], vad=False)
    assert [(w.start, w.end, w.speech) for w in windows] == [(0.0, 10.0, None)]
    assert splitter.unaccounted() == []


def test_the_padding_is_less_than_half_of_the_longest_pause_kept() -> None:
    assert 2 * PADDING < MAX_SILENCE
