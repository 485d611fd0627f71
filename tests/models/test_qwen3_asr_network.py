"""Qwen3-ASR's network against transformers' own, in float32: the tower, the ids, both layouts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from torch import Tensor

from asrcli.engine.decoder_only import DecoderOnly
from asrcli.engine.loop import Engine
from asrcli.engine.request import Request
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import CheckpointError
from asrcli.models import qwen3_asr_encoder
from asrcli.models.base import Model
from asrcli.models.files import read_model_files
from asrcli.models.folders import check_folder
from asrcli.models.qwen3_asr import FAMILY
from asrcli.options import Options
from tests.models import tiny_qwen3_asr
from tests.models.tiny_qwen3_asr import clip, reference_model, reference_processor
from tests.speech import window_of

TIMEOUT = 60.0  # s
NUM_IDS = 24
CPU = torch.device("cpu")
LENGTHS = (4800, 16_048, 124_320, 8 * 16_000, 149_999, 17 * 16_000)
"""Of clips: under half a second, whole chunks, whole windows of attention, and others."""

OPTIONS = (
    Options(max_new_tokens=NUM_IDS),
    Options(max_new_tokens=NUM_IDS, language="English"),
    Options(max_new_tokens=NUM_IDS, prompt="zero one seven"),
    Options(max_new_tokens=NUM_IDS, prompt="rojo", hotwords="play pause", language="es"),
)
LANGUAGE_NAMES = {"en": "English", "es": "Spanish"}


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """The networks here are so small that threads would only wait for each other."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_qwen3_asr.write(tmp_path_factory.mktemp("saved"))


@pytest.fixture(scope="module")
def model(saved: Path) -> Model:
    return load(saved)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASR_CACHE", str(tmp_path / "asr"))


def load(folder: Path, dtype: torch.dtype = torch.float32) -> Model:
    checkpoint = check_folder(folder)
    return FAMILY.load(checkpoint, read_model_files(checkpoint), CPU, dtype)


def features_of(model: Model, num_samples: int) -> Tensor:
    return model.processor.prepare(0, window_of(clip(num_samples)), Options()).input_features


@torch.inference_mode()
def tower(model: Model, features: Sequence[Tensor]) -> list[Tensor]:
    assert isinstance(model.network, DecoderOnly)
    return model.network.encode(features)


def inputs(num_samples: int, options: Options = OPTIONS[0]) -> Any:
    """transformers' own features and prompt."""
    return reference_processor().apply_transcription_request(
        clip(num_samples),
        language=LANGUAGE_NAMES[options.language] if options.language else None,
        prompt=options.context or None,
    )


@torch.inference_mode()
def expected_audio(num_samples: int) -> Tensor:
    batch = inputs(num_samples)
    encoded: Tensor = (
        reference_model()
        .get_audio_features(batch.input_features, batch.input_features_mask, return_dict=True)
        .pooler_output
    )
    return encoded


@torch.inference_mode()
def expected_ids(num_samples: int, options: Options, num_ids: int) -> tuple[int, ...]:
    batch = inputs(num_samples, options)
    ids = reference_model().generate(**batch, max_new_tokens=num_ids, do_sample=False)
    ends = {reference_processor().tokenizer.convert_tokens_to_ids("<|endoftext|>")}
    ends.add(reference_processor().tokenizer.convert_tokens_to_ids("<|im_end|>"))
    new = ids[0, batch.input_ids.shape[1] :].tolist()
    return tuple(i for i in new if i not in ends)


def requests_of(model: Model) -> list[tuple[int, Options, Request]]:
    prepare = model.processor.prepare
    return [
        (num_samples, options, prepare(number, window_of(clip(num_samples)), options))
        for number, (num_samples, options) in enumerate(
            (num_samples, options) for num_samples in LENGTHS for options in OPTIONS
        )
    ]


def run(model: Model, requests: Sequence[Request], num_slots: int = 5) -> list[tuple[int, ...]]:
    """Ids of requests that share an engine."""
    assert isinstance(model.network, DecoderOnly)
    runner = TokenRunner(model.network, num_slots, 20_000, encode_batch_size=3)
    engine = Engine(runner, max_prefill=3)
    try:
        futures = [engine.submit(request) for request in requests]
        return [future.result(TIMEOUT).token_ids for future in futures]
    finally:
        engine.close()


