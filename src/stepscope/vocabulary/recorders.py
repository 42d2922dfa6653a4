"""Rows that a recorder writes about itself."""

from __future__ import annotations

from stepscope.vocabulary.patterns import Pattern

_WINDOW = Pattern(r"PyTorch Profiler \(\d+\)$")  # lasts from the recorder's start to its stop


def states_window(name: str) -> bool:
    """Whether a row of this name is no work, but states when its recorder recorded."""
    return _WINDOW.match(name) is not None
