from __future__ import annotations

import os
import struct
import subprocess
import sys
import threading
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile

from asrcli.audio.reading import RawFormat, open_audio
from asrcli.errors import AudioError
from tests.audio.fixtures import (
    RATE,
    STDIN,
    Pipe,
    noise,
    open_pipe,
    pcm16,
    read,
    read_file,
    source_of,
    wav,
)

SPEECH = noise(3.3)
DATA = pcm16(SPEECH)
EXPECTED = np.frombuffer(DATA, "<i2").astype(np.float32) / 32768


def failure(tmp_path: Path, data: bytes) -> AudioError:
    (tmp_path / "x").write_bytes(data)
    with pytest.raises(AudioError) as from_file:
        read(open_audio(source_of(tmp_path / "x")))
    with pytest.raises(AudioError) as from_pipe:
        read(open_pipe(data))
    assert "\n" not in str(from_file.value)
    assert str(from_file.value).startswith("x: ")
    assert str(from_pipe.value) == str(from_file.value).replace("x: ", "stdin: ", 1)
    return from_file.value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"RIFF", "not audio or video that can be read (it is text)"),
        (b"not audio\n", "not audio or video that can be read (it is text)"),
        ("naïve — текст\n".encode() * 20, "not audio or video that can be read (it is text)"),
        (b"%PDF-1.7\n\x80\x81", "not audio or video that can be read (it is a PDF document)"),
        (
            b"\xfe\x01\x80\x90" * 500,
            "not audio or video that can be read (no format that is known)",
        ),
        (wav(DATA)[:30], "damaged WAV header: no audio data"),
        (wav(DATA)[:14], "damaged WAV header: no format and no audio data"),
        (wav(DATA)[:38], "damaged WAV header: no audio data"),
        (
            wav(DATA, num_channels=1, rate=0),
            "damaged WAV header: it states a sampling rate of 0 Hz",
        ),
        (wav(DATA, rate=3), "damaged header: a sampling rate of 3 Hz cannot be meant"),
        (wav(DATA, tag=0x1234), "WAV codec tag 0x1234 is not known"),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, data: bytes, message: str) -> None:
    assert message in str(failure(tmp_path, data))


def test_headerless_audio_gets_a_hint(tmp_path: Path) -> None:
    hint = failure(tmp_path, b"\xfe\x01\x80\x90" * 500).hint
    assert hint is not None and "--raw s16le" in hint


@pytest.mark.parametrize("raw", [None, RawFormat()])
def test_empty_inputs(tmp_path: Path, raw: RawFormat | None) -> None:
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(AudioError, match=r"^x: empty file$"):
        open_audio(source_of(tmp_path / "x"), raw=raw)
    with pytest.raises(AudioError, match=r"^stdin: empty input$"):
        open_pipe(b"", raw=raw)


def test_files_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AudioError, match=r"^gone\.wav: no such file$"):
        open_audio(source_of(tmp_path / "gone.wav"))
    (tmp_path / "folder.wav").mkdir()
    with pytest.raises(AudioError, match=r"^folder\.wav: is a folder$"):
        open_audio(source_of(tmp_path / "folder.wav"))
    path = tmp_path / "secret.wav"
    path.write_bytes(wav(DATA))
    path.chmod(0)
    if not os.access(path, os.R_OK):
        with pytest.raises(AudioError, match=r"^secret\.wav: permission denied$"):
            open_audio(source_of(path))


def test_a_fault_of_the_disk_keeps_what_was_read() -> None:
    class Failing(Pipe):
        def read(self, size: int = -1) -> bytes:
            if self.num_read >= 64_044:
                raise OSError(5, "Input/output error")
            return super().read(size)

    reader: Any = open_audio(STDIN, stdin=Failing(wav(DATA), step=1 << 16))  # type: ignore[arg-type]
    assert len(read(reader)) == 32_000
    assert reader.damage == ["reading stopped at 0:02.0: Input/output error"]


def test_a_fault_of_the_disk_before_any_audio_is_the_files_failure() -> None:
    class Failing(Pipe):
        def read(self, size: int = -1) -> bytes:
            if self.num_read >= 3000:
                raise OSError(5, "Input/output error")
            return super().read(size)

    data = b"\xff\xfb" + bytes(20_000)
    with pytest.raises(AudioError, match=r"^stdin: Input/output error$"):
        open_audio(STDIN, stdin=Failing(data))  # type: ignore[arg-type]


