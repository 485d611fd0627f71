"""The boundary between those who have audio and those who have a model.

The command line, the server, streaming and distributed runs all speak to a ``Backend``, so that
they share one batch, and tests can put a scripted one in.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asrcli.options import Options
    from asrcli.transcript import Retry, Segment
    from asrcli.windows import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Recognition:
    """What was recognised in one window.

    Attributes:
        segments: in seconds of the recording; none where there is no speech.
        language: ISO code, given or detected; None where it is not known.
        warnings: what went less than well, one line each, with its time in the recording.
        losses: where words may be missing or made up, likewise; the recording counts as failed.
        fault: "loop" where the text ran in circles and was stopped, "unfinished" where only the
            bound on its length ended it, "too much" where nobody can say it in the time; None where
            there is none of these.
        retries: what was heard more than once.
    """

    segments: tuple[Segment, ...]
    language: str | None = None
    warnings: tuple[str, ...] = ()
    losses: tuple[str, ...] = ()
    fault: str | None = None
    retries: tuple[Retry, ...] = ()


class Backend(Protocol):
    """Transcribes windows."""

    @property
    def name(self) -> str:
        """The checkpoint's name, as it appears in results."""

    def window_duration(self, options: Options) -> float:
        """Seconds that a window lasts at most."""

    def max_in_flight(self, options: Options) -> int:
        """Windows that are worth submitting ahead: enough to keep the batch full."""

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[Recognition]:
        """Take a window of a recording; the recording's windows come in order.

        ``on_partial`` is called with the draft of the text as it grows, from another thread.
        """

    def close(self) -> None:
        """Give up what is still waiting and free the model."""
