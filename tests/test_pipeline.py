"""The way of a batch through a scripted backend: order, bounds, and who pays for whose faults."""

from __future__ import annotations

import dataclasses
import io
import itertools
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from numpy.typing import NDArray

from asrcli.audio.clips import Clip
from asrcli.audio.reading import AudioReader, RawFormat
from asrcli.audio.sources import Reading, Source, expand
from asrcli.backends.base import Backend, Recognition
from asrcli.errors import AsrError, AudioError, EngineError
from asrcli.options import Options
from asrcli.pipeline import Result, transcribe_source, transcribe_sources
from asrcli.transcript import Retry, Segment
from asrcli.windows import Window

RATE = 16_000
ALL = Options(vad=False)  # what is written here is noise, which nobody would call speech
CONDITIONED = Options(vad=False, condition_on_previous_text=True, prompt="A talk.")
TIMEOUT = 20.0  # s
Script = Callable[[Window], "Recognition | None"]


def answer(window: Window) -> Recognition:
    """What the scripted model says: where its window lies."""
    segment = Segment(
        id=0, start=window.start, end=window.end, text=f"w{window.index}", language="en"
    )
    return Recognition(segments=(segment,), language="en")


@dataclass
class ScriptedBackend:
    """Answers after a while, last window first, as far as it has several.

    A window for which the script gives None is never answered.
    """

    script: Script = answer
    num_in_flight: int = 4
    max_duration: float = 2.0
    delay: float = 0.0
    name: str = "scripted"
    windows: list[Window] = field(default_factory=list)
    options: list[Options] = field(default_factory=list)
    most_in_flight: int = 0
    _waiting: list[tuple[Window, Future[Recognition]]] = field(default_factory=list)
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _closed: bool = False

    def __post_init__(self) -> None:
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def max_in_flight(self, options: Options) -> int:
        return self.num_in_flight

    def window_duration(self, options: Options) -> float:
        return self.max_duration

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[Recognition]:
        future: Future[Recognition] = Future()
        with self._changed:
            self.windows.append(window)
            self.options.append(options)
            self._waiting.append((window, future))
            self.most_in_flight = max(self.most_in_flight, len(self._waiting))
            self._changed.notify()
        return future

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(TIMEOUT)

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or self._waiting)
                if self._closed:
                    return
            time.sleep(self.delay)
            with self._changed:
                window, future = self._waiting[-1]
            try:
                outcome = self.script(window)
            except Exception as error:
                self._forget(window)
                future.set_exception(error)
            else:
                self._forget(window)
                if outcome is not None:
                    future.set_result(outcome)

    def _forget(self, window: Window) -> None:
        with self._changed:
            self._waiting = [pair for pair in self._waiting if pair[0] is not window]


Make = Callable[..., ScriptedBackend]


@pytest.fixture
def make_backend(request: pytest.FixtureRequest) -> Make:
    def make(script: Script = answer, **settings: float) -> ScriptedBackend:
        backend = ScriptedBackend(script, **settings)  # type: ignore[arg-type]
        request.addfinalizer(backend.close)
        return backend

    return make


def write(folder: Path, name: str, duration: float, seed: int = 0) -> Path:
    noise = np.random.default_rng(seed).uniform(-0.3, 0.3, round(duration * RATE))
    path = folder / name
    soundfile.write(path, with_pauses(noise), RATE, subtype="PCM_16")
    return path


def with_pauses(samples: NDArray[np.float64]) -> NDArray[np.float64]:
    """With half a second of silence in each one, so that windows need not overlap."""
    return samples * (np.arange(len(samples)) % RATE < RATE // 2)


def run(backend: Backend, paths: list[Path], options: Options | None = None) -> list[Result]:
    return list(transcribe_sources(expand(paths), backend, options or ALL))


def feeders() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "asr-feeder"]


