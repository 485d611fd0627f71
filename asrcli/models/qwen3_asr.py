"""Qwen3-ASR (Qwen team 2026): a chat turn of audio, answered by a language and the text.

The processor writes a system turn with the user's context, or an empty one, and a user turn with
the audio's places; the adapter reads ``language English<asr_text>text`` back, or the text alone
where the prompt named the language already. All ids come from the checkpoint's tokenizer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from asrcli.engine.request import Request, Sampling
from asrcli.errors import CheckpointError, UsageError
from asrcli.languages import language_name
from asrcli.models.base import Alias, Checkpoint, Detection, Family, Model, ModelFiles
from asrcli.models.context import fit_context, hints_room
from asrcli.models.qwen3_asr_positions import CHUNK_LENGTH, FRAMES_PER_SECOND, count_positions
from asrcli.models.qwen3_asr_vocabulary import (
    CODES_BY_NAME,
    NAMES_BY_CODE,
    NO_LANGUAGE,
    Qwen3AsrVocabulary,
)
from asrcli.models.text_measures import compression_ratio, mean_logprob
from asrcli.transcript import Segment

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from asrcli.engine.request import Hypothesis
    from asrcli.options import Options
    from asrcli.windows import Window

    Features = Callable[[NDArray[np.float32]], torch.Tensor]

MAX_DURATION = 1200.0  # s; what the published checkpoints were made for
DEFAULT_DURATION = 60.0  # s; longer windows gain little context and hold their slot for longer
MAX_CONTEXT_TOKENS = 2048  # some 1500 words; more of them weigh on every window and dilute it
CONTEXT_SHARE = 4  # the context's part of all positions is one in so many, where there are few
MAX_TOKENS_PER_SECOND = 15  # more than any speech has
MAX_TOKENS_BESIDES = 32  # the language, the end, and room for very short windows

_LANGUAGE_WORD = "language"
_LANGUAGE = re.compile(r"language (\w+)")
_LANGUAGE_SO_FAR = re.compile(r"language( \w*)?")


class Qwen3AsrProcessor:
    """Windows and options to requests.

    Args:
        name: what the checkpoint is called in messages.
        features: samples to float32 [num_mel_bins, num_frames].
        eos_token_ids: ids that end a text.
        max_length: positions of the language model, for the prompt and the text.
        chunk_length: frames in a chunk of the encoder's.

    Raises:
        CheckpointError: the tokenizer is of another kind of model.
    """

    detection: Detection = "window"

    def __init__(
        self,
        name: str,
        vocabulary: Qwen3AsrVocabulary,
        features: Features,
        *,
        eos_token_ids: frozenset[int],
        max_length: int,
        chunk_length: int = CHUNK_LENGTH,
    ) -> None:
        self._name = name
        self._vocabulary = vocabulary
        self._features = features
        self._eos_token_ids = eos_token_ids
        self._max_length = max_length
        self._chunk_length = chunk_length
        self._max_context = min(MAX_CONTEXT_TOKENS, max_length // CONTEXT_SHARE)
        ids, encode = vocabulary.token_id, vocabulary.encode
        start, end = ids("<|im_start|>"), ids("<|im_end|>")
        self._before_context = (start,)
        self._before_audio = (
            *(end, *encode("\n"), start, *encode("user\n")),
            ids("<|audio_start|>"),
        )
        self._place = ids("<|audio_pad|>")
        self._behind_audio = (ids("<|audio_end|>"), end, *encode("\n"), start)
        self._num_fixed_tokens = (
            len(self._before_context + self._before_audio + self._behind_audio)
            + len(encode("system\n") + encode("assistant\n"))
            + vocabulary.num_framing_tokens
        )

    @property
    def max_duration(self) -> float:
        """Seconds of audio of which places, text and the longest context fit the positions."""
        room = self._max_length - self._max_context - self.num_tokens(0.0)
        positions = count_positions(self._chunk_length, self._chunk_length)
        per_second = positions * FRAMES_PER_SECOND / self._chunk_length + MAX_TOKENS_PER_SECOND
        return min(MAX_DURATION, max(1.0, math.floor((room - 1) / per_second)))

    @property
    def default_duration(self) -> float:
        """Seconds at which a recording is cut unless the user chooses."""
        return min(DEFAULT_DURATION, self.max_duration)

    def num_tokens(self, duration: float) -> int:
        """Tokens of the prompt without context, of the audio's places and of the text."""
        num_frames = math.ceil(duration * FRAMES_PER_SECOND)
        num_positions = count_positions(num_frames, self._chunk_length)
        return self._num_fixed_tokens + num_positions + _max_new_tokens(duration)

    def check(self, options: Options) -> tuple[str, ...]:
        """Refuse what the model cannot do; return what deserves a warning."""
        if options.task == "translate":
            raise UsageError(
                f"{self._name} cannot translate", hint="a multilingual Whisper model can"
            )
        if options.language is not None and options.language not in NAMES_BY_CODE:
            raise UsageError(
                f"{self._name} does not know {language_name(options.language)}",
                hint=f"it knows: {', '.join(NAMES_BY_CODE)}",
            )
        room = hints_room(options, self._max_context)
        if len(self._vocabulary.encode(options.hints)) > room:
            return (f"prompt and hotwords are longer than {room} tokens: their start is cut",)
        return ()

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        """Features and prompt of a window; without a language the model names it first."""
        features = self._features(window.samples)
        before = (*self._before_context, *self._context(options), *self._before_audio)
        num_positions = count_positions(features.shape[1], self._chunk_length)
        span = (len(before), len(before) + num_positions)
        places = (self._place,) * num_positions
        prompt = (*before, *places, *self._behind_audio, *self._answer(options.language))
        return Request(
            request_id=request_id,
            prompt_token_ids=prompt,
            input_features=features,
            sampling=Sampling(
                max_new_tokens=max(
                    1, min(self._num_wanted(window, options), self._max_length - len(prompt))
                ),
                eos_token_ids=self._eos_token_ids,
                temperature=options.temperature,
                num_beams=options.beam_size,
                seed=options.seed + window.index,
                num_watched_ids=self._vocabulary.num_ids if options.fallback else 0,
            ),
            audio_span=span,
        )

    def _context(self, options: Options) -> list[int]:
        """Ids of the system turn."""
        encode, context = self._vocabulary.encode, options.context
        fitted = fit_context(encode, options, self._max_context)
        # What needs no cut is encoded along with what stands before it, as the model learnt it.
        if fitted == encode(context):
            return encode(f"system\n{context}")
        return encode("system\n") + fitted

    def _answer(self, language: str | None) -> list[int]:
        """Ids that the answer begins with: the language, where it is known."""
        if language is None:
            return self._vocabulary.encode("assistant\n")
        named = f"assistant\nlanguage {NAMES_BY_CODE[language]}"
        return [*self._vocabulary.encode(named), self._vocabulary.marker]

    def _num_wanted(self, window: Window, options: Options) -> int:
        if options.max_new_tokens is None:
            return _max_new_tokens(window.end - window.start)
        framing = self._vocabulary.num_framing_tokens if options.language is None else 0
        return options.max_new_tokens + framing


