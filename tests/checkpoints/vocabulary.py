"""The words that the tiny checkpoints know, and who says them."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
COMMANDS = (
    "yes", "no", "up", "down", "left", "right", "stop", "go", "open", "close",
    "start", "play", "pause", "next", "back", "red", "green", "blue", "yellow", "menu",
)  # fmt: skip
SPANISH_DIGITS = (
    "cero", "uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve",
)  # fmt: skip

WORDS = {"English": DIGITS + COMMANDS, "Spanish": SPANISH_DIGITS}
ALL_WORDS = WORDS["English"] + WORDS["Spanish"]

# (program, voice): flite has no Spanish.
VOICES = {
    "English": (
        ("flite", "slt"),
        ("flite", "awb"),
        ("flite", "rms"),
        ("espeak-ng", "en-us+m3"),
        ("espeak-ng", "en-us+f2"),
        ("espeak-ng", "en-gb+m1"),
        ("espeak-ng", "en-gb+f4"),
    ),
    "Spanish": (("espeak-ng", "es+m3"), ("espeak-ng", "es+f2"), ("espeak-ng", "es-419+m1")),
}

_HELD_OUT_SHARE = 10  # one sequence of so many is kept from training


def is_held_out(words: Sequence[str]) -> bool:
    """Whether a sequence is kept from training, so that tests know it is unseen.

    A single word cannot be held out: there are too few of them.
    """
    return len(words) > 1 and zlib.crc32(" ".join(words).encode()) % _HELD_OUT_SHARE == 0
