"""Whisper's prompts and what is read back: three vocabularies, one grammar."""

from __future__ import annotations

import dataclasses
import itertools
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from asrcli.engine.request import Hypothesis
from asrcli.errors import CheckpointError, UsageError
from asrcli.languages import LANGUAGES
from asrcli.models.base import Checkpoint
from asrcli.models.files import read_model_files
from asrcli.models.log_mel import LogMel
from asrcli.models.whisper import WhisperAdapter, WhisperProcessor
from asrcli.models.whisper_vocabulary import Vocabulary
from asrcli.options import Options
from asrcli.transcript import Segment
from asrcli.windows import Window
from tests.speech import RATE, window_of

GOLDEN = json.loads((Path(__file__).parent / "golden" / "whisper.json").read_text("utf-8"))
SILENCE = np.zeros(RATE, np.float32)
FIRST_TIMESTAMPS = {"english": 50363, "multilingual": 50364, "large-v3": 50365}


@cache
def vocabulary(kind: str) -> Vocabulary:
    """The ids of a release, over words that stand for its texts."""
    num_words = 50256 if kind == "english" else 50257
    tokenizer = Tokenizer(WordLevel({f"w{i}": i for i in range(num_words)}, unk_token="w0"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    codes = ["jw" if code == "jv" else code for code in LANGUAGES if code not in ("en", "yue")]
    codes = ["en", *codes, *(["yue"] if kind == "large-v3" else [])]
    names = ["endoftext", "startoftranscript", *codes, "translate", "transcribe", "startoflm"]
    no_speech = "nocaptions" if kind == "english" else "nospeech"
    names += ["startofprev", no_speech, "notimestamps"]
    tokenizer.add_special_tokens([AddedToken(f"<|{name}|>", special=True) for name in names])
    return Vocabulary(tokenizer, kind != "english")


@cache
def processor(kind: str) -> WhisperProcessor:
    return WhisperProcessor(f"whisper:{kind}", vocabulary(kind), LogMel(80), {})


def prompt(kind: str, options: Options) -> tuple[int, ...]:
    return processor(kind).prepare(0, window_of(SILENCE), options).prompt_token_ids


@pytest.mark.parametrize(("kind", "expected"), FIRST_TIMESTAMPS.items())
def test_the_first_time_is_behind_no_timestamps(kind: str, expected: int) -> None:
    assert vocabulary(kind).first_timestamp == expected


@pytest.mark.parametrize(
    ("kind", "options", "expected"),
    [
        ("multilingual", Options(language="en"), (50258, 50259, 50359)),
        ("multilingual", Options(language="en", task="translate"), (50258, 50259, 50358)),
        ("multilingual", Options(language="en", timestamps="none"), (50258, 50259, 50359, 50363)),
        ("multilingual", Options(), (50258,)),
        ("multilingual", Options(timestamps="none"), (50258,)),
        ("large-v3", Options(language="en"), (50258, 50259, 50360)),
        ("large-v3", Options(language="yue"), (50258, 50358, 50360)),
        ("large-v3", Options(language="en", task="translate"), (50258, 50259, 50359)),
        ("large-v3", Options(language="en", timestamps="none"), (50258, 50259, 50360, 50364)),
        ("english", Options(), (50257,)),
        ("english", Options(language="en"), (50257,)),
        ("english", Options(timestamps="none"), (50257, 50362)),
        ("multilingual", Options(language="en", prompt=" w5 w7 "),
         (50361, 5, 7, 50258, 50259, 50359)),
        ("english", Options(prompt="w5"), (50360, 5, 50257)),
        ("english", Options(prompt="  "), (50257,)),
    ],
)  # fmt: skip
def test_prompts(kind: str, options: Options, expected: tuple[int, ...]) -> None:
    assert prompt(kind, options) == expected


@pytest.mark.parametrize("kind", FIRST_TIMESTAMPS)
@pytest.mark.parametrize("options", [Options(), Options(prompt="w1 w2 w3"), Options(language="en")])
def test_requests(kind: str, options: Options) -> None:
    window = dataclasses.replace(window_of(SILENCE), index=3)
    request = processor(kind).prepare(17, window, dataclasses.replace(options, seed=100))
    ids = vocabulary(kind).token_id
    assert request.request_id == 17
    assert request.input_features.shape == (80, 3000)
    assert request.sampling.eos_token_ids == {ids("<|endoftext|>")}
    assert request.sampling.max_new_tokens == 448 - len(request.prompt_token_ids)
    assert request.sampling.seed == 103
    assert request.no_speech is not None
    position, no_speech = request.no_speech
    assert request.prompt_token_ids[position] == ids("<|startoftranscript|>")
    assert no_speech == FIRST_TIMESTAMPS[kind] - 2


@pytest.mark.parametrize(
    ("duration", "num_frames", "max_new_tokens"),
    [
        (0.3, 40, 34),
        (5.0, 520, 105),
        (5.1, 520, 106),
        (24.0, 2420, 390),
        (29.3, 2940, 445),
        (29.4, 3000, 445),
    ],
)
def test_short_windows_spare_silence(duration: float, num_frames: int, max_new_tokens: int) -> None:
    """A tenth of a second stays behind the audio, in steps of a fifth; no feature changes."""
    samples = np.sin(np.arange(round(duration * 16_000), dtype=np.float32))
    window = window_of(samples)
    whole = processor("multilingual").prepare(0, window, Options(language="en"))
    sparing = WhisperProcessor("x", vocabulary("multilingual"), LogMel(80), {}, spares_silence=True)
    request = sparing.prepare(0, window, Options(language="en"))
    assert request.is_shortened is (num_frames < 3000)
    assert request.sampling.max_new_tokens == max_new_tokens
    assert torch.equal(request.input_features, whole.input_features[:, :num_frames])
    full = sparing.prepare(0, window, Options(language="en", audio_context="full"))
    assert not full.is_shortened
    assert torch.equal(full.input_features, whole.input_features)


def test_rows_of_equal_options_share_their_rules() -> None:
    prepare = processor("multilingual").prepare
    window = window_of(SILENCE)
    rules = [
        prepare(i, window, Options(language=code)).sampling.logits_rules
        for i, code in enumerate(("en", "de"))
    ]
    assert all(first is second for first, second in zip(*rules, strict=True))
    other = prepare(2, window, Options(language="de", timestamps="none")).sampling.logits_rules
    assert other is not rules[0]


@pytest.mark.parametrize(
    ("duration", "speech", "time", "may_stop"),
    [
        (30.0, ((0.5, 29.9),), 28.98, False),  # it goes on behind the cut, and nobody comes back
        (30.0, ((0.5, 29.9),), 29.0, True),  # nor need it fill a last second with words
        (30.0, None, 29.0, False),  # where nobody has looked for speech, none is left out
        (30.0, None, 30.0, True),
        (19.0, ((0.5, 18.9),), 3.0, True),  # no cut
    ],
)
def test_where_a_text_may_stop_at_the_start_of_a_segment(
    duration: float, speech: tuple[tuple[float, float], ...] | None, time: float, may_stop: bool
) -> None:
    samples = np.zeros(round(duration * RATE), np.float32)
    window = dataclasses.replace(window_of(samples), speech=speech)
    request = processor("multilingual").prepare(0, window, Options(language="en"))
    first = vocabulary("multilingual").first_timestamp
    logits = torch.zeros(1, first + 1501)
    for rule in request.sampling.logits_rules:
        rule(logits, [[first, 1, first + round(time / 0.02), first + round(time / 0.02)]])
    assert bool(logits[0, vocabulary("multilingual").eos].isfinite()) is may_stop


def test_a_bound_on_new_ids_leaves_room_for_the_preamble() -> None:
    prepare = processor("multilingual").prepare
    window = window_of(SILENCE)
    given_ = prepare(0, window, Options(language="en", max_new_tokens=10)).sampling
    detected = prepare(0, window, Options(max_new_tokens=10)).sampling
    most = prepare(0, window, Options(language="en", max_new_tokens=1000)).sampling
    assert (given_.max_new_tokens, detected.max_new_tokens) == (10, 13)
    assert most.max_new_tokens == 448 - 3


@pytest.mark.parametrize("kind", ["multilingual", "large-v3"])
@pytest.mark.parametrize("task", ["transcribe", "translate"])
@pytest.mark.parametrize("timestamps", ["none", "segment"])
def test_what_the_model_is_made_to_say_is_the_prompt_of_a_given_language(
    kind: str, task: str, timestamps: str
) -> None:
    options = Options(task=task, timestamps=timestamps)
    request = processor(kind).prepare(0, window_of(SILENCE), options)
    korean = vocabulary(kind).languages["ko"]
    produced: list[int] = []
    given_ = prompt(kind, dataclasses.replace(options, language="ko"))
    while len(request.prompt_token_ids) + len(produced) < len(given_):
        logits = torch.zeros(1, 52000)
        logits[0, korean] = 1.0
        for rule in request.sampling.logits_rules:
            rule(logits, [produced])
        produced.append(int(logits.argmax()))
    assert (*request.prompt_token_ids, *produced) == given_
    hypothesis = Hypothesis(
        request_id=0, token_ids=tuple(produced), logprobs=(0.0,) * len(produced), finish_reason=None
    )
    assert WhisperAdapter(vocabulary(kind)).language(hypothesis, options) == "ko"


def test_long_prompts_lose_their_start_and_say_so() -> None:
    words = [f"w{i}" for i in range(300)]
    options = Options(language="en", prompt=" ".join(words))
    assert processor("multilingual").check(options) == (
        "prompt and hotwords are longer than 223 tokens: their start is cut",
    )
    assert prompt("multilingual", options) == (50361, *range(77, 300), 50258, 50259, 50359)
    short = Options(language="en", prompt=" ".join(words[:223]))
    assert processor("multilingual").check(short) == ()
    assert prompt("multilingual", short)[1:224] == tuple(range(223))


def test_javanese_has_another_name_there() -> None:
    known = vocabulary("multilingual")
    assert known.languages["jv"] == known.token_id("<|jw|>")
    assert "jw" not in known.languages
    assert prompt("multilingual", Options(language="Javanese"))[1] == known.token_id("<|jw|>")
    said = Hypothesis(
        request_id=0, token_ids=(known.token_id("<|jw|>"),), logprobs=(0.0,), finish_reason=None
    )
    assert WhisperAdapter(known).language(said, Options()) == "jv"


def test_languages_of_each_release() -> None:
    assert len(vocabulary("multilingual").languages) == 99
    assert len(vocabulary("large-v3").languages) == 100
    assert vocabulary("english").languages == {}


def test_languages_that_a_release_does_not_know() -> None:
    with pytest.raises(UsageError, match="whisper:multilingual does not know Cantonese") as caught:
        processor("multilingual").check(Options(language="yue"))
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("it knows: en, af, am")
    assert "yue" not in caught.value.hint
    assert processor("large-v3").check(Options(language="yue")) == ()
    with pytest.raises(UsageError, match="whisper:english does not know German") as caught:
        processor("english").check(Options(language="de"))
    assert caught.value.hint == "it knows: en"
    assert processor("english").check(Options(language="en")) == ()


def test_english_models_do_not_translate() -> None:
    with pytest.raises(UsageError, match="knows English only and cannot translate"):
        processor("english").check(Options(task="translate"))
    assert processor("large-v3").check(Options(task="translate")) == ()


def test_a_tokenizer_of_something_else() -> None:
    with pytest.raises(CheckpointError, match=r"no token <\|notimestamps\|>"):
        _ = Vocabulary(Tokenizer(WordLevel({"a": 0}, unk_token="a")), True).first_timestamp


# ---- what is read back, with whisper-base's own tokenizer

START, EOS = 50364, 50257
DE, TRANSCRIBE, NO_TIMESTAMPS = 50261, 50359, 50363
ENGLISH = Options(language="en")


@pytest.fixture(scope="session")
def base(base_checkpoint: Checkpoint) -> Vocabulary:
    files = read_model_files(base_checkpoint)
    return Vocabulary(Tokenizer.from_file(str(files.tokenizer_path)), True)


def window(duration: float, start: float = 0.0) -> Window:
    return window_of(np.zeros(round(duration * RATE), np.float32), start=start)


def ids_of(base: Vocabulary, *parts: float | str | int) -> tuple[int, ...]:
    """Ids of texts, of times (floats) and of ids as they are."""
    ids: list[int] = []
    for part in parts:
        if isinstance(part, str):
            ids += base.tokenizer.encode(part, add_special_tokens=False).ids
        elif isinstance(part, float):
            ids.append(START + round(part / 0.02))
        else:
            ids.append(part)
    return tuple(ids)


def say(
    base: Vocabulary,
    *parts: float | str | int,
    logprob: float = -0.2,
    no_speech: float | None = 0.01,
) -> Hypothesis:
    ids = ids_of(base, *parts)
    return Hypothesis(
        request_id=0,
        token_ids=ids,
        logprobs=(logprob,) * len(ids),
        eos_logprob=logprob,
        no_speech_prob=no_speech,
        finish_reason="stop",
    )


def spans(segments: Sequence[Segment]) -> list[tuple[float, float, str]]:
    return [(segment.start, segment.end, segment.text) for segment in segments]


def test_pairs_of_times(base: Vocabulary) -> None:
    said = say(base, 0.0, " Hello there.", 1.5, 1.6, " Bye.", 2.98)
    segments = WhisperAdapter(base).parse(said, window(3.0, start=60.0), ENGLISH)
    first = segments[0]
    assert spans([first]) == [(60.0, 61.5, "Hello there.")]
    assert (first.id, first.tokens) == (0, ids_of(base, " Hello there."))
    assert (first.no_speech_prob, first.temperature, first.language) == (0.01, 0.0, "en")
    assert first.avg_logprob == pytest.approx(-0.2)
    assert first.compression_ratio == segments[1].compression_ratio
    assert first.words == ()
    assert spans(segments[1:]) == [(61.6, 62.98, "Bye.")]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ([0.0, " One.", 1.0, 1.0, " Two."], [(10.0, 11.0, "One."), (11.0, 12.5, "Two.")]),
        ([0.0, " One."], [(10.0, 12.5, "One.")]),
        ([0.0, " One.", 1.0, 1.0, " Two.", 29.0], [(10.0, 11.0, "One."), (11.0, 12.5, "Two.")]),
        ([0.0, " One.", 1.0, 20.0, " Two.", 29.0], [(10.0, 12.5, "One. Two.")]),
        ([0.0, " One.", 2.5, 2.5, " Two.", 3.0], [(10.0, 12.5, "One. Two.")]),
        ([0.0, " One.", 1.0, 1.0, " Two.", 1.0, 1.0, " Six.", 2.0],
         [(10.0, 11.0, "One. Two."), (11.0, 12.0, "Six.")]),
        ([0.0, " One.", 1.0], [(10.0, 11.0, "One.")]),
        ([0.0, " One.", 1.0, 1.5], [(10.0, 11.0, "One.")]),
        ([0.5, " ", 1.0, 1.0, " Two.", 2.0], [(11.0, 12.0, "Two.")]),
        ([" One two."], [(10.0, 12.5, "One two.")]),
        ([0.0], []),
        ([], []),
    ],
)  # fmt: skip
def test_times_that_are_missing_or_odd(
    base: Vocabulary, parts: list[float | str], expected: list[tuple[float, float, str]]
) -> None:
    said = say(base, *parts)
    assert spans(WhisperAdapter(base).parse(said, window(2.5, start=10.0), ENGLISH)) == expected


