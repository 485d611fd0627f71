"""One window's way to its text: a first attempt, and further ones where that is not good enough."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from asrcli import guards, halves, retries, second_hearing
from asrcli.backends.base import Recognition
from asrcli.compute_threads import one_thread
from asrcli.detection import LanguageDetection
from asrcli.errors import EngineError
from asrcli.jobs import Attempt, Job, Listener, pass_on_failure, settle
from asrcli.speech_times import fit_to_speech
from asrcli.windows import unheard_of

if TYPE_CHECKING:
    from asrcli.engine.loop import Engine
    from asrcli.engine.request import Hypothesis, Request
    from asrcli.models.base import Model
    from asrcli.options import Options
    from asrcli.windows import Window

_FAULTS = {"length": "unfinished", "loop": "loop"}
MAX_DEPTH = 3  # windows, within each other, of whose speech the text left out a part
NO_SPEECH_THRESHOLD = 0.6  # a window that is likelier than this to be silent names no language


class Attempts:
    """Sends windows through a model as often as it takes.

    Args:
        model: both halves of the conversation.
        engine: the loop that runs the model's network.
    """

    def __init__(self, model: Model, engine: Engine) -> None:
        self._processor = model.processor
        # Other models find the language out for each window, or not at all.
        self._listens = model.processor.detection == "recording"
        self._adapter = model.adapter
        self._engine = engine
        self._detection = LanguageDetection(self._queue)
        self._request_ids = itertools.count()
        # One thread prepares features ahead of the engine; more would take its cores away.
        self._preparation = ThreadPoolExecutor(1, thread_name_prefix="asr-features")

    def submit(
        self, window: Window, options: Options, on_partial: Callable[[str], None] | None
    ) -> Future[Recognition]:
        """Take a window; the future gives the best that was recognised in it."""
        job = Job(window=window, options=options, on_partial=on_partial, future=Future())
        if not window.samples.any():  # digital silence
            job.future.set_result(Recognition(segments=(), language=options.language))
            return job.future
        if options.language is None and self._listens and not options.multilingual:
            self._detection.submit(window.recording_id, job)
        else:
            self._queue(job, options.language)
        return job.future

    def close(self) -> None:
        """Prepare nothing more; what is held back is cancelled."""
        for job in self._detection.close():
            job.future.cancel()
        self._preparation.shutdown(cancel_futures=True)

    def _queue(self, job: Job, language: str | None) -> None:
        self._later(job, lambda: self._begin(job, language))

    def _later(self, job: Job, work: Callable[[], None]) -> None:
        """Do a piece of a job's work in the preparing thread; its failure is the job's."""
        try:
            done = self._preparation.submit(work)
        except RuntimeError:  # what an executor says once it is shut down
            settle(job.future, EngineError("the recognizer is closed"))
            return
        done.add_done_callback(lambda done: pass_on_failure(done, job.future))

    def _begin(self, job: Job, language: str | None) -> None:
        """Make the first attempt; where the language is not known, listen for it as well."""
        options = replace(job.options, language=language, multilingual=False)
        is_heard = language is None and self._listens
        try:
            if is_heard and options.context:
                self._listen_first(job)
            else:
                self._run(job, options, self._finish)
        except Exception:  # raised again below, once the windows held back are free
            if is_heard:  # this window will not tell: the next one has to
                self._detection.heard(job.window.recording_id, None)
            raise

    def _listen_first(self, job: Job) -> None:
        """Detect the language without the prompt, whose own language would sway the model."""
        options = replace(
            job.options,
            prompt=None,
            hotwords=None,
            previous_text=None,
            multilingual=False,
            max_new_tokens=1,
        )

        def finish(attempt: Attempt) -> None:
            language = self._adapter.language(attempt.hypothesis, options)
            self._queue(job, language or "en")

        self._run(job, options, finish)

    def _run(
        self,
        job: Job,
        options: Options,
        finish: Callable[[Attempt], None],
        before: Attempt | None = None,
    ) -> None:
        """Send a window through the model; what was encoded of it before is not encoded again."""
        with one_thread(), self._engine.runner.stages.measure("features"):
            request = self._processor.prepare(next(self._request_ids), job.window, options)
        if before is not None:
            request = _with_audio_of(request, before)
        hear = self._hear if options.language is None and self._listens else None
        listener = Listener(job, hear, self._adapter.draft)
        if listener.is_listening or job.on_partial is not None:
            request = replace(request, on_token=listener)
        future = self._engine.submit(request)

        def done(future: Future[Hypothesis]) -> None:
            if listener.is_listening:  # not a word about the language: the next window has to tell
                self._detection.heard(job.window.recording_id, None)
            if not pass_on_failure(future, job.future):
                try:
                    finish(Attempt(job, options, request, future.result()))
                except Exception as error:  # the one who waits for this window must hear of it
                    settle(job.future, error)

        future.add_done_callback(done)

    def _finish(self, attempt: Attempt) -> None:
        """Look at what was heard first, and hear it in another way where there is reason to."""
        heard, options = self._recognise(attempt), attempt.options
        if guards.echoes(heard, options.hints) or (
            options.previous_text and guards.says_again(heard, options.previous_text)
        ):
            alone = replace(options, prompt=None, hotwords=None, previous_text=None)
            self._hear_again(attempt, heard, alone, _choose_echo, "echo", self._judge)
        else:
            self._doubt(attempt, heard)

    def _doubt(self, attempt: Attempt, heard: Recognition) -> None:
        """Hear a window with more expense where its text is doubtful, and go on with the best."""
        options, request = attempt.options, attempt.request
        if not second_hearing.is_worth_it(heard, request, options):
            self._judge(attempt, heard)
            return
        better = second_hearing.improve(heard, request, options)
        reason = guards.find_fault(heard) or "doubtful"
        self._hear_again(attempt, heard, better, second_hearing.choose, reason, self._doubt)

    def _hear_again(
        self,
        attempt: Attempt,
        heard: Recognition,
        options: Options,
        choose: Callable[[Recognition, Recognition], Recognition],
        reason: str,
        go_on: Callable[[Attempt, Recognition], None],
    ) -> None:
        """Hear a window once more in another way, and go on with the better of the two texts."""
        job = replace(attempt.job, on_partial=None)  # its draft has been seen

        def finish(second: Attempt) -> None:
            chosen = choose(heard, self._recognise(second))
            go_on(second, retries.note_second(heard, chosen, job.window, reason))

        self._later(job, lambda: self._run(job, options, finish, attempt))

    def _judge(self, attempt: Attempt, *hearings: Recognition) -> None:
        """Conclude with what was heard, or hear it once more, at a higher temperature."""
        options, first = attempt.options, attempt.job.options.temperature
        temperature = guards.next_temperature(hearings, first)
        may_retry = options.fallback and options.max_new_tokens is None
        if guards.is_good_enough(hearings) or temperature is None or not may_retry:
            self._conclude(attempt, hearings)
            return
        job = replace(attempt.job, on_partial=None)
        language = options.language or hearings[-1].language
        warmer = replace(options, language=language, audio_context="full", temperature=temperature)

        def finish(warm: Attempt) -> None:
            self._judge(warm, *hearings, self._recognise(warm))

        self._later(job, lambda: self._run(job, warmer, finish, attempt))

    def _conclude(self, attempt: Attempt, hearings: tuple[Recognition, ...]) -> None:
        """Give the result, or hear the window in two pieces where none of its texts will do."""
        job, options, best = attempt.job, attempt.options, guards.choose(hearings)
        is_ended = best.fault not in guards.UNENDED
        if (
            options.max_new_tokens is not None
            or not best.segments
            or guards.is_settled(hearings, best)
        ):
            self._hear_rest(attempt, retries.note(hearings, best, job.window))
        elif (
            options.fallback and not job.is_half and halves.can_halve(job.window, is_ended=is_ended)
        ):
            self._hear_halves(attempt, hearings, best)
        elif is_ended:
            self._hear_rest(attempt, retries.note(hearings, best, job.window))
        else:
            best = halves.unfinished(best, job.window)
            settle(job.future, retries.note(hearings, best, job.window))

    def _hear_rest(self, attempt: Attempt, best: Recognition) -> None:
        """Give the result; where it says nothing of some speech, once that has been heard again."""
        job = attempt.job
        parts = unheard_of(job.window, [(segment.start, segment.end) for segment in best.segments])
        if not parts:
            settle(job.future, best)
            return
        if not best.segments or not job.options.fallback or job.depth == MAX_DEPTH:
            settle(job.future, retries.note_unheard(best, parts))
            return
        self._hear_parts(
            [replace(job, window=part, depth=job.depth + 1) for part in parts],
            self._language_of_parts(attempt, best),
            job.future,
            lambda heard: retries.note_parts(best, heard, parts),
        )

    def _language_of_parts(self, attempt: Attempt, best: Recognition) -> str | None:
        """The language in which parts of a window are heard; None where they are to tell it."""
        asked = attempt.job.options
        if asked.multilingual or not self._listens:
            return asked.language
        language = attempt.options.language or best.language
        return language or self._adapter.language(attempt.hypothesis, attempt.options) or "en"

    def _hear_halves(
        self, attempt: Attempt, hearings: tuple[Recognition, ...], best: Recognition
    ) -> None:
        job, parts = attempt.job, halves.halve(attempt.job.window)

        def join(heard: list[Recognition]) -> Recognition:
            both = halves.join(parts, heard)
            if halves.are_better(both, best):
                return retries.note_halves(hearings[0], both, job.window)
            return retries.note(hearings, best, job.window)

        self._hear_parts(
            [replace(job, window=half, is_half=True) for half in parts],
            self._language_of_parts(attempt, best),
            job.future,
            join,
        )

    def _hear_parts(
        self,
        jobs: Iterable[Job],
        language: str | None,
        waiting: Future[Recognition],
        join: Callable[[list[Recognition]], Recognition],
    ) -> None:
        """Hear parts of a window, and give whoever waits for it what they come to together."""
        parts = [replace(job, on_partial=None, future=Future()) for job in jobs]
        num_open = itertools.count(len(parts), -1)

        def done(_: Future[Recognition]) -> None:
            if next(num_open) > 1:
                return
            try:
                settle(waiting, join([part.future.result() for part in parts]))
            except BaseException as error:  # cancelled as well: whoever waits must hear of it
                settle(waiting, error)

        for part in parts:
            part.future.add_done_callback(done)
            self._queue(part, language)

    def _recognise(self, attempt: Attempt) -> Recognition:
        """What an attempt comes to."""
        window, options, hypothesis = attempt.job.window, attempt.options, attempt.hypothesis
        segments = self._adapter.parse(hypothesis, window, options)
        segments = guards.without_echoes(
            [segment for segment in segments if guards.has_words(segment.text)]
        )
        warnings: tuple[str, ...] = ()
        fault = _FAULTS.get(hypothesis.finish_reason or "")
        if not segments and not unheard_of(window, ()):
            fault = None  # a text of no words, where there are none to be heard
        if fault is None and guards.say_too_much(segments, window.speech):
            fault = "too much"
        if fault in guards.UNENDED and options.max_new_tokens is not None:  # as the user wanted it
            warnings = (
                f"{window.start:.1f}-{window.end:.1f} s: the text reached its greatest length "
                "and may be cut short",
            )
        return Recognition(
            segments=tuple(fit_to_speech(segments, window.speech)),
            language=self._adapter.language(hypothesis, options),
            warnings=warnings,
            fault=fault,
        )

    def _hear(self, job: Job, hypothesis: Hypothesis) -> bool:
        """Tell the detection what a hypothesis says of the language; whether it said anything."""
        if (hypothesis.no_speech_prob or 0.0) > NO_SPEECH_THRESHOLD:
            self._detection.heard(job.window.recording_id, None)
            return True
        language = self._adapter.language(hypothesis, replace(job.options, language=None))
        if language is not None:
            self._detection.heard(job.window.recording_id, language)
        return language is not None


def _with_audio_of(request: Request, before: Attempt) -> Request:
    """The request with what was encoded for one of the same window, if of as much of it."""
    if request.input_features.shape != before.request.input_features.shape:
        return request
    return replace(request, audio=before.hypothesis.audio)


def _choose_echo(echo: Recognition, alone: Recognition) -> Recognition:
    """The text that says only what the model was told, if it sounds like what was said."""
    return echo if guards.sounds_alike(echo, alone) else alone
