"""Counts and rates, worked out by hand."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from asrcli.errors import UsageError
from asrcli.evaluation import Chunk, Counts, FileScore, Pair, score
from asrcli.evaluation.normalizers import normalize
from asrcli.evaluation.report import render_json
from asrcli.evaluation.scripts import guess_language

REFERENCE = "The quick brown fox jumps over the lazy dog."
HYPOTHESIS = "the quack brown jumps over a the lazy dog"


def score_one(
    reference: str,
    hypothesis: str,
    *,
    language: str | None = None,
    normalizer: str = "auto",
    metric: str = "auto",
) -> FileScore:
    pair = Pair(name="a", reference=reference, hypothesis=hypothesis, language=language)
    (file,) = score([pair], normalizer=normalizer, metric=metric).files
    return file


def test_one_of_each_error() -> None:
    file = score_one(REFERENCE, HYPOTHESIS)
    assert file.words == Counts(hits=7, substitutions=1, deletions=1, insertions=1)
    assert file.wer == pytest.approx(3 / 9)
    # quick/quack is one letter; " fox" and " a" are four and two.
    assert file.characters == Counts(hits=38, substitutions=1, deletions=4, insertions=2)
    assert file.cer == pytest.approx(7 / 43)
    assert (file.metric, file.counts) == ("wer", file.words)


def test_the_alignment_holds_both_texts() -> None:
    file = score_one(REFERENCE, HYPOTHESIS)
    rows = [(chunk.kind, " ".join(chunk.reference), " ".join(chunk.hypothesis)) for chunk in
            file.alignment]  # fmt: skip
    assert rows == [
        ("equal", "the", "the"),
        ("substitute", "quick", "quack"),
        ("equal", "brown", "brown"),
        ("delete", "fox", ""),
        ("equal", "jumps over", "jumps over"),
        ("insert", "", "a"),
        ("equal", "the lazy dog", "the lazy dog"),
    ]


@pytest.mark.parametrize(
    ("reference", "hypothesis"),
    [
        ("twenty five", "25"),
        ("It's the colour of Mr. Smith's theatre", "it is the color of mister smith is theater"),
        ("Uh, I can't pay $20 million", "i can not pay twenty million dollars"),
        ("a naïve café", "A naive cafe."),
    ],
)
def test_english_that_differs_in_writing_alone(reference: str, hypothesis: str) -> None:
    file = score_one(reference, hypothesis, language="en")
    assert (file.normalizer, file.wer, file.cer) == ("english", 0.0, 0.0)
    assert score_one(reference, hypothesis, normalizer="multilingual").wer != 0.0


def test_numbers_stay_as_they_are_in_other_languages() -> None:
    file = score_one("twenty five", "25", language="de")
    assert file.words == Counts(substitutions=1, deletions=1)
    assert (file.normalizer, file.wer) == ("multilingual", 1.0)


def test_umlauts_are_letters_of_their_own() -> None:
    file = score_one("Schöne Grüße aus Köln!", "schone grüße aus Koln", language="de")
    assert file.words == Counts(hits=2, substitutions=2)
    assert file.characters == Counts(hits=19, substitutions=2)
    # In English they are ornament.
    assert score_one("Schöne", "schone", language="en").wer == 0.0


@pytest.mark.parametrize("normalizer", ["multilingual", "none"])
def test_how_an_umlaut_is_encoded_does_not_matter(normalizer: str) -> None:
    decomposed = unicodedata.normalize("NFD", "Köln 한국어")
    assert score_one("Köln 한국어", decomposed, normalizer=normalizer).wer == 0.0


def test_none_compares_what_stands_there() -> None:
    file = score_one("Hello, world", " hello,  world\n", normalizer="none")
    assert file.words == Counts(hits=1, substitutions=1)


def test_vowel_signs_are_no_punctuation() -> None:
    assert normalize("नमस्ते, दुनिया!", "multilingual") == "नमस्ते दुनिया"


def test_korean_is_judged_by_characters_without_spaces() -> None:
    file = score_one("오늘은 날씨가 좋습니다", "오늘은날씨 가 좋읍니다.")
    assert (file.language, file.metric) == ("ko", "cer")
    assert file.characters == Counts(hits=9, substitutions=1)
    assert file.cer == pytest.approx(0.1)
    assert file.wer == 1.0
    assert file.alignment == (
        Chunk(kind="equal", reference=tuple("오늘은날씨가좋"), hypothesis=tuple("오늘은날씨가좋")),
        Chunk(kind="substitute", reference=("습",), hypothesis=("읍",)),
        Chunk(kind="equal", reference=("니", "다"), hypothesis=("니", "다")),
    )


def test_languages_without_spaces_have_no_words_unless_they_are_asked_for() -> None:
    file = score_one("今日はいい天気です", "今日は、良い天気です。")
    assert (file.language, file.words, file.wer) == ("ja", None, None)
    assert file.cer == pytest.approx(1 / 9)
    asked = score_one("今日 は", "今日 が", language="ja", metric="wer")
    assert (asked.metric, asked.wer) == ("wer", 0.5)


def test_characters_can_be_asked_for_in_any_language() -> None:
    file = score_one("one two", "one too", metric="cer")
    assert file.counts == Counts(hits=6, substitutions=1)  # the space is one of seven
    assert len(file.alignment) == 3


@pytest.mark.parametrize(
    ("reference", "hypothesis", "counts", "wer"),
    [
        ("", "thank you", Counts(insertions=2), None),
        ("(laughs)", "thank you", Counts(insertions=2), None),
        ("thank you", "", Counts(deletions=2), 1.0),
        ("", "", Counts(), 0.0),
        ("one", "one two three", Counts(hits=1, insertions=2), 2.0),
    ],
)
def test_nothing_on_one_side(
    reference: str, hypothesis: str, counts: Counts, wer: float | None
) -> None:
    file = score_one(reference, hypothesis)
    assert (file.words, file.wer) == (counts, wer)


def pairs() -> list[Pair]:
    return [
        Pair(name="good", reference="a b c d e f g h", hypothesis="a b c d e f g h", duration=8.0),
        Pair(name="half", reference="one two", hypothesis="one too", duration=2.0),
        Pair(name="silent", reference="", hypothesis="thank you"),
        Pair(name="half more", reference="1 2 3 4", hypothesis="1 2"),
    ]


def test_the_total_counts_every_word_the_same() -> None:
    total = score(pairs()).total
    assert total.words == Counts(hits=11, substitutions=1, deletions=2, insertions=2)
    assert total.wer == pytest.approx(5 / 14)
    assert (total.num_files, total.duration) == (4, 10.0)


def test_the_worst_come_first() -> None:
    names = [file.pair.name for file in score(pairs()).files]
    assert names == ["silent", "half more", "half", "good"]


def test_words_and_characters_have_totals_of_their_own() -> None:
    korean = Pair(name="k", reference="날씨가", hypothesis="날씨는")
    evaluation = score([*pairs(), korean])
    assert {name: total.num_files for name, total in evaluation.totals.items()} == {
        "wer": 4,
        "cer": 1,
    }
    assert evaluation.totals["cer"].cer == pytest.approx(1 / 3)
    assert evaluation.totals["wer"].wer == pytest.approx(5 / 14)
    assert evaluation.total.wer == pytest.approx(6 / 15)


def test_nothing_at_all() -> None:
    total = score([]).total
    assert (total.num_files, total.duration, total.wer, total.cer) == (0, None, None, 0.0)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("오늘은 날씨가 좋다", "ko"),
        ("今日は良い天気", "ja"),
        ("今天天气很好", "zh"),
        ("วันนี้อากาศดี", "th"),
        ("ခရီးသွား", "my"),
        ("The word 한국어 is Korean", None),
        ("plain English", None),
        ("12:30, …", None),
        ("", None),
    ],
)
def test_what_scripts_give_away(text: str, language: str | None) -> None:
    assert guess_language(text) == language


def test_a_stated_language_comes_before_the_script() -> None:
    file = score_one("今天", "今天", language="ja")
    assert (file.language, file.normalizer) == ("ja", "multilingual")


def test_a_pair_that_cannot_be_scored_leaves_the_others() -> None:
    """The English rules cannot count as far as some noise makes a model go on."""
    digits = Pair(name="digits", reference="7" * 5000, hypothesis="seven", language="en")
    noise = Pair(name="noise", reference="", hypothesis="7" * 5000, language="en")
    evaluation = score([digits, *pairs(), noise], failures=["b: no reference"])
    assert {file.pair.name for file in evaluation.files} == {pair.name for pair in pairs()}
    assert evaluation.total == score(pairs()).total
    assert evaluation.failures == (
        "b: no reference",
        "digits: cannot be scored (AssertionError)",
        "noise: cannot be scored (AssertionError)",
    )
    (file,) = score([digits], normalizer="multilingual").files
    assert file.wer == 1.0


def test_unknown_names_are_refused() -> None:
    with pytest.raises(UsageError, match="normalizer 'french' is unknown") as refused:
        score([], normalizer="french")
    assert refused.value.hint == "one of: auto, english, multilingual, none"
    with pytest.raises(UsageError, match="metric 'mer' is unknown"):
        score([], metric="mer")


def test_json_holds_everything(tmp_path: Path) -> None:
    evaluation = score(
        [Pair(name="a", reference="One Two!", hypothesis="one too three", duration=1.25)],
        model="m",
        failures=["b: no reference"],
    )
    text = render_json(evaluation)
    assert text.endswith("}\n")
    values = json.loads(text)
    words = {"reference": 2, "hits": 1, "substitutions": 1, "deletions": 0, "insertions": 1}
    characters = {"reference": 7, "hits": 6, "substitutions": 1, "deletions": 0, "insertions": 6}
    total = {
        "num_files": 1, "duration": 1.25, "wer": 1.0, "cer": 1.0,
        "words": words, "characters": characters,
    }  # fmt: skip
    assert values == {
        "model": "m",
        "normalizer": "auto",
        "metric": "auto",
        "total": total,
        "totals": {"wer": total},
        "files": [
            {
                "file": "a", "language": None, "normalizer": "multilingual", "metric": "wer",
                "duration": 1.25, "wer": 1.0, "cer": 1.0,
                "words": words, "characters": characters,
                "reference": "One Two!", "hypothesis": "one too three",
                "normalized_reference": "one two", "normalized_hypothesis": "one too three",
                "alignment": values["files"][0]["alignment"],
            }
        ],
        "failures": ["b: no reference"],
    }  # fmt: skip
    alignment = values["files"][0]["alignment"]
    assert alignment[0] == {"kind": "equal", "reference": "one", "hypothesis": "one"}
    for side, text in (("reference", "one two"), ("hypothesis", "one too three")):
        assert " ".join(filter(None, (chunk[side] for chunk in alignment))) == text