def test_without_times_the_window_is_one_segment(base: Vocabulary) -> None:
    options = Options(timestamps="none")
    said = say(base, DE, TRANSCRIBE, NO_TIMESTAMPS, " Guten Tag. Das ist alles.")
    (segment,) = WhisperAdapter(base).parse(said, window(4.0, start=2.0), options)
    assert (segment.start, segment.end, segment.language) == (2.0, 6.0, "de")
    assert segment.text == "Guten Tag. Das ist alles."


def test_the_language_that_the_model_named(base: Vocabulary) -> None:
    adapter = WhisperAdapter(base)
    said = say(base, DE, TRANSCRIBE, 0.0, " Guten Tag.", 1.0)
    assert adapter.language(said, Options()) == "de"
    assert adapter.language(said, Options(language="fr")) == "fr"
    assert adapter.language(say(base), Options()) is None
    assert adapter.parse(said, window(1.0), Options())[0].language == "de"
    assert adapter.parse(said, window(1.0), Options(task="translate"))[0].language == "en"
    assert WhisperAdapter(vocabulary("english")).language(said, Options()) == "en"


def test_forced_ids_say_nothing_of_the_confidence(base: Vocabulary) -> None:
    ids = ids_of(base, DE, TRANSCRIBE, 0.0, " Tag", 1.0)
    said = Hypothesis(
        request_id=0,
        token_ids=ids,
        logprobs=(-50.0, -50.0, -1.0, -2.0, -3.0),
        eos_logprob=-4.0,
        finish_reason="stop",
    )
    (segment,) = WhisperAdapter(base).parse(said, window(1.0), Options())
    assert segment.avg_logprob == pytest.approx(-2.5)
    cut_short = dataclasses.replace(said, eos_logprob=None, finish_reason="length")
    (segment,) = WhisperAdapter(base).parse(cut_short, window(1.0), Options())
    assert segment.avg_logprob == pytest.approx(-2.0)


