"""The engine against transformers' ``generate()``: same random weights, batch and output lengths.

    python tests/benchmarks/against_generate.py --device cpu --windows 16 --seconds 10 --tokens 64

Weights are random but of the true shape, which is all that time depends on: encoder, prefill and
decode steps are timed, features and start are not. Rounds alternate, so that a slow moment of the
machine meets both.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from torch import Tensor

from asrcli.compute_threads import in_passing
from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.device import unquantized
from asrcli.engine.loop import Engine
from asrcli.engine.memory import keep_freed_memory
from asrcli.engine.request import Request, Sampling
from asrcli.engine.token_runner import TokenRunner
from asrcli.models.base import ModelFiles
from asrcli.models.qwen3_asr_weights import build_network

FRAMES_PER_SECOND = 100
PROMPT_BEFORE, PROMPT_BEHIND = 9, 8  # ids around the audio in the official prompt
SHAPES = {
    "qwen3-asr-0.6b": transformers.Qwen3ASRConfig(
        audio_config={
            "d_model": 896,
            "encoder_layers": 18,
            "encoder_attention_heads": 14,
            "encoder_ffn_dim": 3584,
            "downsample_hidden_size": 480,
            "output_dim": 1024,
        },
        text_config={
            "vocab_size": 151_936,
            "hidden_size": 1024,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "intermediate_size": 3072,
            "max_position_embeddings": 65_536,
            "tie_word_embeddings": True,
        },
    ),
    "qwen3-asr-small": transformers.Qwen3ASRConfig(  # to try the script itself
        audio_config={
            "d_model": 64,
            "encoder_layers": 2,
            "encoder_attention_heads": 2,
            "encoder_ffn_dim": 128,
            "downsample_hidden_size": 16,
            "output_dim": 64,
        },
        text_config={
            "vocab_size": 151_936,
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 16,
            "intermediate_size": 128,
            "max_position_embeddings": 65_536,
            "tie_word_embeddings": True,
        },
    ),
}


def build(shape: str, device: torch.device, dtype: torch.dtype) -> tuple[Any, DecoderOnly]:
    """A model of transformers' with random weights, and our network on the same."""
    torch.manual_seed(0)
    model = transformers.Qwen3ASRForConditionalGeneration(SHAPES[shape])
    model = model.to(device, unquantized(dtype)).eval()
    model.generation_config.pad_token_id = 0
    files = ModelFiles(
        config=model.config.to_dict(),
        generation_config={},
        preprocessor_config={},
        tokenizer_path=Path(),
        tensors=model.state_dict(),
    )
    return model, build_network(files, device, dtype)


def make_inputs(model: Any, seconds: list[float]) -> tuple[list[Tensor], dict[str, Tensor]]:
    """Features window by window, and the same as ``generate`` wants them: padded on the left."""
    config = model.config
    audio = [torch.randn(config.audio_config.num_mel_bins, round(s * 100)) for s in seconds]
    counts = [int(_num_positions(one.shape[1])) for one in audio]
    frames = max(-(-one.shape[1] // 100) * 100 for one in audio)
    width = PROMPT_BEFORE + max(counts) + PROMPT_BEHIND
    features = torch.zeros(len(audio), config.audio_config.num_mel_bins, frames)
    feature_mask = torch.zeros(len(audio), frames, dtype=torch.long)
    ids = torch.full((len(audio), width), 100)
    mask = torch.zeros_like(ids)
    for row, (one, count) in enumerate(zip(audio, counts, strict=True)):
        features[row, :, : one.shape[1]] = one
        feature_mask[row, : one.shape[1]] = 1
        mask[row, width - PROMPT_BEFORE - count - PROMPT_BEHIND :] = 1
        ids[row, width - count - PROMPT_BEHIND : width - PROMPT_BEHIND] = config.audio_token_id
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "input_features": features.to(model.dtype),
        "input_features_mask": feature_mask,
    }
    return audio, {name: tensor.to(model.device) for name, tensor in inputs.items()}


def _num_positions(num_frames: int) -> int:
    """Of the encoder: 13 for 100 frames."""
    rest = num_frames % 100
    for _ in range(3):
        rest = (rest - 1) // 2 + 1
    return num_frames // 100 * 13 + rest


def run_generate(model: Any, inputs: dict[str, Tensor], num_tokens: int) -> list[list[int]]:
    with torch.inference_mode():
        ids = model.generate(
            **inputs, max_new_tokens=num_tokens, min_new_tokens=num_tokens, do_sample=False
        )
    return [row[inputs["input_ids"].shape[1] :].tolist() for row in ids]


def run_engine(engine: Engine, audio: list[Tensor], num_tokens: int) -> list[list[int]]:
    requests = []
    for number, features in enumerate(audio):
        count = _num_positions(features.shape[1])
        prompt = (100,) * (PROMPT_BEFORE + count + PROMPT_BEHIND)
        requests.append(
            Request(
                request_id=number,
                prompt_token_ids=prompt,
                input_features=features,
                audio_span=(PROMPT_BEFORE, PROMPT_BEFORE + count),
                sampling=Sampling(max_new_tokens=num_tokens, eos_token_ids=frozenset()),
            )
        )
    futures = [engine.submit(request) for request in requests]
    return [list(future.result().token_ids) for future in futures]


def timed(run: Callable[[], list[list[int]]], device: torch.device) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = run()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - begin, result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shape", choices=SHAPES, default="qwen3-asr-0.6b")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["bfloat16", "float32"], default="bfloat16")
    parser.add_argument("--windows", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--ragged", action="store_true", help="lengths from half to all of it")
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    transformers.logging.set_verbosity_error()
    keep_freed_memory()
    device, dtype = torch.device(arguments.device), getattr(torch, arguments.dtype)
    # What computes beside the engine takes its team of threads along, as in a run of asr.
    model, network = in_passing(lambda: build(arguments.shape, device, dtype))
    encode_batch_size, max_prefill = (1, 4) if device.type == "cpu" else (16, 64)
    runner = TokenRunner(network, arguments.windows, 1_000_000, encode_batch_size=encode_batch_size)
    engine = Engine(runner, max_prefill=max_prefill, max_prefill_tokens=2048)
    step = 0.5 / max(1, arguments.windows - 1) if arguments.ragged else 0.0
    seconds = [arguments.seconds * (1 - step * index) for index in range(arguments.windows)]
    audio, inputs = in_passing(lambda: make_inputs(model, seconds))
    in_passing(lambda: run_generate(model, inputs, 2))  # first calls compile and allocate
    run_engine(engine, audio, 2)
    ratios = []
    for number in range(arguments.rounds):
        theirs, their_ids = in_passing(
            lambda: timed(lambda: run_generate(model, inputs, arguments.tokens), device)
        )
        ours, our_ids = timed(lambda: run_engine(engine, audio, arguments.tokens), device)
        assert all(len(row) == arguments.tokens for row in our_ids + their_ids)
        ratios.append(theirs / ours)
        print(
            f"round {number + 1}: generate() {theirs:.2f} s, engine {ours:.2f} s, "
            f"{theirs / ours:.2f} times as fast",
            flush=True,
        )
    print(
        f"{arguments.shape}, {arguments.dtype}, {device}, {arguments.windows} windows of "
        f"{'up to ' if arguments.ragged else ''}{arguments.seconds:g} s, {arguments.tokens} ids "
        f"each: median {statistics.median(ratios):.2f} times as fast as generate()"
    )
    engine.close()


if __name__ == "__main__":
    main()
