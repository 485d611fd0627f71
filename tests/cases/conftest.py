from __future__ import annotations

from pathlib import Path

import pytest

from asrcli.models.base import Checkpoint
from tests.cases.sounds import Samples
from tests.checkpoints import GLM, QWEN
from tests.checkpoints.recordings import unseen_utterances
from tests.checkpoints.speech_bank import SpeechBank
from tests.speech import Sentence, read

FAMILIES = ("whisper", "qwen", "glm")


@pytest.fixture(scope="session")
def models(base_checkpoint: Checkpoint) -> dict[str, str]:
    """A model of each family that is on this machine: real weights, and the two tiny ones."""
    return {"whisper": base_checkpoint.name, "qwen": str(QWEN), "glm": str(GLM)}


@pytest.fixture(scope="session")
def sentences(speech: list[Sentence]) -> list[tuple[Samples, str]]:
    """Five sentences of real speech with what they say."""
    return [(read(sentence.path), sentence.text) for sentence in speech]


@pytest.fixture(scope="session")
def known_speech(
    sentences: list[tuple[Samples, str]], speech_bank: SpeechBank
) -> dict[str, tuple[Samples, str]]:
    """Speech that each family's model understands well, with its words."""
    (said,) = unseen_utterances(speech_bank, 1, seed=55)
    return {
        "whisper": sentences[1],
        "qwen": (said.samples, said.text),
        "glm": (said.samples, said.text),
    }


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the recordings and results of a module."""
    return tmp_path_factory.mktemp("cases")