@pytest.mark.parametrize(
    ("no_speech", "logprob", "is_speech"),
    [(0.7, -1.5, False), (0.7, -0.5, True), (0.5, -1.5, True), (None, -1.5, True)],
)
def test_silence(
    base: Vocabulary, no_speech: float | None, logprob: float, is_speech: bool
) -> None:
    said = say(base, 0.0, " Thank you.", 1.0, logprob=logprob, no_speech=no_speech)
    assert bool(WhisperAdapter(base).parse(said, window(2.0), ENGLISH)) is is_speech


def test_no_id_above_the_text_reaches_the_text(base: Vocabulary) -> None:
    special = range(EOS, START)
    said = say(base, 0.0, " One", *special, " two.", 1.0, 1.0, *special, 51864)
    segments = WhisperAdapter(base).parse(said, window(2.0), ENGLISH)
    assert spans(segments) == [(0.0, 1.0, "One two.")]
    assert segments[0].tokens == ids_of(base, " One", " two.")
    assert WhisperAdapter(base).draft(said) == "One two."


def test_a_character_that_was_broken_off(base: Vocabulary) -> None:
    ids = ids_of(base, " 안녕하세요 뷁")
    assert base.tokenizer.decode(list(ids[:-1])).endswith("\ufffd")
    said = say(base, 0.0, *ids[:-1])
    (segment,) = WhisperAdapter(base).parse(said, window(2.0), Options(language="ko"))
    assert segment.text == "안녕하세요"
    assert WhisperAdapter(base).draft(said) == "안녕하세요"


