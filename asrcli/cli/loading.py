"""From the options that say what runs where to a model that is ready."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from asrcli.cli.interrupts import farewell
from asrcli.errors import UsageError

if TYPE_CHECKING:
    from asrcli.console import ConsoleReporter, StderrConsole
    from asrcli.options import Options
    from asrcli.recognizer import Recognizer


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How the model is to be run."""

    model: str
    device: str
    dtype: str
    batch_size: int | None


def load(settings: Settings, options: Options, console: StderrConsole) -> Recognizer:
    """Load the model, having checked that it can do what is asked.

    A name that cannot be had is told before torch is imported.

    Raises:
        CheckpointError: the model cannot be found, fetched or loaded.
        UsageError: this machine, or the model, cannot do what was asked.
    """
    from asrcli.console import ConsoleReporter
    from asrcli.models.checkpoints import depends_on_device, find_checkpoint

    reporter = ConsoleReporter(console)
    if not depends_on_device(settings.model):
        find_checkpoint(settings.model, reporter=reporter)
    with farewell(console.settle), console.busy(f"loading {settings.model}"):
        recognizer = _load(settings, reporter)
    try:
        for warning in recognizer.check(options):
            console.warn(warning)
    except UsageError:
        recognizer.close()
        raise
    console.note(recognizer.description)
    return recognizer


def _load(settings: Settings, reporter: ConsoleReporter) -> Recognizer:
    from asrcli.recognizer import Recognizer

    return Recognizer(
        settings.model,
        device=settings.device,
        dtype=settings.dtype,
        batch_size=settings.batch_size,
        reporter=reporter,
    )