def _max_new_tokens(duration: float) -> int:
    """Tokens that the text of so many seconds can come to; a text that reaches it ran away."""
    return math.ceil(round(duration * MAX_TOKENS_PER_SECOND, 3)) + MAX_TOKENS_BESIDES


class Qwen3AsrAdapter:
    """Hypotheses to segments."""

    def __init__(self, vocabulary: Qwen3AsrVocabulary) -> None:
        self._vocabulary = vocabulary

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        """The language given, else the one that the model named; None for "None" and others."""
        if options.language is not None:
            return options.language
        name = self._named_language(hypothesis.token_ids)
        return None if name is None else CODES_BY_NAME.get(name.casefold())

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        """One segment with the window's times; none where there is no speech."""
        begin = 0 if options.language is not None else self._find_text(hypothesis)
        text = "" if begin is None else self._decode(hypothesis.token_ids[begin:])
        if not text:
            return []
        return [
            Segment(
                id=0,
                start=round(window.start, 3),
                end=round(window.end, 3),
                text=text,
                tokens=tuple(self._vocabulary.text_ids(hypothesis.token_ids[begin:])),
                # The language at the start says nothing of the text.
                avg_logprob=mean_logprob(hypothesis, begin or 0),
                compression_ratio=compression_ratio(text),
                temperature=options.temperature,
                language=self.language(hypothesis, options),
            )
        ]

    def draft(self, hypothesis: Hypothesis) -> str:
        """The text so far, whether the language was named in the prompt or is in the answer."""
        ids = hypothesis.token_ids
        marker = self._find_marker(ids)
        if marker is not None and _LANGUAGE.fullmatch(self._decode(ids[:marker])):
            return self._decode(ids[marker + 1 :])
        text = self._decode(ids)
        return "" if _is_language_so_far(text) else text

    def _find_text(self, hypothesis: Hypothesis) -> int | None:
        """Where the text begins in an answer that names its language; None where there is none.

        An answer without the marker is all text, rather than lost, unless it got no further than
        the language.
        """
        marker = self._find_marker(hypothesis.token_ids)
        if marker is not None:
            name = self._named_language(hypothesis.token_ids)
            is_silent = name is not None and name.casefold() == NO_LANGUAGE.casefold()
            return None if is_silent else marker + 1
        text = self._decode(hypothesis.token_ids)
        if hypothesis.finish_reason != "stop":
            return None if _is_language_so_far(text) else 0
        if text == _LANGUAGE_WORD:
            return None
        named = _LANGUAGE.fullmatch(text)
        names = {*CODES_BY_NAME, NO_LANGUAGE.casefold()}
        return None if named is not None and named[1].casefold() in names else 0

    def _named_language(self, token_ids: tuple[int, ...]) -> str | None:
        """What an answer calls its language; None while it has not said it."""
        marker = self._find_marker(token_ids)
        named = None if marker is None else _LANGUAGE.fullmatch(self._decode(token_ids[:marker]))
        return None if named is None else named[1]

    def _find_marker(self, token_ids: tuple[int, ...]) -> int | None:
        marker = self._vocabulary.marker
        return token_ids.index(marker) if marker in token_ids else None

    def _decode(self, token_ids: tuple[int, ...]) -> str:
        return self._vocabulary.decode(token_ids).strip()


