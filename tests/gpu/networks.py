"""Networks of random weights in the true shapes, and requests for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.encoder_decoder import EncoderDecoder
from asrcli.engine.request import LogitsRule, Request, Sampling
from asrcli.models import glm_asr_weights, qwen3_asr_weights, whisper_weights
from asrcli.models.base import ModelFiles
from asrcli.models.glm_asr import count_places
from asrcli.models.log_mel import LogMel, UnpaddedLogMel
from asrcli.models.qwen3_asr_positions import count_positions
from asrcli.models.whisper_rules import MustReach, Suppress, TimestampGrammar
from tests.benchmarks.against_generate import SHAPES

# Of large-v3-turbo's vocabulary.
END, START, ENGLISH, TRANSCRIBE, NO_TIMESTAMPS = 50257, 50258, 50259, 50360, 50364
FIRST_TIMESTAMP = NO_TIMESTAMPS + 1
BEFORE_AUDIO, BEHIND_AUDIO = 9, 8  # ids around the audio in the prompts of the decoder-only kind

Prepare = Callable[[int, NDArray[np.float32], int], Request]
"""(request id, samples, new ids) to a request whose features are extracted on the device."""


@dataclass(frozen=True)
class Subject:
    """A network to be checked.

    Attributes:
        model: transformers' own, of the same weights.
    """

    name: str
    network: EncoderDecoder | DecoderOnly
    prepare: Prepare
    model: Any


def whisper_config(small: bool) -> transformers.WhisperConfig:
    """That of large-v3-turbo, or one to try the check itself."""
    width, heads, layers, ffn = (64, 4, 2, 128) if small else (1280, 20, 32, 5120)
    return transformers.WhisperConfig(
        vocab_size=51_866,
        num_mel_bins=128,
        d_model=width,
        encoder_layers=layers,
        decoder_layers=2 if small else 4,
        encoder_attention_heads=heads,
        decoder_attention_heads=heads,
        encoder_ffn_dim=ffn,
        decoder_ffn_dim=ffn,
        max_source_positions=1500,
        max_target_positions=448,
        pad_token_id=END,
        bos_token_id=END,
        eos_token_id=END,
        decoder_start_token_id=START,
    )


def glm_config(small: bool) -> transformers.GlmAsrConfig:
    """That of GLM-ASR-Nano, or one to try the check itself."""
    if not small:
        return transformers.GlmAsrConfig()
    return transformers.GlmAsrConfig(
        audio_config={
            "hidden_size": 64,
            "intermediate_size": 256,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
        },
        text_config={
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
        },
    )


def build_whisper(device: torch.device, dtype: torch.dtype, small: bool) -> Subject:
    """Large-v3-turbo."""
    model = _build(
        transformers.WhisperForConditionalGeneration, whisper_config(small), device, dtype, small
    )
    features = LogMel(128, device=device)
    special = range(END + 1, FIRST_TIMESTAMP)
    rules: tuple[LogitsRule, ...] = (
        Suppress([*special, *range(1, 90)], [220, END], 0),
        TimestampGrammar(first_timestamp=FIRST_TIMESTAMP, eos=END, max_initial=50, begin=0),
    )

    def prepare(number: int, samples: NDArray[np.float32], num_ids: int) -> Request:
        reach = MustReach(number * 7 % 1400, first_timestamp=FIRST_TIMESTAMP, eos=END)
        return Request(
            request_id=number,
            # Noise all sounds alike to random weights: another language gives another text.
            prompt_token_ids=(START, ENGLISH + number % 99, TRANSCRIBE),
            input_features=features(samples),
            sampling=_sampling(num_ids, (reach, *rules)),
            no_speech=(0, NO_TIMESTAMPS - 1),
        )

    network = whisper_weights.build_network(_files(model), device, dtype)
    return Subject("large-v3-turbo", network, prepare, model)


def build_qwen3_asr(device: torch.device, dtype: torch.dtype, small: bool) -> Subject:
    """Qwen3-ASR-0.6B."""
    config = SHAPES["qwen3-asr-small" if small else "qwen3-asr-0.6b"]
    model = _build(transformers.Qwen3ASRForConditionalGeneration, config, device, dtype, small)
    features = UnpaddedLogMel(128, device=device)

    def prepare(number: int, samples: NDArray[np.float32], num_ids: int) -> Request:
        extracted = features(samples)
        return _splice(number, extracted, count_positions(extracted.shape[1]), num_ids)

    network = qwen3_asr_weights.build_network(_files(model), device, dtype)
    return Subject("Qwen3-ASR-0.6B", network, prepare, model)


def build_glm_asr(device: torch.device, dtype: torch.dtype, small: bool) -> Subject:
    """GLM-ASR-Nano."""
    model = _build(
        transformers.GlmAsrForConditionalGeneration, glm_config(small), device, dtype, small
    )
    features = LogMel(128, device=device)

    def prepare(number: int, samples: NDArray[np.float32], num_ids: int) -> Request:
        return _splice(number, features(samples), count_places(len(samples)), num_ids)

    network = glm_asr_weights.build_network(_files(model), device, dtype)
    return Subject("GLM-ASR-Nano", network, prepare, model)


SUBJECTS = {"turbo": build_whisper, "qwen3-asr": build_qwen3_asr, "glm-asr": build_glm_asr}


def _splice(number: int, features: torch.Tensor, num_places: int, num_ids: int) -> Request:
    first = 100 + number % 50
    return Request(
        request_id=number,
        prompt_token_ids=(first,) * (BEFORE_AUDIO + num_places + BEHIND_AUDIO),
        input_features=features,
        audio_span=(BEFORE_AUDIO, BEFORE_AUDIO + num_places),
        sampling=_sampling(num_ids),
    )


def _sampling(num_ids: int, rules: tuple[LogitsRule, ...] = ()) -> Sampling:
    return Sampling(max_new_tokens=num_ids, eos_token_ids=frozenset(), logits_rules=rules)


def _build(kind: Any, config: Any, device: torch.device, dtype: torch.dtype, small: bool) -> Any:
    """A model whose random weights are large enough to matter; small ones are alike everywhere."""
    with torch.device("cpu" if small else device):
        model = kind(config).eval()
        torch.manual_seed(0)
        with torch.no_grad():
            for name, weight in sorted(model.named_parameters()):
                if weight.dim() > 1:
                    weight.normal_(std=weight[0].numel() ** -0.5)
                elif name.endswith(("decoder.layer_norm.weight", "language_model.norm.weight")):
                    # Random signs: with the embedding behind it, each id would be said again.
                    weight.normal_()
    return model.to(device, dtype)


def _files(model: Any) -> ModelFiles:
    return ModelFiles(
        config=model.config.to_dict(),
        generation_config={},
        preprocessor_config={},
        tokenizer_path=Path(),
        tensors=model.state_dict(),
    )
