from __future__ import annotations

import numpy as np
import pytest
import soxr
from numpy.typing import NDArray

from asrcli.audio.channels import gather, mix
from asrcli.audio.cleaning import clean
from asrcli.audio.notes import DamagedStretches, Notes, clock, span
from asrcli.audio.resampling import regroup, resample
from tests.audio.fixtures import noise, tone

CANCEL = "channels cancel each other; using channel {} alone"


def mixed(
    channels: list[NDArray[np.float64]], size: int = 1 << 30
) -> tuple[NDArray[np.float32], list[str]]:
    samples = np.stack(channels, axis=1).astype(np.float32)
    notes = Notes()
    pieces = [(16_000, samples[start : start + size]) for start in range(0, len(samples), size)]
    return np.concatenate([mono for _, mono in mix(pieces, notes)]), notes.warnings


def test_channels_are_averaged() -> None:
    left, right = noise(1.5, seed=1), noise(1.5, seed=2)
    samples, warnings = mixed([left, right])
    np.testing.assert_allclose(samples, (left + right) / 2, atol=1e-6)
    assert warnings == []


def test_a_side_alone_is_kept() -> None:
    samples, warnings = mixed([tone(3) * 0, tone(3)])
    np.testing.assert_allclose(samples, tone(3) / 2, atol=1e-6)
    assert warnings == []


def test_speakers_on_two_sides_that_take_turns_are_both_kept() -> None:
    first, second = noise(2.5, seed=1), noise(2.5, seed=2)
    left, right = np.concatenate([first, second * 0]), np.concatenate([first * 0, second])
    samples, warnings = mixed([left, right])
    np.testing.assert_allclose(samples, np.concatenate([first, second]) / 2, atol=1e-6)
    assert warnings == []


def test_speech_in_one_of_six_channels_is_kept() -> None:
    silent = tone(2) * 0
    samples, warnings = mixed([silent, silent, tone(2), silent, silent, silent])
    np.testing.assert_allclose(samples, tone(2) / 6, atol=1e-6)
    assert warnings == []


def test_channels_that_cancel_leave_the_louder_one() -> None:
    samples, warnings = mixed([-0.9 * tone(3), tone(3)])
    np.testing.assert_allclose(samples, tone(3), atol=1e-6)
    assert warnings == [CANCEL.format(2)]


def test_silence_decides_nothing() -> None:
    quiet, loud = tone(1) * 0, noise(2)
    left, right = np.concatenate([quiet, loud]), np.concatenate([quiet, -loud])
    samples, warnings = mixed([left, right])
    np.testing.assert_allclose(samples, left, atol=1e-6)
    assert warnings == [CANCEL.format(1)]


def test_after_cancelling_a_right_only_speaker_is_not_lost() -> None:
    jingle, speech = tone(2), noise(4)
    left, right = np.concatenate([jingle, speech * 0]), np.concatenate([-jingle, speech])
    samples, _ = mixed([left, right])
    np.testing.assert_allclose(samples[32_000:], speech / 2, atol=1e-6)


@pytest.mark.parametrize("size", [1, 997, 16_000, 40_000])
def test_the_choice_does_not_depend_on_block_borders(size: int) -> None:
    turn = noise(0.7)
    left = np.concatenate([turn, turn, turn * 0, turn])
    right = np.concatenate([turn, -turn, turn, -turn])
    expected, warnings = mixed([left, right])
    samples, same_warnings = mixed([left, right], size)
    np.testing.assert_array_equal(samples, expected)
    assert same_warnings == warnings


def resampled(samples: NDArray[np.float32], rate: int, size: int) -> NDArray[np.float32]:
    pieces = [(rate, samples[start : start + size]) for start in range(0, len(samples), size)]
    return np.concatenate([np.zeros(0, np.float32), *resample(pieces, 16_000)])


@pytest.mark.parametrize("rate", [8000, 11025, 22050, 44100, 48000, 96000, 1_092_676])
@pytest.mark.parametrize("num_samples", [1, 441, 33_333])
def test_resampling_keeps_the_length_at_any_block_size(rate: int, num_samples: int) -> None:
    samples = noise(num_samples / rate, rate=rate).astype(np.float32)
    whole = resampled(samples, rate, num_samples)
    assert abs(len(whole) - num_samples * 16_000 / rate) <= 1
    for size in (7, 1000):
        np.testing.assert_allclose(resampled(samples, rate, size), whole, atol=1e-6)


