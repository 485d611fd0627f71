"""Reader of CTranslate2's ``model.bin``, format version 6.

Layout, little-endian: u32 version; string spec; u32 revision; u32 count; then for each variable a
string name, u8 rank, u32 dimensions, u8 type, u32 bytes, data; u32 count; then for each alias two
strings (name, variable). A string is u16 length and bytes with a closing NUL. Source: the ``Model``
specification in ``ctranslate2/specs/model_spec.py`` of OpenNMT/CTranslate2.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from asrcli.errors import CheckpointError

VERSION = 6
_BFLOAT16 = 5
_DTYPES: dict[int, np.dtype[Any]] = {
    0: np.dtype("<f4"),
    1: np.dtype("i1"),
    2: np.dtype("<i2"),
    3: np.dtype("<i4"),
    4: np.dtype("<f2"),
    _BFLOAT16: np.dtype("<u2"),  # numpy has no bfloat16: the bits
}


@dataclass(frozen=True, slots=True)
class Variable:
    """Where an array lies in the file."""

    shape: tuple[int, ...]
    type_id: int
    offset: int


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A ``model.bin`` that is memory-mapped: an array is read when it is asked for.

    Attributes:
        path: the file.
        spec: the class of its layout, "WhisperSpec" for Whisper.
        variables: by name; an alias has an entry of its own.
    """

    path: Path
    spec: str
    variables: Mapping[str, Variable]
    data: mmap.mmap

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of a variable. Raises CheckpointError where it is missing."""
        return self._variable(name).shape

    def raw(self, name: str) -> NDArray[Any]:
        """An array as stored, bfloat16 as float32 (exactly the same values). Not writable."""
        variable = self._variable(name)
        dtype = _DTYPES[variable.type_id]
        count = math.prod(variable.shape)
        flat: NDArray[Any] = np.frombuffer(self.data, dtype, count, variable.offset)
        if variable.type_id == _BFLOAT16:
            flat = (flat.astype(np.uint32) << 16).view(np.float32)
        return flat.reshape(variable.shape)

    def array(self, name: str) -> NDArray[Any]:
        """An array of floats: a quantised one times its step, in float32.

        CTranslate2 stores ``weight_scale`` = 127 / max|row| for int8 (a single one for int16), by
        which it has multiplied: the weight is the stored number divided by it.
        """
        stored = self.raw(name)
        if not np.issubdtype(stored.dtype, np.integer):
            copy = np.array(stored)  # since data in the file is not aligned
            self._forget(name)
            return copy
        scale = self.raw(f"{name}_scale").astype(np.float32)
        rows = scale.reshape(scale.shape + (1,) * (stored.ndim - scale.ndim))
        return stored.astype(np.float32) / rows

    def _forget(self, name: str) -> None:
        """Give the pages of an array back to the kernel, which can read them again."""
        if hasattr(mmap, "MADV_DONTNEED"):  # not on Windows
            variable = self._variable(name)
            begin = variable.offset // mmap.PAGESIZE * mmap.PAGESIZE
            num_bytes = math.prod(variable.shape) * _DTYPES[variable.type_id].itemsize
            self.data.madvise(mmap.MADV_DONTNEED, begin, variable.offset + num_bytes - begin)

    def _variable(self, name: str) -> Variable:
        try:
            return self.variables[name]
        except KeyError:
            raise CheckpointError(f"{self.path}: {name} is missing") from None


def read_model_file(path: Path) -> ModelFile:
    """Read the table of contents of a ``model.bin``.

    Raises:
        CheckpointError: another format or version, or a file that ends too early.
    """
    data = _map(path)
    cursor = _Cursor(data)
    try:
        version = cursor.number("I")
        if version != VERSION:
            raise _version_error(path, version)
        spec = cursor.string()
        cursor.number("I")  # revision of the spec: names and shapes are checked instead
        variables = dict(_read_variable(cursor) for _ in range(cursor.number("I")))
        for _ in range(cursor.number("I")):
            alias, name = cursor.string(), cursor.string()
            variables[alias] = variables[name]
    except struct.error as error:
        raise CheckpointError(f"{path} is incomplete", hint="copy or convert it again") from error
    except (UnicodeDecodeError, KeyError, ValueError) as error:
        raise CheckpointError(f"{path} is damaged", hint="copy or convert it again") from error
    return ModelFile(path, spec, variables, data)


class _Cursor:
    """A place in the file that moves on as things are read. Past the end: struct.error."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.offset = 0

    def number(self, code: str) -> int:
        (value,) = struct.unpack_from(f"<{code}", self.data, self.offset)
        self.offset += struct.calcsize(f"<{code}")
        return int(value)

    def string(self) -> str:
        start = self.skip(self.number("H"))
        return self.data[start : self.offset].rstrip(b"\0").decode()

    def skip(self, num_bytes: int) -> int:
        """Move on, and give the place before."""
        start = self.offset
        self.offset += num_bytes
        if self.offset > len(self.data):
            raise struct.error("the file ends too early")
        return start


def _map(path: Path) -> mmap.mmap:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError as error:  # an empty file cannot be mapped
        raise CheckpointError(f"{path} is incomplete", hint="copy or convert it again") from error
    except OSError as error:
        raise CheckpointError(f"{path}: {error.strerror}") from error


def _read_variable(cursor: _Cursor) -> tuple[str, Variable]:
    name = cursor.string()
    shape = tuple(cursor.number("I") for _ in range(cursor.number("B")))
    type_id = cursor.number("B")
    num_bytes = cursor.number("I")
    if math.prod(shape) * _DTYPES[type_id].itemsize != num_bytes:
        raise ValueError(f"{name}: {num_bytes} bytes do not make {shape}")
    return name, Variable(shape, type_id, cursor.skip(num_bytes))


def _version_error(path: Path, version: int) -> CheckpointError:
    if version > 100:  # no version, but the first bytes of something else
        return CheckpointError(f"{path} is not a CTranslate2 model")
    return CheckpointError(
        f"{path} has CTranslate2 format version {version}, and only version {VERSION} can be read",
        hint="convert the model again with a current ct2-transformers-converter",
    )
