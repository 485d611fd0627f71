"""Reads recordings that may be damaged, in a process that may hang or die of them.

What is to be read comes on standard input: a line with a JSON object, ``{"size": ..., "is_pipe":
..., "track": ...}``, and so many bytes. What became of it goes to standard output as one line:
``{"num_samples": ..., "seconds": ..., ...}``, or with ``"error"`` and its kind in their place.
"""

from __future__ import annotations

import io
import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from asrcli.audio.reading import AudioReader, open_audio
from asrcli.audio.sources import Source
from asrcli.errors import AudioError

NAME = "x.bin"
# Bytes that reading may take beyond those that the process has with all libraries loaded.
MEMORY = 1 << 30


class Pipe(io.RawIOBase):
    def __init__(self, data: bytes) -> None:
        self._data = io.BytesIO(data)

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        return self._data.read(min(size, 5000) if size >= 0 else 5000)


def main() -> None:
    is_limited = False
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / NAME
        while line := sys.stdin.buffer.readline():
            request = json.loads(line)
            data = sys.stdin.buffer.read(request["size"])
            answer = tell(path, data, request["is_pipe"], request["track"])
            print(json.dumps(answer), flush=True)
            if not is_limited:  # the first is a good one, which loads the libraries
                limit_memory()
                is_limited = True


def tell(path: Path, data: bytes, is_pipe: bool, track: int | None) -> dict[str, Any]:
    """Read a recording; give what is to be known of it."""
    begin = time.process_time()
    path.write_bytes(data)
    try:
        if is_pipe:
            source = Source(NAME, None, Path(NAME))
            stdin = cast(BinaryIO, Pipe(data))
            answer = read(open_audio(source, stdin=stdin, track=track))
        else:
            answer = read(open_audio(Source(NAME, path, Path(NAME)), track=track))
    except AudioError as error:
        answer = {"error": str(error), "hint": error.hint, "kind": "AudioError"}
    except Exception as error:
        answer = {"error": str(error), "kind": type(error).__name__}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    unit = 1 if sys.platform == "darwin" else 1024
    return answer | {"seconds": time.process_time() - begin, "peak": peak * unit}


def read(reader: AudioReader) -> dict[str, Any]:
    num_samples, loudest, faults = 0, 0.0, []
    with reader:
        for block in reader.blocks():
            if block.dtype != np.float32 or block.ndim != 1 or not len(block):
                faults.append(f"a block of {block.dtype} {block.shape}")
            elif not np.isfinite(block).all():
                faults.append(f"not finite at {num_samples}")
            else:
                loudest = max(loudest, float(np.abs(block).max()))
            num_samples += len(block)
        lines = [*reader.warnings, *reader.damage]
    faults += [f"not one line: {line!r}" for line in lines if not line or not line.isprintable()]
    return {
        "num_samples": num_samples,
        "loudest": loudest,
        "faults": faults,
        "damage": reader.damage,
    }


def limit_memory() -> None:
    statm = Path("/proc/self/statm")
    if statm.exists():
        limit = int(statm.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


if __name__ == "__main__":
    main()
