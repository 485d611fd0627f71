from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

import asrcli

HEAVY = ("torch", "transformers", "librosa", "av", "soundfile", "numpy", "rich")


def run(code: str) -> str:
    """What a fresh interpreter prints."""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=120
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def loaded_after(code: str) -> set[str]:
    tell = f"\nimport sys\nprint('LOADED', *[name for name in {HEAVY!r} if name in sys.modules])"
    return set(run(code + tell).rpartition("LOADED")[2].split())


def test_all_is_sorted_and_complete() -> None:
    assert asrcli.__all__ == sorted(asrcli.__all__)
    assert set(asrcli.__all__) == {
        "AsrError", "AudioError", "CheckpointError", "EngineError", "Options", "OutputError",
        "Recognizer", "Retry", "Segment", "Transcript", "UsageError", "Word", "transcribe",
    }  # fmt: skip
    assert set(asrcli._HOMES) == set(asrcli.__all__)


@pytest.mark.parametrize("name", asrcli.__all__)
def test_every_name_resolves_to_the_thing_itself(name: str) -> None:
    value = getattr(asrcli, name)
    assert value is getattr(import_module(asrcli._HOMES[name]), name)
    assert value.__doc__
    assert value.__module__ == asrcli._HOMES[name]


def test_dir_shows_what_there_is() -> None:
    assert set(asrcli.__all__) <= set(dir(asrcli))


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'asrcli' has no attribute 'nothing'"):
        _ = asrcli.nothing


def test_importing_costs_nothing() -> None:
    assert loaded_after("import asrcli") == set()
    assert loaded_after("from asrcli import Options, Transcript, AsrError") == set()
    assert "torch" in loaded_after("from asrcli import Recognizer")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["transcribe", "--help"],
        ["models"],
        ["transcribe", "a.wav", "--language", "klingon"],
        ["transcribe", "a.wav", "--format", "docx"],
        ["no-such-command"],
    ],
)
def test_what_needs_no_model_does_not_wait_for_torch(arguments: list[str]) -> None:
    code = f"""
import contextlib, io, sys
sys.argv = ["asr", *{arguments!r}]
from asrcli.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main()
"""
    assert not {"torch", "transformers", "librosa", "av"} & loaded_after(code)


def test_every_error_has_its_exit_code() -> None:
    for name in asrcli.__all__:
        value = getattr(asrcli, name)
        if isinstance(value, type) and issubclass(value, asrcli.AsrError):
            assert value("one line", hint="do this").hint == "do this"
            assert value.exit_code == (2 if name == "UsageError" else 1)
