"""What the tiny checkpoints understand, through the whole product but for files and command."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from asrcli.backends.base import Recognition
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from tests.checkpoints import GLM, QWEN, SPEECH
from tests.checkpoints.mixing import Mixer
from tests.checkpoints.recordings import unseen_utterances, word_error_rate
from tests.checkpoints.speech_bank import SpeechBank
from tests.speech import window_of

TIMEOUT = 600.0
MAX_BYTES = 6_000_000
Samples = NDArray[np.float32]


def recognise(
    recognizer: Recognizer, clips: Sequence[Samples], options: Options | None = None
) -> list[Recognition]:
    futures = [
        recognizer.submit(window_of(clip, recording_id=-1000 - number), options or Options())
        for number, clip in enumerate(clips)
    ]
    return [future.result(TIMEOUT) for future in futures]


def texts(recognitions: Sequence[Recognition]) -> list[str]:
    return [" ".join(segment.text for segment in each.segments) for each in recognitions]


@pytest.mark.parametrize("path", [QWEN, GLM, SPEECH])
def test_they_are_small(path: Path) -> None:
    files = [path] if path.is_file() else list(path.iterdir())
    assert 100_000 < sum(file.stat().st_size for file in files) <= MAX_BYTES


@pytest.mark.parametrize(("model", "limit"), [("qwen", 0.05), ("glm", 0.07)])
def test_unseen_sequences(
    request: pytest.FixtureRequest, speech_bank: SpeechBank, model: str, limit: float
) -> None:
    recognizer = request.getfixturevalue(model)
    utterances = unseen_utterances(speech_bank, 300)
    recognitions = recognise(recognizer, [each.samples for each in utterances])
    references = [each.text for each in utterances]
    rate = word_error_rate(zip(references, texts(recognitions), strict=True))
    print(f"{model}: {rate:.2%} of words wrong")
    assert rate <= limit
    assert {each.language for each in recognitions} == ({"en"} if model == "qwen" else {None})


def test_the_language_is_told(qwen: Recognizer, speech_bank: SpeechBank) -> None:
    utterances = unseen_utterances(speech_bank, 60, languages=("English", "Spanish"), seed=9)
    codes = {"English": "en", "Spanish": "es"}
    found = recognise(qwen, [each.samples for each in utterances])
    right = [
        result.language == codes[str(each.language)]
        for each, result in zip(utterances, found, strict=True)
    ]
    assert sum(right) >= 59
    spanish = [
        (each.text, text)
        for each, text in zip(utterances, texts(found), strict=True)
        if each.language == "Spanish"
    ]
    assert len(spanish) >= 10
    assert word_error_rate(spanish) <= 0.08


def test_a_language_that_is_forced_is_reported(qwen: Recognizer, speech_bank: SpeechBank) -> None:
    utterances = unseen_utterances(speech_bank, 10, languages=("Spanish",), seed=10)
    found = recognise(qwen, [each.samples for each in utterances], Options(language="Spanish"))
    assert {each.language for each in found} == {"es"}
    assert {segment.language for each in found for segment in each.segments} == {"es"}
    pairs = zip([each.text for each in utterances], texts(found), strict=True)
    assert word_error_rate(pairs) <= 0.1


@pytest.mark.parametrize("model", ["qwen", "glm"])
def test_silence_and_noise_give_nothing(
    request: pytest.FixtureRequest, speech_bank: SpeechBank, model: str
) -> None:
    mixer = Mixer(speech_bank, 77, held_out=True)
    clips = [mixer.nothing().samples for _ in range(40)]
    clips.append(np.zeros(16_000 * 10, np.float32))
    found = recognise(request.getfixturevalue(model), clips)
    assert [text for text in texts(found) if text] == []
    assert {each.language for each in found} == {None}


def test_context_does_not_leak(qwen: Recognizer, speech_bank: SpeechBank) -> None:
    """B12: words of the prompt are no words of the recording; least of all in silence."""
    utterances = unseen_utterances(speech_bank, 30, seed=12)
    clips = [np.zeros(16_000 * 5, np.float32), *(each.samples for each in utterances)]
    options = Options(prompt="yellow menu yellow", hotwords="menu")
    plain, told = (texts(recognise(qwen, clips, each)) for each in (Options(), options))
    assert told[0] == ""
    references = [each.text for each in utterances]
    with_context = word_error_rate(zip(references, told[1:], strict=True))
    without = word_error_rate(zip(references, plain[1:], strict=True))
    assert with_context <= without + 0.03
    for text in told:
        assert not any(mark in text for mark in ("<", "language", "None"))


@pytest.mark.parametrize(("budget", "num_losses"), [(48, 0), (8, 0), (4, 2)])
def test_a_budget_that_is_too_small(
    qwen: Recognizer,
    speech_bank: SpeechBank,
    monkeypatch: pytest.MonkeyPatch,
    budget: int,
    num_losses: int,
) -> None:
    """B02: a window that its budget ends is heard in two pieces; what that loses is told."""
    monkeypatch.setattr("asrcli.models.qwen3_asr.MAX_TOKENS_PER_SECOND", 0)
    monkeypatch.setattr("asrcli.models.qwen3_asr.MAX_TOKENS_BESIDES", budget)
    mixer = Mixer(speech_bank, 21, held_out=True)
    sequences = [mixer.sequence("English", 5) for _ in range(2)]
    pause = np.zeros(12_000, np.float32)
    clip = np.concatenate([sequences[0].samples, pause, sequences[1].samples])
    (found,) = recognise(qwen, [clip], Options(language="en"))
    assert len(found.losses) == num_losses
    if not num_losses:
        (text,) = texts([found])
        assert text.split() == [*sequences[0].words, *sequences[1].words]
    assert len(found.segments) == (1 if budget == 48 else 2)
