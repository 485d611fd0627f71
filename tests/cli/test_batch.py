"""What becomes of results, with a scripted backend in the model's place."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest

from asrcli.audio.sources import AS_IT_IS, Source
from asrcli.backends.base import Recognition
from asrcli.cli import batch
from asrcli.cli.batch import Batch
from asrcli.cli.interrupts import Interrupted
from asrcli.cli.stdout import print_result
from asrcli.cli.work import plan_work
from asrcli.console import StderrConsole
from asrcli.errors import OutputError
from asrcli.options import Options
from asrcli.progress import BatchProgress
from asrcli.transcript import Segment
from asrcli.windows import Window
from asrcli.writers.places import prepare
from tests.cli.runs import RATE, write_wave


class Scripted:
    """Says "one two." twice in every window, or nothing in one that is silent."""

    name = "scripted"

    def max_in_flight(self, options: Options) -> int:
        return 4

    def window_duration(self, options: Options) -> float:
        return 30.0

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[Recognition]:
        future: Future[Recognition] = Future()
        if float(window.samples.max()) > 0.9:
            future.set_exception(ZeroDivisionError("too\n  loud\n"))
            return future
        spoken = float(window.samples.max()) > 0
        half = (window.end - window.start) / 2
        segments = tuple(
            Segment(
                id=number,
                start=window.start + number * half,
                end=window.start + (number + 1) * half,
                text="one two.",
                tokens=(1, 2),
                avg_logprob=-0.1,
                no_speech_prob=0.0,
                compression_ratio=1.0,
                temperature=0.0,
                language="en",
                words=(),
            )
            for number in range(2 if spoken else 0)
        )
        losses = ("0.0-2.0 s: no end",) if float(window.samples.max()) > 0.7 else ()
        language = "en" if spoken else None
        future.set_result(Recognition(segments=segments, language=language, losses=losses))
        return future

    def close(self) -> None: ...


def transcribe(
    inputs: list[Path],
    *formats: str,
    output: Path | str | None = None,
    is_terminal: bool = False,
    quiet: bool = False,
    verbose: bool = False,
    skip_existing: bool = False,
) -> tuple[int, list[str]]:
    """Run a batch; returns the number of failures and the lines on stderr.

    Where it was interrupted, its exit code below zero stands for the number.
    """
    file = io.StringIO()
    # A terminal where nothing moves, so that all there is are lines.
    console = StderrConsole(
        file=file, is_terminal=is_terminal, width=300, quiet=quiet, verbose=verbose
    )
    work = plan_work(
        [str(path) for path in inputs],
        patterns=(),
        formats=formats or ("text",),
        output=None if output is None else str(output),
        reading=AS_IT_IS,
        skip_existing=skip_existing,
    )
    prepare(work.plan)
    arguments = ["transcribe", *map(str, inputs), "--overwrite"]
    try:
        num_failed = Batch(work, console, arguments=arguments).run(Scripted(), Options(vad=False))
    except Interrupted as interrupted:
        num_failed = -interrupted.exit_code
    return num_failed, file.getvalue().splitlines()


@pytest.fixture
def talks(tmp_path: Path) -> Path:
    """Three that are bad, and sort first, and three good ones."""
    folder = tmp_path / "talks"
    tone = 0.3 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    write_wave(folder / "sub" / "b.wav", tone)
    write_wave(folder / "c.mp3", tone)  # whatever its name says
    write_wave(folder / "d.wav", np.zeros(RATE, np.float32))
    write_wave(folder / "0_loud.wav", tone * 3.3)
    (folder / "1_zero.wav").touch()
    (folder / "2_text.wav").write_text("not audio\n")
    (folder / "._b.wav").write_bytes(b"\0\5\x16\7")
    (folder / "sub" / "loop").symlink_to("..")
    return folder


def test_bad_files_do_not_stop_a_batch(talks: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    num_failed, lines = transcribe([talks], "srt", "json", output=out)
    assert num_failed == 3
    written = sorted(path.relative_to(out).as_posix() for path in out.rglob("*.*"))
    assert written == ["c.json", "c.srt", "d.json", "d.srt", "sub/b.json", "sub/b.srt"]
    assert (out / "d.srt").read_text() == ""
    assert json.loads((out / "d.json").read_text())["segments"] == []
    assert (out / "c.srt").read_text() == (
        "1\n00:00:00,000 --> 00:00:01,000\none two.\n\n2\n00:00:01,000 --> 00:00:02,000\none two.\n"
    )
    reasons = [
        f"{talks}/0_loud.wav: internal error (ZeroDivisionError: too loud)",
        f"{talks}/1_zero.wav: empty file",
        f"{talks}/2_text.wav: not audio or video that can be read (it is text)",
    ]
    assert [line for line in lines if line.startswith("error: ")] == [
        f"error: {r}" for r in reasons
    ]
    assert f"{talks}/d.wav: no speech" in lines
    summary = next(line for line in lines if " of 6 files done" in line)
    assert summary.startswith("3 of 6 files done, 3 failed · 0:05 of audio in ")
    assert lines[lines.index(summary) + 1 :] == [
        *(f"  {reason}" for reason in reasons),
        f"hint: asr transcribe {talks} --skip-existing goes on from here",
    ]


def test_lost_words_are_told_and_counted(tmp_path: Path) -> None:
    """The text that there is gets written all the same."""
    tone = 0.8 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    write_wave(tmp_path / "a.wav", tone)
    num_failed, lines = transcribe([tmp_path / "a.wav"], "srt", output=tmp_path / "a.srt")
    assert num_failed == 1
    assert lines == [f"error: {tmp_path}/a.wav: 0.0-2.0 s: no end"]
    assert "one two." in (tmp_path / "a.srt").read_text()
    assert transcribe([tmp_path / "a.wav"], "srt", output=tmp_path / "a.srt", quiet=True) == (
        num_failed,
        lines,
    )


def test_damage_is_told_in_quiet_as_well(tmp_path: Path) -> None:
    """Other warnings are not."""
    tone = 0.3 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    cut = write_wave(tmp_path / "cut.wav", tone)
    cut.write_bytes(cut.read_bytes()[:-RATE])
    short = write_wave(tmp_path / "short.wav", np.zeros(100, np.float32))
    line = f"{cut}: the file ends at 0:01.5, its header says 0:02.0"
    for quiet in (False, True):
        num_failed, lines = transcribe([cut, short], output=tmp_path / "out", quiet=quiet)
        assert num_failed == 1
        assert lines[0] == f"error: {line}"
        assert any("too short to hold a word" in line for line in lines) is not quiet
        assert lines[-2].startswith("1 of 2 files done, 1 failed · ")
        assert lines[-1] == f"  {line}"


def test_many_losses_are_shortened_on_stderr_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_wave(tmp_path / "a.wav", np.full(2 * RATE, 0.3, np.float32))
    losses = tuple(f"{second}.0-{second}.5 s: no end" for second in range(13))
    submit = Scripted.submit

    def losing(backend: Scripted, window: Window, options: Options) -> Future[Recognition]:
        future: Future[Recognition] = Future()
        heard = submit(backend, window, options).result()
        future.set_result(dataclasses.replace(heard, losses=losses))
        return future

    monkeypatch.setattr(Scripted, "submit", losing)
    num_failed, lines = transcribe([path], "json", output=tmp_path / "a.json")
    assert num_failed == 1
    assert lines == [
        *(f"error: {path}: {loss}" for loss in losses[:10]),
        f"error: {path}: 3 more losses",
        "hint: --verbose shows them, and JSON (-f json) holds them",
    ]
    assert json.loads((tmp_path / "a.json").read_text())["warnings"] == list(losses)
    _, lines = transcribe([path], "json", output=tmp_path / "a.json", verbose=True)
    assert [line for line in lines if line.startswith("error: ")] == [
        f"error: {path}: {loss}" for loss in losses
    ]


def test_results_lie_beside_the_media(talks: Path) -> None:
    transcribe([talks], "vtt")
    assert (talks / "sub" / "b.vtt").is_file()
    assert (talks / "d.vtt").read_text().strip() == "WEBVTT"
    assert not list(talks.rglob(".asr-*"))


def test_a_line_a_file_on_a_terminal(
    talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr(StderrConsole, "is_live", True)
    _, lines = transcribe([talks / "c.mp3"], "srt", output=tmp_path / "out", is_terminal=True)
    line = f"{talks}/c.mp3 → {tmp_path}/out/c.srt  0:02 of audio, 2 cues"
    assert any(line in shown for shown in lines)
    _, lines = transcribe([talks / "c.mp3"], "json", output=tmp_path / "out", is_terminal=True)
    assert any("out/c.json  0:02 of audio, 2 segments" in shown for shown in lines)
    _, lines = transcribe([talks / "c.mp3"], "json", output=tmp_path / "out", is_terminal=True)
    assert any("out/c.json (replaced)  0:02 of audio" in shown for shown in lines)


def test_quiet_says_nothing_but_errors(talks: Path, tmp_path: Path) -> None:
    _, lines = transcribe([talks / "d.wav"], output=tmp_path / "out", quiet=True)
    assert lines == []
    _, lines = transcribe([talks / "1_zero.wav"], output=tmp_path / "out", quiet=True)
    assert lines == [f"error: {talks}/1_zero.wav: empty file"]


def test_one_file_goes_to_stdout(talks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    num_failed, lines = transcribe([talks / "c.mp3"])
    assert (num_failed, lines) == (0, [])
    assert capsys.readouterr().out == "one two.\none two.\n"


def test_many_files_share_stdout(talks: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = [talks / "c.mp3", talks / "d.wav", talks / "sub" / "b.wav"]
    transcribe(files, "json", output="-")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["file"] for row in rows] == [str(path) for path in files]
    assert [row["text"] for row in rows] == ["one two. one two.", "", "one two. one two."]
    transcribe(files, output="-")
    assert capsys.readouterr().out == "one two.\none two.\n\none two.\none two.\n"


def test_json_lines_name_files_as_programs_can_open_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = (b"a\xfe.wav", b"a\xff.wav", b"line\nfeed.wav", "강의.wav".encode())
    tone = 0.3 * np.sin(np.arange(2 * RATE) / 10).astype(np.float32)
    files = [write_wave(tmp_path / os.fsdecode(name), tone) for name in names]
    transcribe(files, "json", output="-")
    out = capsys.readouterr().out
    assert out.encode("utf-8")  # no lone surrogates
    rows = [json.loads(line) for line in out.splitlines()]
    assert [os.fsencode(row["file"]) for row in rows] == [os.fsencode(path) for path in files]
    assert all(Path(row["file"]).is_file() for row in rows)


def test_standard_input_keeps_its_name_in_json_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_wave(tmp_path / "a.wav", np.full(RATE, 0.3, np.float32))
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        transcribe([path, Path("-")], "json", output="-")
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["file"] for row in rows] == [str(path), "stdin"]


def test_a_place_that_goes_bad_loses_no_text(
    talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    submit = Scripted.submit

    def removing(backend: Scripted, window: Window, options: Options) -> Future[Recognition]:
        if out.is_dir():
            out.rmdir()  # as when a disk is taken out while the model is at work
        return submit(backend, window, options)

    monkeypatch.setattr(Scripted, "submit", removing)
    num_failed, lines = transcribe([talks / "c.mp3"], output=out)
    assert num_failed == 1
    assert capsys.readouterr().out == "one two.\none two.\n"
    assert lines == [
        f"error: {out}/c.txt: cannot be written: no such file or directory; "
        "standard output has it instead"
    ]


def test_files_too_large_for_the_disk(
    talks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A bound on the size of files fails as a full disk does; small files still find room."""
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (120, hard))
    try:
        num_failed, lines = transcribe(
            [talks / "c.mp3", talks / "d.wav"], "json", "srt", output=out
        )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert num_failed == 2
    assert sorted(path.name for path in out.iterdir()) == ["c.srt", "d.srt"]
    shown = capsys.readouterr().out
    first, second = (part.partition(" <==\n") for part in shown.split("==> ")[1:])
    assert (first[0], json.loads(first[2])["text"]) == (f"{out}/c.json", "one two. one two.")
    assert (second[0], json.loads(second[2])["text"]) == (f"{out}/d.json", "")
    reason = "cannot be written: file too large; standard output has it instead"
    assert [line for line in lines if "too large" in line and line.startswith("error: ")] == [
        f"error: {out}/{name}.json: {reason}" for name in "cd"
    ]
    assert any(line.startswith("0 of 2 files done, 2 failed · ") for line in lines)


