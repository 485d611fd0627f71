"""GLM-ASR (Zhipu AI 2025): an instruction behind the audio, an answer that is the text.

The processor writes what the official script does, ``<|user|>\\n<|begin_of_audio|>``, the audio's
places, ``<|end_of_audio|><|user|>\\n`` instruction ``<|assistant|>\\n``; the adapter reads the
answer, which now and then has a sentence around the text. All ids come from the checkpoint's
tokenizer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from asrcli.engine.request import Request, Sampling
from asrcli.errors import UsageError
from asrcli.models.base import Alias, Checkpoint, Detection, Family, Model, ModelFiles
from asrcli.models.text_measures import compression_ratio, mean_logprob
from asrcli.models.vocabulary import Vocabulary
from asrcli.transcript import Segment

if TYPE_CHECKING:
    import torch

    from asrcli.engine.request import Hypothesis
    from asrcli.models.log_mel import LogMel
    from asrcli.options import Options
    from asrcli.windows import Window

SAMPLING_RATE = 16_000
INSTRUCTION = "Please transcribe this audio into text"
MAX_INSTRUCTION_TOKENS = 1024  # an eighth of the context; no instruction is that long
HOP_LENGTH = 160  # samples: one frame
MERGED_STATES = 4  # encoder states behind one place in the prompt
MIN_SAMPLES = 1600  # 0.1 s; less than 7 frames have no place in the prompt
MAX_TOKENS_PER_SECOND = 15  # more than any speech has
MAX_TOKENS_BESIDES = 32  # the end, a sentence around the text, and room for very short windows
FRAMINGS = (
    "The spoken content of the audio is",
    "The transcription of the audio is",
    "The content of the input audio is",
)
"""How the model was trained to begin some answers; the text follows in quotation marks."""

_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_FRAMED = re.compile(
    rf"(?:{'|'.join(FRAMINGS)})\s*:?\s*(?P<open>[{''.join(_QUOTES)}])(?P<rest>.*)", re.DOTALL
)


class GlmAsrProcessor:
    """Windows and options to requests.

    Args:
        name: what the checkpoint is called in messages.
        max_length: tokens that the network can take, prompt and text together.
        eos_token_ids: ids that end a text.
    """

    max_duration = default_duration = 30.0
    detection: Detection = "none"

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        features: LogMel,
        *,
        max_length: int,
        eos_token_ids: frozenset[int],
    ) -> None:
        self._name = name
        self._vocabulary = vocabulary
        self._features = features
        self._max_length = max_length
        self._eos_token_ids = eos_token_ids
        ids, newline = vocabulary.token_id, vocabulary.encode("\n")
        self._before_audio = (ids("<|user|>"), *newline, ids("<|begin_of_audio|>"))
        self._behind_audio = (ids("<|end_of_audio|>"), ids("<|user|>"))
        self._answer = (ids("<|assistant|>"), *newline)
        self._place = ids("<|pad|>")

    def check(self, options: Options) -> tuple[str, ...]:
        """Refuse what the checkpoint cannot do; return what deserves a warning."""
        if options.language is not None:
            raise UsageError(
                f"{self._name} cannot be told the language",
                hint="leave --language out: the model hears it by itself",
            )
        if options.hotwords is not None and options.hotwords.strip():
            raise UsageError(
                f"{self._name} cannot be told words to expect",
                hint="leave --hotwords out; --prompt replaces the model's instruction",
            )
        if options.multilingual:
            raise UsageError(
                f"{self._name} does not tell which language it hears",
                hint="leave --multilingual out: each window is heard by itself anyway",
            )
        if options.condition_on_previous_text:
            raise UsageError(
                f"{self._name} cannot be told what was said before",
                hint="leave --condition-on-previous-text out",
            )
        if options.task == "translate":
            raise UsageError(
                f"{self._name} cannot translate", hint="a multilingual Whisper model can"
            )
        if len(self._encode_instruction(options)) > MAX_INSTRUCTION_TOKENS:
            return (f"the prompt is longer than {MAX_INSTRUCTION_TOKENS} tokens: its end is cut",)
        return ()

    def num_tokens(self, duration: float) -> int:
        """Tokens of the usual prompt, of the audio's places and of the text."""
        num_places = count_places(math.ceil(duration * SAMPLING_RATE))
        framing = (*self._before_audio, *self._behind_audio, *self._answer)
        num_words = len(self._vocabulary.encode(f"\n{INSTRUCTION}"))
        return len(framing) + num_words + num_places + max_new_tokens(duration)

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        """Features and prompt of a window."""
        begin = len(self._before_audio)
        end = begin + count_places(len(window.samples))
        prompt = (
            *self._before_audio,
            *[self._place] * (end - begin),
            *self._behind_audio,
            *self._encode_instruction(options)[:MAX_INSTRUCTION_TOKENS],
            *self._answer,
        )
        wanted = options.max_new_tokens or max_new_tokens(window.end - window.start)
        room = max(1, self._max_length - len(prompt))
        return Request(
            request_id=request_id,
            prompt_token_ids=prompt,
            input_features=self._features(window.samples),
            sampling=Sampling(
                max_new_tokens=min(wanted, room),
                eos_token_ids=self._eos_token_ids,
                temperature=options.temperature,
                num_beams=options.beam_size,
                seed=options.seed + window.index,
                num_watched_ids=self._vocabulary.num_ids if options.fallback else 0,
            ),
            audio_span=(begin, end),
        )

    def _encode_instruction(self, options: Options) -> list[int]:
        """Ids of the line that tells the model what to do, its line break included."""
        instruction = (options.prompt or "").strip() or INSTRUCTION
        return self._vocabulary.encode(f"\n{instruction}")


