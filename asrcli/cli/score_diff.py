"""Reference and hypothesis under one another, with a letter under everything that differs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import cell_len, chop_cells, set_cell_size
from rich.text import Text

from asrcli.writers.files import shown

if TYPE_CHECKING:
    from asrcli.evaluation.scoring import Chunk, FileScore

MAX_BLOCKS = 12  # of three lines; what else there is, is counted
_CONTEXT = {"wer": 5, "cer": 12}  # words, or characters, shown around an error
_MARKS = {"equal": " ", "substitute": "S", "delete": "D", "insert": "I"}
_STYLES = {"equal": "", "substitute": "yellow", "delete": "red", "insert": "cyan"}
_NAMES = ("REF: ", "HYP: ", "     ")


class _Column(NamedTuple):
    """A word of each text, or none in one of them; ``width`` in cells of the terminal."""

    kind: str
    reference: str
    hypothesis: str

    @property
    def width(self) -> int:
        return max(cell_len(self.reference), cell_len(self.hypothesis), 1)


def lay_out(file: FileScore, width: int) -> Iterator[Text]:
    """Lines of at most ``width`` cells: REF, HYP and marks, again and again.

    S is a substitution, D a deletion, I an insertion; stars stand where there is no word. Long
    stretches without errors shrink to an ellipsis.
    """
    room = max(width - len(_NAMES[0]), 8)
    gap = 1 if file.metric == "wer" else 0
    columns = _split(_columns(file.alignment, _CONTEXT[file.metric]), room)
    blocks = list(_wrap(columns, room, gap))
    for block in blocks[:MAX_BLOCKS]:
        yield from _draw(block, gap)
    hidden = sum(column.kind != "equal" for block in blocks[MAX_BLOCKS:] for column in block)
    if hidden:
        yield Text(f"… and {hidden} more; -f json has them all", style="dim")


def _columns(chunks: tuple[Chunk, ...], context: int) -> Iterator[_Column]:
    for index, chunk in enumerate(chunks):
        pairs = list(zip_longest(chunk.reference, chunk.hypothesis, fillvalue=""))
        columns = [_Column(chunk.kind, _shown(one), _shown(other)) for one, other in pairs]
        if chunk.kind == "equal":
            before = context if index else 0
            after = context if index + 1 < len(chunks) else 0
            if len(columns) > before + after + 1:
                left_out = _Column("equal", "…", "…")
                columns[before : len(columns) - after] = [left_out]
        yield from columns


def _shown(token: str) -> str:
    """A word, or a character, that takes a place on the screen."""
    return "␣" if token == " " else shown(token)


def _split(columns: Iterator[_Column], room: int) -> Iterator[_Column]:
    """Columns no wider than a line: sentences in scripts without spaces can be."""
    for column in columns:
        if column.width <= room:
            yield column
            continue
        halves = (chop_cells(text, room) for text in (column.reference, column.hypothesis))
        for reference, hypothesis in zip_longest(*halves, fillvalue=""):
            yield _Column(column.kind, reference, hypothesis)


def _wrap(columns: Iterator[_Column], room: int, gap: int) -> Iterator[list[_Column]]:
    block: list[_Column] = []
    used = 0
    for column in columns:
        if block and used + gap + column.width > room:
            yield block
            block, used = [], 0
        used += column.width + (gap if block else 0)
        block.append(column)
    if block:
        yield block


def _draw(block: list[_Column], gap: int) -> Iterator[Text]:
    lines = [Text.assemble((name, "bold")) for name in _NAMES]
    for number, column in enumerate(block):
        space = " " * gap if number else ""
        texts = (column.reference, column.hypothesis, _MARKS[column.kind])
        for line, text in zip(lines, texts, strict=True):
            filled = set_cell_size(text, column.width) if text else "*" * column.width
            line.append(space)
            line.append(filled, style=_STYLES[column.kind])
    yield from lines