def test_resampling_is_right() -> None:
    """A tone stays what it is, and what 16 kHz cannot hold is gone."""
    low = tone(2, rate=44_100, frequency=1000)
    high = tone(2, rate=44_100, frequency=12_000)
    out = resampled((low + high).astype(np.float32), 44_100, 4096)
    inner = slice(1600, -1600)
    np.testing.assert_allclose(out[inner], tone(2, frequency=1000)[inner], atol=2e-5)


def test_16_khz_passes_untouched() -> None:
    samples = noise(1).astype(np.float32)
    np.testing.assert_array_equal(resampled(samples, 16_000, 777), samples)


def test_a_change_of_rate_begins_anew() -> None:
    first, second = noise(1, rate=8000).astype(np.float32), noise(1, rate=48_000).astype(np.float32)
    out = np.concatenate(list(resample([(8000, first), (48_000, second)], 16_000)))
    expected = [
        soxr.resample(first, 8000, 16_000, "VHQ"),
        soxr.resample(second, 48_000, 16_000, "VHQ"),
    ]
    np.testing.assert_allclose(out, np.concatenate(expected), atol=1e-6)


def test_regrouping_keeps_every_sample() -> None:
    samples = noise(1).astype(np.float32)
    blocks = list(regroup([samples[:1], samples[1:1], samples[1:9000], samples[9000:]], 5000))
    assert [len(block) for block in blocks] == [5000, 5000, 5000, 1000]
    np.testing.assert_array_equal(np.concatenate(blocks), samples)
    assert list(regroup([], 5000)) == []


def test_bad_samples_are_cleaned_and_counted_once() -> None:
    samples = np.full((100, 2), 1.5, np.float32)
    samples[3, 0], samples[50:60, 1] = np.nan, -np.inf
    notes = Notes()
    cleaned = np.concatenate(
        [chunk for _, chunk in clean([(8000, samples[:55]), (8000, samples[55:])], notes)]
    )
    assert (cleaned == 0).sum() == 11 and cleaned.max() == 1.5
    assert notes.warnings == ["11 samples were not a number or far beyond full scale; taken as 0"]
    assert notes.damage == []


def test_what_no_recording_holds_is_taken_out() -> None:
    """A damaged frame would drown what was said around it."""
    samples = np.full((1600, 1), 0.5, np.float32)
    samples[:400], samples[800:1200], samples[1300] = 1e30, -17.0, 16.0
    notes = Notes()
    [(_, cleaned)] = clean([(8000, samples)], notes)
    assert (cleaned == 0).sum() == 800 and cleaned.max() == 16.0
    line = "800 samples were not a number or far beyond full scale; taken as 0 (0.1 s)"
    assert notes.damage == [line]


def test_times_for_people() -> None:
    times = [clock(seconds) for seconds in (0, 5.5, 59.96, 72.34, 3723.4, -1)]
    assert times == ["0:00.0", "0:05.5", "1:00.0", "1:12.3", "1:02:03.4", "0:00.0"]
    assert span(72.34, 72.81) == "1:12.3-1:12.9"
    assert span(5.0, 5.0) == "0:05.0-0:05.1"


def test_near_stretches_are_one_and_many_are_listed() -> None:
    notes = Notes()
    stretches = DamagedStretches(notes)
    stretches.add("damaged", 1.0, 1.2)
    stretches.settle(1.5)
    stretches.add("damaged", 1.7, 2.0)
    stretches.settle(3.5)
    assert notes.damage == ["damaged audio at 0:01.0-0:02.0"]
    for minute in range(1, 8):
        stretches.add("missing", minute * 60, minute * 60 + 2)
    stretches.finish()
    assert len(notes.damage) == 8
    assert notes.damage[-2:] == [
        "missing audio at 6:00.0-6:02.0",
        "missing audio at 7:00.0-7:02.0",
    ]
    assert notes.warnings == notes.damage


def test_chunks_are_gathered_in_order_and_by_kind() -> None:
    rng = np.random.default_rng(0)
    sizes = [(8000, 1)] * 30 + [(8000, 2)] * 3 + [(16_000, 2)] + [(8000, 1)] * 2
    chunks = [(rate, rng.random((190, width), dtype=np.float32)) for rate, width in sizes]
    gathered = list(gather(iter(chunks), 0.1))
    assert [(rate, samples.shape) for rate, samples in gathered] == [
        *[(8000, (950, 1))] * 6,
        (8000, (570, 2)),
        (16_000, (190, 2)),
        (8000, (380, 1)),
    ]
    for rate, width in {*sizes}:
        before, after = (
            np.concatenate([each for kind, each in some if (kind, each.shape[1]) == (rate, width)])
            for some in (chunks, gathered)
        )
        np.testing.assert_array_equal(before, after)
