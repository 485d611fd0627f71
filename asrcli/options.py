"""What the user asked of a model, checked once, before any model is loaded."""

from __future__ import annotations

import math
from dataclasses import dataclass

from asrcli.errors import UsageError
from asrcli.languages import resolve_language

TASKS = ("transcribe", "translate")
TIMESTAMPS = ("none", "segment")
AUDIO_CONTEXTS = ("auto", "full")
MAX_SEED = 2**63 - 1  # a window adds its index, and torch takes 64 bits
MAX_BEAM_SIZE = 8  # more gain nothing, and each takes a window's memory
MIN_WINDOW = 1.0  # s; in less than that no model has enough to go by


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How recordings are to be transcribed.

    Args:
        language: a code or a name in any case ("ko", "ko-KR", "Korean", "한국어"), kept as the
            ISO 639 code; None detects it, recording by recording.
        task: "transcribe", or "translate" for text in English.
        prompt: text that goes before the recording's own, for its spelling and style.
        hotwords: words to expect, names above all, as one text.
        previous_text: what was said before the window; set from window to window by whoever follows
            a recording.
        timestamps: "segment" for times, "none" for text alone.
        audio_context: "full" always encodes all that a window could hold; "auto" spares a short
            window most of the silence behind it, where the model bears that.
        window: seconds at which a recording is cut; None takes the model's own.
        vad: whether what holds no speech is left out before the model hears it.
        multilingual: whether each window tells its own language, rather than the first for all.
        condition_on_previous_text: whether a window is told what was said before it; the windows
            of a recording then follow one another.
        fallback: whether a text that looks wrong is heard again, at higher temperatures and in
            halves.
        temperature: 0 takes the likeliest id each time; above it, ids are drawn.
        beam_size: texts that are followed at once at temperature 0, for the likeliest in all; 1
            takes the likeliest id each time.
        max_new_tokens: bound on the ids of one window; None takes the model's own.
        seed: where drawing starts; the same seed gives the same text.

    Raises:
        UsageError: a value is out of range or unknown.
    """

    language: str | None = None
    task: str = "transcribe"
    prompt: str | None = None
    hotwords: str | None = None
    previous_text: str | None = None
    timestamps: str = "segment"
    audio_context: str = "auto"
    window: float | None = None
    vad: bool = True
    multilingual: bool = False
    condition_on_previous_text: bool = False
    fallback: bool = True
    temperature: float = 0.0
    beam_size: int = 1
    max_new_tokens: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.language is not None:
            object.__setattr__(self, "language", resolve_language(self.language))
        if self.multilingual and self.language is not None:
            raise UsageError(
                "multilingual lets each window tell its language, and a language is given",
                hint="give one of the two",
            )
        _check_choice("task", self.task, TASKS)
        _check_choice("timestamps", self.timestamps, TIMESTAMPS)
        _check_choice("audio context", self.audio_context, AUDIO_CONTEXTS)
        if self.window is not None and not MIN_WINDOW <= self.window < math.inf:
            raise UsageError(f"window {self.window:g} is not a length of {MIN_WINDOW:g} s or more")
        if not 0.0 <= self.temperature <= 2.0:
            raise UsageError(f"temperature {self.temperature:g} is not between 0 and 2")
        if not 1 <= self.beam_size <= MAX_BEAM_SIZE:
            raise UsageError(f"beam-size {self.beam_size} is not between 1 and {MAX_BEAM_SIZE}")
        if self.max_new_tokens is not None and self.max_new_tokens < 1:
            raise UsageError(f"max-new-tokens {self.max_new_tokens} is not at least 1")
        if not 0 <= self.seed <= MAX_SEED:
            raise UsageError(f"seed {self.seed} is not between 0 and {MAX_SEED}")

    @property
    def hints(self) -> str:
        """What the user says about the recordings in words; empty where that is nothing."""
        return self._join(self.hotwords, self.prompt)

    @property
    def context(self) -> str:
        """All that the model is told in words; empty where that is nothing."""
        return self._join(self.hotwords, self.prompt, self.previous_text)

    @staticmethod
    def _join(*parts: str | None) -> str:
        return " ".join(part.strip() for part in parts if part and part.strip())


def _check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise UsageError(f"{name} {value!r} is unknown", hint=f"one of: {', '.join(choices)}")
