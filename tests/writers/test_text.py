from __future__ import annotations

import pytest

from asrcli.writers import render
from tests.writers.transcripts import NOTHING, make


def test_one_line_a_segment() -> None:
    assert render(make((0, 1, "Hello."), (1, 2, "안녕하세요.")), "text") == "Hello.\n안녕하세요.\n"


def test_no_speech() -> None:
    assert render(NOTHING, "text") == ""


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("two\nlines", "two lines"),
        ("a\r\n\r\nb\n", "a b"),
        ("  a \u2028 b\x0bc  ", "a b c"),
        ("wide\u3000space  stays", "wide\u3000space  stays"),
        ("<i>a & b --> c</i>", "<i>a & b --> c</i>"),
    ],
)
def test_line_breaks_become_spaces(text: str, line: str) -> None:
    assert render(make((0, 1, text)), "text") == f"{line}\n"


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\u3000\t"])
def test_segments_without_text_have_no_line(text: str) -> None:
    assert render(make((0, 1, "a"), (1, 2, text), (2, 3, "b")), "text") == "a\nb\n"
