"""whisper-base on real speech: the ids of transformers' ``generate()``, alone and in company."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jiwer
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from transformers import WhisperFeatureExtractor, WhisperForConditionalGeneration
from transformers.models.whisper.english_normalizer import BasicTextNormalizer

from asrcli.engine.encoder_decoder import EncoderDecoder
from asrcli.engine.loop import Engine
from asrcli.engine.quantizing import can_quantize
from asrcli.engine.slot_runner import SlotRunner
from asrcli.models.base import Checkpoint
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from tests.speech import RATE, SHARED_AUDIO, Sentence, cuts, read, window_of

TIMEOUT = 300.0  # s
PREAMBLE_LENGTHS = {"segment": 2, "none": 3}  # language and task, and "no timestamps"
START, NO_SPEECH = 50258, 50362
Samples = NDArray[np.float32]


class Reference:
    """transformers' own way from samples to ids. Each clip is encoded once for all its calls."""

    def __init__(self, folder: Path) -> None:
        self._network = WhisperForConditionalGeneration.from_pretrained(
            folder, dtype=torch.float32
        ).eval()
        self._extractor = WhisperFeatureExtractor.from_pretrained(folder)
        encoder = self._network.model.encoder
        encode, encoded = encoder.forward, dict[bytes, Any]()

        def forward(input_features: torch.Tensor, **settings: Any) -> Any:
            key = input_features.numpy().tobytes()
            if key not in encoded:
                encoded[key] = encode(input_features, **settings)
            return encoded[key]

        encoder.forward = forward

    @torch.inference_mode()
    def generate(self, samples: Samples, options: Options) -> tuple[int, ...]:
        """Ids of the text, with or without times."""
        features = self._features(samples)
        ids = self._network.generate(
            features,
            task=options.task,
            language=options.language,
            return_timestamps=options.timestamps == "segment",
        )
        return tuple(i for i in ids[0].tolist() if i != self._network.config.eos_token_id)

    @torch.inference_mode()
    def detect(self, samples: Samples) -> int:
        """Id of the language."""
        return int(self._network.detect_language(self._features(samples))[0])

    @torch.inference_mode()
    def no_speech(self, samples: Samples) -> float:
        """Probability of "no speech" right after the start."""
        logits = self._network(
            input_features=self._features(samples), decoder_input_ids=torch.tensor([[START]])
        ).logits
        return float(logits[0, 0].softmax(-1)[NO_SPEECH])

    def _features(self, samples: Samples) -> torch.Tensor:
        extracted = self._extractor(samples, sampling_rate=RATE, return_tensors="pt")
        features: torch.Tensor = extracted.input_features
        return features


@pytest.fixture(scope="module")
def reference(base_checkpoint: Checkpoint) -> Reference:
    return Reference(base_checkpoint.path)


@pytest.fixture(scope="module")
def clips(speech: list[Sentence]) -> list[Samples]:
    return cuts(speech)


def ids_of(
    recognizer: Recognizer,
    clips: Sequence[Samples],
    options: Options,
    *,
    engine: Engine | None = None,
) -> list[tuple[int, ...]]:
    """The engine's ids, all clips at once."""
    prepare = recognizer._model.processor.prepare
    requests = [prepare(i, window_of(clip), options) for i, clip in enumerate(clips)]
    futures = [(engine or recognizer._engine).submit(request) for request in requests]
    return [future.result(TIMEOUT).token_ids for future in futures]


@pytest.mark.parametrize("timestamps", ["segment", pytest.param("none", marks=pytest.mark.slow)])
def test_ids_of_generate_in_a_given_language(
    whisper_base: Recognizer, reference: Reference, clips: list[Samples], timestamps: str
) -> None:
    options = Options(language="en", timestamps=timestamps, audio_context="full")
    expected = [reference.generate(clip, options) for clip in clips]
    assert ids_of(whisper_base, clips, options) == expected
    assert len(set(expected)) == len(clips)


@pytest.mark.parametrize("timestamps", [pytest.param("segment", marks=pytest.mark.slow), "none"])
def test_ids_of_generate_with_the_language_detected(
    whisper_base: Recognizer, reference: Reference, clips: list[Samples], timestamps: str
) -> None:
    options = Options(timestamps=timestamps, audio_context="full")
    found = ids_of(whisper_base, clips, options)
    length = PREAMBLE_LENGTHS[timestamps]
    assert [ids[0] for ids in found] == [reference.detect(clip) for clip in clips]
    expected = [reference.generate(clip, options) for clip in clips[::2]]
    assert [ids[length:] for ids in found[::2]] == expected


