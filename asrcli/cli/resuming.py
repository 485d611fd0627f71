"""Going on where a run was stopped: the command for it, and what was done before."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from asrcli.writers.completeness import are_complete, warnings_in
from asrcli.writers.files import shown

if TYPE_CHECKING:
    import typer

    from asrcli.cli.work import Work
    from asrcli.console import StderrConsole

SKIP, REPLACE, END_OF_OPTIONS = "--skip-existing", "--overwrite", "--"


def advise(work: Work, left: Iterable[int], arguments: Sequence[str]) -> str | None:
    """How to go on, in a line; None where results are no files, or inputs can be read only once.

    Args:
        work: what there was to do.
        left: which of its recordings lack a result of this run.
        arguments: of ``asr``, as ``spell_out`` gives them.
    """
    to_stdout = any(output.path is None for outputs in work.plan.outputs for output in outputs)
    if to_stdout or any(source.path is None for source in work.sources):
        return None
    for index in left:
        outputs, source = work.plan.outputs[index], work.sources[index]
        if are_complete(outputs, source.path) and outputs[0].path is not None:
            return (
                f"{SKIP} would take old results for new ones, {shown(outputs[0].path)} for one: "
                "delete them first, or run the whole command again"
            )
    return f"{command_to_go_on(arguments)} goes on from here"


def command_to_go_on(arguments: Sequence[str]) -> str:
    """The same command with ``--skip-existing``, as it can be pasted into a shell.

    Args:
        arguments: of ``asr``, its own name left out.
    """
    options, inputs = _split(arguments)
    options = [argument for argument in options if argument != REPLACE]
    if SKIP not in options:
        options.append(SKIP)
    return " ".join(_quoted(argument) for argument in ("asr", *options, *inputs))


def spell_out(context: typer.Context) -> list[str] | None:
    """The command line, with what the environment said as options; None if it is unknown.

    A variable may have been set for this run alone.
    """
    if context.obj is None:
        return None
    options, inputs = _split(context.obj)
    for parameter in context.command.params:
        origin = context.get_parameter_source(parameter.name or "")
        value = parameter.value_from_envvar(context)
        # The parser's own name for it has another home in each release.
        if origin is not None and origin.name == "ENVIRONMENT" and value is not None:
            name = max(parameter.opts, key=len)
            for each in [value] if isinstance(value, str) else value:
                options += [name, each]
    return [*options, *inputs]


def tell_of_skipped(work: Work, console: StderrConsole) -> None:
    """Say again what was said of results that are left as they are: losses above all."""
    for source, outputs in zip(work.skipped, work.skipped_plan.outputs, strict=True):
        if warnings := warnings_in(outputs):
            more = f" (and {len(warnings) - 1} more)" if len(warnings) > 1 else ""
            told = f"skipped, with a result that warns: {shown(warnings[0])}{more}"
            console.warn(f"{source.name}: {told}")


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """What may be options, and what cannot be."""
    place = arguments.index(END_OF_OPTIONS) if END_OF_OPTIONS in arguments else len(arguments)
    return list(arguments[:place]), list(arguments[place:])


def _quoted(argument: str) -> str:
    """Quoted for a shell; bytes that no terminal can show are written as bash and others read."""
    if argument.isprintable():
        return shlex.quote(argument)
    escaped = "".join(_escaped(letter) for letter in argument)
    return f"$'{escaped}'"


def _escaped(letter: str) -> str:
    if letter in "\\'":
        return f"\\{letter}"
    if letter.isprintable():
        return letter
    return "".join(f"\\{byte:03o}" for byte in os.fsencode(letter))
