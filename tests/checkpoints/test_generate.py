"""The ids of transformers' ``generate()``: trained and random weights, alone and in company."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from numpy.typing import NDArray

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.loop import Engine
from asrcli.engine.request import Hypothesis
from asrcli.engine.token_runner import TokenRunner
from asrcli.models.base import Model
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from tests.checkpoints import GLM, QWEN, processors
from tests.checkpoints.mixing import Mixer
from tests.checkpoints.recordings import unseen_utterances
from tests.checkpoints.reference import Reference
from tests.checkpoints.speech_bank import SpeechBank
from tests.speech import window_of

Samples = NDArray[np.float32]
Ids = tuple[int, ...]
TIMEOUT = 300.0
NUM_UTTERANCES = 30
MAX_NEW_TOKENS = 60


class Case:
    """A checkpoint in both worlds, with clips and what ``generate()`` makes of each alone."""

    def __init__(self, folder: Path, clips: Sequence[Samples], max_new_tokens: int) -> None:
        self.clips = clips
        self.max_new_tokens = max_new_tokens
        self.reference = Reference(folder)
        self.recognizer = Recognizer(str(folder), device="cpu", dtype="float32", batch_size=16)
        self.model: Model = self.recognizer._model
        self.alone = [self.expected(clip) for clip in clips]

    def expected(self, clip: Samples, **request: Any) -> Ids:
        return self.reference.generate(clip, max_new_tokens=self.max_new_tokens, **request)

    def request(self, number: int, clip: Samples, options: Options | None = None) -> Any:
        """As the product prepares it; the bound on new ids is the test's."""
        request = self.model.processor.prepare(number, window_of(clip), options or Options())
        sampling = replace(request.sampling, max_new_tokens=self.max_new_tokens)
        return replace(request, sampling=sampling)

    def engine(self, num_slots: int, max_tokens: int = 100_000, max_prefill: int = 4) -> Engine:
        network = self.model.network
        assert isinstance(network, DecoderOnly)
        runner = TokenRunner(network, num_slots, max_tokens, encode_batch_size=num_slots)
        return Engine(runner, max_prefill=max_prefill)

    def run(self, engine: Engine, order: Sequence[int]) -> dict[int, Ids]:
        """The engine's ids of clips, all handed in at once in that order."""
        futures = {
            number: engine.submit(self.request(number, self.clips[number])) for number in order
        }
        found = {number: future.result(TIMEOUT).token_ids for number, future in futures.items()}
        engine.close()
        return found


@pytest.fixture(scope="module", params=["qwen3-asr", "glm-asr"])
def trained(request: pytest.FixtureRequest, speech_bank: SpeechBank) -> Iterator[Case]:
    utterances = unseen_utterances(speech_bank, NUM_UTTERANCES, seed=303)
    folder = {"qwen3-asr": QWEN, "glm-asr": GLM}[request.param]
    case = Case(folder, [each.samples for each in utterances], MAX_NEW_TOKENS)
    yield case
    case.recognizer.close()


def test_the_texts_differ(trained: Case) -> None:
    """Otherwise the tests below would compare little with little."""
    assert len(set(trained.alone)) >= NUM_UTTERANCES - 3
    assert len({len(ids) for ids in trained.alone}) >= 5


@pytest.mark.parametrize("num_slots", [1, 2, 5, 16])
def test_any_batch_and_any_order(trained: Case, num_slots: int) -> None:
    order = list(range(NUM_UTTERANCES))
    random.Random(num_slots).shuffle(order)
    found = trained.run(trained.engine(num_slots), order)
    assert [found[number] for number in range(NUM_UTTERANCES)] == trained.alone


def test_memory_for_few_tokens(trained: Case) -> None:
    """So little that rows must wait for each other."""
    order = list(range(NUM_UTTERANCES))
    found = trained.run(trained.engine(16, max_tokens=800), order)
    assert [found[number] for number in order] == trained.alone


def test_staggered_admission(trained: Case) -> None:
    """Each clip comes in when the one ahead of it has a few ids, into a batch that is running."""
    engine = trained.engine(7)
    futures: dict[int, Future[Hypothesis]] = {}
    every_one_is_in = threading.Event()

    def submit(number: int) -> None:
        def on_token(hypothesis: Hypothesis) -> None:
            is_due = len(hypothesis.token_ids) == 1 + number % 4 or hypothesis.finish_reason
            if is_due and number + 3 < NUM_UTTERANCES and number + 3 not in futures:
                submit(number + 3)
            if len(futures) == NUM_UTTERANCES:
                every_one_is_in.set()

        futures[number] = Future()
        request = replace(trained.request(number, trained.clips[number]), on_token=on_token)
        futures[number] = engine.submit(request)

    for number in range(3):
        submit(number)
    assert every_one_is_in.wait(TIMEOUT)
    found = [futures[number].result(TIMEOUT).token_ids for number in range(NUM_UTTERANCES)]
    engine.close()
    assert found == trained.alone


