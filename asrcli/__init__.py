"""Speech to text and subtitles: Whisper, Qwen3-ASR and GLM-ASR in one forward loop.

    >>> import asrcli
    >>> transcript = asrcli.transcribe("talk.mp3", model="whisper:base")
    >>> transcript.text

    >>> with asrcli.Recognizer("whisper:base") as recognizer:  # one model, many calls
    ...     for path in paths:
    ...         print(recognizer.transcribe(path).text)

Names are looked up when they are first used, so importing the package costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # as in typing, which takes longer to import than all the rest of this

if TYPE_CHECKING:
    from asrcli.errors import (
        AsrError,
        AudioError,
        CheckpointError,
        EngineError,
        OutputError,
        UsageError,
    )
    from asrcli.options import Options
    from asrcli.recognizer import Recognizer, transcribe
    from asrcli.transcript import Retry, Segment, Transcript, Word

__version__ = "0.1.0"

_HOMES = {
    "AsrError": "asrcli.errors",
    "AudioError": "asrcli.errors",
    "CheckpointError": "asrcli.errors",
    "EngineError": "asrcli.errors",
    "Options": "asrcli.options",
    "OutputError": "asrcli.errors",
    "Recognizer": "asrcli.recognizer",
    "Retry": "asrcli.transcript",
    "Segment": "asrcli.transcript",
    "Transcript": "asrcli.transcript",
    "UsageError": "asrcli.errors",
    "Word": "asrcli.transcript",
    "transcribe": "asrcli.recognizer",
}

__all__ = [
    "AsrError",
    "AudioError",
    "CheckpointError",
    "EngineError",
    "Options",
    "OutputError",
    "Recognizer",
    "Retry",
    "Segment",
    "Transcript",
    "UsageError",
    "Word",
    "transcribe",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'asrcli' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
