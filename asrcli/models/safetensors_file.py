"""Reader of ``.safetensors`` that takes no more memory than the weights that are at hand.

Layout: u64 length of the header, little-endian; the header, JSON of name to dtype, shape and
offsets of the data; the data. Source: the format's specification (huggingface/safetensors). The
library maps the file as well, but what was read once stays with the process as long as any tensor
does.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from asrcli.errors import CheckpointError

_DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


class SafetensorsFile(Mapping[str, Tensor]):
    """Tensors by name, each in the file's own memory; none of them is to be written to.

    The pages of one go back to the kernel once another is asked for; they are read again where they
    are needed again.

    Raises:
        CheckpointError: at a tensor of a dtype that torch lacks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with path.open("rb") as file:
            # torch takes memory that could be written to only.
            self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
        self._begin = 8 + int.from_bytes(self._data[:8], "little")
        header: dict[str, Any] = json.loads(self._data[8 : self._begin])
        header.pop("__metadata__", None)
        self._entries = header
        self._last: str | None = None

    def __getitem__(self, name: str) -> Tensor:
        entry = self._entries[name]
        self._give_back()
        self._last = name
        dtype = _DTYPES.get(entry["dtype"])
        if dtype is None:
            raise CheckpointError(f"{self._path}: {name} has the dtype {entry['dtype']}")
        begin, end = self._span(name)
        if begin == end:
            return torch.empty(entry["shape"], dtype=dtype)
        if begin % dtype.itemsize:
            return torch.frombuffer(bytearray(self._data[begin:end]), dtype=dtype).view(
                entry["shape"]
            )
        count = (end - begin) // dtype.itemsize
        flat = torch.frombuffer(self._data, dtype=dtype, count=count, offset=begin)
        return flat.view(entry["shape"])

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def _span(self, name: str) -> tuple[int, int]:
        begin, end = self._entries[name]["data_offsets"]
        return self._begin + begin, self._begin + end

    def _give_back(self) -> None:
        if self._last is not None and hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            begin, end = self._span(self._last)
            begin = begin // mmap.PAGESIZE * mmap.PAGESIZE
            self._data.madvise(mmap.MADV_DONTNEED, begin, end - begin)
