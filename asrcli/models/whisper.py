"""Whisper (Radford et al. 2022): prompts with a language, a task and times; 30 s windows.

The processor writes ``[<|startofprev|> previous text] <|startoftranscript|> <|lang|> <|task|>
[<|notimestamps|>]``; the adapter reads ``<|0.00|> text <|4.20|>…`` back. All ids come from the
checkpoint's tokenizer: the id of 0.00 s is 50363, 50364 or 50365, depending on the release.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from asrcli.engine.request import LogitsRule, Request, Sampling
from asrcli.errors import UsageError
from asrcli.languages import language_name
from asrcli.models import whisper_silence
from asrcli.models.base import Alias, Checkpoint, Detection, Family, Model, ModelFiles
from asrcli.models.context import fit_context, hints_room
from asrcli.models.text_measures import compression_ratio
from asrcli.models.whisper_rules import MustReach, build_rules
from asrcli.models.whisper_vocabulary import Vocabulary
from asrcli.transcript import MIN_SEGMENT_DURATION, ROUNDING, Segment

if TYPE_CHECKING:
    import torch

    from asrcli.engine.request import Hypothesis
    from asrcli.models.log_mel import LogMel
    from asrcli.options import Options
    from asrcli.windows import Window

TIMESTAMP_STEP = 0.02  # s
MAX_PREVIOUS_TOKENS = 223  # of 448: the reference keeps half of the context for the text to come
NO_SPEECH_THRESHOLD = 0.6  # with a mean log-probability below the next, a window holds no speech
LOGPROB_THRESHOLD = -1.0
CUT_DURATION = 20.0  # s; shorter windows are whole recordings, or what was left at their end
MAX_UNSAID = 1.0  # s at the end of such a window of which a text may say nothing
END_STEP = 0.5  # s; few different ends, so that rows share their rules
BEAMS_IN_DOUBT = 5  # as many as the reference's command line has for all texts
MAX_TOKENS_PER_SECOND = 15  # more than any speech has; a short window that reaches it ran away
MAX_TOKENS_BESIDES = 30


class WhisperProcessor:
    """Windows and options to requests."""

    max_duration = 30.0
    default_duration = 29.0  # a second of silence behind a last word
    detection: Detection = "recording"

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        features: LogMel,
        settings: Mapping[str, Any],
        *,
        spares_silence: bool = False,
    ) -> None:
        self._spares_silence = spares_silence
        self._name = name
        self._vocabulary = vocabulary
        self._features = features
        self._settings = settings
        self._rules: dict[tuple[str, bool, str], tuple[LogitsRule, ...]] = {}
        self._must_reach: dict[int, MustReach] = {}

    def check(self, options: Options) -> tuple[str, ...]:
        """Refuse what the checkpoint cannot do; return what deserves a warning."""
        multilingual = self._vocabulary.multilingual
        if not multilingual and options.task == "translate":
            raise UsageError(f"{self._name} knows English only and cannot translate")
        if not multilingual and options.multilingual:
            raise UsageError(f"{self._name} knows English only", hint="leave --multilingual out")
        if options.language is not None and not self._knows(options.language):
            raise UsageError(
                f"{self._name} does not know {language_name(options.language)}",
                hint=f"it knows: {', '.join(self._vocabulary.languages or ['en'])}",
            )
        room = hints_room(options, MAX_PREVIOUS_TOKENS)
        if len(self._encode_previous(options.hints)) > room:
            return (f"prompt and hotwords are longer than {room} tokens: their start is cut",)
        return ()

    def num_tokens(self, duration: float) -> int:
        """All that a slot has, whatever the window's length."""
        return self._max_length

    def _knows(self, language: str) -> bool:
        return language in (self._vocabulary.languages or ("en",))

    def _encode_previous(self, text: str) -> list[int]:
        text = text.strip()
        if not text:
            return []
        return list(self._vocabulary.tokenizer.encode(f" {text}", add_special_tokens=False).ids)

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        """Features and prompt of a window; without a language the model names it first."""
        prompt = self._prompt(options)
        detect = self._detects(options)
        max_new_tokens = self._max_length - len(prompt)
        features = self._features(window.samples)
        duration = window.end - window.start
        is_shortened = False
        if self._spares_silence and options.audio_context == "auto":
            num_frames = whisper_silence.num_frames(duration, self.max_duration)
            is_shortened = num_frames < features.shape[1]
        if is_shortened:
            features = features[:, :num_frames].contiguous()
            enough = duration * MAX_TOKENS_PER_SECOND + MAX_TOKENS_BESIDES
            max_new_tokens = min(max_new_tokens, round(enough))
        if options.max_new_tokens is not None:
            preamble = 3 if detect else 0
            max_new_tokens = min(max_new_tokens, options.max_new_tokens + preamble)
        start = self._vocabulary.token_id("<|startoftranscript|>")
        return Request(
            request_id=request_id,
            prompt_token_ids=prompt,
            input_features=features,
            silence_stride=whisper_silence.stride(duration, tells_language=detect),
            sampling=Sampling(
                max_new_tokens=max_new_tokens,
                eos_token_ids=frozenset({self._vocabulary.eos}),
                temperature=options.temperature,
                num_beams=options.beam_size,
                seed=options.seed + window.index,
                num_watched_ids=self._vocabulary.eos if options.fallback else 0,
                logits_rules=self._logits_rules(options, window),
            ),
            is_shortened=is_shortened,
            num_beams_in_doubt=BEAMS_IN_DOUBT,
            no_speech=(
                prompt.index(start),
                self._vocabulary.token_id("<|nospeech|>", "<|nocaptions|>"),
            ),
        )

    @property
    def _max_length(self) -> int:
        return int(self._settings.get("max_target_positions", 448))

    def _detects(self, options: Options) -> bool:
        return self._vocabulary.multilingual and options.language is None

    def _prompt(self, options: Options) -> tuple[int, ...]:
        ids = self._vocabulary.token_id
        previous = fit_context(self._encode_previous, options, MAX_PREVIOUS_TOKENS)
        prompt = [ids("<|startofprev|>"), *previous] if previous else []
        prompt.append(ids("<|startoftranscript|>"))
        if self._detects(options):
            return tuple(prompt)
        if options.language is not None and self._vocabulary.multilingual:
            prompt += [self._vocabulary.languages[options.language], ids(f"<|{options.task}|>")]
        if options.timestamps == "none":
            prompt.append(ids("<|notimestamps|>"))
        return tuple(prompt)

    def _logits_rules(self, options: Options, window: Window) -> tuple[LogitsRule, ...]:
        """Rules for these options; the same objects each time, so that rows share them."""
        # In a window that may have been cut, the model stops at the start of a segment that it
        # takes to go on behind the cut: it must not, unless the audio is at its end as well. But it
        # need not fill a last second: it would make words up, and speech there is heard by itself.
        duration = window.end - window.start
        end = math.floor(duration / END_STEP) * END_STEP if duration > CUT_DURATION else 0.0
        if window.speech is not None:
            end = max(0.0, end - MAX_UNSAID)
        must_reach = round(end / TIMESTAMP_STEP)
        if must_reach not in self._must_reach:
            ids = self._vocabulary
            self._must_reach[must_reach] = MustReach(
                must_reach, first_timestamp=ids.first_timestamp, eos=ids.eos
            )
        key = (options.timestamps, self._detects(options), options.task)
        if key not in self._rules:
            self._rules[key] = build_rules(self._vocabulary, self._settings, *key)
        return (self._must_reach[must_reach], *self._rules[key])


