"""transformers' own pipeline over the same weights, for comparison."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import transformers
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from tests.gpu.networks import END, ENGLISH, NO_TIMESTAMPS, START, TRANSCRIBE

NAMES = {
    END: "<|endoftext|>",
    START: "<|startoftranscript|>",
    ENGLISH: "<|en|>",
    TRANSCRIBE: "<|transcribe|>",
    NO_TIMESTAMPS: "<|notimestamps|>",
}


def build_pipeline(model: Any) -> Any:
    """A speech recognition pipeline; every id of its tokenizer is a word."""
    vocabulary = {NAMES.get(i, f"word{i}"): i for i in range(model.config.vocab_size)}
    end = NAMES[END]
    tokenizer = transformers.WhisperTokenizer(
        tokenizer_object=Tokenizer(WordLevel(vocabulary, unk_token="word0")),
        unk_token="word0",
        pad_token=end,
        bos_token=end,
        eos_token=end,
    )
    extractor = transformers.WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
    return transformers.pipeline(
        "automatic-speech-recognition",
        model=model,
        tokenizer=tokenizer,
        feature_extractor=extractor,
        device=model.device,
        dtype=model.dtype,
    )


def time_pipeline(
    pipeline: Any, windows: Sequence[NDArray[np.float32]], batch_size: int, num_ids: int
) -> float:
    """Seconds that it takes to write so many ids for each window."""
    settings = {"max_new_tokens": num_ids, "min_new_tokens": num_ids, "do_sample": False}
    num_written: list[int] = []
    generate = pipeline.model.generate

    def count(*arguments: Any, **keywords: Any) -> Any:
        ids = generate(*arguments, **keywords)
        num_written.extend([ids.shape[1]] * len(ids))
        return ids

    pipeline.model.generate = count
    begin = time.perf_counter()
    # An array's sampling rate is the extractor's; the pipeline changes the list it is given.
    list(pipeline(list(windows), batch_size=batch_size, generate_kwargs=settings))
    seconds = time.perf_counter() - begin
    pipeline.model.generate = generate
    if len(num_written) != len(windows) or min(num_written) < num_ids:
        raise RuntimeError(f"the pipeline wrote {num_written} ids, not {num_ids} a window")
    return seconds
