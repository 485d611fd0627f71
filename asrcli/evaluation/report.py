"""An evaluation as JSON: all that is known, for programs."""

from __future__ import annotations

import json
from typing import Any

from asrcli.evaluation.scoring import Counts, Evaluation, FileScore, Total

_NUM_DECIMALS = 6


def render_json(evaluation: Evaluation) -> str:
    """The evaluation as one indented object; ends with a line feed.

    Rates are fractions (0.25, not 25), durations seconds; what is unknown is null.
    """
    values = {
        "model": evaluation.model,
        "normalizer": evaluation.normalizer,
        "metric": evaluation.metric,
        "total": _total(evaluation.total),
        "totals": {metric: _total(total) for metric, total in evaluation.totals.items()},
        "files": [_file(file) for file in evaluation.files],
        "failures": list(evaluation.failures),
    }
    return json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _total(total: Total) -> dict[str, Any]:
    return {
        "num_files": total.num_files,
        "duration": _rounded(total.duration),
        "wer": _rounded(total.wer),
        "cer": _rounded(total.cer),
        "words": _counts(total.words),
        "characters": _counts(total.characters),
    }


def _file(file: FileScore) -> dict[str, Any]:
    joint = " " if file.metric == "wer" else ""
    return {
        "file": file.pair.name,
        "language": file.language,
        "normalizer": file.normalizer,
        "metric": file.metric,
        "duration": _rounded(file.pair.duration),
        "wer": _rounded(file.wer),
        "cer": _rounded(file.cer),
        "words": _counts(file.words),
        "characters": _counts(file.characters),
        "reference": file.pair.reference,
        "hypothesis": file.pair.hypothesis,
        "normalized_reference": file.normalized_reference,
        "normalized_hypothesis": file.normalized_hypothesis,
        "alignment": [
            {
                "kind": chunk.kind,
                "reference": joint.join(chunk.reference),
                "hypothesis": joint.join(chunk.hypothesis),
            }
            for chunk in file.alignment
        ],
    }


def _counts(counts: Counts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    return {
        "reference": counts.num_reference,
        "hits": counts.hits,
        "substitutions": counts.substitutions,
        "deletions": counts.deletions,
        "insertions": counts.insertions,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _NUM_DECIMALS)
