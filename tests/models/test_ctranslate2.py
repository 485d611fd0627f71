from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from asrcli.errors import CheckpointError
from asrcli.models.ctranslate2 import read_model_file
from tests.models.tiny_whisper import Arrays, model_bin

HALF = np.array([[0.5, -2.0, 3.25]], np.float16)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


def test_every_type_is_read_as_the_same_numbers(tmp_path: Path) -> None:
    variables: Arrays = {
        "float": np.array([1.5, -2.25], np.float32),
        "half": HALF,
        "bfloat": np.array([0x3FC0, 0xC010], np.uint16),  # the upper halves of 1.5 and -2.25
        "count": np.array(8, np.int16),
        "flag": np.array(1, np.int8),
    }
    file = read_model_file(write(tmp_path / "model.bin", model_bin(variables)))
    assert file.spec == "WhisperSpec"
    assert file.array("float").tolist() == [1.5, -2.25]
    assert file.array("half").dtype == np.float16
    assert file.array("half").tolist() == HALF.tolist()
    assert file.array("bfloat").tolist() == [1.5, -2.25]
    assert file.array("bfloat").dtype == np.float32
    assert int(file.raw("count")) == 8
    assert int(file.raw("flag")) == 1
    assert file.shape("half") == (1, 3)


def test_int8_is_divided_by_the_scale_of_its_row(tmp_path: Path) -> None:
    variables: Arrays = {
        "linear": np.array([[127, -127], [10, 0]], np.int8),
        "linear_scale": np.array([254, 20], np.float32),
        "conv": np.array([[[64]], [[-32]]], np.int8),
        "conv_scale": np.array([128, 64], np.float32),
    }
    file = read_model_file(write(tmp_path / "model.bin", model_bin(variables)))
    assert file.array("linear").tolist() == [[0.5, -0.5], [0.5, 0.0]]
    assert file.array("conv").tolist() == [[[0.5]], [[-0.5]]]
    assert file.array("conv").dtype == np.float32


def test_int16_is_divided_by_its_one_scale(tmp_path: Path) -> None:
    variables: Arrays = {
        "linear": np.array([[1024, -512]], np.int16),
        "linear_scale": np.array(512, np.float32),
    }
    file = read_model_file(write(tmp_path / "model.bin", model_bin(variables)))
    assert file.array("linear").tolist() == [[2.0, -1.0]]


def test_an_alias_is_the_same_array(tmp_path: Path) -> None:
    data = model_bin({"embeddings": HALF}, aliases={"projection": "embeddings"})
    file = read_model_file(write(tmp_path / "model.bin", data))
    assert file.array("projection").tolist() == HALF.tolist()


@pytest.mark.parametrize("keep", [0, 3, 20, 60, -1])
def test_a_file_that_ends_too_early_is_incomplete(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path / "model.bin", model_bin({"a": HALF, "b": HALF})[:keep])
    with pytest.raises(CheckpointError, match=r"model\.bin is incomplete"):
        read_model_file(path)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (model_bin({"a": HALF}, version=5), "format version 5, and only version 6 can be read"),
        (b"GGUF" + bytes(100), "is not a CTranslate2 model"),
        (model_bin({"a": HALF}, aliases={"b": "missing"}), "is damaged"),
        (model_bin({"a": HALF}).replace(struct.pack("<BI", 4, 6), bytes(5)), "is damaged"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        read_model_file(write(tmp_path / "model.bin", data))


def test_a_missing_variable_is_named(tmp_path: Path) -> None:
    file = read_model_file(write(tmp_path / "model.bin", model_bin({"a": HALF})))
    with pytest.raises(CheckpointError, match="encoder/conv1/weight is missing"):
        file.array("encoder/conv1/weight")