def test_two_windows_of_very_different_length(trained: Case, speech_bank: SpeechBank) -> None:
    """B07: the short one must not lose words, nor the long one, in whatever order they come."""
    short = Mixer(speech_bank, 5, held_out=True).sequence("English", 3).samples
    long = Mixer(speech_bank, 6, held_out=True).long("English", 11.5).samples
    medium = Mixer(speech_bank, 7, held_out=True).long("English", 6.0).samples
    clips = [short, long, medium]
    expected = [trained.expected(clip) for clip in clips]
    assert len(expected[1]) >= 2 * len(expected[0]) - 2
    for order in ((0, 1), (1, 0), (0, 1, 2), (2, 1, 0)):
        engine = trained.engine(4)
        futures = [(n, engine.submit(trained.request(n, clips[n]))) for n in order]
        assert [f.result(TIMEOUT).token_ids for _, f in futures] == [expected[n] for n in order]
        engine.close()


@pytest.mark.parametrize("trained", ["qwen3-asr"], indirect=True)
@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (Options(language="en"), {"language": "English"}),
        (Options(language="es"), {"language": "Spanish"}),
        (Options(prompt="red green blue"), {"prompt": "red green blue"}),
        (
            Options(language="English", prompt="seven eight", hotwords="nine"),
            {"language": "English", "prompt": "nine seven eight"},
        ),
    ],
    ids=["English", "Spanish", "context", "both"],
)
def test_language_and_context(trained: Case, options: Options, asked: dict[str, Any]) -> None:
    case = trained
    numbers = range(0, NUM_UTTERANCES, 3)
    expected = [case.expected(case.clips[number], **asked) for number in numbers]
    engine = case.engine(6)
    futures = [engine.submit(case.request(n, case.clips[n], options)) for n in numbers]
    assert [future.result(TIMEOUT).token_ids for future in futures] == expected
    engine.close()


def _stir(network: Any) -> None:
    """Draw weights so large that every one counts: at the usual scale all ids would be alike."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.dim() > 1:
                gain = 3.0 if "language_model" in name and "embed" not in name else 1.0
                parameter.copy_(gain * noise * parameter[0].numel() ** -0.5)
            else:
                parameter.copy_(0.1 * noise + float(name.endswith("weight")))


def _qwen_at_a_tenth(processor: Any) -> Any:
    """Qwen3-ASR-0.6B with a tenth of each width; heads, layers and vocabulary are the real ones."""
    config = transformers.Qwen3ASRConfig(
        audio_config={
            "num_mel_bins": processors.NUM_MEL_BINS,
            "d_model": 112,  # 14 heads of 8
            "encoder_layers": 18,
            "encoder_attention_heads": 14,
            "encoder_ffn_dim": 358,
            "downsample_hidden_size": 48,
            "output_dim": 102,
        },
        text_config={
            "vocab_size": 151_936,
            "hidden_size": 102,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 12,
            "intermediate_size": 307,
            "max_position_embeddings": 65_536,
            "tie_word_embeddings": True,
        },
        audio_token_id=processor.tokenizer.convert_tokens_to_ids("<|audio_pad|>"),
        pad_token_id=0,
        eos_token_id=[1, 2],
    )
    return transformers.Qwen3ASRForConditionalGeneration(config)


def _glm_at_a_tenth(processor: Any) -> Any:
    """GLM-ASR-Nano with a tenth of each width; heads, layers and vocabulary are the real ones."""
    config = transformers.GlmAsrConfig(
        audio_config={
            "num_mel_bins": processors.NUM_MEL_BINS,
            "hidden_size": 160,  # 20 heads of 8, of which half turns
            "intermediate_size": 640,
            "num_hidden_layers": 32,
            "num_attention_heads": 20,
        },
        text_config={
            "vocab_size": 59_264,
            "hidden_size": 192,  # 16 heads of 12
            "intermediate_size": 614,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 4,
            "max_position_embeddings": 8192,
            "eos_token_id": [1, 2],
        },
        audio_token_id=processor.tokenizer.convert_tokens_to_ids("<|pad|>"),
    )
    return transformers.GlmAsrForConditionalGeneration(config)


@pytest.fixture(scope="module", params=["qwen3-asr", "glm-asr"])
def at_a_tenth(
    request: pytest.FixtureRequest,
    speech_bank: SpeechBank,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Case]:
    folder = tmp_path_factory.mktemp("random")
    if request.param == "qwen3-asr":
        processor = processors.qwen3_asr_processor()
        network = _qwen_at_a_tenth(processor)
    else:
        processor = processors.glm_asr_processor()
        network = _glm_at_a_tenth(processor)
    _stir(network)
    network.generation_config.eos_token_id = [1, 2]
    network.generation_config.pad_token_id = 0
    network.save_pretrained(folder)
    processor.save_pretrained(folder)
    clips = [each.samples for each in unseen_utterances(speech_bank, 4, seed=404)]
    clips.append(Mixer(speech_bank, 8, held_out=True).long("English", 9.0).samples)
    case = Case(folder, clips, 12)
    yield case
    case.recognizer.close()


@pytest.mark.parametrize("num_slots", [1, pytest.param(3, marks=pytest.mark.slow), 16])
def test_random_weights_at_a_tenth_of_the_real_widths(at_a_tenth: Case, num_slots: int) -> None:
    case = at_a_tenth
    assert len(set(case.alone)) == len(case.clips)
    assert any(len(set(ids)) > 3 for ids in case.alone)
    order = list(range(len(case.clips)))
    random.Random(num_slots).shuffle(order)
    found = case.run(case.engine(num_slots, max_prefill=2), order)
    assert [found[number] for number in range(len(case.clips))] == case.alone