def test_results_come_in_the_order_of_the_sources(tmp_path: Path, make_backend: Make) -> None:
    durations = [5.0, 0.5, 3.0, 1.0, 7.0]
    paths = [write(tmp_path, f"{i}.wav", d, i) for i, d in enumerate(durations)]
    backend = make_backend(delay=0.002)
    results = run(backend, paths)
    assert [result.source.path for result in results] == paths
    for result, duration in zip(results, durations, strict=True):
        assert result.error is None
        assert result.transcript is not None
        assert result.transcript.duration == duration
        assert (result.transcript.model, result.transcript.task) == ("scripted", "transcribe")
        segments = result.transcript.segments
        assert segments[0].start == 0.0
        assert segments[-1].end == duration
        assert all(a.end == b.start for a, b in itertools.pairwise(segments))
        assert [s.id for s in segments] == list(range(len(segments)))
        assert result.transcript.text == " ".join(f"w{i}" for i in range(len(segments)))
    assert not feeders()


def test_windows_of_a_recording_come_in_order(tmp_path: Path, make_backend: Make) -> None:
    backend = make_backend()
    run(backend, [write(tmp_path, "a.wav", 9.0), write(tmp_path, "b.wav", 9.0, 1)])
    by_recording: dict[int, list[int]] = {}
    for window in backend.windows:
        by_recording.setdefault(window.recording_id, []).append(window.index)
    assert len(by_recording) == 2
    assert all(indices == list(range(len(indices))) for indices in by_recording.values())


def test_bad_files_fail_alone(tmp_path: Path, make_backend: Make) -> None:
    (tmp_path / "empty.wav").touch()
    (tmp_path / "text.mp3").write_text("this is not audio at all, not in the least")
    paths = [
        write(tmp_path, "a.wav", 1.0),
        tmp_path / "missing.wav",
        tmp_path / "empty.wav",
        tmp_path / "text.mp3",
        write(tmp_path, "b.wav", 1.0),
    ]
    results = run(make_backend(), paths)
    assert [result.error is None for result in results] == [True, False, False, False, True]
    for result in results[1:4]:
        assert isinstance(result.error, AudioError)
        assert result.transcript is None
        assert str(result.error).startswith(result.source.name)


@pytest.mark.parametrize("options", [ALL, CONDITIONED])
def test_a_window_that_fails_takes_nothing_with_it(
    tmp_path: Path, make_backend: Make, options: Options
) -> None:
    """Not the other recordings, and not what was said in its own beside it."""
    paths = [write(tmp_path, f"{i}.wav", 6.0, i) for i in range(3)]

    def script(window: Window) -> Recognition:
        if window.index == 1 and np.array_equal(window.samples, second):
            raise EngineError("this window\nis too much")
        return answer(window)

    probe = make_backend()
    (whole,) = run(probe, [paths[1]])
    second = probe.windows[1].samples
    results = run(make_backend(script), paths, options)
    assert [result.error for result in results] == [None, None, None]
    damaged = results[1]
    assert damaged.transcript is not None
    assert whole.transcript is not None
    assert damaged.transcript.text == whole.transcript.text.replace("w1 ", "")
    start, end = probe.windows[1].start, probe.windows[1].end
    line = f"{start:.1f}-{end:.1f} s: not transcribed: this window is too much"
    assert damaged.damage == damaged.transcript.warnings == (line,)
    assert [result.damage for result in (results[0], results[2])] == [(), ()]


