"""How much of the silence behind a short window Whisper's encoder is given.

It was trained on 30 s and runs away on less, but most of what it makes of silence can be spared:
see ``asrcli.engine.silence``. How much, is told by the distribution of the next id, in nats
(Kullback-Leibler) from the one with all of the 30 s, with whisper-base over 51 windows of 12 to
29 s and 54 clips of less than 12 s:

- What counts is how many positions one stands for, and not that some silence stays whole: with a
  second of it and one in 8 of the rest, windows are 0.0065 nats away and clips 0.0109; with nearly
  none and one in 4 or one in 6, 0.0020 and 0.0088, on 2 % fewer and 2 % more positions.
- Behind long windows there is little silence, and one in 4 costs next to nothing. One in 3 is no
  nearer (0.0016).
- Where the language is to be told, clips are 0.0049 away with one in 3. With one in 4, none of 204
  clips was taken for another language, with one in 8 one was.
"""

from __future__ import annotations

import math

SILENCE_BEHIND = 0.1  # s of silence that are encoded as they are behind a window's audio
CONTEXT_STEP = 0.2  # s; windows of one length are encoded together
SHORT = 12.0  # s; less is mostly silence when it is filled up
# Positions of the silence behind that, of which one is encoded.
STRIDE, STRIDE_IF_SHORT, STRIDE_FOR_LANGUAGE = 4, 6, 3
LONGEST = 29.5  # s; beyond, too little is spared to leave anything out
FRAMES_PER_SECOND = 100


def num_frames(duration: float, longest: float) -> int:
    """Frames of a window of so many seconds, and of what is encoded as it is behind it."""
    wanted = math.ceil(round((duration + SILENCE_BEHIND) / CONTEXT_STEP, 6)) * CONTEXT_STEP
    return round((longest if wanted > LONGEST else wanted) * FRAMES_PER_SECOND)


def stride(duration: float, *, tells_language: bool) -> int:
    """Positions of the silence behind a window of so many seconds of which one is encoded."""
    if tells_language:
        return STRIDE_FOR_LANGUAGE
    return STRIDE_IF_SHORT if duration < SHORT else STRIDE