def test_repetition_shows_in_the_compression_ratio(base: Vocabulary) -> None:
    adapter = WhisperAdapter(base)
    plain = say(base, 0.0, " The quick brown fox jumps over the lazy dog.", 3.0)
    loop = say(base, 0.0, " and so on" * 30, 3.0)
    (segment,) = adapter.parse(plain, window(3.0), ENGLISH)
    assert segment.compression_ratio is not None
    assert segment.compression_ratio < 1.2
    (segment,) = adapter.parse(loop, window(3.0), ENGLISH)
    assert segment.compression_ratio is not None
    assert segment.compression_ratio > 2.4


@st.composite
def histories(draw: st.DrawFn) -> list[float | str]:
    """What the grammar lets a model write; perhaps cut short, perhaps beyond its audio."""
    words = st.sampled_from([" One.", " Two three", " 日本語", " é", " ", " ..."])
    parts: list[float | str] = []
    time = draw(st.integers(0, 50))
    for _ in range(draw(st.integers(0, 5))):
        parts += [time * 0.02, draw(words)]
        time = min(1500, time + draw(st.integers(1, 400)))
        parts.append(time * 0.02)
        time = min(1500, time + draw(st.sampled_from([0, 0, 1, 37])))
        if time == 1500:
            break
    return parts[: len(parts) - draw(st.integers(0, 2))] if parts else parts


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=histories(), num_samples=st.integers(1600, 480_000), start=st.integers(0, 10**9))
def test_times_lie_in_the_window_and_no_word_is_lost(
    base: Vocabulary, parts: list[float | str], num_samples: int, start: int
) -> None:
    audio = window_of(np.zeros(num_samples, np.float32), start=start / RATE)
    segments = WhisperAdapter(base).parse(say(base, *parts), audio, ENGLISH)
    times = list(itertools.chain.from_iterable((s.start, s.end) for s in segments))
    assert times == sorted(times)
    assert all(segment.start < segment.end for segment in segments)
    if segments:
        assert times[0] >= audio.start - 5e-4  # they are rounded to milliseconds
        assert times[-1] <= audio.end + 5e-4
    text = [part for part in parts if isinstance(part, str)]
    spoken = [part for part in text if part.strip()]
    assert "".join("".join(segment.text for segment in segments).split()) == "".join(
        "".join(spoken).split()
    )
    tokens = [token_id for segment in segments for token_id in segment.tokens]
    assert tokens == [token_id for part in spoken for token_id in ids_of(base, part)]
    assert [segment.id for segment in segments] == list(range(len(segments)))


