"""Numpy columns as Arrow arrays.  Numbers share the memory of their column; a text is a number into a list of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from stepscope.model import HostTrace
from stepscope.model.arrays import I32, Mask

TEXT = pa.dictionary(pa.int32(), pa.string())
SMALL_TEXT = pa.dictionary(pa.uint8(), pa.string())


def numbers(values: NDArray[Any], known: Mask | None = None) -> pa.Array:
    """A column of numbers or truth values; null where not known."""
    return pa.array(values, mask=None if known is None else ~known)


def texts(number: NDArray[Any], words: Sequence[str] | pa.Array, known: Mask | None = None) -> pa.Array:
    """A column of texts: the place of each in `words`; null where not known.

    Args:
        number: int32 or uint8 of shape (n,); places that are not known may hold anything.
    """
    listed = words if isinstance(words, pa.Array) else pa.array(words, pa.string())
    if known is not None:
        number = np.where(known, number, 0).astype(number.dtype)
    places = pa.array(number, mask=None if known is None else ~known)
    return pa.DictionaryArray.from_arrays(places, listed, safe=False)


def same_text(text: str, rows: int) -> pa.Array:
    """A column with one text in every row."""
    return texts(np.zeros(rows, np.uint8), [text])


def different_texts(words: Sequence[str | None]) -> pa.Array:
    """A column of a few texts, each of its own."""
    places = {word: at for at, word in enumerate(dict.fromkeys(word for word in words if word is not None))}
    number = np.array([places.get(word, 0) if word is not None else 0 for word in words], np.int32)
    known = np.array([word is not None for word in words], np.bool_)
    return texts(number, list(places), known)


def string_rows(trace: HostTrace, rows: NDArray[np.integer]) -> pa.Array:
    """A column of texts by their rows of the string table; null for 0 and below, which stand for no text."""
    found, number = np.unique(rows, return_inverse=True)
    words = trace.strings.texts(np.maximum(found, 0))
    return texts(number.reshape(-1).astype(np.int32), words, rows > 0)


def texts_of_types(trace: HostTrace, column: I32) -> pa.Array:
    """The texts of a column of event types, as a list with an entry for each type."""
    return pa.array(trace.strings.texts(column), pa.string())
