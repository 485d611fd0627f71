"""Very small GLM-ASRs of random weights: transformers' own classes, saved and read back."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.request import Hypothesis
from asrcli.models.files import read_model_files
from asrcli.models.folders import check_folder
from asrcli.models.glm_asr import FAMILY, GlmAsrAdapter, GlmAsrProcessor
from tests.checkpoints.processors import NUM_MEL_BINS, glm_asr_processor
from tests.speech import RATE

NAME = "tiny-glm"
LANGUAGE_MODEL = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 2048,
    "bos_token_id": None,
}
ENCODER = {
    "num_mel_bins": NUM_MEL_BINS,
    "hidden_size": 48,
    "intermediate_size": 192,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 1500,
}
ENDS = ("<|endoftext|>", "<|user|>", "<|observation|>")


@cache
def reference_processor() -> Any:
    return glm_asr_processor()


def token_id(name: str) -> int:
    return int(reference_processor().tokenizer.convert_tokens_to_ids(name))


def build_reference(
    *, seed: int = 0, tied: bool = True, rotary: dict[str, Any] | None = None
) -> Any:
    """A ``GlmAsrForConditionalGeneration`` whose random weights are large enough to matter."""
    num_ids = len(reference_processor().tokenizer)
    ends = [token_id(name) for name in ENDS]
    config = transformers.GlmAsrConfig(
        audio_config={**ENCODER, **({"rope_parameters": rotary} if rotary else {})},
        text_config={
            **LANGUAGE_MODEL,
            "vocab_size": num_ids,
            "eos_token_id": ends,
            "pad_token_id": ends[0],
            "tie_word_embeddings": tied,
        },
        audio_token_id=token_id("<|pad|>"),
        tie_word_embeddings=tied,
    )
    network = transformers.GlmAsrForConditionalGeneration(config).eval()
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in sorted(network.named_parameters()):
            drawn = torch.randn(weight.shape, generator=random)
            if weight.dim() > 1:
                weight.copy_(drawn * 1.5 * weight[0].numel() ** -0.5)
            else:
                weight.copy_(0.2 * drawn + float(name.endswith("norm.weight")))
    # Every eighth id ends a text, so that texts of random weights end at many lengths.
    network.generation_config.eos_token_id = sorted({*ends, *range(0, num_ids, 8)})
    network.generation_config.pad_token_id = ends[0]
    return network


def write_checkpoint(folder: Path, network: Any) -> Path:
    """Save a network with its processor as transformers does."""
    reference_processor().save_pretrained(folder)
    network.save_pretrained(folder)
    return folder


class Loaded:
    """A checkpoint as the family loads it."""

    def __init__(self, folder: Path, dtype: torch.dtype = torch.float32) -> None:
        checkpoint = check_folder(folder, NAME)
        files = read_model_files(checkpoint)
        model = FAMILY.load(checkpoint, files, torch.device("cpu"), dtype)
        assert isinstance(model.processor, GlmAsrProcessor)
        assert isinstance(model.adapter, GlmAsrAdapter)
        assert isinstance(model.network, DecoderOnly)
        self.processor, self.adapter, self.network = model.processor, model.adapter, model.network


def clip(duration: float, seed: int = 0) -> NDArray[np.float32]:
    """A chord that comes and goes, in noise: no two clips alike."""
    random = np.random.default_rng(seed)
    times = np.arange(round(duration * RATE)) / RATE
    chord = sum(np.sin(2 * np.pi * pitch * times) for pitch in random.uniform(100, 3000, 3))
    loudness = 0.1 * (1 + np.sin(2 * np.pi * random.uniform(0.5, 3) * times))
    noise = 0.02 * random.standard_normal(len(times))
    return np.asarray(loudness * chord + noise, np.float32)


def answer(text: str, *, finish_reason: Any = "stop") -> Hypothesis:
    """What the network would have produced to say this."""
    ids = reference_processor().tokenizer.encode(text, add_special_tokens=False)
    return Hypothesis(
        request_id=0,
        token_ids=tuple(ids),
        logprobs=tuple(-0.1 * (i + 1) for i in range(len(ids))),
        eos_logprob=-0.5 if finish_reason == "stop" else None,
        finish_reason=finish_reason,
    )
