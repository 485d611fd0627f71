"""Tiny Qwen3-ASR and GLM-ASR checkpoints that really transcribe, and the speech they know.

``train`` makes them, ``synthesis`` and ``mixing`` the speech; ``recordings`` is what tests play to
them. They know forty words: test data, not models for users.
"""

from pathlib import Path

DATA = Path(__file__).parents[1] / "data"
SPEECH = DATA / "speech.ogg"
QWEN = DATA / "qwen3-asr-tiny"
GLM = DATA / "glm-asr-tiny"