@pytest.mark.parametrize("num_samples", LENGTHS)
def test_a_clip_through_the_tower(model: Model, num_samples: int) -> None:
    expected = expected_audio(num_samples)
    (found,) = tower(model, [features_of(model, num_samples)])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert expected.std() > 0.3  # there is something to compare


@pytest.mark.parametrize("order", [LENGTHS, LENGTHS[::-1], (4800, 4800, 149_999)])
def test_company_changes_nothing_in_the_tower(model: Model, order: tuple[int, ...]) -> None:
    features = [features_of(model, num_samples) for num_samples in order]
    together = tower(model, features)
    for one, found in zip(features, together, strict=True):
        torch.testing.assert_close(found, tower(model, [one])[0], atol=1e-5, rtol=0)


@pytest.mark.parametrize("at_once", [1, 3, 100])
def test_few_or_many_chunks_at_once(
    model: Model, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    features = [features_of(model, num_samples) for num_samples in LENGTHS]
    expected = tower(model, features)
    monkeypatch.setattr(qwen3_asr_encoder, "CHUNKS_AT_ONCE_ELSEWHERE", at_once)
    for one, other in zip(tower(model, features), expected, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=0)


def test_there_are_as_many_embeddings_as_places(model: Model) -> None:
    for num_samples in (*range(7900, 17_000, 397), 124_320, 160_159):
        request = model.processor.prepare(0, window_of(clip(num_samples)), Options())
        assert request.audio_span is not None
        begin, end = request.audio_span
        assert len(tower(model, [request.input_features])[0]) == end - begin


def test_the_tower_in_bfloat16(saved: Path, model: Model) -> None:
    coarse = load(saved, torch.bfloat16)
    features = [features_of(model, num_samples) for num_samples in LENGTHS]
    for found, expected in zip(tower(coarse, features), tower(model, features), strict=True):
        assert found.dtype == torch.bfloat16
        assert (found.float() - expected).abs().mean() < 0.03 * expected.abs().mean()


def test_ids_are_those_of_generate(model: Model) -> None:
    cases = requests_of(model)
    found = run(model, [request for _, _, request in cases])
    for (num_samples, options, request), ids in zip(cases, found, strict=True):
        expected = expected_ids(num_samples, options, request.sampling.max_new_tokens)
        assert ids == expected, (num_samples, options)
    assert len({ids[:8] for ids in found}) == len(cases)  # they do depend on what is heard


@pytest.mark.parametrize("num_shards", [1, tiny_qwen3_asr.NUM_SHARDS])
def test_the_layout_of_the_original_repositories(
    saved: Path, model: Model, tmp_path: Path, num_shards: int
) -> None:
    folder = tmp_path / "original"
    tiny_qwen3_asr.write_original(folder, saved, num_shards=num_shards)
    assert not (folder / "tokenizer.json").exists()
    original = load(folder)
    pairs = list(zip(requests_of(original), requests_of(model), strict=True))
    for (_, _, found), (_, _, expected) in pairs:
        assert found.prompt_token_ids == expected.prompt_token_ids
        assert found.sampling == expected.sampling
        assert torch.equal(found.input_features, expected.input_features)
    few = [request for _, _, request in requests_of(original)][::5]
    assert run(original, few) == run(model, few)
    assert isinstance(original.network, DecoderOnly)
    weights = original.network.weights
    kept = weights.output.weight.data_ptr()
    assert kept == weights.token_embedding.data_ptr()  # stored twice, kept once


def test_an_output_of_its_own(saved: Path, tmp_path: Path) -> None:
    config = reference_model().config.to_dict()
    config["tie_word_embeddings"] = config["text_config"]["tie_word_embeddings"] = False
    untied = transformers.Qwen3ASRForConditionalGeneration(
        transformers.Qwen3ASRConfig(**config)
    ).eval()
    state = dict(reference_model().state_dict())
    output = state["lm_head.weight"]
    generator = torch.Generator().manual_seed(7)
    state["lm_head.weight"] = torch.randn(output.shape, generator=generator)
    untied.load_state_dict(state)
    tiny_qwen3_asr.write(tmp_path / "untied", untied)
    model = load(tmp_path / "untied")
    request = model.processor.prepare(0, window_of(clip(20_000)), OPTIONS[0])
    (found,) = run(model, [request])
    with torch.inference_mode():
        batch = inputs(20_000)
        ids = untied.generate(**batch, max_new_tokens=len(found), do_sample=False)
    assert list(found) == ids[0, batch.input_ids.shape[1] :].tolist()[: len(found)]
    assert found != expected_ids(20_000, OPTIONS[0], len(found))

    tensors = load_file(tmp_path / "untied" / "model.safetensors")
    del tensors["lm_head.weight"]
    save_file(tensors, tmp_path / "untied" / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"untied: lm_head\.weight is missing"):
        load(tmp_path / "untied")


def change_json(path: Path, **values: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def test_a_forced_aligner_is_no_recognizer(saved: Path, tmp_path: Path) -> None:
    folder = tiny_qwen3_asr.write_original(tmp_path / "original", saved)
    thinker = json.loads((folder / "config.json").read_text())["thinker_config"]
    change_json(folder / "config.json", thinker_config=thinker | {"classify_num": 5000})
    with pytest.raises(CheckpointError, match="original: this is a forced aligner, not a rec"):
        load(folder)


@pytest.mark.parametrize(
    "name",
    [
        "model.audio_tower.conv2d2.bias",
        "model.audio_tower.layers.1.fc1.weight",
        "model.multi_modal_projector.linear_2.weight",
        "model.language_model.layers.3.self_attn.q_norm.weight",
        "model.language_model.embed_tokens.weight",
    ],
)
def test_a_weight_that_is_missing(saved: Path, tmp_path: Path, name: str) -> None:
    folder = tiny_qwen3_asr.write(tmp_path / "whole")
    tensors = load_file(folder / "model.safetensors")
    del tensors[name]
    if name.endswith("q_norm.weight"):
        name = name.replace("q_norm", "k_norm")  # what has neither is of another kind of model
        tensors["model.language_model.layers.3.self_attn.q_norm.weight"] = tensors.pop(name)
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(CheckpointError, match=f"whole: {name} is missing from the che") as caught:
        load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"audio_config": None}, "audio_config of config.json is missing"),
        ({"text_config": {}}, "num_attention_heads is missing"),
        ({"audio_config": {}}, "encoder_attention_heads is missing"),
    ],
)
def test_a_configuration_that_is_missing(
    tmp_path: Path, values: dict[str, Any], message: str
) -> None:
    folder = tiny_qwen3_asr.write(tmp_path / "whole")
    change_json(folder / "config.json", **values)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_an_encoder_of_another_build(tmp_path: Path) -> None:
    folder = tiny_qwen3_asr.write(tmp_path / "whole")
    audio = json.loads((folder / "config.json").read_text())["audio_config"]
    change_json(folder / "config.json", audio_config=audio | {"activation_function": "relu"})
    with pytest.raises(CheckpointError, match="the activation 'relu' is unknown"):
        load(folder)
    change_json(folder / "config.json", audio_config=audio | {"num_mel_bins": 128})
    with pytest.raises(CheckpointError, match="have 80 mel bins, but its encoder takes 128"):
        load(folder)


def test_numbers_of_parameters() -> None:
    """Of the published shapes, whose networks are described here and not allocated."""
    small = transformers.Qwen3ASRConfig(
        audio_config={
            "d_model": 896,
            "encoder_layers": 18,
            "encoder_attention_heads": 14,
            "encoder_ffn_dim": 3584,
            "output_dim": 1024,
        },
        text_config={
            "hidden_size": 1024,
            "intermediate_size": 3072,
            "num_hidden_layers": 28,
            "num_attention_heads": 16,
            "num_key_value_heads": 8,
            "head_dim": 128,
            "vocab_size": 151_936,
            "tie_word_embeddings": True,
        },
    )
    large = transformers.Qwen3ASRConfig(audio_config={"output_dim": 2048})
    by_name = {alias.name: alias.num_parameters for alias in FAMILY.aliases}
    for config, name in (
        (small, "qwen3-asr"),
        (small, "qwen3-asr:0.6b"),
        (large, "qwen3-asr:1.7b"),
    ):
        with torch.device("meta"):
            model = transformers.Qwen3ASRForConditionalGeneration(config)
        model.tie_weights()
        assert by_name[name] == sum(parameter.numel() for parameter in model.parameters())
