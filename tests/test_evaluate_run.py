"""One run of an evaluation: what is told of each recording, what is scored, and how it ends."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import numpy as np
import pytest
import typer

from asrcli.audio.sources import expand
from asrcli.backends.base import Recognition
from asrcli.cli.evaluation_run import Run
from asrcli.cli.score_report import Report
from asrcli.console import StderrConsole
from asrcli.errors import UsageError
from asrcli.evaluation.references import References, find_references
from asrcli.options import Options
from asrcli.transcript import Segment
from asrcli.windows import Window
from tests.cli.runs import RATE, write_wave


class Scripted:
    """Says "one two." in every window; fails where it is too loud, and loses words before that."""

    name = "scripted"

    def __init__(self, fault: str = "too loud") -> None:
        self._fault = fault

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
        peak = float(window.samples.max())
        if peak > 0.9:
            future.set_exception(ZeroDivisionError(self._fault))
            return future
        segment = Segment(id=0, start=window.start, end=window.end, text="one two.", language="en")
        losses = ("0.0-2.0 s: no end",) if peak > 0.7 else ()
        future.set_result(Recognition(segments=(segment,), language="en", losses=losses))
        return future

    def close(self) -> None: ...


@pytest.mark.parametrize("quiet", [False, True])
def test_what_becomes_of_each_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, quiet: bool
) -> None:
    """Losses and faults are told however quiet it is to be; what has losses is scored."""
    lost, loud, good = (tmp_path / f"{name}.wav" for name in ("lost", "loud", "good"))
    for path, peak in ((lost, 0.8), (loud, 0.95), (good, 0.3)):
        write_wave(path, np.full(2 * RATE, peak, np.float32))
        path.with_suffix(".txt").write_text("One two")
    sources = expand([lost, loud, good])
    found = find_references(sources, None)
    err = io.StringIO()
    console = StderrConsole(file=err, is_terminal=False, quiet=quiet)
    run = Run(found, Options(vad=False), "auto", "auto", console)
    run.hear(found.found, Scripted())
    with pytest.raises(typer.Exit) as ended:
        run.finish(Report("json", None, 3))
    assert ended.value.exit_code == 1
    damage = f"{lost}: 0.0-2.0 s: no end"
    fault = f"{loud}: internal error (ZeroDivisionError: too loud)"
    assert err.getvalue().splitlines() == [
        f"error: {damage}",
        f"error: {fault}",
        "2 of 3 files scored, 1 failed, 1 damaged",
        f"  {damage}",
        f"  {fault}",
    ]
    values = json.loads(capsys.readouterr().out)
    assert {file["file"]: file["wer"] for file in values["files"]} == {
        str(lost): 0.0, str(good): 0.0
    }  # fmt: skip
    assert (values["model"], values["failures"]) == ("scripted", [damage, fault])


def test_one_damaged_recording_says_why_it_ends_with_1(tmp_path: Path) -> None:
    lost = write_wave(tmp_path / "lost.wav", np.full(2 * RATE, 0.8, np.float32))
    lost.with_suffix(".txt").write_text("one two.")
    found = find_references(expand([lost]), None)
    err = io.StringIO()
    console = StderrConsole(file=err, is_terminal=False, quiet=True)
    run = Run(found, Options(vad=False), "auto", "auto", console)
    run.hear(found.found, Scripted())
    with pytest.raises(typer.Exit) as ended:
        run.finish(Report("json", tmp_path / "scores.json", 3))
    assert ended.value.exit_code == 1
    assert err.getvalue() == f"error: {lost}: 0.0-2.0 s: no end\n"
    assert json.loads((tmp_path / "scores.json").read_text())["total"]["num_files"] == 1


def test_faults_of_many_lines_are_told_in_one(tmp_path: Path) -> None:
    wave = write_wave(tmp_path / "a.wav", np.full(2 * RATE, 0.95, np.float32))
    wave.with_suffix(".txt").write_text("one")
    found = find_references(expand([wave]), None)
    err = io.StringIO()
    console = StderrConsole(file=err, is_terminal=False)
    run = Run(found, Options(vad=False), "auto", "auto", console)
    run.hear(found.found, Scripted("CUDA error:\n  out of luck\n"))
    assert err.getvalue() == (
        f"error: {wave}: internal error (ZeroDivisionError: CUDA error: out of luck)\n"
    )


def test_nothing_to_do_is_no_success(tmp_path: Path) -> None:
    console = StderrConsole(file=io.StringIO(), is_terminal=False)
    run = Run(References(found=()), Options(), "auto", "auto", console)
    with pytest.raises(UsageError, match="there is nothing to score"):
        run.finish(Report("table", None, 3))
