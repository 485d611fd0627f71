from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len

from asrcli.audio.clips import Clip, selected_duration
from asrcli.audio.sources import Source
from asrcli.console import StderrConsole, clock, remaining
from asrcli.progress import BatchProgress, measure
from tests.cli.runs import speech, write_wave


def source(name: str) -> Source:
    return Source(f"talks/{name}", Path("talks") / name, Path(name))


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def drawn(progress: BatchProgress, width: int) -> list[str]:
    """The lines of the drawing, without colours, as they stand on a terminal."""
    file = io.StringIO()
    console = StderrConsole(file=file, is_terminal=False, width=width)
    console.rich.print(progress.render())
    lines = file.getvalue().splitlines()
    assert all(cell_len(line) <= width for line in lines)
    return [line.rstrip() for line in lines]


def batch(width: int, names: list[str], num_files: int = 4) -> tuple[BatchProgress, Clock]:
    """Ten minutes into a batch of 40, four times as fast as real time."""
    now = Clock()
    console = StderrConsole(file=io.StringIO(), is_terminal=True, width=width)
    progress = BatchProgress(console, num_files, now=now)
    progress.__enter__()
    for name in names:
        progress.begin(source(name), 600.0)
    for number in range(num_files - len(names)):
        progress.expect(source(f"waiting-{number}"), 600.0)
    progress.advance(source(names[0]), 600.0)
    progress.finish(source(names[0]))
    progress.advance(source(names[1]), 120.0)
    now.time += 180
    progress.stop()
    return progress, now


def test_bar_and_files_in_work() -> None:
    progress, _ = batch(100, ["a.mp3", "b.mp4", "c.mkv"])
    bar, files = drawn(progress, 100)
    # 24 columns, 30 % of them full; the rest has a colour on a terminal.
    assert bar[1:] == (
        f" 1/4 files {'━' * 7}{' ' * 17} 30%  12:00 of 40:00  4.0× real time  7 min left"
    )
    assert files == "  b.mp4  2:00 · c.mkv  0:00"


@pytest.mark.parametrize(
    ("width", "figures"),
    [
        (70, "30%  12:00 of 40:00  4.0× real time  7 min left"),
        (60, "30%  4.0× real time  7 min left"),
        (40, "30%  7 min left"),
        (24, "30%"),
    ],
)
def test_narrow_terminals(width: int, figures: str) -> None:
    progress, _ = batch(width, ["a.mp3", "b.mp4", "c.mkv"])
    bar, files = drawn(progress, width)
    assert bar.endswith(figures)
    assert bar[1:].startswith(" 1/4 files ")
    assert "b.mp4  2:00" in files or files.endswith("…")


def test_only_files_that_fit_are_shown() -> None:
    progress, _ = batch(60, ["a", "talk 한국어 " + "x" * 30, "y" * 30])
    _, files = drawn(progress, 60)
    assert files == f"  talk 한국어 {'x' * 30}  2:00"
    progress, _ = batch(60, ["a", "x" * 100])
    _, files = drawn(progress, 60)
    assert files == f"  {'x' * 56}…"


def test_no_total_while_a_length_is_unknown() -> None:
    now = Clock()
    progress = BatchProgress(StderrConsole(file=io.StringIO(), is_terminal=False), 2, now=now)
    with progress:
        totals = []
        progress.begin(source("a"), 10.0)
        totals.append(progress.total)
        progress.begin(source("b"), None)
        totals.append(progress.total)
        assert totals == [None, None]
        now.time += 5
        progress.advance(source("b"), 30.0)
        assert drawn(progress, 100)[0].endswith(" 0:30  6.0× real time")
        progress.finish(source("b"))
        assert progress.total == 40.0
        progress.finish(source("a"))
        assert (progress.total, progress.done, progress.speed) == (30.0, 30.0, 6.0)


def test_late_windows_of_a_file_that_failed() -> None:
    progress = BatchProgress(StderrConsole(file=io.StringIO(), is_terminal=False), 1, now=Clock())
    with progress:
        progress.begin(source("a"), 60.0)
        progress.finish(source("a"))
        progress.advance(source("a"), 30.0)
        progress.expect(source("a"), 60.0)
        assert progress.done == 0.0


def test_lengths_are_looked_up_ahead(tmp_path: Path) -> None:
    good = write_wave(tmp_path / "good.wav", speech())
    (tmp_path / "bad.wav").write_bytes(b"not audio")
    sources = [Source(name, tmp_path / name, Path(name)) for name in ("bad.wav", "good.wav")]
    progress = BatchProgress(StderrConsole(file=io.StringIO(), is_terminal=False), 2)
    with progress:
        thread = measure(sources, progress)
        thread.join(30)
    assert good.is_file()
    assert progress.total == pytest.approx(len(speech()) / 16_000)


@pytest.mark.parametrize(
    ("clips", "duration"),
    [
        ([], 100.0),
        ([Clip(10.0, 30.0)], 20.0),
        ([Clip(90.0, None), Clip(0.0, 5.0)], 15.0),
        ([Clip(10.0, 30.0), Clip(20.0, 40.0), Clip(15.0, 16.0)], 30.0),
        ([Clip(95.0, 120.0), Clip(200.0, 300.0)], 5.0),
    ],
)
def test_the_length_of_clips(clips: list[Clip], duration: float) -> None:
    assert selected_duration(100.0, clips) == pytest.approx(duration)
    assert selected_duration(None, clips) is None


def test_nothing_moves_where_nobody_watches() -> None:
    file = io.StringIO()
    console = StderrConsole(file=file, is_terminal=False)
    with BatchProgress(console, 1) as progress, console.busy("loading"):
        progress.begin(source("a"), 10.0)
        progress.advance(source("a"), 10.0)
        console.line("a → b")
        console.note("good to know")
    assert file.getvalue() == "good to know\n"


def test_nothing_is_left_on_a_terminal() -> None:
    file = io.StringIO()
    console = StderrConsole(file=file, is_terminal=True, width=60)
    with BatchProgress(console, 1) as progress:
        progress.begin(source("a"), 10.0)
        console.line("a → b")
    text = file.getvalue()
    assert "0/1 file " in text
    assert "a → b" in text
    # The cursor is back, and what was drawn is erased, line by line.
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")
    assert text.rstrip().endswith("\x1b[2K")


def test_dumb_and_quiet_terminals_stay_still(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not StderrConsole(file=io.StringIO(), is_terminal=True, quiet=True).is_live
    assert StderrConsole(file=io.StringIO(), is_terminal=True).is_live
    monkeypatch.setenv("TERM", "dumb")
    assert not StderrConsole(file=io.StringIO(), is_terminal=True).is_live


def test_forced_colours_make_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    file = io.StringIO()
    console = StderrConsole(file=file)
    console.warn("careful")
    assert not console.is_live
    assert file.getvalue() == "warning: careful\n"


def test_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    StderrConsole(file=file, is_terminal=True).warn("careful")
    assert "\x1b[33m" not in file.getvalue()


def test_times_for_people() -> None:
    assert [clock(t) for t in (7.4, 59.6, 723, 3723)] == ["0:07", "1:00", "12:03", "1:02:03"]
    assert [remaining(t) for t in (0.2, 40, 59.7, 360, 3599, 7500)] == [
        "1 s",
        "40 s",
        "1 min",
        "6 min",
        "1 h 00 min",
        "2 h 05 min",
    ]