def test_what_was_read_before_a_failure_is_kept(
    tmp_path: Path, make_backend: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fault of ours, or of a library, in the middle of a recording."""

    def blocks(reader: AudioReader) -> Iterator[NDArray[np.float32]]:
        yield np.full(5 * RATE, 0.1, np.float32)
        raise RuntimeError("a fault\nof the library")

    monkeypatch.setattr(AudioReader, "blocks", blocks)
    (result,) = run(make_backend(), [write(tmp_path, "a.wav", 9.0)])
    assert result.transcript is not None
    assert result.transcript.text
    (line,) = result.damage
    end = result.transcript.segments[-1].end
    what = "not transcribed: internal error (RuntimeError: a fault of the library)"
    assert line == f"from {end:.1f} s on: {what}"


def test_done_windows_free_their_samples(tmp_path: Path, make_backend: Make) -> None:
    """Also where an earlier recording keeps theirs waiting to be collected."""
    paths = [write(tmp_path, f"{i}.wav", duration) for i, duration in enumerate((2.0, 60.0))]
    samples: list[weakref.ref[NDArray[np.float32]]] = []
    backend: Any = make_backend(lambda window: None if window.end == 2.0 else answer(window))
    submit, held = backend.submit, list[tuple[Future[Recognition], Recognition]]()

    def forgetful(window: Window, options: Options) -> Future[Recognition]:
        samples.append(weakref.ref(window.samples))
        future: Future[Recognition] = submit(window, options)
        if window.end == 2.0:
            held.append((future, answer(window)))
        backend.windows.clear()
        return future

    backend.submit = forgetful
    results: list[Result] = []
    reading = threading.Thread(
        target=lambda: results.extend(transcribe_sources(expand(paths), backend, ALL))
    )
    reading.start()
    deadline = time.monotonic() + TIMEOUT
    while len(samples) < 30 and time.monotonic() < deadline:
        time.sleep(0.01)
    num_alive = sum(sample() is not None for sample in samples)
    ((future, recognition),) = held
    future.set_result(recognition)
    reading.join(TIMEOUT)
    assert [result.error for result in results] == [None, None]
    assert len(samples) >= 30
    assert num_alive <= 8


def test_windows_in_flight_are_bounded(tmp_path: Path, make_backend: Make) -> None:
    paths = [write(tmp_path, f"{i}.wav", 11.0, i) for i in range(4)]
    backend = make_backend(num_in_flight=3, delay=0.003)
    results = run(backend, paths)
    assert all(result.error is None for result in results)
    assert len(backend.windows) >= 4 * 6
    assert backend.most_in_flight == 3


def test_a_failed_window_gives_its_place_back(tmp_path: Path, make_backend: Make) -> None:
    def script(window: Window) -> Recognition:
        raise EngineError("no")

    results = run(make_backend(script, num_in_flight=1), [write(tmp_path, "a.wav", 12.0)])
    assert isinstance(results[0].error, EngineError)
    assert str(results[0].error) == f"{results[0].source.name}: no"


@pytest.mark.parametrize("num_samples", [1, 1599])
def test_too_short_for_a_word(tmp_path: Path, make_backend: Make, num_samples: int) -> None:
    backend = make_backend()
    (result,) = run(backend, [write(tmp_path, "a.wav", num_samples / RATE)])
    assert result.transcript is not None
    assert (result.transcript.text, result.transcript.segments) == ("", ())
    assert result.transcript.duration == num_samples / RATE
    assert result.transcript.language is None
    assert backend.windows == []


def test_long_enough_for_a_word(tmp_path: Path, make_backend: Make) -> None:
    backend = make_backend()
    run(backend, [write(tmp_path, "a.wav", 0.1)])
    assert len(backend.windows) == 1


def test_no_samples_are_lost_on_the_way(tmp_path: Path, make_backend: Make) -> None:
    path = write(tmp_path, "a.wav", 13.37)
    backend = make_backend()
    run(backend, [path])
    stored, _ = soundfile.read(path, dtype="float32")
    assert np.array_equal(np.concatenate([w.samples for w in backend.windows]), stored)


def test_the_language_is_that_of_the_first_window_with_speech(
    tmp_path: Path, make_backend: Make
) -> None:
    def script(window: Window) -> Recognition:
        if window.index == 0:
            return Recognition(segments=(), language="la")
        said = answer(window).segments
        return Recognition(segments=said, language="de" if window.index == 1 else "fr")

    path = write(tmp_path, "a.wav", 7.0)
    (result,) = run(make_backend(script), [path])
    assert result.transcript is not None
    assert result.transcript.language == "de"
    (result,) = run(make_backend(script), [path], Options(language="es", vad=False))
    assert result.transcript is not None
    assert result.transcript.language == "es"
    (result,) = run(make_backend(lambda w: Recognition(segments=(), language="la")), [path])
    assert result.transcript is not None
    assert result.transcript.language is None


def test_warnings_of_windows_and_of_the_audio(tmp_path: Path, make_backend: Make) -> None:
    samples = np.random.default_rng(0).uniform(-0.3, 0.3, 3 * RATE)
    samples = with_pauses(samples)
    samples[100] = np.nan
    path = tmp_path / "a.wav"
    soundfile.write(path, samples, RATE, subtype="FLOAT")

    def script(window: Window) -> Recognition:
        return Recognition(segments=answer(window).segments, warnings=(f"w{window.index} is odd",))

    (result,) = run(make_backend(script), [path])
    assert result.transcript is not None
    first, *others = result.transcript.warnings
    assert "NaN" in first or "number" in first
    assert others == ["w0 is odd", "w1 is odd"]
    assert result.damage == ()


def test_losses_of_windows_count_as_damage(tmp_path: Path, make_backend: Make) -> None:
    def script(window: Window) -> Recognition:
        losses = (f"w{window.index} has no end",) if window.index == 1 else ()
        return Recognition(segments=answer(window).segments, losses=losses)

    (result,) = run(make_backend(script), [write(tmp_path, "a.wav", 5.0)])
    assert result.transcript is not None
    assert result.damage == result.transcript.warnings == ("w1 has no end",)


def test_damage_is_passed_on(tmp_path: Path, make_backend: Make) -> None:
    whole = write(tmp_path, "a.flac", 8.0).read_bytes()
    path = tmp_path / "cut.flac"
    path.write_bytes(whole[: len(whole) // 2])
    (result,) = run(make_backend(), [path])
    assert result.transcript is not None
    assert result.damage
    assert set(result.damage) <= set(result.transcript.warnings)
    assert 2.0 < result.transcript.duration < 5.0


@dataclass
class RecordedProgress:
    begun: list[tuple[str, float | None]] = field(default_factory=list)
    advanced: list[tuple[str, float]] = field(default_factory=list)

    def begin(self, source: Source, duration: float | None) -> None:
        self.begun.append((source.name, duration))

    def advance(self, source: Source, duration: float) -> None:
        self.advanced.append((source.name, duration))


def test_progress_adds_up(tmp_path: Path, make_backend: Make) -> None:
    paths = [write(tmp_path, f"{i}.wav", 5.0 + i, i) for i in range(3)]
    progress = RecordedProgress()
    sources = expand(paths)
    results = list(transcribe_sources(sources, make_backend(), ALL, progress=progress))
    assert progress.begun == [(source.name, 5.0 + i) for i, source in enumerate(sources)]
    for result in results:
        assert result.transcript is not None
        parts = [d for name, d in progress.advanced if name == result.source.name]
        assert sum(parts) == pytest.approx(result.transcript.duration)


def test_closing_early_ends_the_reading(tmp_path: Path, make_backend: Make) -> None:
    """The feeder waits for a place in the backend, which nobody gives back."""
    paths = [write(tmp_path, f"{i}.wav", 1.0 if i == 0 else 20.0, i) for i in range(4)]
    backend = make_backend(lambda w: answer(w) if w.end == 1.0 else None, num_in_flight=2)
    results = transcribe_sources(expand(paths), backend, ALL)
    assert next(results).transcript is not None
    assert feeders()
    results.close()  # type: ignore[attr-defined]
    assert not feeders()
    assert len(backend.windows) <= 1 + 2


def test_closing_while_a_pipe_says_nothing(tmp_path: Path, make_backend: Make) -> None:
    """As when a run is interrupted while it waits for the other end of a pipe."""
    read_end, write_end = os.pipe()
    sources = [
        *expand([write(tmp_path, "a.wav", 1.0)]),
        Source(name="stdin", path=None, relative=Path("stdin")),
    ]
    with os.fdopen(read_end, "rb") as stdin:
        results = transcribe_sources(sources, make_backend(), ALL, reading=Reading(stdin=stdin))
        next(results)
        closing = threading.Thread(target=results.close)  # type: ignore[attr-defined]
        closing.start()
        closing.join(5)
        hangs = closing.is_alive()
        os.close(write_end)
        closing.join(TIMEOUT)
        for feeder in feeders():
            feeder.join(TIMEOUT)
    assert not hangs


def test_raw_audio_from_standard_input(make_backend: Make) -> None:
    samples = np.random.default_rng(0).integers(-9000, 9000, 3 * 8000).astype("<i2")
    sources = [Source(name="stdin", path=None, relative=Path("stdin"))]
    (result,) = transcribe_sources(
        sources,
        make_backend(),
        ALL,
        reading=Reading(raw=RawFormat("s16le", 8000, 1), stdin=io.BytesIO(samples.tobytes())),
    )
    assert result.transcript is not None
    assert result.transcript.duration == pytest.approx(3.0, abs=0.01)


def test_no_sources(make_backend: Make) -> None:
    assert list(transcribe_sources([], make_backend(), ALL)) == []


def test_one_source(tmp_path: Path, make_backend: Make) -> None:
    transcript = transcribe_source(write(tmp_path, "a.wav", 1.0), make_backend(), ALL)
    assert transcript.text == "w0"
    with pytest.raises(AudioError, match=r"missing\.wav"):
        transcribe_source(tmp_path / "missing.wav", make_backend(), ALL)


def test_one_source_that_is_a_folder(tmp_path: Path, make_backend: Make) -> None:
    """A folder is no recording; what is wrong is said in one line."""
    write(tmp_path, "a.wav", 1.0)
    write(tmp_path, "b.wav", 1.0)
    with pytest.raises(AsrError):
        transcribe_source(tmp_path, make_backend(), ALL)


# ---- windows that depend on one another


def previous_texts(backend: ScriptedBackend) -> dict[int, list[str | None]]:
    """What each recording's windows were told, in order."""
    told: dict[int, list[str | None]] = {}
    for window, options in zip(backend.windows, backend.options, strict=True):
        told.setdefault(window.recording_id, []).append(options.previous_text)
    return told


def test_windows_are_told_what_was_said_before(tmp_path: Path, make_backend: Make) -> None:
    backend = make_backend()
    (result,) = run(backend, [write(tmp_path, "a.wav", 7.0)], CONDITIONED)
    (told,) = previous_texts(backend).values()
    assert len(told) >= 4
    assert told[:4] == [None, "w0", "w0 w1", "w0 w1 w2"]
    assert result.transcript is not None
    assert result.transcript.text == f"{told[-1]} w{len(told) - 1}"
    assert {options.prompt for options in backend.options} == {"A talk."}
    assert backend.most_in_flight == 1


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("a" * 150 + " " + "b" * 30 + " " + "c" * 169, "b" * 30 + " " + "c" * 169),
        ("a" * 150 + " " + "b" * 31 + " " + "c" * 169, "c" * 169),  # never half a word
        ("好" * 190 + "。 " + "天" * 8, "好" * 190 + "。 " + "天" * 8),
        ("好" * 200 + " " + "天" * 8, "好" * 191 + " " + "天" * 8),
    ],
)
def test_no_more_than_the_last_sentences_are_told(
    tmp_path: Path, make_backend: Make, said: str, told: str
) -> None:
    """With more of its own words ahead, a model writes their oddities on and on."""

    def script(window: Window) -> Recognition:
        (segment,) = answer(window).segments
        text = said if window.index == 0 else "yes"
        return Recognition(segments=(dataclasses.replace(segment, text=text),))

    backend = make_backend(script)
    run(backend, [write(tmp_path, "a.wav", 4.0)], CONDITIONED)
    (each,) = previous_texts(backend).values()
    assert each[:2] == [None, told]


