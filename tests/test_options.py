from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from asrcli.errors import UsageError
from asrcli.options import Options


def test_defaults() -> None:
    options = Options()
    assert dataclasses.asdict(options) == {
        "language": None,
        "task": "transcribe",
        "prompt": None,
        "hotwords": None,
        "previous_text": None,
        "timestamps": "segment",
        "audio_context": "auto",
        "window": None,
        "vad": True,
        "multilingual": False,
        "condition_on_previous_text": False,
        "fallback": True,
        "temperature": 0.0,
        "beam_size": 1,
        "max_new_tokens": None,
        "seed": 0,
    }


@pytest.mark.parametrize("language", ["ko", "ko-KR", "KO", "Korean", "korean", "한국어", "kor"])
def test_languages_are_kept_as_codes(language: str) -> None:
    assert Options(language=language).language == "ko"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"language": "klingon"}, "language 'klingon' is unknown"),
        ({"language": ""}, "language '' is unknown"),
        (
            {"language": "ko", "multilingual": True},
            "multilingual lets each window tell its language, and a language is given",
        ),
        ({"task": "sing"}, "task 'sing' is unknown"),
        ({"timestamps": "letter"}, "timestamps 'letter' is unknown"),
        ({"temperature": -0.1}, "temperature -0.1 is not between 0 and 2"),
        ({"seed": -1}, "seed -1 is not between 0 and 9223372036854775807"),
        ({"seed": 2**63}, "seed 9223372036854775808 is not between 0 and 9223372036854775807"),
        ({"beam_size": 0}, "beam-size 0 is not between 1 and 8"),
        ({"beam_size": 9}, "beam-size 9 is not between 1 and 8"),
        ({"temperature": 2.5}, "temperature 2.5 is not between 0 and 2"),
        ({"temperature": float("nan")}, "temperature nan is not between 0 and 2"),
        ({"window": 0.99}, "window 0.99 is not a length of 1 s or more"),
        ({"window": -30.0}, "window -30 is not a length of 1 s or more"),
        ({"window": float("nan")}, "window nan is not a length of 1 s or more"),
        ({"window": float("inf")}, "window inf is not a length of 1 s or more"),
        ({"max_new_tokens": 0}, "max-new-tokens 0 is not at least 1"),
    ],
)
def test_what_cannot_be_meant(values: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        Options(**values)
    assert str(caught.value) == message
    assert caught.value.exit_code == 2


def test_hints_list_the_choices() -> None:
    with pytest.raises(UsageError) as caught:
        Options(task="sing")
    assert caught.value.hint == "one of: transcribe, translate"
    with pytest.raises(UsageError) as caught:
        Options(timestamps="x")
    assert caught.value.hint == "one of: none, segment"


@pytest.mark.parametrize("temperature", [0, 0.2, 1, 2.0])
def test_temperatures(temperature: float) -> None:
    assert Options(temperature=temperature).temperature == temperature


@pytest.mark.parametrize("window", [1, 1.0, 7.5, 1200.0])
def test_windows(window: float) -> None:
    assert Options(window=window).window == window


@pytest.mark.parametrize(
    ("hotwords", "prompt", "context"),
    [
        (None, None, ""),
        ("Marianne, Dashwood", None, "Marianne, Dashwood"),
        (None, "He said so.", "He said so."),
        ("Marianne, Dashwood", "He said so.", "Marianne, Dashwood He said so."),
        (" Marianne\n", "\tHe said so. ", "Marianne He said so."),
        ("", "He said so.", "He said so."),
        (" ", "\n", ""),
    ],
)
def test_context_is_hotwords_and_then_the_prompt(
    hotwords: str | None, prompt: str | None, context: str
) -> None:
    assert Options(hotwords=hotwords, prompt=prompt).context == context


def test_frozen_and_hashable() -> None:
    options = Options(language="en")
    with pytest.raises(dataclasses.FrozenInstanceError):
        options.language = "de"  # type: ignore[misc]
    assert hash(options) == hash(Options(language="English"))
    assert dataclasses.replace(options, language="de").language == "de"
