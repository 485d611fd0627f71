"""What a text looks like in numbers, whichever model wrote it."""

from __future__ import annotations

import zlib


def compression_ratio(text: str) -> float:
    """Bytes of a text over those of its zlib form: high where it repeats itself; 0 for no text."""
    data = text.encode()
    return len(data) / len(zlib.compress(data)) if data else 0.0