def test_a_header_that_sends_us_where_no_file_goes(tmp_path: Path) -> None:
    """CAF whose first chunk would have a length below zero."""
    data = b"caff\0\1\0\0" + b"desc" + struct.pack(">q", -(1 << 62)) + bytes(200)
    assert "not audio or video" in str(failure(tmp_path, data))


def test_reading_a_file_leaves_standard_input_alone(tmp_path: Path) -> None:
    """A shell's `while read name` has the rest of its names there."""
    paths = []
    for kind in ("WAV", "AIFF", "FLAC", "MP3"):
        soundfile.write(tmp_path / kind, noise(1), RATE, format=kind)
        paths.append(str(tmp_path / kind))
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from tests.audio.fixtures import read_file\n"
        "print([len(read_file(Path(name))[0]) for name in sys.argv[1:]], sys.stdin.read())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *paths],
        input="b.wav\nc.wav",
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert done.stdout == "[16000, 16000, 16000, 16000] b.wav\nc.wav\n"


def test_first_blocks_come_before_the_pipe_ends() -> None:
    for data in (wav(pcm16(noise(10)), stated=0xFFFFFFFF), pcm16(noise(10))):
        pipe = Pipe(data)
        raw = None if data[:4] == b"RIFF" else RawFormat()
        with open_audio(STDIN, raw=raw, stdin=pipe) as reader:  # type: ignore[arg-type]
            next(reader.blocks())
        assert pipe.num_read < 80_000


def test_named_pipes_are_read_like_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "fifo.wav"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(wav(DATA, stated=0)))
    writer.start()
    samples, reader = read_file(path)
    writer.join()
    np.testing.assert_array_equal(samples, EXPECTED)
    assert reader.duration is None


def test_file_descriptors_are_read(tmp_path: Path) -> None:
    receiver, sender = os.pipe()

    def write() -> None:
        with os.fdopen(sender, "wb") as file:
            file.write(wav(DATA))

    writer = threading.Thread(target=write)
    writer.start()
    samples, _ = read_file(Path(f"/dev/fd/{receiver}"))
    writer.join()
    os.close(receiver)
    np.testing.assert_array_equal(samples, EXPECTED)


def test_standard_input_that_is_a_file_is_read_from_where_it_stands(tmp_path: Path) -> None:
    (tmp_path / "two").write_bytes(b"line\n" + wav(DATA))
    with (tmp_path / "two").open("rb") as file:
        file.readline()
        np.testing.assert_array_equal(read(open_audio(STDIN, stdin=file)), EXPECTED)
        assert not file.closed


def test_a_name_that_is_not_utf_8(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff -[x].aiff"))
    with path.open("wb") as file:
        soundfile.write(file, SPEECH, RATE, format="AIFF", subtype="PCM_16")
    samples, _ = read_file(path)
    np.testing.assert_allclose(samples, SPEECH, atol=2**-14)


def open_files() -> list[str]:
    return sorted(str(link.resolve()) for link in Path("/dev/fd").iterdir() if link.is_file())


@pytest.mark.parametrize("kind", ["WAV", "AIFF", "FLAC"])
def test_stopping_early_releases_the_file(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x"
    soundfile.write(path, noise(10), RATE, format=kind)
    before = open_files()
    reader = open_audio(source_of(path))
    blocks: Any = reader.blocks()
    next(blocks)
    blocks.close()
    assert open_files() == before
    reader.close()


@pytest.mark.parametrize("kind", ["WAV", "AIFF", "FLAC"])
def test_memory_does_not_grow_with_length(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "long"
    with soundfile.SoundFile(path, "w", 8000, 1, "PCM_16", format=kind) as file:
        for _ in range(60):
            file.write(np.zeros(8000 * 20, np.int16))
    tracemalloc.start()
    with open_audio(source_of(path)) as reader:
        num_samples = sum(len(block) for block in reader.blocks())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_samples == 1200 * RATE
    assert peak < 3_000_000  # all of it would be 77 MB
