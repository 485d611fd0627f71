"""Every odd format next door, in one run: its text, or one right line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jiwer
import pytest

from tests.cli.runs import asr, words

AUDIO = Path(__file__).parents[3] / "shared" / "audio"

# Those that hold nothing to transcribe, and why.
COMPLAINTS = {
    "fmt-aeneas-mono.empty.wav": "empty file",
    "fmt-aeneas-mono.invalid.wav": "damaged WAV header: no audio data",
    "broken-ps-bad.wav": "damaged WAV header: no audio data",
    "broken-ps-evil.wav": "damaged WAV header: no audio data",
    # Nothing in the content says what this is.
    "derived/jfk-g722.g722": "not audio or video that can be read (no format that is known)",
}
DAMAGED = dict.fromkeys(
    ("derived/jfk-truncated.mp3", "derived/jfk-truncated.wav"),
    "the file ends at 0:05.5, its header says 0:11.0",
)
"""Cut in the middle: said to be, and transcribed as far as they go."""
NUMBERS = str.maketrans({"1": " one ", "2": " two ", "3": " three "})


@pytest.mark.slow
@pytest.mark.skipif(not AUDIO.is_dir(), reason="no recordings next door")
def test_every_format_gives_its_text_or_one_right_line(model: str) -> None:
    inputs = [*AUDIO.glob("fmt-*"), AUDIO / "derived", *AUDIO.glob("broken-*")]
    outcome = asr("transcribe", *sorted(inputs), "-m", model, "-f", "json", "-o", "-")
    assert outcome.code == 1
    transcripts = {
        Path(row["file"]).relative_to(AUDIO).as_posix(): row
        for row in map(json.loads, outcome.out.splitlines())
    }
    errors = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    told = COMPLAINTS | DAMAGED
    assert sorted(errors) == sorted(f"error: {AUDIO}/{name}: {why}" for name, why in told.items())
    with (AUDIO / "manifest.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    references = {row["file"]: row["reference_transcript"] for row in rows}
    for name, transcript in transcripts.items():
        reference = " ".join(words(references.get(name, "").translate(NUMBERS)))
        if name in DAMAGED:
            assert DAMAGED[name] in transcript["warnings"]
            assert "and so my fellow americans" in transcript["text"].lower()
        elif reference:
            text = " ".join(words(transcript["text"].translate(NUMBERS)))
            assert jiwer.wer(reference, text) <= 0.2, name
    assert DAMAGED.keys() <= transcripts.keys()
    assert len(transcripts) + len(COMPLAINTS) == 48
