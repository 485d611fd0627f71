"""Reference and hypothesis aligned, errors counted, file by file and in all.

jiwer aligns; nothing is rendered here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asrcli.errors import UsageError
from asrcli.evaluation.normalizers import check_normalizer, choose_normalizer, normalize
from asrcli.evaluation.scripts import BY_CHARACTERS, WITHOUT_SPACES, guess_language

if TYPE_CHECKING:
    from jiwer.process import CharacterOutput, WordOutput

METRICS = ("auto", "wer", "cer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What was said in a recording, and what was understood.

    Attributes:
        name: of the recording, as the user knows it.
        reference: what was said.
        hypothesis: the transcript.
        language: ISO 639 code; None leaves it to the script of the reference.
        duration: seconds of audio; None if unknown.
    """

    name: str
    reference: str
    hypothesis: str
    language: str | None = None
    duration: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many words, or characters, are right, wrong, missing and too many."""

    hits: int = 0
    substitutions: int = 0
    deletions: int = 0
    insertions: int = 0

    @property
    def num_reference(self) -> int:
        """How many there are in the reference."""
        return self.hits + self.substitutions + self.deletions

    @property
    def num_errors(self) -> int:
        """How many edits it takes from the reference to the hypothesis."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def rate(self) -> float | None:
        """Errors over the length of the reference; None where all of it is errors about nothing."""
        if self.num_reference:
            return self.num_errors / self.num_reference
        return None if self.num_errors else 0.0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            hits=self.hits + other.hits,
            substitutions=self.substitutions + other.substitutions,
            deletions=self.deletions + other.deletions,
            insertions=self.insertions + other.insertions,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A stretch of the alignment; all chunks of a file hold all of both texts, in order.

    Attributes:
        kind: "equal", "substitute", "delete" or "insert".
        reference: its words, or characters; none in what was inserted.
        hypothesis: the same; none in what was deleted.
    """

    kind: str
    reference: tuple[str, ...]
    hypothesis: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileScore:
    """One recording's result.

    Attributes:
        pair: the texts as they came in.
        language: ISO 639 code, stated or told by the script; None if unknown.
        normalizer: "english", "multilingual" or "none".
        metric: "wer" or "cer": which figure leads, and what the alignment is made of.
        words: None in languages without spaces between words, unless words were asked for.
        characters: spaces count, except in languages that are judged by characters.
        normalized_reference, normalized_hypothesis: what was compared.
        alignment: the chunks of the leading figure.
    """

    pair: Pair
    language: str | None
    normalizer: str
    metric: str
    words: Counts | None
    characters: Counts
    normalized_reference: str
    normalized_hypothesis: str
    alignment: tuple[Chunk, ...]

    @property
    def counts(self) -> Counts:
        """Those of the leading figure."""
        return self.words if self.metric == "wer" and self.words else self.characters

    @property
    def wer(self) -> float | None:
        """Word error rate: 0 to 1 and above; None where it has no meaning."""
        return self.words.rate if self.words else None

    @property
    def cer(self) -> float | None:
        """Character error rate: 0 to 1 and above; None where it has no meaning."""
        return self.characters.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """Some files together: every word counts the same, whichever file it is in.

    Attributes:
        num_files: how many.
        duration: seconds of audio, as far as they are known; None if none are.
        words: None where no file has any that could be counted.
        characters: of all files.
    """

    num_files: int
    duration: float | None
    words: Counts | None
    characters: Counts

    @property
    def wer(self) -> float | None:
        """Word error rate over the files that have one."""
        return self.words.rate if self.words else None

    @property
    def cer(self) -> float | None:
        """Character error rate over all files."""
        return self.characters.rate


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """Every file's score, the worst file first.

    Attributes:
        files: sorted by the leading figure, then by the number of errors, then by name.
        normalizer, metric: as they were asked for.
        model: what made the transcripts; None if unknown.
        failures: files that have no score, or not all of their audio in it; one line each.
    """

    files: tuple[FileScore, ...]
    normalizer: str
    metric: str
    model: str | None = None
    failures: tuple[str, ...] = ()

    @property
    def total(self) -> Total:
        """All files together."""
        return _add_up(self.files)

    @property
    def totals(self) -> dict[str, Total]:
        """For each leading figure ("wer", "cer") the files that it leads, together."""
        return {
            metric: _add_up(files)
            for metric in METRICS
            if (files := [file for file in self.files if file.metric == metric])
        }


def score(
    pairs: Iterable[Pair],
    *,
    normalizer: str = "auto",
    metric: str = "auto",
    model: str | None = None,
    failures: Sequence[str] = (),
) -> Evaluation:
    """Compare transcripts with references.

    Args:
        pairs: one for each recording.
        normalizer: see ``normalizers.normalize``; "auto" is "english" for English and
            "multilingual" for everything else.
        metric: "wer", "cer", or "auto": "cer" for the languages of ``scripts.BY_CHARACTERS``.
        model: what made the transcripts.
        failures: what is to be told of files that have no score.

    Returns:
        The scores; texts that the normalizer, or jiwer, cannot cope with have none, but a line
        behind the other failures.

    Raises:
        UsageError: the normalizer or the metric is unknown.
    """
    check_normalizer(normalizer)
    check_metric(metric)
    files: list[FileScore] = []
    lines = list(failures)
    for pair in pairs:
        try:
            files.append(_score(pair, normalizer, metric))
        except Exception as error:  # hours of transcribing may be in the other pairs
            reason = " ".join(f"{type(error).__name__} {error}".split())
            lines.append(f"{pair.name}: cannot be scored ({reason})")
    return Evaluation(
        files=tuple(sorted(files, key=_goodness)),
        normalizer=normalizer,
        metric=metric,
        model=model,
        failures=tuple(lines),
    )


def check_metric(name: str) -> None:
    """Raise UsageError unless ``name`` is one of ``METRICS``."""
    if name not in METRICS:
        raise UsageError(f"metric {name!r} is unknown", hint=f"one of: {', '.join(METRICS)}")


def _score(pair: Pair, normalizer: str, metric: str) -> FileScore:
    import jiwer  # here, as it takes a while to load

    language = pair.language or guess_language(pair.reference)
    chosen = choose_normalizer(normalizer, language)
    texts = [normalize(text, chosen) for text in (pair.reference, pair.hypothesis)]
    by_characters = language in BY_CHARACTERS
    if metric == "auto":
        metric = "cer" if by_characters else "wer"
    spelled = [text.replace(" ", "") for text in texts] if by_characters else texts
    characters = jiwer.process_characters(*spelled)
    has_words = metric == "wer" or language not in WITHOUT_SPACES
    words = jiwer.process_words(*texts) if has_words else None
    return FileScore(
        pair=pair,
        language=language,
        normalizer=chosen,
        metric=metric,
        words=_count(words) if words else None,
        characters=_count(characters),
        normalized_reference=texts[0],
        normalized_hypothesis=texts[1],
        alignment=_chunks(words if words and metric == "wer" else characters),
    )


def _count(output: WordOutput | CharacterOutput) -> Counts:
    return Counts(
        hits=output.hits,
        substitutions=output.substitutions,
        deletions=output.deletions,
        insertions=output.insertions,
    )


def _chunks(output: WordOutput | CharacterOutput) -> tuple[Chunk, ...]:
    reference, hypothesis = output.references[0], output.hypotheses[0]
    return tuple(
        Chunk(
            kind=chunk.type,
            reference=tuple(reference[chunk.ref_start_idx : chunk.ref_end_idx]),
            hypothesis=tuple(hypothesis[chunk.hyp_start_idx : chunk.hyp_end_idx]),
        )
        for chunk in output.alignments[0]
    )


def _goodness(file: FileScore) -> tuple[float, int, str]:
    rate = file.counts.rate
    return (-math.inf if rate is None else -rate, -file.counts.num_errors, file.pair.name)


def _add_up(files: Sequence[FileScore]) -> Total:
    durations = [file.pair.duration for file in files if file.pair.duration is not None]
    words = [file.words for file in files if file.words is not None]
    return Total(
        num_files=len(files),
        duration=sum(durations) if durations else None,
        words=sum(words, Counts()) if words else None,
        characters=sum((file.characters for file in files), Counts()),
    )
