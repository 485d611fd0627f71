"""Processors and configurations: transformers' own classes, small vocabularies, small networks."""

from __future__ import annotations

import json
import random
from typing import Any

import transformers
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from tests.checkpoints.vocabulary import ALL_WORDS, WORDS

NUM_MEL_BINS = 80
VOCABULARY_SIZE = 420
LANGUAGE_MODEL = {
    "hidden_size": 128,
    "intermediate_size": 384,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": True,
    "bos_token_id": None,
}

# What the real checkpoints' templates write, in as few words as Jinja allows.
QWEN3_ASR_TEMPLATE = (
    "{% set parts = namespace(context='', rest='') %}"
    "{% for message in messages %}"
    "{% set turn = namespace(text='') %}"
    "{% if message.content is string %}{% set turn.text = message.content %}"
    "{% else %}{% for part in message.content %}"
    "{% set turn.text = turn.text + (part.text if part.type == 'text'"
    " else '<|audio_start|><|audio_pad|><|audio_end|>') %}"
    "{% endfor %}{% endif %}"
    "{% if message.role == 'system' %}{% set parts.context = parts.context + turn.text %}"
    "{% else %}{% set parts.rest = parts.rest + '<|im_start|>' + message.role + '\\n'"
    " + turn.text + '<|im_end|>\\n' %}{% endif %}"
    "{% endfor %}"
    "{{ '<|im_start|>system\\n' + parts.context + '<|im_end|>\\n' + parts.rest }}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
GLM_ASR_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|' + message.role + '|>\\n' }}"
    "{% if message.content is string %}{{ message.content }}"
    "{% else %}{% for part in message.content %}"
    "{{ part.text if part.type == 'text'"
    " else '<|begin_of_audio|><|pad|><|end_of_audio|><|user|>\\n' }}"
    "{% endfor %}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)


def _byte_pairs(framing: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Byte-level pairs over the words and what frames them: (vocabulary, merges)."""
    chance = random.Random(5)
    texts = [" ".join(chance.choices(WORDS["English"], k=4)) for _ in range(2000)]
    texts += [" ".join(chance.choices(WORDS["Spanish"], k=4)) for _ in range(700)]
    texts += [text for text in framing for _ in range(500)]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY_SIZE, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [(first, second) for first, second in model["merges"]]


def qwen3_asr_processor() -> Any:
    """A ``Qwen3ASRProcessor``; ``<asr_text>`` is not special there, as in the real vocabulary."""
    framing = ["language English", "language Spanish", "language None"]
    framing += ["system\n", "user\n", "assistant\n"]
    vocabulary, merges = _byte_pairs(framing)
    tokenizer = transformers.Qwen2TokenizerFast(
        vocab=vocabulary,
        merges=merges,
        unk_token=None,
        bos_token=None,
        eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
        extra_special_tokens={
            "audio_token": "<|audio_pad|>",
            "audio_bos_token": "<|audio_start|>",
            "audio_eos_token": "<|audio_end|>",
        },
    )
    tokenizer.add_tokens([AddedToken("<|im_start|>", special=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("<asr_text>", special=False, normalized=False)])
    extractor = transformers.Qwen3ASRFeatureExtractor(feature_size=NUM_MEL_BINS)
    return transformers.Qwen3ASRProcessor(extractor, tokenizer, chat_template=QWEN3_ASR_TEMPLATE)


def glm_asr_processor() -> Any:
    """A ``GlmAsrProcessor``."""
    vocabulary, merges = _byte_pairs(["Please transcribe this audio into text", "\n"])
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|endoftext|>",
        pad_token="<|endoftext|>",
        clean_up_tokenization_spaces=False,
    )
    roles = ["<|user|>", "<|assistant|>", "<|system|>", "<|observation|>"]
    sounds = ["<|begin_of_audio|>", "<|end_of_audio|>", "<|pad|>"]
    fast.add_special_tokens({"additional_special_tokens": roles + sounds})
    extractor = transformers.WhisperFeatureExtractor(feature_size=NUM_MEL_BINS)
    return transformers.GlmAsrProcessor(extractor, fast, chat_template=GLM_ASR_TEMPLATE)


def qwen3_asr_model(processor: Any) -> Any:
    """An untrained ``Qwen3ASRForConditionalGeneration`` of 1.3 million parameters."""
    ids = processor.tokenizer.convert_tokens_to_ids
    ends = [ids("<|endoftext|>"), ids("<|im_end|>")]
    pad = ids("<|endoftext|>")
    config = transformers.Qwen3ASRConfig(
        audio_config={
            "num_mel_bins": NUM_MEL_BINS,
            "d_model": 128,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "encoder_ffn_dim": 384,
            "downsample_hidden_size": 32,
            "output_dim": LANGUAGE_MODEL["hidden_size"],
        },
        text_config={
            **LANGUAGE_MODEL,
            "vocab_size": len(processor.tokenizer),
            "eos_token_id": ends,
            "pad_token_id": pad,
        },
        audio_token_id=ids("<|audio_pad|>"),
        timestamp_token_id=len(processor.tokenizer) - 1,
        pad_token_id=pad,
        eos_token_id=ends,
    )
    return transformers.Qwen3ASRForConditionalGeneration(config)


def glm_asr_model(processor: Any) -> Any:
    """An untrained ``GlmAsrForConditionalGeneration`` of 1.2 million parameters."""
    ids = processor.tokenizer.convert_tokens_to_ids
    config = transformers.GlmAsrConfig(
        audio_config={
            "num_mel_bins": NUM_MEL_BINS,
            "hidden_size": 96,
            "intermediate_size": 384,  # four positions are merged into one: 4 x hidden_size
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 1500,
        },
        text_config={
            **LANGUAGE_MODEL,
            "vocab_size": len(processor.tokenizer),
            "eos_token_id": [ids("<|endoftext|>"), ids("<|user|>"), ids("<|observation|>")],
            "pad_token_id": ids("<|endoftext|>"),
        },
        audio_token_id=ids("<|pad|>"),
    )
    return transformers.GlmAsrForConditionalGeneration(config)


NUM_WORDS = len(ALL_WORDS)