# ---- the golden file


@pytest.fixture(scope="session")
def base_processor(base: Vocabulary, base_checkpoint: Checkpoint) -> WhisperProcessor:
    settings_ = dict(read_model_files(base_checkpoint).generation_config)
    return WhisperProcessor("whisper:base", base, LogMel(80), settings_)


@pytest.mark.parametrize("case", GOLDEN["prompts"], ids=lambda case: str(case["options"]))
def test_golden_prompts(base_processor: WhisperProcessor, case: dict[str, Any]) -> None:
    request = base_processor.prepare(0, window_of(SILENCE), Options(**case["options"]))
    assert list(request.prompt_token_ids) == case["prompt_token_ids"]
    assert request.no_speech == tuple(case["no_speech"])
    assert request.sampling.max_new_tokens == case["max_new_tokens"]


@pytest.mark.parametrize("case", GOLDEN["hypotheses"], ids=lambda case: str(case["name"]))
def test_golden_hypotheses(base: Vocabulary, case: dict[str, Any]) -> None:
    said = case["hypothesis"]
    hypothesis = Hypothesis(
        request_id=0,
        token_ids=tuple(said["token_ids"]),
        logprobs=tuple(said["logprobs"]),
        eos_logprob=said["eos_logprob"],
        no_speech_prob=said["no_speech_prob"],
        finish_reason=said["finish_reason"],
    )
    audio = window(case["window"]["duration"], start=case["window"]["start"])
    options = Options(**case["options"])
    segments = WhisperAdapter(base).parse(hypothesis, audio, options)
    found = [dataclasses.asdict(segment) for segment in segments]
    assert json.loads(json.dumps(found)) == [_near(expected) for expected in case["segments"]]
    assert WhisperAdapter(base).language(hypothesis, options) == case["language"]


def _near(expected: dict[str, Any]) -> dict[str, Any]:
    return {
        name: pytest.approx(value) if isinstance(value, float) else value
        for name, value in expected.items()
    }
