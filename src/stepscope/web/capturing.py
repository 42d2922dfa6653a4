"""Captures that the page started."""

from __future__ import annotations

import importlib.util


def is_available() -> bool:
    """True if this installation can capture from other processes."""
    return importlib.util.find_spec("stepscope.capture.client") is not None
