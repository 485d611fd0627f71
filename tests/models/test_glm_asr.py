"""GLM-ASR's prompts and what is read back, beside transformers' own processor."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from transformers import WhisperFeatureExtractor

from asrcli.errors import CheckpointError, UsageError
from asrcli.models.glm_asr import (
    FAMILY,
    INSTRUCTION,
    MAX_INSTRUCTION_TOKENS,
    GlmAsrAdapter,
    GlmAsrProcessor,
    count_places,
    strip_framing,
)
from asrcli.models.log_mel import LogMel
from asrcli.models.vocabulary import Vocabulary
from asrcli.options import Options
from asrcli.transcript import Segment
from tests.checkpoints.processors import NUM_MEL_BINS
from tests.models.tiny_glm_asr import answer, clip, reference_processor, token_id
from tests.speech import RATE, window_of

DURATIONS = (0.3, 1.003, 7.77, 29.99, 30.0)
CONTROL = ("<|assistant|>", "<|pad|>", "<|user|>", "<|end_of_audio|>", "<|endoftext|>")
SPOKEN = "The spoken content of the audio is"
WRITTEN = "The transcription of the audio is"
CONTENT = "The content of the input audio is"


@cache
def vocabulary() -> Vocabulary:
    return Vocabulary(reference_processor().tokenizer.backend_tokenizer)


@cache
def processor(max_length: int = 8192) -> GlmAsrProcessor:
    return GlmAsrProcessor(
        "glm-asr",
        vocabulary(),
        LogMel(NUM_MEL_BINS),
        max_length=max_length,
        eos_token_ids=frozenset({token_id("<|endoftext|>"), token_id("<|user|>")}),
    )


def adapter() -> GlmAsrAdapter:
    return GlmAsrAdapter(vocabulary())


def prompt(options: Options, duration: float = 1.0) -> tuple[int, ...]:
    return processor().prepare(0, window_of(clip(duration)), options).prompt_token_ids


def spelled(token_ids: tuple[int, ...]) -> str:
    text: str = reference_processor().tokenizer.decode(token_ids)
    return text


def theirs(samples: Any, instruction: str | None = None) -> Any:
    return reference_processor().apply_transcription_request([samples], prompt=instruction)


@pytest.mark.parametrize("duration", DURATIONS)
def test_prompts_and_features_of_transformers(duration: float) -> None:
    samples = clip(duration)
    inputs = theirs(samples)
    request = processor().prepare(7, window_of(samples), Options())
    assert request.request_id == 7
    assert request.prompt_token_ids == tuple(inputs["input_ids"][0].tolist())
    assert request.input_features.shape == (NUM_MEL_BINS, 3000)
    assert torch.allclose(request.input_features, inputs["input_features"][0], atol=1e-5)
    assert request.audio_span is not None
    begin, end = request.audio_span
    places = [i for i, one in enumerate(request.prompt_token_ids) if one == token_id("<|pad|>")]
    assert places == list(range(begin, end))


@pytest.mark.parametrize("num_samples", [1600, 16_000, 15_999, 16_001, 124_320, 479_840, 480_000])
def test_features_of_the_extractor_itself(num_samples: int) -> None:
    samples = clip(30.0)[:num_samples]
    extracted = WhisperFeatureExtractor(feature_size=NUM_MEL_BINS)(
        samples, sampling_rate=RATE, return_tensors="pt"
    )
    features = processor().prepare(0, window_of(samples), Options()).input_features
    assert torch.allclose(features, extracted["input_features"][0], atol=1e-5)


@pytest.mark.parametrize("duration", DURATIONS)
@pytest.mark.parametrize(
    "instruction", ["Write down the names.", "请转写这段音频", "two\nlines, two  spaces\tand a tab"]
)
def test_a_prompt_replaces_the_instruction(duration: float, instruction: str) -> None:
    samples = clip(duration)
    expected = tuple(theirs(samples, instruction)["input_ids"][0].tolist())
    assert prompt(Options(prompt=instruction), duration) == expected
    assert prompt(Options(prompt=f"  {instruction}\n"), duration) == expected
    assert expected != prompt(Options(), duration)


def test_the_prompt_spelled_out() -> None:
    assert spelled(prompt(Options(), 0.2)) == (
        "<|user|>\n<|begin_of_audio|><|pad|><|pad|><|end_of_audio|>"
        f"<|user|>\n{INSTRUCTION}<|assistant|>\n"
    )
    assert prompt(Options(prompt=" \n")) == prompt(Options(hotwords="  ")) == prompt(Options())


@pytest.mark.parametrize(
    ("num_samples", "expected"),
    [(0, 1), (1, 1), (800, 1), (1120, 1), (1600, 1), (2240, 1), (2241, 2), (16_000, 12),
     (16_160, 12), (480_000, 375)],
)  # fmt: skip
def test_places_in_the_prompt(num_samples: int, expected: int) -> None:
    assert count_places(num_samples) == expected
    if num_samples > 1000:  # with less transformers leaves no place at all
        ids = theirs(clip(30.0)[:num_samples])["input_ids"][0].tolist()
        assert ids.count(token_id("<|pad|>")) == expected


@pytest.mark.parametrize("num_samples", [0, 1, 160, 800])
def test_windows_too_short_for_transformers(num_samples: int) -> None:
    samples = np.ones(num_samples, np.float32)
    request = processor().prepare(0, window_of(samples), Options())
    assert request.prompt_token_ids == prompt(Options(), 0.1)
    assert request.input_features.shape == (NUM_MEL_BINS, 3000)
    assert torch.isfinite(request.input_features).all()


@pytest.mark.parametrize("token", CONTROL)
@pytest.mark.parametrize("around", ["{}", "say {} twice: {}{}", "<|us{}er|>", "\n{}\n"])
def test_special_tokens_in_a_prompt_are_text(token: str, around: str) -> None:
    text = around.replace("{}", token)
    plain, odd = prompt(Options(prompt="x")), prompt(Options(prompt=text))
    controls = [token_id(name) for name in reference_processor().tokenizer.all_special_tokens]
    assert [i for i in odd if i in controls] == [i for i in plain if i in controls]
    instruction = reference_processor().tokenizer.decode(odd).split("<|user|>\n", 2)[2]
    assert instruction == f"{text.strip()}<|assistant|>\n"


def test_tokens_that_a_tokenizer_does_not_call_special() -> None:
    """Control tokens are known by their look as well; added words are words."""
    backend = Tokenizer.from_str(reference_processor().tokenizer.backend_tokenizer.to_str())
    backend.add_tokens([AddedToken("<|extra|>", special=False), AddedToken("wonderword")])
    extra, word = (int(backend.token_to_id(name) or 0) for name in ("<|extra|>", "wonderword"))
    own = Vocabulary(backend)
    text = "a <|extra|> wonderword <|pad|>"
    ids = own.encode(text)
    assert max(ids) < token_id("<|endoftext|>")
    assert own.decode([*ids, extra]) == text
    assert own.text_ids([extra, word]) == [word]
    assert own.decode([word, extra]) == "wonderword"


def test_a_tokenizer_of_another_kind_is_named() -> None:
    tokenizer = Tokenizer(WordLevel({"a": 0}, unk_token="a"))
    tokenizer.add_special_tokens([AddedToken("<|user|>", special=True)])
    with pytest.raises(CheckpointError, match=r"^the tokenizer has no token <\|begin_of_audio\|>$"):
        GlmAsrProcessor(
            "x", Vocabulary(tokenizer), LogMel(80), max_length=9, eos_token_ids=frozenset()
        )


def test_long_prompts_lose_their_end_and_say_so() -> None:
    options = Options(prompt=" ".join(["seven"] * 3000))
    assert processor().check(options) == ("the prompt is longer than 1024 tokens: its end is cut",)
    assert len(prompt(options)) == len(prompt(Options(prompt="x"))) - 2 + MAX_INSTRUCTION_TOKENS
    assert spelled(prompt(options)).endswith("<|assistant|>\n")
    assert processor().check(Options(prompt="seven eight")) == ()
    assert processor().check(Options()) == ()


@pytest.mark.parametrize(
    ("duration", "wanted", "expected"),
    [(30.0, None, 482), (10.0, None, 182), (0.3, None, 37), (1.003, None, 48), (30.0, 5, 5),
     (1.0, 600, 600)],
)  # fmt: skip
def test_the_bound_on_a_text(duration: float, wanted: int | None, expected: int) -> None:
    options = Options(max_new_tokens=wanted)
    request = processor().prepare(0, window_of(clip(duration)), options)
    assert request.sampling.max_new_tokens == expected
    if wanted is None:
        length = len(request.prompt_token_ids) + expected
        assert processor().num_tokens(duration) == length


def test_a_prompt_that_leaves_no_room_is_for_the_engine_to_refuse() -> None:
    request = processor(64).prepare(0, window_of(clip(30.0)), Options())
    assert request.sampling.max_new_tokens == 1


def test_prompt_and_text_fit_the_network() -> None:
    options = Options(max_new_tokens=10_000)
    request = processor(512).prepare(0, window_of(clip(2.0)), options)
    assert len(request.prompt_token_ids) + request.sampling.max_new_tokens == 512


def test_sampling() -> None:
    window = dataclasses.replace(window_of(clip(1.0)), index=3)
    request = processor().prepare(1, window, Options(temperature=0.4, seed=100))
    assert request.sampling.temperature == 0.4
    assert request.sampling.seed == 103
    assert request.sampling.eos_token_ids == {token_id("<|endoftext|>"), token_id("<|user|>")}
    assert request.sampling.logits_rules == ()
    assert not request.is_shortened
    assert request.no_speech is None


@pytest.mark.parametrize(
    ("options", "message", "hint"),
    [
        (Options(language="ko"), "glm-asr cannot be told the language", "leave --language out"),
        (Options(hotwords="Asrcli"), "glm-asr cannot be told words to expect", "--prompt replaces"),
        (Options(task="translate"), "glm-asr cannot translate", "Whisper"),
    ],
)
def test_what_it_cannot_do_is_refused(options: Options, message: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        processor().check(options)
    assert str(caught.value) == message
    assert hint in (caught.value.hint or "")


def test_facts_of_the_family() -> None:
    (alias,) = FAMILY.aliases
    config = transformers.GlmAsrConfig()
    with torch.device("meta"):
        network = transformers.GlmAsrForConditionalGeneration(config)
    tied = sum(weight.numel() for weight in network.parameters())
    output = config.text_config.vocab_size * config.text_config.hidden_size
    assert alias.num_parameters == tied + output
    assert (FAMILY.architectures, FAMILY.times) == ((type(network).__name__,), "windows")
    assert (FAMILY.language_choice, FAMILY.hotwords, FAMILY.max_duration) == (False, False, 30.0)
    assert processor().max_duration == processor().default_duration == FAMILY.max_duration
    assert processor().detection == "none"


FRAMED = [
    (f'{SPOKEN} "hello world".', "hello world"),
    (f"{WRITTEN} 'hello world'", "hello world"),
    (f'{CONTENT} "hello world."', "hello world."),
    (f'{SPOKEN}: "Acme Inc.".', "Acme Inc."),
    (f"{WRITTEN} “hello”.", "hello"),
    (f"  {WRITTEN} 'it's five o'clock'.\n", "it's five o'clock"),
    (f"{WRITTEN} 'the dogs' bowls are empty'.", "the dogs' bowls are empty"),
    (f'{WRITTEN} "they call it "ready" here".', 'they call it "ready" here'),
    (f'{WRITTEN} ""Go," she said."', '"Go," she said.'),
    (f'{SPOKEN} "two\nlines"', "two\nlines"),
    (f"{SPOKEN} \"{WRITTEN} 'one'\".", f"{WRITTEN} 'one'"),
]
UNCLOSED = [f'{WRITTEN} "ready', f"{WRITTEN} 'ready\""]
AS_IT_IS = [
    *UNCLOSED,
    "Acme Inc.",
    "the transcription of the audio is ready",
    f"{WRITTEN} ready.",
    f"{WRITTEN} 'ready' and 'done'",
    f'{WRITTEN} "ready" and "done".',
    f'{WRITTEN} "ready" now.',
    f'we know that {SPOKEN.lower()} "hello".',
    f'{SPOKEN}n "hello"',
    f"{SPOKEN}",
    '"hello world"',
    "'hello world'.",
    "hello.",
    "...",
]


@pytest.mark.parametrize(("said", "expected"), FRAMED)
@pytest.mark.parametrize("is_whole", [True, False])
def test_framing_goes(said: str, expected: str, is_whole: bool) -> None:
    assert strip_framing(said.strip(), is_whole=is_whole) == expected
    (segment,) = parse(said, "stop" if is_whole else "length")
    assert segment.text == expected


@pytest.mark.parametrize("said", AS_IT_IS)
def test_what_is_no_framing_stays(said: str) -> None:
    (segment,) = parse(said)
    assert segment.text == said


@pytest.mark.parametrize("said", [each for each in AS_IT_IS if each not in UNCLOSED])
def test_what_is_no_framing_stays_where_the_text_was_cut(said: str) -> None:
    (segment,) = parse(said, "length")
    assert segment.text == said


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (f'{SPOKEN} "hello wor', "hello wor"),
        (f"{WRITTEN} 'it's five", "it's five"),
        (f'{WRITTEN} "ready" and', f'{WRITTEN} "ready" and'),
        (f'{WRITTEN} "they call it "ready"', 'they call it "ready'),
        (f"{SPOKEN} hello", f"{SPOKEN} hello"),
    ],
)
def test_framing_of_an_answer_that_was_cut(said: str, expected: str) -> None:
    (segment,) = parse(said, "length")
    assert segment.text == expected
    assert adapter().draft(answer(said, finish_reason=None)) == expected


def parse(said: str, finish_reason: str = "stop") -> list[Segment]:
    window = window_of(clip(2.0), start=60.0)
    return adapter().parse(answer(said, finish_reason=finish_reason), window, Options())


@pytest.mark.parametrize("said", ["", " ", "\n", f'{SPOKEN} "".', f"{WRITTEN} ' '"])
def test_no_text_is_no_segment(said: str) -> None:
    assert parse(said) == []


def test_a_segment_has_the_window_s_times() -> None:
    hypothesis = answer(" seven eight ")
    window = window_of(clip(2.5), start=60.125)
    (segment,) = adapter().parse(hypothesis, window, Options(temperature=0.2))
    logprobs = [*hypothesis.logprobs, -0.5]
    assert segment.avg_logprob == pytest.approx(sum(logprobs) / len(logprobs))
    assert segment.compression_ratio == pytest.approx(11 / 19)
    assert dataclasses.replace(segment, avg_logprob=None, compression_ratio=None) == Segment(
        id=0,
        start=60.125,
        end=62.625,
        text="seven eight",
        tokens=hypothesis.token_ids,
        temperature=0.2,
    )
    assert adapter().language(hypothesis, Options()) is None


def test_special_ids_never_reach_the_text() -> None:
    controls = tuple(token_id(name) for name in reference_processor().tokenizer.all_special_tokens)
    said = answer("seven")
    ids = (*controls, *said.token_ids, *controls)
    hypothesis = dataclasses.replace(said, token_ids=ids, logprobs=(-1.0,) * len(ids))
    (segment,) = adapter().parse(hypothesis, window_of(clip(1.0)), Options())
    assert (segment.text, segment.tokens) == ("seven", said.token_ids)


def test_a_character_that_was_cut_goes() -> None:
    said = answer("seven 音", finish_reason="length")
    ids = said.token_ids[:-1]
    cut = dataclasses.replace(said, token_ids=ids, logprobs=said.logprobs[: len(ids)])
    (segment,) = adapter().parse(cut, window_of(clip(1.0)), Options())
    assert segment.text == "seven"
    assert adapter().draft(cut) == "seven"


@settings(max_examples=200, deadline=None)
@given(st.text(st.characters(codec="utf-8", exclude_characters="\ufffd"), max_size=40))
def test_any_text_comes_back_as_it_was(text: str) -> None:
    ids = vocabulary().encode(text)
    assert vocabulary().text_ids(ids) == ids
    hypothesis = dataclasses.replace(answer(""), token_ids=tuple(ids), logprobs=(-1.0,) * len(ids))
    segments = adapter().parse(hypothesis, window_of(clip(1.0)), Options())
    assert [segment.text for segment in segments] == ([text.strip()] if text.strip() else [])
