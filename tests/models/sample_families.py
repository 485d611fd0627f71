"""Families for the tests, announced as a third party would announce its own."""

from __future__ import annotations

from typing import Any

from asrcli.models.base import Alias, Checkpoint, Family, Model, ModelFiles


def _load(checkpoint: Checkpoint, files: ModelFiles, device: Any, dtype: Any) -> Model:
    raise AssertionError("no test loads a network")


def _alias(name: str, *, languages: int = 99) -> Alias:
    hub_id = f"sample/{name.replace(':', '-')}"
    return Alias(name=name, hub_id=hub_id, num_parameters=1_234_567_890, languages=languages)


WHISPER = Family(
    name="whisper",
    architectures=("WhisperForConditionalGeneration",),
    aliases=(
        _alias("whisper:tiny", languages=1),
        _alias("whisper:base"),
        _alias("whisper:turbo"),
    ),
    times="segments",
    language_choice=True,
    hotwords=True,
    max_duration=30.0,
    load=_load,
)

OTHER = Family(
    name="other",
    architectures=("OtherForConditionalGeneration",),
    aliases=(_alias("other"),),
    times="none",
    language_choice=False,
    hotwords=False,
    max_duration=1200.0,
    streaming=False,
    load=_load,
)

SAME_ALIAS = Family(
    name="impostor",
    architectures=("ImpostorModel",),
    aliases=(_alias("whisper:base"),),
    times="none",
    language_choice=False,
    hotwords=False,
    max_duration=1200.0,
    streaming=False,
    load=_load,
)

NOT_A_FAMILY = object()
