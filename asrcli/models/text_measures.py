"""What a text, and how sure the model was of it, tells about its worth."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.engine.request import Hypothesis


def compression_ratio(text: str) -> float:
    """Bytes of a text over those of its zlib form: high where it repeats itself."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0


def mean_logprob(hypothesis: Hypothesis, begin: int = 0) -> float:
    """Mean natural log-probability of the ids from ``begin`` on, and of the end."""
    logprobs = list(hypothesis.logprobs[begin:])
    if hypothesis.eos_logprob is not None:
        logprobs.append(hypothesis.eos_logprob)
    return sum(logprobs) / max(1, len(logprobs))
