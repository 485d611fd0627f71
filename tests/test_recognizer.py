"""whisper-base on real speech and on the samples, through the recognizer."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile
from transformers.models.whisper.english_normalizer import BasicTextNormalizer

from asrcli.backends.base import Backend, Recognition
from asrcli.engine.request import Hypothesis, Request
from asrcli.errors import AudioError, CheckpointError, EngineError, UsageError
from asrcli.models.base import Checkpoint
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Transcript
from asrcli.windows import Window
from tests.speech import RATE, SAMPLES, Sentence, read, window_of

TIMEOUT = 300.0  # s


def text_of(recognition: Recognition) -> str:
    return " ".join(segment.text for segment in recognition.segments)


def recognise(recognizer: Recognizer, window: Window, options: Options) -> Recognition:
    return recognizer.submit(window, options).result(TIMEOUT)


def test_it_is_a_backend(whisper_base: Recognizer) -> None:
    backend: Backend = whisper_base
    assert backend.name == "whisper:base"
    assert backend.window_duration(Options()) == 29.0
    assert backend.max_in_flight(Options()) == 32
    assert whisper_base.description.startswith("whisper:base · cpu · float32 · ")


def test_drafts_grow_into_the_text(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    drafts: list[str] = []
    window = window_of(read(speech[0].path))
    recognition = whisper_base.submit(window, Options(), drafts.append).result(TIMEOUT)
    assert recognition.language == "en"
    assert len(drafts) > 15
    assert drafts[-1] == text_of(recognition)
    assert all(later.startswith(draft) for draft, later in itertools.pairwise(drafts))
    assert len({*drafts}) > 10


def test_beams_find_a_text_that_is_as_likely_or_more(
    whisper_base: Recognizer, speech: list[Sentence]
) -> None:
    """And more so in noise, where there is a choice; the words are there in both."""
    options = Options(language="en", audio_context="full", fallback=False)
    gains = []
    for number, sentence in enumerate(speech[:4]):
        samples = read(sentence.path)
        noise = np.random.default_rng(number).standard_normal(len(samples)).astype(np.float32)
        window = window_of(samples + 0.5 * np.sqrt(np.mean(samples**2)) * noise)
        likely = [
            recognise(whisper_base, window, replace(options, beam_size=num_beams)).segments[0]
            for num_beams in (1, 5)
        ]
        first, second = (segment.avg_logprob for segment in likely)
        assert first is not None
        assert second is not None
        gains.append(second - first)
    assert min(gains) >= -1e-4
    assert max(gains) > 1e-3


def test_times_are_those_of_the_recording(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    samples = read(speech[0].path)
    options = Options(language="en")
    at_start = recognise(whisper_base, window_of(samples), options).segments
    later = recognise(whisper_base, window_of(samples, start=3600.0), options).segments
    assert [s.text for s in later] == [s.text for s in at_start]
    assert [s.start - 3600 for s in later] == pytest.approx([s.start for s in at_start], abs=1e-3)
    assert at_start[-1].end == pytest.approx(len(samples) / RATE, abs=0.3)


def test_without_times(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    window = window_of(read(speech[1].path), start=5.0)
    (segment,) = recognise(whisper_base, window, Options(timestamps="none")).segments
    assert (segment.start, segment.end) == (5.0, round(window.end, 3))
    assert BasicTextNormalizer()(segment.text).strip() == "he was not an ill disposed young man"


@pytest.mark.parametrize(
    ("name", "language"),
    [("german-espeak", "de"), ("spanish-espeak", "es"), ("english-slt", "en")],
)
def test_samples(whisper_base: Recognizer, name: str, language: str) -> None:
    transcript = whisper_base.transcribe(SAMPLES / f"{name}.flac")
    assert transcript.language == language
    assert {segment.language for segment in transcript.segments} == {language}
    normalise = BasicTextNormalizer()
    expected = normalise((SAMPLES / f"{name}.txt").read_text("utf-8"))
    assert jiwer.wer(expected, normalise(transcript.text)) <= 0.2, transcript.text


def test_each_window_may_have_its_own_language(whisper_base: Recognizer, tmp_path: Path) -> None:
    names = ("german-espeak", "spanish-espeak", "english-slt")
    pieces = [read(SAMPLES / f"{name}.flac") for name in names]
    silence = np.zeros(5 * RATE, np.float32)
    samples = np.concatenate([part for piece in pieces for part in (piece, silence)])
    soundfile.write(tmp_path / "a.wav", samples, RATE)
    transcript = whisper_base.transcribe(tmp_path / "a.wav", Options(multilingual=True))
    assert transcript.language == "de"
    starts = np.cumsum([0, *(len(piece) + len(silence) for piece in pieces[:2])]) / RATE
    for name, language, start in zip(names, ("de", "es", "en"), starts, strict=True):
        alone = whisper_base.transcribe(SAMPLES / f"{name}.flac")
        found = [segment for segment in transcript.segments if segment.language == language]
        assert jiwer.wer(alone.text, " ".join(segment.text for segment in found)) <= 0.1
        assert found[0].start == pytest.approx(start, abs=0.5)
    order = dict.fromkeys(segment.language for segment in transcript.segments)
    assert list(order) == ["de", "es", "en"]


def test_without_being_asked_one_language_holds_for_all(
    whisper_base: Recognizer, tmp_path: Path
) -> None:
    """And it is told on speech: the recording begins with silence."""
    silence = np.zeros(5 * RATE, np.float32)
    names = ("german-espeak", "spanish-espeak")
    parts = [part for name in names for part in (silence, read(SAMPLES / f"{name}.flac"))]
    soundfile.write(tmp_path / "a.wav", np.concatenate(parts), RATE)
    transcript = whisper_base.transcribe(tmp_path / "a.wav")
    assert {segment.language for segment in transcript.segments} == {transcript.language} == {"de"}


def test_translation(whisper_base: Recognizer) -> None:
    path = SAMPLES / "spanish-espeak.flac"
    transcript = whisper_base.transcribe(path, Options(task="translate"))
    assert (transcript.language, transcript.task) == ("es", "translate")
    assert {segment.language for segment in transcript.segments} == {"en"}
    assert "family" in transcript.text
    assert "familia" not in transcript.text


def test_a_prompt_does_not_sway_the_language(whisper_base: Recognizer) -> None:
    path = SAMPLES / "german-espeak.flac"
    options = Options(prompt="Once upon a time, there was a little girl who lived in a village.")
    transcript = whisper_base.transcribe(path, options)
    assert transcript.language == "de"
    assert "Haus" in transcript.text


def test_a_prompt_sways_the_spelling(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    window = window_of(read(speech[0].path))
    plain = text_of(recognise(whisper_base, window, Options(language="en")))
    options = Options(language="en", prompt="mister john dashwood and mister henry dashwood said")
    prompted = text_of(recognise(whisper_base, replace(window, recording_id=-7), options))
    assert "Mr. John Dashwood" in plain
    assert "mister" in prompted.lower()


def test_equal_seeds_draw_equal_texts(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    samples = read(speech[3].path)
    options = Options(language="en", temperature=1.0, seed=11)
    futures = [
        whisper_base.submit(window_of(samples), replace(options, seed=seed))
        for seed in (11, 11, 12, 13, 14)
    ]
    tokens = [[s.tokens for s in future.result(TIMEOUT).segments] for future in futures]
    assert tokens[0] == tokens[1]
    assert len({str(each) for each in tokens}) > 1
    alone = recognise(whisper_base, window_of(samples), options)
    assert [segment.tokens for segment in alone.segments] == tokens[0]
    assert {segment.temperature for segment in alone.segments} == {1.0}


def test_silence_is_known_to_be_no_speech(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    """What little the model says there carries its own warning."""
    silence = np.zeros(10 * RATE, np.float32)
    segments = recognise(whisper_base, window_of(silence), Options()).segments
    assert all((segment.no_speech_prob or 0) > 0.6 for segment in segments)
    assert len(segments) <= 1
    spoken = recognise(whisper_base, window_of(read(speech[1].path)), Options()).segments
    assert all(segment.no_speech_prob is not None for segment in spoken)
    assert all((segment.no_speech_prob or 0) < 0.1 for segment in spoken)


def test_windows_after_silence_name_the_language(whisper_base: Recognizer) -> None:
    silence = np.zeros(4 * RATE, np.float32)
    german = read(SAMPLES / "german-espeak.flac")
    windows = [
        window_of(samples, index=index, start=30.0 * index, recording_id=-1)
        for index, samples in enumerate((silence, german, german))
    ]
    futures = [whisper_base.submit(window, Options()) for window in windows]
    results = [future.result(TIMEOUT) for future in futures]
    assert [result.language for result in results[1:]] == ["de", "de"]
    assert text_of(results[1]) == text_of(results[2])
    assert results[2].segments[0].start >= 60.0


def test_a_text_that_is_cut_short_says_so(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    window = window_of(read(speech[0].path), start=30.0)
    recognition = recognise(whisper_base, window, Options(language="en", max_new_tokens=6))
    assert recognition.warnings == (
        f"30.0-{window.end:.1f} s: the text reached its greatest length and may be cut short",
    )
    assert text_of(recognition) == "And Mr. John Dash"


def test_what_the_model_cannot_do(whisper_base: Recognizer, speech: list[Sentence]) -> None:
    with pytest.raises(UsageError, match="whisper:base does not know Cantonese"):
        whisper_base.transcribe(speech[0].path, Options(language="yue"))
    assert whisper_base.check(Options(prompt="word " * 300)) == (
        "prompt and hotwords are longer than 223 tokens: their start is cut",
    )


def test_a_file_that_is_not_there(whisper_base: Recognizer, tmp_path: Path) -> None:
    with pytest.raises(AudioError, match=r"none\.wav"):
        whisper_base.transcribe(tmp_path / "none.wav")


def test_models_and_devices_that_are_not_there() -> None:
    with pytest.raises(CheckpointError, match="no such model"):
        Recognizer("whisper:huge")
    with pytest.raises(UsageError, match="device 'tpu' is unknown"):
        Recognizer("whisper:base", device="tpu")
    with pytest.raises(UsageError, match="dtype 'int1' is unknown"):
        Recognizer("whisper:base", dtype="int1")


def test_many_threads_and_two_recognizers(
    whisper_base: Recognizer, whisper_base_bfloat16: Recognizer, speech: list[Sentence]
) -> None:
    """Whoever asks, and beside whom, gets what he gets alone."""
    one_by_one = [whisper_base.transcribe(sentence.path) for sentence in speech]
    found: list[tuple[int, Transcript]] = []
    in_bfloat16: list[str] = []

    def transcribe(thread: int) -> None:
        for index in (thread, thread + 2):
            found.append((index, whisper_base.transcribe(speech[index].path)))

    def transcribe_beside() -> None:
        in_bfloat16.append(whisper_base_bfloat16.transcribe(speech[1].path).text)

    threads = [threading.Thread(target=transcribe, args=(i,)) for i in range(3)]
    threads.append(threading.Thread(target=transcribe_beside))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(TIMEOUT)
    assert sorted(index for index, _ in found) == [0, 1, 2, 2, 3, 4]
    for index, transcript in found:
        expected = one_by_one[index]
        assert (transcript.text, transcript.language) == (expected.text, expected.language)
        for segment, other in zip(transcript.segments, expected.segments, strict=True):
            assert (segment.start, segment.end) == (other.start, other.end)
            assert segment.tokens == other.tokens
            assert segment.avg_logprob == pytest.approx(other.avg_logprob, abs=1e-3)
    assert in_bfloat16 == [one_by_one[1].text]


def test_a_short_window_without_words_is_heard_again_in_full(
    whisper_base: Recognizer, speech: list[Sentence], monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[Request] = []
    submit = whisper_base._engine.submit

    def watch(request: Request) -> Future[Hypothesis]:
        requests.append(request)
        return submit(request)

    monkeypatch.setattr(whisper_base._engine, "submit", watch)
    hiss = np.random.default_rng(0).normal(0, 1e-3, 2 * RATE).astype(np.float32)
    for samples in (read(speech[0].path), hiss):
        whisper_base.submit(window_of(samples), Options(language="en")).result(TIMEOUT)
    assert [request.is_shortened for request in requests] == [True, True, False]


# ---- failures on the way; each with a recognizer of its own


@pytest.fixture
def own(base_checkpoint: Checkpoint) -> Recognizer:
    return Recognizer("whisper:base", device="cpu", dtype="float32", batch_size=2)


def states(futures: list[Future[Recognition]], timeout: float) -> list[str]:
    """What became of windows within so many seconds each."""
    found = []
    for future in futures:
        try:
            found.append(text_of(future.result(timeout)) or "silent")
        except CancelledError:
            found.append("cancelled")
        except FutureTimeoutError:  # Python 3.10 has a class of its own for it
            found.append("lost")
        except Exception as error:
            found.append(type(error).__name__)
    return found


def test_close_cancels_what_waits(own: Recognizer, speech: list[Sentence]) -> None:
    """Windows that are held until the language is known wait as well."""
    samples = read(speech[0].path)
    windows = [window_of(samples, index=index, recording_id=-2) for index in range(4)]
    futures = [own.submit(window, Options()) for window in windows]
    futures += [own.submit(window_of(samples), Options(language="en")) for _ in range(3)]
    own.close()
    assert "lost" not in states(futures, 2.0)
    with pytest.raises(EngineError, match="the recognizer is closed"):
        own.submit(window_of(samples), Options(language="en")).result(TIMEOUT)


def test_a_window_that_cannot_be_prepared_holds_nobody_up(
    own: Recognizer, speech: list[Sentence]
) -> None:
    """The others of its recording wait for it to name the language."""
    too_long = window_of(np.full(31 * RATE, 0.01, np.float32), recording_id=-3)
    good = window_of(read(speech[1].path), index=1, start=31.0, recording_id=-3)
    with own:
        futures = [own.submit(window, Options()) for window in (too_long, good)]
        found = states(futures, 10.0)
    assert found[0] == "ValueError"
    assert found[1].startswith("He was not an ill")


def test_a_watcher_that_fails_takes_nobody_with_it(own: Recognizer, speech: list[Sentence]) -> None:
    def watch(draft: str) -> None:
        raise RuntimeError("the one who listened is gone")

    with own:
        options = Options(language="en")
        futures = [own.submit(window_of(read(speech[0].path)), options)]
        futures += [own.submit(window_of(read(speech[1].path)), options, watch)]
        found = states(futures, TIMEOUT)
    assert found[0].startswith("And Mr. John Dashwood")


def test_windows_suit_the_model_and_the_memory(qwen: Recognizer, glm: Recognizer) -> None:
    """What needs many tokens is cut shorter, and fewer windows of it are held ready."""
    assert (qwen.window_duration(Options()), glm.window_duration(Options())) == (60.0, 30.0)
    assert qwen.window_duration(Options(window=8.0)) == 8.0
    scheduler = qwen._engine.scheduler
    assert scheduler.max_tokens is not None
    plenty, need = scheduler.max_tokens, qwen._model.processor.num_tokens(15.0)
    try:
        scheduler.max_tokens = 2 * need
        assert qwen.window_duration(Options()) == 15.0
        assert qwen.max_in_flight(Options()) == 4
        assert qwen.max_in_flight(Options(window=40.0)) == 2
    finally:
        scheduler.max_tokens = plenty
    assert qwen.max_in_flight(Options()) == 32


def test_a_window_longer_than_the_model_takes(qwen: Recognizer, glm: Recognizer) -> None:
    with pytest.raises(UsageError, match="takes in at most 30 s at once, not 31"):
        glm.check(Options(window=31.0))
    with pytest.raises(UsageError, match="takes in at most 107 s at once, not 1200"):
        qwen.check(Options(window=1200.0))
    assert qwen.check(Options(window=107.0)) == ()
