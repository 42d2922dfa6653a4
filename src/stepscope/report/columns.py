"""Cells of whole columns: the same as those of `sections`, to the last bit, in a tenth of the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def percents(parts: Sequence[float] | NDArray[Any], whole: float) -> list[float | None]:
    """The `percent` of each part."""
    if not whole > 0:
        return [None] * len(parts)
    found: list[float | None] = (np.floor(1e6 * np.asarray(parts, np.float64) / whole + 0.5) / 1e4).tolist()
    return found


def rows_in_ms(rows: Sequence[Sequence[int]]) -> list[list[float]]:
    """The `round_ms` of each time of some rows, which have as many times each."""
    found: list[list[float]] = (np.floor(np.array(rows, np.float64) / 1e3 + 0.5) / 1e6).tolist()
    return found
