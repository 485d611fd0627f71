"""Windows whose text comes to no end: heard again in two pieces, and told where that fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from asrcli import halves
from asrcli.attempts import Attempts
from asrcli.backends.base import Recognition
from asrcli.engine.loop import Engine
from asrcli.engine.request import Hypothesis, Request, Sampling
from asrcli.engine.token_runner import TokenRunner
from asrcli.models.base import Detection, Model
from asrcli.options import Options
from asrcli.transcript import Retry, Segment
from asrcli.windows import Window, halve
from tests.engine.tiny_decoder_only import NUM_MEL_BINS, VOCABULARY, build_decoder_only

RATE = 16_000
TIMEOUT = 60
EVERY_ID = frozenset(range(VOCABULARY))


@dataclass
class Conversation:
    """Both halves of a model that says how many ids it gave for a window, if it comes to an end.

    Attributes:
        endless: whether the model comes to no end in a window.
        says: how it words what it gave for a window; None says how many ids it was.
        prepared: the windows that it was given, with the languages.
    """

    endless: Callable[[Window], bool]
    says: Callable[[Window], list[Segment]] | None = None
    prepared: list[tuple[float, float, str | None]] = field(default_factory=list)
    detection: Detection = "none"
    max_duration: float = 30.0
    default_duration: float = 30.0

    def num_tokens(self, duration: float) -> int:
        return 20

    def check(self, options: Options) -> tuple[str, ...]:
        return ()

    def prepare(self, request_id: int, window: Window, options: Options) -> Request:
        self.prepared.append((window.start, window.end, options.language))
        return Request(
            request_id=request_id,
            prompt_token_ids=(3, 0, 0, 4),
            input_features=torch.ones(NUM_MEL_BINS, 4),
            audio_span=(1, 3),
            sampling=Sampling(
                max_new_tokens=options.max_new_tokens or 5,
                eos_token_ids=frozenset() if self.endless(window) else EVERY_ID,
            ),
        )

    @property
    def windows(self) -> list[tuple[float, float, str | None]]:
        """The windows that it was given, each once, however often it was heard."""
        return list(dict.fromkeys(self.prepared))

    def parse(self, hypothesis: Hypothesis, window: Window, options: Options) -> list[Segment]:
        if self.says is not None:
            return self.says(window)
        text = str(len(hypothesis.token_ids))
        return [Segment(id=0, start=window.start, end=window.end, text=text)]

    def draft(self, hypothesis: Hypothesis) -> str:
        return ""

    def language(self, hypothesis: Hypothesis, options: Options) -> str | None:
        return options.language


@pytest.fixture
def attempt() -> Iterator[Callable[..., tuple[Recognition, Conversation]]]:
    network = build_decoder_only()
    engine = Engine(TokenRunner(network, 4, 10_000, encode_batch_size=1), max_prefill=4)

    def run(
        endless: Callable[[Window], bool],
        duration: float,
        *,
        says: Callable[[Window], list[Segment]] | None = None,
        speech: tuple[tuple[float, float], ...] | None = None,
        detection: Detection = "none",
        **options: Any,
    ) -> tuple[Recognition, Conversation]:
        conversation = Conversation(endless, says, detection=detection)
        model = Model(processor=conversation, adapter=conversation, network=network)
        attempts = Attempts(model, engine)
        samples = np.ones(round(duration * RATE), np.float32)
        samples[round(0.4 * len(samples)) :][:4000] = 0.0  # a pause, 250 ms
        window = Window(
            recording_id=1,
            index=0,
            samples=samples,
            start=60.0,
            end=60.0 + len(samples) / RATE,
            speech=speech,
        )
        recognition = attempts.submit(window, Options(**options), None).result(TIMEOUT)
        attempts.close()
        return recognition, conversation

    yield run
    engine.close()


def test_a_text_that_ends_is_left_alone(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(lambda window: False, 10.0)
    assert conversation.prepared == [(60.0, 70.0, None)]
    assert [segment.text for segment in recognition.segments] == ["0"]
    assert recognition.losses == recognition.warnings == ()


def test_halves_take_the_place_of_a_window_without_an_end(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(
        lambda window: window.end - window.start > 9, 10.0, language="en"
    )
    assert conversation.prepared[0] == (60.0, 70.0, "en")
    assert conversation.prepared.count((60.0, 70.0, "en")) == 6  # temperatures come first
    (_, seam, _), (begin, end, _) = conversation.windows[1:]
    assert seam == begin == pytest.approx(64.125, abs=0.02)  # the middle of the pause
    assert (end, recognition.language) == (70.0, "en")
    assert [(s.start, s.end, s.text) for s in recognition.segments] == [
        (60.0, seam, "0"),
        (seam, 70.0, "0"),
    ]
    assert recognition.losses == recognition.warnings == ()
    assert recognition.retries == (
        Retry(start=60.0, end=70.0, reason="unfinished", outcome="resolved"),
    )


def test_a_half_without_an_end_is_a_loss_and_told(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(lambda window: window.start == 60.0, 10.0)
    assert len(conversation.windows) == 3
    assert [segment.text for segment in recognition.segments] == ["5", "0"]
    seam = conversation.windows[1][1]
    assert [(r.end, r.outcome) for r in recognition.retries] == [
        (70.0, "given up"),
        (round(seam, 3), "given up"),
    ]
    assert recognition.losses == (
        f"60.0-{seam:.1f} s: the text came to no end; words may be missing or made up",
    )


def test_what_is_too_short_is_not_halved(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(lambda window: True, 1.5)
    assert len(conversation.windows) == 1
    assert len(recognition.losses) == 1


def test_without_fallback_a_window_is_heard_once(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(lambda window: True, 10.0, fallback=False)
    assert len(conversation.prepared) == 1
    assert len(recognition.losses) == 1
    assert recognition.retries == (
        Retry(start=60.0, end=70.0, reason="unfinished", outcome="given up"),
    )


def test_a_bound_that_the_user_set_is_no_loss(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(lambda window: True, 10.0, max_new_tokens=2)
    assert len(conversation.prepared) == 1
    assert recognition.losses == ()
    assert recognition.warnings == (
        "60.0-70.0 s: the text reached its greatest length and may be cut short",
    )


@pytest.mark.parametrize("pause", [0, 4000])
def test_halves_cover_the_window(pause: int) -> None:
    """Cut in a pause; without one both hold what lies around the quietest place."""
    samples = np.arange(50_000, dtype=np.float32) + 1000
    samples[23_000 : 23_000 + pause] = 0.0
    window = Window(recording_id=1, index=4, samples=samples, start=1.0, end=1.0 + 50_000 / RATE)
    first, second = halve(window)
    num_first, num_second = len(first.samples), len(second.samples)
    assert np.array_equal(first.samples, samples[:num_first])
    assert np.array_equal(second.samples, samples[-num_second:])
    assert (first.start, second.end, first.index, second.index) == (1.0, window.end, 4, 4)
    assert first.end == pytest.approx(1.0 + num_first / RATE)
    assert second.start == pytest.approx(window.end - num_second / RATE)
    assert len(samples) / 3 < num_first < 2 * len(samples) / 3
    assert second.overlap == pytest.approx(first.end - second.start)
    num_shared = num_first + num_second - len(samples)
    if pause:
        assert num_shared == 0
        assert num_first == pytest.approx(25_000, abs=RATE // 100)
    else:
        assert len(samples) / 16 <= num_shared <= len(samples) / 8


def said(*texts: str, start: float, end: float) -> list[Segment]:
    """Segments of equal length between two times."""
    duration = (end - start) / len(texts)
    return [
        Segment(
            id=0,
            start=start + number * duration,
            end=start + (number + 1) * duration,
            text=text,
            avg_logprob=-0.2,
        )
        for number, text in enumerate(texts)
    ]


def test_halves_take_the_place_of_a_text_that_nobody_can_have_said(
    attempt: Callable[..., Any],
) -> None:
    """It came to an end each time, but is too much for its time, as made-up words are."""

    def says(window: Window) -> list[Segment]:
        if window.end - window.start > 11:
            return said("a b c d " * 100, start=window.start, end=window.end)
        return said(f"word {len(window.samples)}", start=window.start, end=window.end)

    recognition, conversation = attempt(lambda window: False, 12.0, says=says)
    assert len(conversation.windows) == 3
    assert [segment.text.split()[0] for segment in recognition.segments] == ["word", "word"]
    assert recognition.warnings == recognition.losses == ()
    assert [(retry.reason, retry.outcome) for retry in recognition.retries] == [
        ("too much", "resolved")
    ]


def test_a_text_stays_where_its_halves_are_no_better(attempt: Callable[..., Any]) -> None:
    def says(window: Window) -> list[Segment]:
        return said("a b c d " * 100, start=window.start, end=window.end)

    recognition, conversation = attempt(lambda window: False, 12.0, says=says)
    assert len(conversation.windows) == 3
    assert [(s.start, s.end) for s in recognition.segments] == [(60.0, 72.0)]
    assert recognition.warnings == (
        "60.0-72.0 s: more text than can be said in that time; some of it may be made up",
    )
    assert [(retry.reason, retry.outcome) for retry in recognition.retries] == [
        ("too much", "given up")
    ]


def test_what_both_halves_hold_is_told_once() -> None:
    samples = np.ones(20 * RATE, np.float32)
    window = Window(recording_id=1, index=0, samples=samples, start=0.0, end=20.0)
    halves_ = halve(window)
    seam, end = halves_[1].start, halves_[0].end
    assert 1.0 < end - seam < 3.0
    first = said("one two three", "four five six seven", start=0.0, end=end)
    second = said("six seven eight", "nine ten", start=seam, end=20.0)
    heard = [Recognition(segments=tuple(segments)) for segments in (first, second)]
    joined = halves.join(halves_, heard)
    text = " ".join(segment.text for segment in joined.segments)
    assert text == "one two three four five six seven eight nine ten"
    assert joined.warnings == ()


def silence(window: Window) -> list[Segment]:
    return []


def dots(window: Window) -> list[Segment]:
    return [Segment(id=0, start=window.start, end=window.end, text=" …… ")]


@pytest.mark.parametrize("says", [silence, dots])
@pytest.mark.parametrize("is_endless", [False, True])
def test_speech_in_which_the_model_finds_no_words_is_told(
    attempt: Callable[..., Any], says: Callable[[Window], list[Segment]], is_endless: bool
) -> None:
    """And tried again where it ran on and on, which it does over real words too."""
    recognition, conversation = attempt(
        lambda window: is_endless, 10.0, says=says, speech=((61.0, 63.0),)
    )
    assert recognition.segments == recognition.losses == ()
    assert recognition.warnings == ("60.7-70.0 s: speech was detected here, but no words",)
    assert len(conversation.prepared) == (6 if is_endless else 1)
    outcomes = [(retry.reason, retry.outcome) for retry in recognition.retries]
    assert outcomes == ([("unfinished", "silence")] if is_endless else [])


def test_no_words_where_nobody_speaks_need_no_word(attempt: Callable[..., Any]) -> None:
    for speech in (None, (), ((61.0, 61.5),)):
        recognition, conversation = attempt(lambda window: True, 10.0, says=dots, speech=speech)
        assert recognition == Recognition(segments=())
        assert len(conversation.prepared) == 1


def test_speech_behind_the_end_without_fallback_is_told(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(
        lambda window: False,
        10.0,
        says=lambda window: [Segment(id=0, start=60.0, end=63.0, text="Yes.")],
        speech=((61.0, 63.0), (66.0, 68.0)),
        fallback=False,
    )
    assert recognition.warnings == ("65.7-70.0 s: speech was detected here, but no words",)
    assert len(conversation.prepared) == 1


def up_to_a_second(window: Window) -> list[Segment]:
    text = f"{window.start:.0f}"
    return [Segment(id=0, start=window.start, end=window.start + 1.0, text=text)]


def test_speech_that_the_text_leaps_over_is_heard_by_itself(attempt: Callable[..., Any]) -> None:
    """Ahead of the first segment, between two, and behind the last."""

    def says(window: Window) -> list[Segment]:
        if window.end - window.start < 30.0:
            return [Segment(id=0, start=window.start, end=window.end, text=f"{window.start:.1f}")]
        times = ((65.8, 70.0), (78.0, 80.0), (80.6, 85.0))
        return [Segment(id=0, start=start, end=end, text="Yes.") for start, end in times]

    recognition, conversation = attempt(
        lambda window: False, 30.0, says=says, speech=((60.5, 64.0), (66.0, 83.0), (86.0, 88.5))
    )
    assert conversation.windows == [
        (60.0, 90.0, None),
        (60.2, 65.8, None),
        (70.0, 78.0, None),
        (85.7, 90.0, None),  # 0.6 s of speech, from 80.0 on, may be breath
    ]
    texts = [segment.text for segment in recognition.segments]
    assert texts == ["60.2", "Yes.", "70.0", "Yes.", "Yes.", "85.7"]
    assert {(retry.reason, retry.outcome) for retry in recognition.retries} == {
        ("unheard", "resolved")
    }
    assert len(recognition.retries) == 3
    assert recognition.warnings == recognition.losses == ()


@pytest.mark.parametrize(
    ("detection", "options", "expected"),
    [
        ("recording", {}, "en"),
        ("recording", {"multilingual": True}, None),  # the rest may be in another language
        ("window", {}, None),  # the model names it, window by window
        ("window", {"language": "de"}, "de"),
    ],
)
def test_in_which_language_parts_are_heard(
    attempt: Callable[..., Any], detection: Detection, options: dict[str, Any], expected: str | None
) -> None:
    _, conversation = attempt(
        lambda window: False,
        10.0,
        says=up_to_a_second,
        speech=((61.0, 63.0), (66.0, 68.0)),
        detection=detection,
        **options,
    )
    (_, _, first), (start, end, language), *_ = conversation.prepared
    assert (start, end, language) == (61.0, 70.0, expected)
    assert first == options.get("language")


def test_what_ends_early_again_and_again_is_given_up(attempt: Callable[..., Any]) -> None:
    recognition, conversation = attempt(
        lambda window: False, 10.0, says=up_to_a_second, speech=((60.0, 70.0),)
    )
    assert [window[0] for window in conversation.prepared] == [60.0, 61.0, 62.0, 63.0]
    assert [segment.text for segment in recognition.segments] == ["60", "61", "62", "63"]
    assert recognition.warnings == ("64.0-70.0 s: speech was detected here, but no words",)
    assert [retry.reason for retry in recognition.retries] == ["unheard"] * 3