def test_a_full_disk_with_nobody_at_standard_output(
    talks: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    reader, writer = os.pipe()
    os.close(reader)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        with os.fdopen(writer, "w") as file:
            monkeypatch.setattr(sys, "stdout", file)
            files = [talks / "c.mp3", talks / "d.wav", talks / "sub" / "b.wav"]
            num_failed, lines = transcribe(files, output=out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert num_failed == 2
    assert [path.name for path in out.iterdir()] == ["d.txt"]
    for name in "cb":
        assert (
            f"error: {out}/{name}.txt: cannot be written: file too large; "
            "standard output cannot take it either"
        ) in lines


def test_a_stop_says_how_to_go_on(talks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    finish = BatchProgress.finish

    def finish_or_stop(progress: BatchProgress, source: Source) -> None:
        finish(progress, source)
        if source.relative.name == "d.wav":
            raise Interrupted(signal.SIGTERM)

    monkeypatch.setattr(BatchProgress, "finish", finish_or_stop)
    code, lines = transcribe([talks], "vtt")
    assert code == -143
    assert lines[-2:] == [
        "stopped: 1 of 6 files done, 3 failed",
        f"hint: asr transcribe {talks} --skip-existing goes on from here",
    ]
    assert {path.name for path in talks.rglob("*.vtt")} == {"c.vtt"}
    assert not list(talks.rglob(".asr-*"))
    code, lines = transcribe([talks], "vtt", skip_existing=True)
    assert lines[-2:] == [
        "stopped: 0 of 6 files done, 1 skipped, 3 failed",
        f"hint: asr transcribe {talks} --skip-existing goes on from here",
    ]
    code, lines = transcribe([talks], output="-")
    assert lines[-1] == "stopped: 1 of 6 files done, 3 failed"


def test_a_signal_that_came_out_as_another_error_is_no_failure_of_a_file(
    talks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch, "interruption", lambda: Interrupted(signal.SIGTERM))
    code, lines = transcribe([talks / "0_loud.wav", talks / "c.mp3"], "vtt")
    assert code == -143
    assert lines[0] == "stopped: 0 of 2 files done"


def test_nobody_reads_standard_output(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as file:
        monkeypatch.setattr(sys, "stdout", file)
        with pytest.raises(SystemExit) as caught:
            print_result("text", "a.wav")
    assert caught.value.code == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_standard_output_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    file = open("/dev/full", "w")  # noqa: PTH123, SIM115 - closing it fails as well
    monkeypatch.setattr(sys, "stdout", file)
    for name in ("a.wav", "b.wav"):
        message = f"^{name}: standard output cannot be written: no space left on device$"
        with pytest.raises(OutputError, match=message):
            print_result("text", name)
    file.close()  # what could not be written is dropped, and not tried once more