def test_other_files_keep_the_batch_full_meanwhile(tmp_path: Path, make_backend: Make) -> None:
    paths = [write(tmp_path, f"{i}.wav", 7.0, i) for i in range(6)]
    backend = make_backend(delay=0.02)
    results = run(backend, paths, CONDITIONED)
    assert [result.source.path for result in results] == paths
    texts = [result.transcript.text for result in results if result.transcript]
    assert all(text.startswith("w0 w1 w2 w3") for text in texts)
    told = previous_texts(backend)
    assert len(told) == len(texts) == 6
    assert all(each[:4] == [None, "w0", "w0 w1", "w0 w1 w2"] for each in told.values())
    assert backend.most_in_flight == 4  # as many as may be under way, each of another file


def test_after_a_fallback_nothing_is_carried_on(tmp_path: Path, make_backend: Make) -> None:
    def script(window: Window) -> Recognition:
        retry = Retry(start=0.0, end=1.0, reason="loop", outcome="resolved")
        retries = (retry,) if window.index == 1 else ()
        return dataclasses.replace(answer(window), retries=retries)

    backend = make_backend(script)
    (result,) = run(backend, [write(tmp_path, "a.wav", 7.0)], CONDITIONED)
    (told,) = previous_texts(backend).values()
    assert told[:4] == [None, "w0", None, "w2"]
    assert result.transcript is not None
    assert [retry.reason for retry in result.transcript.retries] == ["loop"]


