"""The voice detector: equal to the package's own, level by level, block by block."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file

from asrcli.audio import vad
from asrcli.audio.vad import FRAME_SAMPLES, VoiceStream, load_detector
from asrcli.errors import AsrError
from tests.speech import SAMPLES, read

Samples = NDArray[np.float32]
RATE = 16_000
NAMES = {
    "_model.stft.forward_basis_buffer": "stft_conv.weight",
    **{
        f"_model.encoder.{number}.reparam_conv.{kind}": f"conv{number + 1}.{kind}"
        for number in range(4)
        for kind in ("weight", "bias")
    },
    **{
        f"_model.decoder.rnn.{kind}_{side}": f"lstm_cell.{kind}_{side}"
        for kind in ("weight", "bias")
        for side in ("ih", "hh")
    },
    "_model.decoder.decoder.2.weight": "final_conv.weight",
    "_model.decoder.decoder.2.bias": "final_conv.bias",
}


@pytest.fixture(scope="module")
def theirs() -> Callable[[Samples], Samples]:
    """The package's own network, frame by frame, with the weights of its safetensors file.

    Its compiled file carries weights of another training; everything else is its own.
    """
    spec = find_spec("silero_vad")
    assert spec is not None and spec.submodule_search_locations
    data = Path(spec.submodule_search_locations[0]) / "data"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network: Any = torch.jit.load(data / "silero_vad.jit")  # type: ignore[no-untyped-call]
    weights = load_file(data / "silero_vad_16k.safetensors")
    own = network.state_dict()
    network.load_state_dict({name: weights.get(NAMES.get(name, ""), own[name]) for name in own})

    @torch.inference_mode()
    def run(samples: Samples) -> Samples:
        network.reset_states()
        return np.asarray(network.audio_forward(torch.from_numpy(samples)[None], RATE)[0])

    return run


def ours(samples: Samples, *, size: int = 2 * RATE, helps: bool = False) -> Samples:
    stream = VoiceStream(load_detector(), helps=helps)
    found = [stream.add(samples[begin : begin + size]) for begin in range(0, len(samples), size)]
    return np.concatenate([*found, stream.finish()])


@pytest.fixture(scope="module")
def speech() -> Samples:
    return read(SAMPLES / "english-slt.flac")


def noise(duration: float, level: float, seed: int = 0) -> Samples:
    samples = np.random.default_rng(seed).standard_normal(round(duration * RATE))
    return np.asarray(samples * level, np.float32)


@pytest.mark.parametrize(
    "name", ["english-slt.flac", "english-long-awb.flac", "korean-espeak.flac"]
)
def test_equals_the_packages_own(theirs: Callable[[Samples], Samples], name: str) -> None:
    samples = read(SAMPLES / name)[: 20 * RATE + 77]
    expected, found = theirs(samples), ours(samples)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 1e-3
    assert expected.max() > 0.95  # there is something to be equal to
    assert expected.min() < 0.1


def test_equals_it_on_noise_and_at_the_edges(theirs: Callable[[Samples], Samples]) -> None:
    for samples in (noise(3.0, 0.1), np.zeros(5 * FRAME_SAMPLES, np.float32), noise(0.05, 0.3)):
        assert np.abs(ours(samples) - theirs(samples)).max() < 1e-3


@pytest.mark.parametrize("size", [1, 100, FRAME_SAMPLES, 5000, 10 * RATE])
def test_blocks_do_not_matter(speech: Samples, size: int) -> None:
    part = speech[: RATE if size == 1 else None]
    assert np.abs(ours(part, size=size) - ours(part)).max() < 1e-5


def test_one_probability_for_each_frame_that_was_begun() -> None:
    assert [len(ours(noise(1.0, 0.1)[:n])) for n in (0, 1, 511, 512, 513, 1024)] == [
        *(0, 1, 1, 1, 2, 2)
    ]


def test_streams_do_not_disturb_each_other(speech: Samples) -> None:
    first, second = VoiceStream(load_detector()), VoiceStream(load_detector())
    alone = VoiceStream(load_detector())
    for begin in range(0, len(speech), RATE):
        block = speech[begin : begin + RATE]
        expected = alone.add(block)
        assert np.array_equal(first.add(block), expected)
        second.add(noise(1.0, 0.2, begin))


@pytest.mark.parametrize("level", [0, -20, -40, -50])
def test_quiet_speech_is_speech(speech: Samples, level: int) -> None:
    quiet = speech * np.float32(10 ** (level / 20))
    as_it_is, loud = ours(quiet), ours(quiet, helps=True)
    expected = (ours(speech) > 0.5).mean()
    assert (loud > 0.5).mean() > 0.9 * expected
    if level == -50:
        assert (as_it_is > 0.5).mean() < 0.8 * expected  # so it is needed


@pytest.mark.parametrize("level", [1e-5, 1e-3, 0.05, 0.3])
def test_noise_is_none_at_any_level(level: float) -> None:
    assert ours(noise(20.0, level), helps=True).max() < 0.5


def test_nor_is_silence_or_hum() -> None:
    time = np.arange(20 * RATE) / RATE
    hum = sum(np.sin(2 * np.pi * 50 * k * time) / k for k in range(1, 6)) * 0.1
    for samples in (np.zeros(20 * RATE, np.float32), np.asarray(hum, np.float32)):
        assert ours(samples, helps=True).max() < 0.5


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vad, "find_spec", lambda name: None)
    load_detector.cache_clear()
    with pytest.raises(AsrError, match="the package silero-vad is not installed") as caught:
        load_detector()
    assert caught.value.hint == "pip install silero-vad, or go without it: --no-vad"
    load_detector.cache_clear()