def _is_language_so_far(text: str) -> bool:
    return _LANGUAGE_WORD.startswith(text) or _LANGUAGE_SO_FAR.fullmatch(text) is not None


def load(
    checkpoint: Checkpoint, files: ModelFiles, device: torch.device, dtype: torch.dtype
) -> Model:
    """Load a checkpoint of the family, in transformers' layout or in Qwen's own."""
    try:
        return _load(checkpoint.name, files, device, dtype)
    except CheckpointError as error:
        raise CheckpointError(f"{checkpoint.path}: {error}", hint=error.hint) from error


def _load(name: str, files: ModelFiles, device: torch.device, dtype: torch.dtype) -> Model:
    from tokenizers import Tokenizer

    from asrcli.models.log_mel import UnpaddedLogMel
    from asrcli.models.qwen3_asr_weights import build_network, unify

    files = unify(files)
    network = build_network(files, device, dtype)
    vocabulary = Qwen3AsrVocabulary(Tokenizer.from_file(str(files.tokenizer_path)))
    audio = files.config["audio_config"]
    expected = int(audio.get("num_mel_bins", 128))
    num_mel_bins = int(files.preprocessor_config.get("feature_size", expected))
    if num_mel_bins != expected:
        raise CheckpointError(
            f"its features have {num_mel_bins} mel bins, but its encoder takes {expected}"
        )
    return Model(
        processor=Qwen3AsrProcessor(
            name,
            vocabulary,
            UnpaddedLogMel(num_mel_bins, device=device),
            eos_token_ids=_eos_token_ids(files, vocabulary),
            max_length=network.max_length,
            chunk_length=2 * int(audio.get("n_window", CHUNK_LENGTH // 2)),
        ),
        adapter=Qwen3AsrAdapter(vocabulary),
        network=network,
    )


def _eos_token_ids(files: ModelFiles, vocabulary: Qwen3AsrVocabulary) -> frozenset[int]:
    """Ids that end a text: all that the checkpoint states, and the end of a turn and of a text."""
    ids = {vocabulary.token_id("<|im_end|>"), vocabulary.token_id("<|endoftext|>")}
    settings: tuple[Mapping[str, Any], ...]
    settings = (files.generation_config, files.config, files.config["text_config"])
    for stated in (each.get("eos_token_id") for each in settings):
        ids.update(stated if isinstance(stated, list) else [] if stated is None else [stated])
    return frozenset(ids)


def _alias(name: str, size: str, num_parameters: int) -> Alias:
    hub_id = f"Qwen/Qwen3-ASR-{size}"
    return Alias(name=name, hub_id=hub_id, num_parameters=num_parameters, languages=30)


FAMILY = Family(
    name="qwen3-asr",
    architectures=("Qwen3ASRForConditionalGeneration",),
    aliases=(
        _alias("qwen3-asr", "0.6B", 782_426_112),
        _alias("qwen3-asr:0.6b", "0.6B", 782_426_112),
        _alias("qwen3-asr:1.7b", "1.7B", 2_038_052_480),
    ),
    times="windows",
    language_choice=True,
    hotwords=True,
    max_duration=MAX_DURATION,
    load=load,
)
