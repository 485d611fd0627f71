"""What people see on stderr: notes, errors with hints, and how a batch gets on.

Results never come through here. On anything but a terminal there are no bars and no control codes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from rich.status import Status

    from asrcli.errors import AsrError


class StderrConsole:
    """Lines for people.

    Args:
        quiet: say nothing but errors.
        verbose: say what is otherwise left out where nobody watches.
        file: stands in for stderr.
        is_terminal: whether somebody watches; by default it is asked of the file.
        width: columns of the terminal; by default they are asked of it.
    """

    def __init__(
        self,
        *,
        quiet: bool = False,
        verbose: bool = False,
        file: TextIO | None = None,
        is_terminal: bool | None = None,
        width: int | None = None,
    ) -> None:
        self.quiet = quiet
        self.verbose = verbose
        self._status: Status | None = None
        file = file or sys.stderr
        if is_terminal is None:
            is_terminal = file is not None and file.isatty()
        self.rich = Console(
            file=file,
            stderr=file is None,
            # Left to itself, rich would take FORCE_COLOR to mean a terminal that things move on.
            force_terminal=is_terminal,
            force_interactive=is_terminal,
            width=width,
            markup=False,
            highlight=False,
            soft_wrap=True,
            emoji=False,
        )

    @property
    def is_live(self) -> bool:
        """Whether somebody watches, so that things may move."""
        return self.rich.is_terminal and not self.rich.is_dumb_terminal and not self.quiet

    @contextmanager
    def busy(self, message: str) -> Iterator[None]:
        """Show that something goes on, while somebody watches, until it is over or ``settle``."""
        if self.is_live:
            self._status = self.rich.status(Text(message, style="dim"))
            self._status.start()
        try:
            yield
        finally:
            self.settle()

    def settle(self) -> None:
        """Take away what ``busy`` shows: something else is about to move."""
        if self._status is not None:
            self._status.stop()
            self._status = None

    def print(self, message: str) -> None:
        """One line, whoever listens."""
        self.rich.print(message)

    def note(self, message: str) -> None:
        """One line that is good to know."""
        if not self.quiet:
            self.rich.print(Text(message, style="dim"))

    def line(self, message: str) -> None:
        """One line about something done, for those who watch or asked for it."""
        if not self.quiet and (self.is_live or self.verbose):
            self.print(message)

    def warn(self, message: str) -> None:
        """One line about something that went less than well."""
        if not self.quiet:
            self.rich.print(Text.assemble(("warning: ", "yellow"), message))

    def error(self, error: AsrError) -> None:
        """A fault in one line, and what to do about it in another."""
        self.rich.print(Text.assemble(("error: ", "bold red"), str(error)))
        if error.hint:
            self._advise(error.hint)

    def hint(self, message: str) -> None:
        """What to do next, in one line."""
        if not self.quiet:
            self._advise(message)

    def _advise(self, message: str) -> None:
        self.rich.print(Text.assemble(("hint: ", "cyan"), message))


class ConsoleReporter:
    """Tells of the choice of a model and of its download."""

    def __init__(self, console: StderrConsole | None = None) -> None:
        self._console = console or StderrConsole()

    def note(self, message: str) -> None:
        """One line about a choice that was made."""
        self._console.note(message)

    def download(
        self, name: str, total: int | None
    ) -> AbstractContextManager[Callable[[int], None]]:
        """A bar in bytes while something is fetched; it is told of further bytes."""
        return self._bar(name, total) if self._console.is_live else self._line(name, total)

    @contextmanager
    def _line(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        size = f" ({total / 1e6:.0f} MB)" if total else ""
        self._console.note(f"fetching {name}{size}")
        yield lambda num_bytes: None

    @contextmanager
    def _bar(self, name: str, total: int | None) -> Iterator[Callable[[int], None]]:
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
            TransferSpeedColumn,
        )

        columns = (
            TextColumn("fetching {task.description}", markup=False),
            BarColumn(),
            DownloadColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
        )
        self._console.settle()
        with Progress(*columns, console=self._console.rich, transient=True) as progress:
            task = progress.add_task(name, total=total)
            yield lambda num_bytes: progress.advance(task, num_bytes)


def internal_error(error: Exception) -> str:
    """A fault of ours in one line; CUDA's messages have many."""
    reason = " ".join(str(error).split())
    name = type(error).__name__
    return f"internal error ({name}: {reason})" if reason else f"internal error ({name})"


def remaining(duration: float) -> str:
    """Seconds that something will still take, about: "40 s", "6 min", "2 h 05 min"."""
    if duration < 59.5:
        return f"{max(1, round(duration))} s"
    minutes = round(duration / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def clock(duration: float) -> str:
    """Seconds as people write them: 0:07, 12:03, 1:02:03."""
    minutes, seconds = divmod(round(duration), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