def test_a_failure_ends_its_own_file_only(tmp_path: Path, make_backend: Make) -> None:
    paths = [write(tmp_path, f"{i}.wav", 3.0 + i, i) for i in range(2)]

    def script(window: Window) -> Recognition:
        if window.end == 3.0:
            raise AsrError("no memory")
        return answer(window)

    first, second = run(make_backend(script), paths, CONDITIONED)
    assert first.transcript is not None
    assert first.transcript.text == "w0"
    assert first.damage[0].endswith("-3.0 s: not transcribed: no memory")
    assert second.transcript is not None
    assert second.transcript.text == "w0 w1 w2"


# ---- text while it comes


def test_segments_come_before_the_recording_is_at_its_end(
    tmp_path: Path, make_backend: Make
) -> None:
    path = write(tmp_path, "a.wav", 20.0)
    told: list[str] = []
    backend = make_backend(num_in_flight=1)
    seen: list[int] = []

    def hear(source: Source, segments: tuple[Segment, ...]) -> None:
        assert source.path == path
        told.extend(segment.text for segment in segments)
        seen.append(len(backend.windows))

    (result,) = transcribe_sources(expand([path]), backend, ALL, on_segments=hear)
    assert result.transcript is not None
    assert " ".join(told) == result.transcript.text
    assert seen[0] < len(backend.windows)


