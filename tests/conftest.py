from __future__ import annotations

from collections.abc import Iterator

import pytest

from asrcli.console import ConsoleReporter
from asrcli.models.base import Checkpoint
from asrcli.models.checkpoints import find_checkpoint
from asrcli.recognizer import Recognizer
from tests.checkpoints import GLM, QWEN, SPEECH
from tests.checkpoints.speech_bank import SpeechBank, load_bank
from tests.speech import Sentence, fetch_sentences


@pytest.fixture(scope="session")
def speech() -> list[Sentence]:
    """Five sentences of real speech; fetched once and kept in the cache folder."""
    return fetch_sentences()


@pytest.fixture(scope="session")
def base_checkpoint() -> Checkpoint:
    """whisper-base; fetched once and kept in the cache folder."""
    return find_checkpoint("whisper:base", reporter=ConsoleReporter())


@pytest.fixture(scope="session")
def whisper_base(base_checkpoint: Checkpoint) -> Iterator[Recognizer]:
    """whisper-base in float32, in which company changes nothing."""
    with Recognizer("whisper:base", device="cpu", dtype="float32", batch_size=16) as recognizer:
        yield recognizer


@pytest.fixture(scope="session")
def whisper_base_bfloat16(base_checkpoint: Checkpoint) -> Iterator[Recognizer]:
    with Recognizer("whisper:base", device="cpu", dtype="bfloat16") as recognizer:
        yield recognizer


@pytest.fixture(scope="session")
def speech_bank() -> SpeechBank:
    """Words and phrases that nothing was trained on, by the voices that spoke for training."""
    return load_bank(SPEECH)


@pytest.fixture(scope="session")
def qwen() -> Iterator[Recognizer]:
    """The tiny Qwen3-ASR in float32."""
    with Recognizer(str(QWEN), device="cpu", dtype="float32", batch_size=16) as recognizer:
        yield recognizer


@pytest.fixture(scope="session")
def glm() -> Iterator[Recognizer]:
    """The tiny GLM-ASR in float32."""
    with Recognizer(str(GLM), device="cpu", dtype="float32", batch_size=16) as recognizer:
        yield recognizer
