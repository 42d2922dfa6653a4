"""Rows that a recorder writes about itself."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

WINDOW_NAME_BYTES = (20, 40)
"""Between how many bytes such a row's name has, so that of a million names few are looked at."""
_WINDOW = Pattern(r"PyTorch Profiler \(\d+\)$")  # lasts from the recorder's start to its stop


def states_window(name: str) -> bool:
    """Whether a row of this name is no work, but states when its recorder recorded."""
    return _WINDOW.match(name) is not None
