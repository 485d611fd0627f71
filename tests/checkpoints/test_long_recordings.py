"""Minutes of digit strings by every voice, cut anywhere: every string once, and in order."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import jiwer
import numpy as np
import pytest
import soundfile

from asrcli.backends.base import Recognition
from asrcli.options import Options
from asrcli.recognizer import Recognizer
from asrcli.transcript import Transcript
from tests.checkpoints.recordings import Recording, digit_strings, word_error_rate
from tests.checkpoints.speech_bank import SAMPLING_RATE, SpeechBank
from tests.speech import window_of

BETWEEN = ((0.4, 0.9), (0.03, 0.1))  # s; pauses between strings, and gaps in them: cuts in pauses
INSIDE = ((0.1, 0.14), (0.1, 0.14))  # s; cuts fall inside strings as well

PAUSES = {"between": BETWEEN, "inside": INSIDE}
NUM_VOICES = 7


@pytest.fixture(params=["qwen", "glm"])
def model(request: pytest.FixtureRequest) -> Iterator[Recognizer]:
    yield request.getfixturevalue(request.param)


def one_by_one(recognizer: Recognizer, recording: Recording) -> list[str]:
    """The text of each string as a clip of its own."""
    futures: list[Future[Recognition]] = []
    for number, (start, end) in enumerate(recording.times):
        begin, stop = (round(time * SAMPLING_RATE) for time in (start - 0.05, end + 0.05))
        window = window_of(recording.samples[max(0, begin) : stop], recording_id=-number)
        futures.append(recognizer.submit(window, Options()))
    found = [future.result(600) for future in futures]
    return [" ".join(segment.text for segment in each.segments) for each in found]


class Comparison:
    """A transcript against what was said, word by word."""

    def __init__(self, recording: Recording, transcript: Transcript) -> None:
        self._words = jiwer.process_words(recording.text, transcript.text)
        self._recording = recording

    @property
    def rate(self) -> float:
        """Word error rate."""
        return float(self._words.wer)

    @property
    def longest_run(self) -> int:
        """Words that are missing, or one too many, one behind the other: 4 would be a string."""
        return max(
            (
                max(
                    chunk.ref_end_idx - chunk.ref_start_idx, chunk.hyp_end_idx - chunk.hyp_start_idx
                )
                for chunk in self._words.alignments[0]
                if chunk.type in ("delete", "insert")
            ),
            default=0,
        )

    @property
    def num_right(self) -> int:
        """Strings that are there word for word, in their order and with nothing in between."""
        wrong = set[int]()
        for chunk in self._words.alignments[0]:
            if chunk.type != "equal":
                wrong.update(range(chunk.ref_start_idx, max(chunk.ref_end_idx, 1)))
                if chunk.type == "insert":  # it breaks the string that goes on behind it
                    wrong.add(chunk.ref_start_idx)
        num_right = position = 0
        for string in self._recording.strings:
            num_right += not wrong.intersection(range(position, position + len(string)))
            position += len(string)
        return num_right


@pytest.fixture(
    scope="module",
    params=[
        ("between", 60.0),
        ("inside", 60.0),
        pytest.param(("between", 300.0), marks=pytest.mark.slow),
        pytest.param(("inside", 300.0), marks=pytest.mark.slow),
    ],
    ids=lambda parameter: f"{parameter[0]}-{parameter[1]:g}s",
)
def recordings(
    request: pytest.FixtureRequest,
    speech_bank: SpeechBank,
    tmp_path_factory: pytest.TempPathFactory,
) -> list[tuple[Recording, Path]]:
    """A recording of so many seconds by each of all voices."""
    cuts, duration = request.param
    pauses, gaps = PAUSES[cuts]
    folder = tmp_path_factory.mktemp("digits")
    made = []
    for voice in speech_bank.voices("English"):
        recording = digit_strings(speech_bank, voice, duration=duration, pauses=pauses, gaps=gaps)
        path = folder / f"{voice}.flac"
        soundfile.write(path, recording.samples, SAMPLING_RATE)
        made.append((recording, path))
    assert len(made) == NUM_VOICES
    return made


@pytest.mark.parametrize(
    "window",
    [pytest.param(4.0, marks=pytest.mark.slow), pytest.param(8.0, marks=pytest.mark.slow), 12.0],
)
def test_every_string_once_and_in_order(
    model: Recognizer, recordings: list[tuple[Recording, Path]], window: float
) -> None:
    """All strings of a recording, by every voice, are what they are heard to be one by one."""
    pairs_alone, pairs, num_right, num_strings = [], [], 0, 0
    for recording, path in recordings:
        alone = one_by_one(model, recording)
        references = [" ".join(string) for string in recording.strings]
        pairs_alone += list(zip(references, alone, strict=True))
        transcript = model.transcribe(path, Options(window=window, vad=False))
        found = Comparison(recording, transcript)
        pairs.append((recording.text, transcript.text))
        num_right += found.num_right
        num_strings += len(recording.strings)
        rate_alone = word_error_rate(pairs_alone[-len(alone) :])
        print(f"{path.stem}: alone {rate_alone:.2%}, {window:g} s {found.rate:.2%}")
        assert transcript.duration == pytest.approx(recording.duration, abs=0.1)
        assert transcript.warnings == ()
        assert all(s.end - s.start <= window + 1e-3 for s in transcript.segments)
        assert np.all(np.diff([s.start for s in transcript.segments]) > 0)
        assert found.longest_run <= 2
    assert word_error_rate(pairs) <= word_error_rate(pairs_alone) + 0.01
    assert num_right >= 0.94 * num_strings