@pytest.mark.parametrize("prompt", [None, "She was very fond of her brother."])
def test_probability_of_no_speech(
    whisper_base: Recognizer, reference: Reference, clips: list[Samples], prompt: str | None
) -> None:
    """Where a text goes before it, the probability differs, but stays one."""
    recordings = [clips[1], np.zeros(5 * RATE, np.float32)]
    prepare = whisper_base._model.processor.prepare
    options = Options(language="en", prompt=prompt, max_new_tokens=1, audio_context="full")
    requests = [prepare(i, window_of(each), options) for i, each in enumerate(recordings)]
    futures = [whisper_base._engine.submit(request) for request in requests]
    found = [future.result(TIMEOUT).no_speech_prob for future in futures]
    if prompt is None:
        expected = [reference.no_speech(each) for each in recordings]
        assert found == pytest.approx(expected, abs=1e-3)
    assert found[0] is not None
    assert found[1] is not None
    assert found[0] < 0.2 < 0.6 < found[1]


@pytest.mark.slow
@pytest.mark.skipif(not SHARED_AUDIO.is_dir(), reason="no further recordings here")
@pytest.mark.parametrize("timestamps", ["segment", "none"])
def test_ids_of_generate_on_twenty_further_recordings(
    whisper_base: Recognizer, reference: Reference, timestamps: str
) -> None:
    paths = [
        path
        for pattern in ("en-l*.*", "en-jfk.wav", "lj/*", "arctic/*", "??-css10*", "fleurs/*.wav")
        for path in sorted(SHARED_AUDIO.glob(pattern))
        if path.suffix in (".wav", ".flac")
    ][:20]
    assert len(paths) == 20
    options = Options(timestamps=timestamps, audio_context="full")
    recordings = [read(path)[: 30 * RATE] for path in paths]
    found = ids_of(whisper_base, recordings, options)
    for path, samples, ids in zip(paths, recordings, found, strict=True):
        expected = reference.generate(samples, options)
        assert ids[PREAMBLE_LENGTHS[timestamps] :] == expected, path.name


@pytest.fixture(scope="module")
def sentences(speech: list[Sentence]) -> list[Samples]:
    return [read(sentence.path) for sentence in speech]


@pytest.fixture(scope="module")
def together(whisper_base: Recognizer, sentences: list[Samples]) -> list[tuple[int, ...]]:
    """Ids of the five sentences in one batch."""
    return ids_of(whisper_base, sentences, Options())


@pytest.mark.parametrize("num_slots", [1, 3, 16])
def test_any_batch_size_and_any_order(
    whisper_base: Recognizer,
    sentences: list[Samples],
    together: list[tuple[int, ...]],
    num_slots: int,
) -> None:
    order = list(range(len(sentences)))
    random.Random(num_slots).shuffle(order)
    network = whisper_base._model.network
    assert isinstance(network, EncoderDecoder)
    runner = SlotRunner(network, num_slots, encode_batch_size=1)
    engine = Engine(runner, max_prefill=4)
    try:
        found = ids_of(whisper_base, [sentences[i] for i in order], Options(), engine=engine)
    finally:
        engine.close()
    assert found == [together[i] for i in order]


def test_alone_or_in_company(
    whisper_base: Recognizer, sentences: list[Samples], together: list[tuple[int, ...]]
) -> None:
    for samples, expected in zip(sentences[:3], together[:3], strict=True):
        assert ids_of(whisper_base, [samples], Options()) == [expected]


def texts_of(recognizer: Recognizer, speech: list[Sentence]) -> list[str]:
    futures = [recognizer.submit(window_of(read(sentence.path)), Options()) for sentence in speech]
    recognitions = [future.result(TIMEOUT) for future in futures]
    return [" ".join(segment.text for segment in each.segments) for each in recognitions]


def word_error_rate(references: Sequence[str], texts: Sequence[str]) -> float:
    normalise = BasicTextNormalizer()
    spelled = [text.replace("Mr.", "Mister") for text in texts]
    rate = jiwer.wer([normalise(text) for text in references], [normalise(t) for t in spelled])
    return float(rate)


def test_word_error_rate_in_either_dtype(
    whisper_base: Recognizer, whisper_base_bfloat16: Recognizer, speech: list[Sentence]
) -> None:
    references = [sentence.text for sentence in speech]
    exact, coarse = (texts_of(r, speech) for r in (whisper_base, whisper_base_bfloat16))
    exact_rate, coarse_rate = (
        word_error_rate(references, exact),
        word_error_rate(references, coarse),
    )
    assert exact_rate <= 0.04, exact
    assert abs(coarse_rate - exact_rate) <= 0.01, coarse
    assert word_error_rate(exact, coarse) <= 0.02, (exact, coarse)


@pytest.mark.skipif(not can_quantize(), reason="this CPU does not multiply eight bits exactly")
def test_word_error_rate_by_integers(base_checkpoint: Checkpoint, speech: list[Sentence]) -> None:
    with Recognizer(str(base_checkpoint.path), device="cpu", dtype="int8") as recognizer:
        assert " int8 " in f"{recognizer.description} "
        texts = texts_of(recognizer, speech)
        again = texts_of(recognizer, speech[::-1])[::-1]
    assert word_error_rate([sentence.text for sentence in speech], texts) <= 0.04, texts
    assert again == texts