# ---- clips


def test_clips_have_the_times_of_the_file(tmp_path: Path, make_backend: Make) -> None:
    path = write(tmp_path, "a.wav", 20.0)
    clips = [Clip(12.0, 13.5), Clip(3.0, 6.0)]
    backend = make_backend()
    (result,) = transcribe_sources(expand([path]), backend, ALL, reading=Reading(clips=clips))
    assert result.transcript is not None
    spans = [(window.start, window.end) for window in backend.windows]
    assert (spans[0][0], spans[-1]) == (3.0, (12.0, 13.5))
    assert sum(end - start for start, end in spans) == pytest.approx(4.5)
    assert [window.index for window in backend.windows] == list(range(len(spans)))
    assert result.transcript.duration == 13.5
    assert result.damage == ()


def test_clips_behind_the_end_are_told(tmp_path: Path, make_backend: Make) -> None:
    path = write(tmp_path, "a.wav", 5.0)
    clips = [Clip(1.0, 2.0), Clip(60.0)]
    (result,) = transcribe_sources(
        expand([path]), make_backend(), ALL, reading=Reading(clips=clips)
    )
    assert result.damage == ("clip 1:00- lies behind the end of the audio (0:05.0)",)
    (result,) = transcribe_sources(
        expand([path]), make_backend(), ALL, reading=Reading(clips=clips[1:])
    )
    assert "lies behind the end" in str(result.error)
