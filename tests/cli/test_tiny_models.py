"""``asr transcribe`` with Qwen3-ASR and GLM-ASR, as people run it."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.checkpoints import GLM, QWEN
from tests.checkpoints.mixing import Utterance, silence
from tests.checkpoints.recordings import unseen_utterances, word_error_rate
from tests.checkpoints.speech_bank import SpeechBank
from tests.cli.runs import SAMPLES, asr, start, write_wave

NAMES = {QWEN: "qwen", GLM: "glm"}
BOTH = pytest.mark.parametrize("folder", [QWEN, GLM], ids=NAMES.get)


@pytest.fixture(scope="module")
def utterances(speech_bank: SpeechBank) -> list[Utterance]:
    return unseen_utterances(speech_bank, 8, seed=55)


@pytest.fixture
def clips(tmp_path: Path, utterances: list[Utterance]) -> Path:
    for number, utterance in enumerate(utterances):
        write_wave(tmp_path / "clips" / "sub" / f"{number}.wav", utterance.samples)
    (tmp_path / "clips" / "zero.wav").touch()
    return tmp_path / "clips"


@BOTH
def test_a_folder_to_subtitles_and_json(
    clips: Path, tmp_path: Path, utterances: list[Utterance], folder: Path
) -> None:
    out = tmp_path / "out"
    outcome = asr("transcribe", clips, "-m", folder, "-f", "srt", "-f", "json", "-o", out)
    assert (outcome.code, outcome.out) == (1, "")
    assert f"error: {clips}/zero.wav: empty file" in outcome.err.splitlines()
    assert "8 of 9 files done, 1 failed" in outcome.err
    pairs = []
    for number, utterance in enumerate(utterances):
        transcript = json.loads((out / "sub" / f"{number}.json").read_text())
        pairs.append((utterance.text, transcript["text"]))
        assert transcript["language"] == ("en" if folder == QWEN else None)
        assert transcript["duration"] == pytest.approx(utterance.duration, abs=1e-3)
        (segment,) = transcript["segments"]
        assert segment["text"] == transcript["text"]
        # Times are those of the speech, a fifth of a second around it left in.
        assert 0.0 <= segment["start"] <= 0.2
        assert utterance.duration - 0.4 <= segment["end"] <= utterance.duration + 1e-3
        assert segment["tokens"]
        assert segment["avg_logprob"] < 0
        subtitles = (out / "sub" / f"{number}.srt").read_text()
        assert " ".join(subtitles.split("\n", 2)[2].split()).startswith(transcript["text"][:10])
    assert word_error_rate(pairs) <= 0.1


@BOTH
def test_the_samples(tmp_path: Path, folder: Path) -> None:
    """Speech that the tiny models do not know: every file gets its results, or a reason."""
    out = tmp_path / "out"
    outcome = asr(
        "transcribe", SAMPLES, "-m", folder, "-f", "srt", "-f", "json", "-o", out, "--window", "10"
    )
    assert outcome.code in (0, 1)
    assert (outcome.code == 1) == ("came to no end" in outcome.err)
    for sample in SAMPLES.glob("*.flac"):
        transcript = json.loads((out / f"{sample.stem}.json").read_text())
        assert transcript["segments"]
        assert (out / f"{sample.stem}.srt").read_text().startswith("1\n00:00:0")
    assert "Traceback" not in outcome.err


def test_a_pipe(utterances: list[Utterance], tmp_path: Path) -> None:
    data = write_wave(tmp_path / "a.wav", utterances[0].samples).read_bytes()
    outcome = asr("transcribe", "-", "-f", "json", ASR_MODEL=str(QWEN), data=data)
    assert outcome.code == 0
    transcript = json.loads(outcome.out)
    assert word_error_rate([(utterances[0].text, transcript["text"])]) <= 0.25
    assert transcript["model"] == str(QWEN)


@pytest.mark.parametrize(
    ("folder", "arguments", "message"),
    [
        (GLM, ("--language", "en"), "cannot be told the language"),
        (GLM, ("--hotwords", "seven"), "cannot be told words to expect"),
        (GLM, ("--task", "translate"), "cannot translate"),
        (GLM, ("--window", "31"), "takes in at most 30 s at once, not 31"),
        (QWEN, ("--task", "translate"), "cannot translate"),
        (QWEN, ("--language", "Swahili"), "does not know Swahili"),
    ],
)
def test_what_a_model_cannot_do(
    clips: Path, folder: Path, arguments: tuple[str, ...], message: str
) -> None:
    outcome = asr("transcribe", clips, "-m", folder, *arguments)
    assert (outcome.code, outcome.out) == (2, "")
    error, hint = outcome.err.splitlines()[-2:]
    assert error == f"error: {folder} {message}"
    assert hint.startswith("hint: ")


def test_words_for_the_model(clips: Path, utterances: list[Utterance]) -> None:
    """What each can be told is taken, and none of it gets into the text."""
    clip = clips / "sub" / "0.wav"
    runs = (
        (QWEN, ("--prompt", "menu", "--hotwords", "yellow", "--language", "en")),
        (GLM, ("--prompt", "Write down the words")),
    )
    for folder, arguments in runs:
        outcome = asr("transcribe", clip, "-m", folder, *arguments)
        assert outcome.code == 0
        assert word_error_rate([(utterances[0].text, outcome.out.strip())]) <= 0.25


@BOTH
@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json", "config.json"])
def test_a_download_that_stopped_half_way(
    clips: Path, tmp_path: Path, folder: Path, name: str
) -> None:
    half = tmp_path / "half"
    shutil.copytree(folder, half)
    (half / name).unlink()
    outcome = asr("transcribe", clips, "-m", half)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.splitlines()[0] == f"error: {half}: {name} is missing"
    shutil.copy(folder / name, half / name)
    whole = (folder / name).read_bytes()
    (half / name).write_bytes(whole[: len(whole) // 2])
    outcome = asr("transcribe", clips, "-m", half)
    assert outcome.code == 1
    assert outcome.err.splitlines()[0].startswith(f"error: {half}/{name} is ")


@BOTH
def test_text_comes_while_the_pipe_goes_on(
    utterances: list[Utterance], folder: Path, tmp_path: Path
) -> None:
    """Whoever pipes a live recording in reads its first words long before its end."""
    pause = silence(4.0)
    audio = np.concatenate([np.concatenate([one.samples, pause]) for one in utterances[:4]])
    pcm = (audio * 32767).astype("<i2").tobytes()
    with start("transcribe", "-", "--raw", "s16le", "-m", folder, stdin=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(pcm)
        process.stdin.flush()
        first = process.stdout.readline()  # while the pipe is still open
        process.stdin.close()
        rest = process.stdout.readlines()  # not communicate(), which skips what readline() buffered
    assert process.returncode == 0
    texts = [line.decode() for line in (first, *rest)]
    assert len(texts) == 4
    assert word_error_rate(zip((one.text for one in utterances), texts, strict=False)) <= 0.1
