"""A window on its way to its text: who asked for it, who listens, and who waits for the result."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asrcli.backends.base import Recognition
    from asrcli.engine.request import Hypothesis, Request
    from asrcli.options import Options
    from asrcli.windows import Window


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Job:
    """A window on its way to its text.

    Attributes:
        on_partial: is shown drafts of the text.
        is_half: whether it is one of the halves of a window.
        depth: how many windows, one within the other, have left this part of them unsaid.
    """

    window: Window
    options: Options
    on_partial: Callable[[str], None] | None
    future: Future[Recognition]
    is_half: bool = False
    depth: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Attempt:
    """A window that was sent through the model once, and what came of it."""

    job: Job
    options: Options
    request: Request
    hypothesis: Hypothesis


class Listener:
    """Follows a request id by id, for its language and for those who watch the text grow."""

    def __init__(
        self,
        job: Job,
        hear: Callable[[Job, Hypothesis], bool] | None,
        draft: Callable[[Hypothesis], str],
    ) -> None:
        self._job = job
        self._hear = hear
        self._draft = draft

    @property
    def is_listening(self) -> bool:
        """Whether it has still to hear which language is spoken."""
        return self._hear is not None

    def __call__(self, hypothesis: Hypothesis) -> None:
        if self._hear is not None and self._hear(self._job, hypothesis):
            self._hear = None
        if self._job.on_partial is not None:
            self._job.on_partial(self._draft(hypothesis))


def pass_on_failure(
    done: Future[Hypothesis] | Future[Recognition] | Future[None], waiting: Future[Recognition]
) -> bool:
    """Hand the failure of a step to whoever waits for the result; tells whether there was one."""
    if done.cancelled():
        waiting.cancel()
        return True
    error = done.exception()
    if error is not None:
        settle(waiting, error)
    return error is not None


def settle(waiting: Future[Recognition], outcome: Recognition | BaseException) -> None:
    """Give whoever still waits the result, or the reason why there is none."""
    with suppress(InvalidStateError):
        if isinstance(outcome, BaseException):
            waiting.set_exception(outcome)
        else:
            waiting.set_result(outcome)
