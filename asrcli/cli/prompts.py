"""What a model is told in words, from the command line or from a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from asrcli.errors import UsageError
from asrcli.writers.files import shown

MAX_NUM_BYTES = 1_000_000
"""No model takes in more than a fraction of it; what is larger is some other file."""


def choose_prompt(prompt: str | None, prompt_file: str | None) -> str | None:
    """The one that was given; None where none was.

    Raises:
        UsageError: both were given, or the file is not one of text.
    """
    if prompt_file is None:
        return prompt
    if prompt is not None:
        raise UsageError("--prompt and --prompt-file both set the prompt", hint="give one of them")
    if prompt_file in ("", "-"):
        raise UsageError("--prompt-file takes the name of a file", hint="or give --prompt TEXT")
    return _read(Path(prompt_file))


def join_hotwords(hotwords: Sequence[str] | None) -> str | None:
    """All words to expect as one text; None where there are none."""
    return ", ".join(words.strip() for words in hotwords or () if words.strip()) or None


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_NUM_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise UsageError(f"prompt file {shown(path)}: {reason}") from error
    if len(content) > MAX_NUM_BYTES:
        raise UsageError(f"prompt file {shown(path)}: is too large for a prompt")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"prompt file {shown(path)}: is not UTF-8 text") from error
    if "\0" in text:
        raise UsageError(f"prompt file {shown(path)}: is not text")
    return text.strip()
