"""The boundary between those who have audio and those who have a model.

The command line, the server, streaming and distributed runs all speak to a ``Backend``, so that they
share one batch, and tests can put a scripted one in.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from asrcli.options import Options
    from asrcli.transcript import Segment
    from asrcli.windows import Window


class Backend(Protocol):
    """Transcribes windows."""

    name: str
    """The checkpoint's name, as it appears in results."""

    max_duration: float
    """Seconds that a window may last."""

    max_in_flight: int
    """Windows that are worth submitting ahead: enough to keep the batch full."""

    def submit(
        self,
        window: Window,
        options: Options,
        on_partial: Callable[[str], None] | None = None,
    ) -> Future[list[Segment]]:
        """Take a window; the future gives its segments, in seconds of its recording.

        ``on_partial`` is called with the draft of the text as it grows, from another thread.
        """

    def close(self) -> None:
        """Give up what is still waiting and free the model."""