def count_places(num_samples: int) -> int:
    """Places in the prompt that a window's audio takes: one for 80 ms, at least one."""
    num_frames = math.ceil(max(num_samples, MIN_SAMPLES) / HOP_LENGTH)
    num_states = (num_frames - 1) // 2 + 1  # the second convolution takes every other frame
    return num_states // MERGED_STATES


def max_new_tokens(duration: float) -> int:
    """Tokens that the text of so many seconds can come to; a text that reaches it ran away."""
    return math.ceil(duration * MAX_TOKENS_PER_SECOND) + MAX_TOKENS_BESIDES


class GlmAsrAdapter:
    """Hypotheses to segments."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        """One segment with the window's times; none where there is no text."""
        text = self.draft(hypothesis)
        if not text:
            return []
        return [
            Segment(
                id=0,
                start=window.start,
                end=window.end,
                text=text,
                tokens=tuple(self._vocabulary.text_ids(hypothesis.token_ids)),
                avg_logprob=mean_logprob(hypothesis),
                compression_ratio=compression_ratio(text),
                temperature=options.temperature,
            )
        ]

    def draft(self, hypothesis: Hypothesis) -> str:
        """The text so far."""
        answer = self._vocabulary.decode(hypothesis.token_ids).strip()
        return strip_framing(answer, is_whole=hypothesis.finish_reason == "stop")

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        """None: the model does not tell."""
        return None


def strip_framing(answer: str, *, is_whole: bool = True) -> str:
    """The text of an answer such as ``The transcription of the audio is "…".``

    Where the sentence, its opening and its closing mark are not all there, the answer is the text
    itself, however it begins and ends. Of one that is not whole the closing mark may be missing.
    """
    framed = _FRAMED.fullmatch(answer)
    if framed is None:
        return answer
    opening, closing = framed["open"], _QUOTES[framed["open"]]
    text, mark, behind = framed["rest"].rpartition(closing)
    is_closed = bool(mark) and behind.strip() in ("", ".")
    if not is_closed and is_whole:
        return answer
    text = text if is_closed else framed["rest"]
    return answer if _closes_first(text, opening, closing, is_closed) else text.strip()


def _closes_first(text: str, opening: str, closing: str, is_closed: bool) -> bool:
    """Whether the quotation ends within a text, so that the sentence around it is speech as well.

    ``… is "ready" and "done"`` is; ``… is "they call it "ready" here"`` is not, nor are an
    apostrophe and a mark of inches: no further quotation begins behind them.
    """
    ends = re.search(rf"(?<=\S){closing}(?!\w)", text)
    begins = re.search(rf"(?<![^\s(]){opening}(?=\S)", text)
    if ends is None or begins is None:
        return ends is not None and not is_closed
    return ends.start() < begins.start()


def load(
    checkpoint: Checkpoint, files: ModelFiles, device: torch.device, dtype: torch.dtype
) -> Model:
    """Load a checkpoint of the family."""
    from tokenizers import Tokenizer

    from asrcli.models.glm_asr_weights import build_network
    from asrcli.models.log_mel import LogMel

    network = build_network(files, device, dtype)
    vocabulary = Vocabulary(Tokenizer.from_file(str(files.tokenizer_path)))
    return Model(
        processor=GlmAsrProcessor(
            checkpoint.name,
            vocabulary,
            LogMel(int(files.config["audio_config"].get("num_mel_bins", 128)), device=device),
            max_length=network.max_length,
            eos_token_ids=_eos_token_ids(files, vocabulary),
        ),
        adapter=GlmAsrAdapter(vocabulary),
        network=network,
    )


def _eos_token_ids(files: ModelFiles, vocabulary: Vocabulary) -> frozenset[int]:
    """Ids that end a text: those that the checkpoint states, else the end of text and of a turn."""
    settings: tuple[Mapping[str, Any], ...]
    settings = (files.generation_config, files.config["text_config"], files.config)
    for stated in (each.get("eos_token_id") for each in settings):
        if stated is not None:
            return frozenset(stated if isinstance(stated, list) else [stated])
    names = ("<|endoftext|>", "<|user|>", "<|observation|>")
    return frozenset(vocabulary.token_id(name) for name in names)


FAMILY = Family(
    name="glm-asr",
    architectures=("GlmAsrForConditionalGeneration",),
    aliases=(
        Alias(
            name="glm-asr",
            hub_id="zai-org/GLM-ASR-Nano-2512",
            num_parameters=2_257_843_200,  # its output matrix is not tied to the embedding
            languages=17,
        ),
    ),
    times="windows",
    language_choice=False,
    hotwords=False,
    max_duration=30.0,
    load=load,
)
