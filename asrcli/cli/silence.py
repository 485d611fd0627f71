"""Other packages' talk, kept from the user. Without rich, which takes a while to import."""

from __future__ import annotations

import logging
import sys
import warnings


def silence_libraries() -> None:
    """Keep other packages' warnings from the user; ours go out as lines of their own."""
    warnings.simplefilter("ignore")
    logging.getLogger().addHandler(logging.NullHandler())
    ours = logging.getLogger("asrcli")
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    ours.addHandler(handler)
    ours.propagate = False
