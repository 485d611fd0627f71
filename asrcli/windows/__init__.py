"""Windows: how a recording is cut for a model, and how the pieces come together again.

Every rule about seams lives here. ``Cutter`` covers a recording with windows, and
leaves out nothing but silence; where speech has to be cut without a pause, two of them overlap.
``halve`` cuts one of them once more; ``Stitcher`` is the inverse for what the model said in them.
"""

from __future__ import annotations

from asrcli.windows.cutter import Cutter, cut
from asrcli.windows.seams import without_first_words, without_last_words
from asrcli.windows.splitter import Splitter
from asrcli.windows.stitching import Stitcher, join_texts, stitch
from asrcli.windows.window import Window, find_gaps, halve, rest_of, unheard_of

__all__ = [
    "Cutter",
    "Splitter",
    "Stitcher",
    "Window",
    "cut",
    "find_gaps",
    "halve",
    "join_texts",
    "rest_of",
    "stitch",
    "unheard_of",
    "without_first_words",
    "without_last_words",
]