class WhisperAdapter:
    """Hypotheses to segments."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._codes = {token_id: code for code, token_id in vocabulary.languages.items()}

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        """The language given, else the one that the model named, else English for ``.en``."""
        if options.language is not None:
            return options.language
        if not self._vocabulary.multilingual:
            return "en"
        return self._codes.get(hypothesis.token_ids[0]) if hypothesis.token_ids else None

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        """Segments of a window, in seconds of the recording; none where there is no speech."""
        avg_logprob = self._mean_logprob(hypothesis)
        if (hypothesis.no_speech_prob or 0.0) > NO_SPEECH_THRESHOLD and (
            avg_logprob < LOGPROB_THRESHOLD
        ):
            return []
        spans = list(self._spans(hypothesis.token_ids, window.end - window.start))
        whole = "".join(text for _, _, _, text in spans)
        language = "en" if options.task == "translate" else self.language(hypothesis, options)
        return [
            Segment(
                id=index,
                start=round(window.start + start, 3),
                end=round(window.start + end, 3),
                text=text.strip(),
                tokens=tuple(token_ids),
                avg_logprob=avg_logprob,
                no_speech_prob=hypothesis.no_speech_prob,
                compression_ratio=compression_ratio(whole),
                temperature=options.temperature,
                language=language,
            )
            for index, (start, end, token_ids, text) in enumerate(spans)
        ]

    def draft(self, hypothesis: Hypothesis) -> str:
        """The text so far, without times."""
        return self._decode([i for i in hypothesis.token_ids if i < self._vocabulary.eos]).strip()

    def _mean_logprob(self, hypothesis: Hypothesis) -> float:
        """Mean over text, times and end; the forced ids at the start say nothing."""
        forced = range(self._vocabulary.eos + 1, self._vocabulary.first_timestamp)
        logprobs = [
            logprob
            for token_id, logprob in zip(hypothesis.token_ids, hypothesis.logprobs, strict=True)
            if token_id not in forced
        ]
        if hypothesis.eos_logprob is not None:
            logprobs.append(hypothesis.eos_logprob)
        return sum(logprobs) / max(1, len(logprobs))

    def _spans(
        self, token_ids: tuple[int, ...], duration: float
    ) -> Iterator[tuple[float, float, list[int], str]]:
        """Pieces (start, end, ids, text) of a window, in seconds of the window.

        A piece without an end, or with one behind the audio's, ends with the window. One that would
        last no time at all joins the piece ahead of it, so that no word is lost.
        """
        pending: tuple[float, float, list[int]] | None = None
        for start, end, ids in self._raw_spans(token_ids, duration):
            if pending and end - max(start, pending[1]) < MIN_SEGMENT_DURATION - ROUNDING:
                pending = (pending[0], max(end, pending[1]), pending[2] + ids)
                continue
            if pending:
                yield (*pending, self._decode(pending[2]))
                start = max(start, pending[1])
            pending = (min(start, max(0.0, duration - MIN_SEGMENT_DURATION)), end, ids)
        if pending:
            start, end, ids = pending
            yield (
                start,
                max(end, min(duration, start + MIN_SEGMENT_DURATION)),
                ids,
                self._decode(ids),
            )

    def _raw_spans(
        self, token_ids: tuple[int, ...], duration: float
    ) -> Iterator[tuple[float, float, list[int]]]:
        """Runs of text ids with the times around them, as the model wrote them."""
        start, text_ids = 0.0, list[int]()
        for token_id in token_ids:
            if token_id < self._vocabulary.eos:
                text_ids.append(token_id)
            elif token_id >= self._vocabulary.first_timestamp:
                steps = token_id - self._vocabulary.first_timestamp
                time = min(steps * TIMESTAMP_STEP, duration)
                if self._decode(text_ids).strip():
                    yield start, time, text_ids
                start, text_ids = time, []
        if self._decode(text_ids).strip():
            yield start, duration, text_ids

    def _decode(self, token_ids: list[int]) -> str:
        """Text of ids below the end token, less a character that the bound on ids broke off."""
        text: str = self._vocabulary.tokenizer.decode(token_ids, skip_special_tokens=True)
        return text.rstrip("\ufffd")


def load(
    checkpoint: Checkpoint, files: ModelFiles, device: torch.device, dtype: torch.dtype
) -> Model:
    """Load a checkpoint of the family."""
    from tokenizers import Tokenizer

    from asrcli.models.log_mel import LogMel
    from asrcli.models.whisper_weights import build_network

    settings = {
        **files.config,
        **{k: v for k, v in files.generation_config.items() if v is not None},
    }
    multilingual = settings.get("is_multilingual", files.config.get("vocab_size") != 51864)
    vocabulary = Vocabulary(Tokenizer.from_file(str(files.tokenizer_path)), bool(multilingual))
    features = LogMel(int(files.config["num_mel_bins"]), device=device)
    return Model(
        processor=WhisperProcessor(
            checkpoint.name,
            vocabulary,
            features,
            settings,
            # A GPU encodes silence in no time; on a CPU it is most of a short clip's cost.
            spares_silence=device.type == "cpu",
        ),
        adapter=WhisperAdapter(vocabulary),
        network=build_network(files, device, dtype),
    )


def _alias(name: str, num_parameters: int, languages: int = 99) -> Alias:
    hub_name = {"turbo": "large-v3-turbo"}.get(name, name)
    return Alias(
        name=f"whisper:{name}",
        hub_id=f"openai/whisper-{hub_name}",
        num_parameters=num_parameters,
        languages=languages,
    )


FAMILY = Family(
    name="whisper",
    architectures=("WhisperForConditionalGeneration",),
    aliases=(
        _alias("tiny", 37_760_640),
        _alias("tiny.en", 37_760_256, languages=1),
        _alias("base", 72_593_920),
        _alias("base.en", 72_593_408, languages=1),
        _alias("small", 241_734_912),
        _alias("small.en", 241_734_144, languages=1),
        _alias("medium", 763_857_920),
        _alias("medium.en", 763_856_896, languages=1),
        _alias("large-v3", 1_543_490_560, languages=100),
        _alias("turbo", 808_878_080, languages=100),
    ),
    times="segments",
    language_choice=True,
    hotwords=True,
    max_duration=30.0,
    load=load,
)
