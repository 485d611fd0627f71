"""GLM-ASR's network: the numbers and the ids of transformers' own, alone and in company."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from asrcli.engine.loop import Engine
from asrcli.engine.token_runner import TokenRunner
from asrcli.errors import CheckpointError
from asrcli.models.files import read_model_files
from asrcli.models.folders import check_folder, read_json
from asrcli.models.glm_asr import FAMILY
from asrcli.models.glm_asr_weights import STORED_PREFIXES, build_network
from asrcli.options import Options
from tests.models.tiny_glm_asr import (
    ENDS,
    NAME,
    Loaded,
    build_reference,
    clip,
    reference_processor,
    token_id,
    write_checkpoint,
)
from tests.speech import window_of

TIMEOUT = 120.0  # s
MAX_NEW_TOKENS = 24
DURATIONS = (0.3, 7.77, 1.003, 30.0)
ROTARY = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": 0.34}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """The networks here are so small that threads would only wait for each other."""
    num_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(num_threads)


@pytest.fixture(scope="module")
def reference() -> Any:
    return build_reference()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, reference: Any) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("glm-asr"), reference)


@pytest.fixture(scope="module")
def loaded(folder: Path) -> Loaded:
    return Loaded(folder)


@pytest.fixture(scope="module")
def clips() -> list[NDArray[np.float32]]:
    return [clip(duration, seed) for seed, duration in enumerate(DURATIONS)]


@pytest.fixture(scope="module")
def features(loaded: Loaded, clips: list[NDArray[np.float32]]) -> list[torch.Tensor]:
    prepare = loaded.processor.prepare
    return [prepare(i, window_of(each), Options()).input_features for i, each in enumerate(clips)]


@torch.inference_mode()
def encode(reference: Any, features: torch.Tensor) -> torch.Tensor:
    """transformers' embeddings of one whole row."""
    mask = torch.ones(1, features.shape[1], dtype=torch.long)
    embeddings: torch.Tensor = reference.get_audio_features(features[None], mask).pooler_output
    return embeddings


def test_the_tower_alone_and_in_a_batch(
    reference: Any, loaded: Loaded, features: list[torch.Tensor]
) -> None:
    together = loaded.network.encode(features)
    for each, row in zip(features, together, strict=True):
        expected = encode(reference, each)
        (alone,) = loaded.network.encode([each])
        assert alone.shape == expected.shape == (375, 64)
        assert torch.allclose(alone, expected, atol=1e-5)
        assert torch.allclose(row, expected, atol=1e-5)
    assert not torch.allclose(together[0], together[1], atol=0.1)


def test_another_share_of_a_head_turns(tmp_path: Path, features: list[torch.Tensor]) -> None:
    """12 dimensions in a head, of which 4 turn."""
    reference = build_reference(rotary=ROTARY)
    tower = Loaded(write_checkpoint(tmp_path, reference)).network.encode
    assert torch.allclose(tower(features[:1])[0], encode(reference, features[0]), atol=1e-5)
    usual = encode(build_reference(), features[0])
    assert not torch.allclose(tower(features[:1])[0], usual, atol=1e-2)


def test_the_tower_in_bfloat16(folder: Path, reference: Any, features: list[torch.Tensor]) -> None:
    network = Loaded(folder, torch.bfloat16).network
    together = network.encode(features)
    for each, row in zip(features, together, strict=True):
        expected = encode(reference, each)
        assert row.dtype is torch.bfloat16
        difference = (row.float() - expected).norm() / expected.norm()
        assert difference < 0.03


@torch.inference_mode()
def generate(reference: Any, samples: NDArray[np.float32], prompt: str | None) -> tuple[int, ...]:
    """Ids that transformers gives, the end left out."""
    inputs = reference_processor().apply_transcription_request([samples], prompt=prompt)
    ids = reference.generate(**inputs, do_sample=False, max_new_tokens=MAX_NEW_TOKENS)[0].tolist()
    new = ids[inputs["input_ids"].shape[1] :]
    ends = reference.generation_config.eos_token_id
    return tuple(new[:-1] if new[-1] in ends else new)


def ids_of(
    loaded: Loaded,
    clips: list[NDArray[np.float32]],
    options: Options,
    *,
    num_slots: int = 4,
    max_prefill: int = 2,
) -> list[tuple[int, ...]]:
    runner = TokenRunner(loaded.network, num_slots, 8192, encode_batch_size=2)
    engine = Engine(runner, max_prefill=max_prefill)
    try:
        prepare = loaded.processor.prepare
        requests = [prepare(i, window_of(each), options) for i, each in enumerate(clips)]
        futures = [engine.submit(request) for request in requests]
        return [future.result(TIMEOUT).token_ids for future in futures]
    finally:
        engine.close()


@pytest.mark.parametrize("prompt", [None, "Only the digits."])
def test_ids_of_generate(
    reference: Any, loaded: Loaded, clips: list[NDArray[np.float32]], prompt: str | None
) -> None:
    options = Options(prompt=prompt, max_new_tokens=MAX_NEW_TOKENS)
    expected = [generate(reference, each, prompt) for each in clips]
    assert ids_of(loaded, clips, options) == expected
    assert ids_of(loaded, clips[::-1], options, num_slots=1, max_prefill=1) == expected[::-1]
    assert len(set(expected)) == len(clips)
    assert max(map(len, expected)) > 4


