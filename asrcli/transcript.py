"""What a recording said: words, segments, transcript.

Field names are those of openai/whisper, hence of OpenAI's ``verbose_json``. All times are seconds
from the start of the recording. Nothing here imports numpy or torch.
"""

from __future__ import annotations

from dataclasses import dataclass

MIN_SEGMENT_DURATION = 0.02  # s; what is shorter cannot be shown
ROUNDING = 1e-6  # s; more than differences of times can be off by


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A spoken word with its times (s) and the model's probability for it (0 to 1)."""

    word: str
    start: float
    end: float
    probability: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A stretch of speech that the model gave in one piece.

    Attributes:
        id: position in the transcript, from 0.
        start, end: seconds from the start of the recording, start < end.
        text: as a person reads it, without surrounding white space.
        tokens: the model's ids behind the text, times left out.
        avg_logprob: mean natural log-probability of the ids of the window that it comes from.
        no_speech_prob: the model's probability that the window holds no speech; None if unknown.
        compression_ratio: size of the window's text over its zlib size; above 2.4 smells of a loop.
        temperature: the sampling temperature that gave it.
        language: ISO 639 code; None where the model does not tell.
        words: times word by word; empty unless asked for.
    """

    id: int
    start: float
    end: float
    text: str
    tokens: tuple[int, ...] = ()
    avg_logprob: float | None = None
    no_speech_prob: float | None = None
    compression_ratio: float | None = None
    temperature: float = 0.0
    language: str | None = None
    words: tuple[Word, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """A stretch whose first text was not good enough, and what was done about it.

    Attributes:
        start, end: seconds from the start of the recording.
        reason: "loop", "unfinished" (no end), "repetition", "unlikely", "doubtful" (a little less
            than that), "too much" for its time, "echo" of what the model was told, or "unheard"
            where speech was left out.
        outcome: "resolved" by a further attempt; "kept" where further attempts bear out the first
            text; "silence" where there was no speech; "given up" where none was
            good enough, so that words may be missing or made up.
        temperature: the sampling temperature of the text that was kept.
    """

    start: float
    end: float
    reason: str
    outcome: str
    temperature: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """All that is known of one recording.

    Attributes:
        text: the whole text, segments joined.
        language: ISO 639 code, given or detected; None where there is no speech to tell it from.
        task: "transcribe" or "translate".
        duration: seconds of audio that were read.
        segments: in order of time, without overlap.
        model: the name of the checkpoint that was used.
        warnings: what a reader should know before trusting the text, one line each.
        retries: stretches that were heard more than once, in order of time.
    """

    text: str
    language: str | None
    task: str
    duration: float
    segments: tuple[Segment, ...]
    model: str
    warnings: tuple[str, ...] = ()
    retries: tuple[Retry, ...] = ()
