"""Words for the model are no words of the recording, and no markup is (B12)."""

from __future__ import annotations

from difflib import SequenceMatcher
from pathlib import Path

import pytest

from asrcli import guards
from asrcli.backends.base import Recognition
from asrcli.transcript import Segment
from tests.cases.results import MARKUP, Run, check, transcribe
from tests.cases.sounds import Samples, hum, pink, silence, white
from tests.cli.runs import asr, words, write_wave

pytestmark = pytest.mark.slow  # whisper-base, on minutes of audio

PROMPT = "zyxqort flumbane krelvic"
SAME = 0.6  # share of letters in common from which on a word is one of the prompt, misspelt
TOLD = [
    ("whisper", "--prompt"),
    ("whisper", "--hotwords"),
    ("qwen", "--prompt"),
    ("qwen", "--hotwords"),
    ("glm", "--prompt"),
]
NOISES = {
    "silence": silence(10),
    "white": white(10, 0.03),
    "pink": pink(10, 1e-3),
    "hum": hum(10, 50, 0.02) + white(10, 3e-3),
    "buzz": hum(5, 60, 0.25),  # the voice detector lets it through
}


def leaks(text: str) -> list[str]:
    """Words of a text that are the prompt's, or nearly so."""
    return [
        word
        for word in words(text)
        for told in PROMPT.split()
        if SequenceMatcher(None, word, told).ratio() >= SAME
    ]


def test_misspelt_words_are_found() -> None:
    assert leaks("He said: fxqort, flumban krelvik!") == ["fxqort", "flumban", "krelvik"]
    assert leaks("For an ill-disposed young man, nine languages are wort a plum.") == []


@pytest.fixture(scope="module", params=TOLD, ids="".join)
def told(
    request: pytest.FixtureRequest,
    models: dict[str, str],
    known_speech: dict[str, tuple[Samples, str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> tuple[str, Run]:
    """A model that was told three words that nobody says, and what it made of noise and speech."""
    family, option = request.param
    folder = tmp_path_factory.mktemp(family)
    for name, samples in (NOISES | {"speech": known_speech[family][0]}).items():
        write_wave(folder / "in" / f"{name}.wav", samples)
    run = transcribe([folder / "in"], models[family], folder / "out", option, PROMPT)
    return family, run


def test_they_never_appear(told: tuple[str, Run]) -> None:
    _, run = told
    assert run.outcome.code == 0
    for name, result in run.results.items():
        if name == "buzz":
            continue
        check(result)
        assert leaks(result.text) == [], name
        assert not any(mark in result.text for mark in MARKUP), name


def test_they_do_not_fill_a_noise_that_sounds_like_a_voice(
    told: tuple[str, Run],
) -> None:
    _, run = told
    assert leaks(run.results["buzz"].text) == []


@pytest.mark.parametrize("name", ["silence", "white", "pink", "hum"])
def test_noise_stays_noise(told: tuple[str, Run], name: str) -> None:
    assert told[1].results[name].transcript["segments"] == []


def test_speech_keeps_its_words(
    told: tuple[str, Run], known_speech: dict[str, tuple[Samples, str]]
) -> None:
    family, run = told
    expected = known_speech[family][1].split()
    found = run.results["speech"].words
    wrong = 1 - SequenceMatcher(None, expected, found).ratio()
    # A tiny model was told to do something else than what it was trained to do.
    assert wrong <= (0.5 if family == "glm" else 0.25), found
    assert run.results["speech"].transcript["language"] == (None if family == "glm" else "en")


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("fxqort flumbane krelvic", PROMPT),  # what whisper-base made of a second of rain
        ("zyxxqort flumbane krelvic", PROMPT),  # and of white noise
        ("www.yxqort flumbane krelvic", PROMPT),
        ("zyxqort flumbane krelvic irek", PROMPT),
    ],
)
def test_a_misspelt_prompt_is_an_echo_too(text: str, context: str) -> None:
    segment = Segment(id=0, start=0.0, end=1.0, text=text)
    assert guards.echoes(Recognition(segments=(segment,)), context)


@pytest.mark.parametrize(("family", "option"), [("whisper", "--prompt"), ("qwen", "--hotwords")])
def test_nor_where_the_model_has_to_hear_the_noise(
    family: str, option: str, models: dict[str, str], tmp_path: Path
) -> None:
    for name in ("silence", "white", "pink", "hum"):
        write_wave(tmp_path / f"{name}.wav", NOISES[name])
    arguments = ("-f", "text", "-o", "-", "--no-vad", option, PROMPT)
    outcome = asr("transcribe", tmp_path, "-m", models[family], *arguments)
    assert outcome.code == 0
    assert leaks(outcome.out) == []
    assert not any(mark in outcome.out for mark in MARKUP)