def test_an_output_matrix_of_its_own(tmp_path: Path, clips: list[NDArray[np.float32]]) -> None:
    reference = build_reference(tied=False, seed=1)
    folder = write_checkpoint(tmp_path, reference)
    assert any(name.endswith("lm_head.weight") for name in load_file(folder / "model.safetensors"))
    options = Options(max_new_tokens=MAX_NEW_TOKENS)
    expected = [generate(reference, each, None) for each in clips[:2]]
    assert ids_of(Loaded(folder), clips[:2], options) == expected


@pytest.mark.parametrize(
    ("generation", "text", "whole", "expected"),
    [
        ({"eos_token_id": [3, 4]}, {"eos_token_id": 5}, {}, {3, 4}),
        ({"eos_token_id": None}, {"eos_token_id": [5, 6]}, {"eos_token_id": 7}, {5, 6}),
        ({}, {}, {"eos_token_id": 7}, {7}),
        ({}, {"eos_token_id": None}, {}, {token_id(name) for name in ENDS}),
    ],
)
def test_ids_that_end_a_text(
    folder: Path,
    generation: dict[str, Any],
    text: dict[str, Any],
    whole: dict[str, Any],
    expected: set[int],
) -> None:
    checkpoint = check_folder(folder, NAME)
    files = read_model_files(checkpoint)
    stated = {k: v for k, v in files.config["text_config"].items() if k != "eos_token_id"}
    config = {**files.config, **whole, "text_config": {**stated, **text}}
    changed = replace(files, config=config, generation_config=generation)
    model = FAMILY.load(checkpoint, changed, torch.device("cpu"), torch.float32)
    request = model.processor.prepare(0, window_of(clip(0.3)), Options())
    assert request.sampling.eos_token_ids == expected


def rewrite(folder: Path, target: Path, renamed: dict[str, str | None]) -> Path:
    """A copy of a checkpoint with weights under other names, or without them."""
    target.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.suffix in (".json", ".jinja"):
            (target / path.name).write_bytes(path.read_bytes())
    weights = {}
    for name, weight in load_file(folder / "model.safetensors").items():
        kept = renamed.get(name, name)
        if kept is not None:
            weights[kept] = weight
    save_file(weights, target / "model.safetensors")
    return target


def test_names_of_transformers_own_class(
    folder: Path, loaded: Loaded, features: list[torch.Tensor], tmp_path: Path
) -> None:
    """Files have other names than the class, which some tools write as they are."""
    stored = load_file(folder / "model.safetensors")
    renamed: dict[str, str | None] = {
        name: ours + name.removeprefix(theirs)
        for name in stored
        for theirs, ours in STORED_PREFIXES
        if name.startswith(theirs)
    }
    assert len(renamed) == len(stored)
    other = Loaded(rewrite(folder, tmp_path / "other", renamed))
    assert torch.equal(
        other.network.encode(features[:1])[0], loaded.network.encode(features[:1])[0]
    )


@pytest.mark.parametrize(
    ("stored", "named"),
    [
        ("audio_tower.conv1.weight", "model.audio_tower.conv1.weight"),
        ("audio_tower.layers.1.self_attn.q_proj.bias",
         "model.audio_tower.layers.1.self_attn.q_proj.bias"),
        ("multi_modal_projector.linear_2.bias", "model.multi_modal_projector.linear_2.bias"),
        ("language_model.model.layers.0.mlp.up_proj.weight",
         "model.language_model.layers.0.mlp.up_proj.weight"),
    ],
)  # fmt: skip
def test_a_missing_weight_is_named(folder: Path, tmp_path: Path, stored: str, named: str) -> None:
    broken = rewrite(folder, tmp_path / "broken", {stored: None})
    with pytest.raises(CheckpointError) as caught:
        Loaded(broken)
    assert str(caught.value) == f"{broken}: {named} is missing from the checkpoint"
    assert "fetch them again" in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("part", "settings", "message"),
    [
        ("audio_config", {"hidden_act": "silu"}, "the activation 'silu' is unknown"),
        ("audio_config", {"num_key_value_heads": 2},
         "an encoder whose 2 heads of keys are shared is unknown"),
        ("audio_config", {"rope_parameters": {"rope_type": "yarn"}},
         "rotary positions of type 'yarn' are unknown"),
        ("text_config", {"rope_parameters": {"rope_type": "yarn"}},
         "rotary positions of type 'yarn' are unknown"),
        ("text_config", {"max_position_embeddings": None},
         "max_position_embeddings is missing from the checkpoint"),
    ],
)  # fmt: skip
def test_a_network_of_another_build_is_refused(
    folder: Path, part: str, settings: dict[str, Any], message: str
) -> None:
    checkpoint = check_folder(folder, NAME)
    files = read_model_files(checkpoint)
    config = read_json(folder / "config.json")
    config[part] = {k: v for k, v in {**config[part], **settings}.items() if v is not None}
    with pytest.raises(CheckpointError) as caught:
        build_network(replace(files, config=config), torch.device("cpu"), torch.float32)
    assert str(caught.value) == f"{folder}: {message}"
