from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from asrcli.errors import CheckpointError
from asrcli.models.safetensors_file import SafetensorsFile


def test_it_reads_what_the_library_reads(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    torch.manual_seed(0)
    tensors = {
        "wide": torch.randn(300, 500),
        "half": torch.randn(7, 3).half(),
        "brain": torch.randn(5).bfloat16(),
        "byte": torch.arange(11, dtype=torch.uint8),
        "long": torch.arange(6).view(2, 3),
        "one": torch.tensor(2.5),
        "none": torch.zeros(0, 4),
        "no": torch.tensor([True, False]),
    }
    save_file(tensors, path, metadata={"format": "pt"})
    found, expected = SafetensorsFile(path), load_file(path)
    assert set(found) == set(expected) == set(tensors)
    assert len(found) == len(tensors)
    assert "__metadata__" not in found
    for _ in range(2):  # the second time from pages that were given back
        for name in tensors:
            assert found[name].dtype is expected[name].dtype
            assert torch.equal(found[name], expected[name])
    kept = found["wide"]
    assert torch.equal(found["half"], tensors["half"])
    assert torch.equal(kept, tensors["wide"])  # read again


def write(path: Path, dtype: str, shift: int) -> Path:
    """A file of one tensor [2], which begins ``shift`` bytes behind where it should."""
    data = b"\0" * shift + struct.pack("<2f", 1.5, -2.0)
    entry = {"dtype": dtype, "shape": [2], "data_offsets": [shift, shift + 8]}
    header = json.dumps({"x": entry}).encode()
    header += b" " * (-len(header) % 8)
    path.write_bytes(struct.pack("<Q", len(header)) + header + data)
    return path


@pytest.mark.parametrize("shift", [0, 1, 4])
def test_data_at_any_place(tmp_path: Path, shift: int) -> None:
    found = SafetensorsFile(write(tmp_path / "x.safetensors", "F32", shift))
    assert found["x"].tolist() == [1.5, -2.0]


def test_a_dtype_that_torch_lacks(tmp_path: Path) -> None:
    found = SafetensorsFile(write(tmp_path / "x.safetensors", "E8M0", 0))
    with pytest.raises(CheckpointError, match="x has the dtype E8M0"):
        found["x"]
    with pytest.raises(KeyError):
        found["y"]
