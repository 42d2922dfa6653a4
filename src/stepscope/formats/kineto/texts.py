"""The string table while a trace is read.  The scanner adds texts to it, and later stages add more names."""

from __future__ import annotations

import json

import numpy as np

from stepscope.kernels import trace_json as scan
from stepscope.model import Strings
from stepscope.model.arrays import I64

_PYTHON_FILE = b".py("


class TextTable:
    """Texts by id; equal bytes have equal ids.  Text 0 is empty."""

    def __init__(self, scanner: scan.Scanner) -> None:
        self._scanner = scanner

    def __len__(self) -> int:
        return self._scanner.texts

    def raw(self, text: int) -> bytes:
        """The bytes of a text."""
        return self._scanner.text(text)

    def __getitem__(self, text: int) -> str:
        return self.raw(text).decode("utf-8", "replace")

    def add(self, text: str | bytes) -> int:
        """The id of a text, which is created on first use."""
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        return self._scanner.add_text(np.frombuffer(raw, np.uint8)) if raw else 0

    def unescape(self) -> I64:
        """Decodes the JSON escapes of all texts that have them.

        Returns:
            int64 of shape (texts before,): the new id of each text.
        """
        became = np.arange(len(self), dtype=np.int64)
        for text in self._scanner.escaped():
            became[text] = self.add(_unescape_text(self.raw(text)))
        return became

    def strings(self) -> Strings:
        """The finished table."""
        return Strings(*self._scanner.table())


def _unescape_text(raw: bytes) -> bytes:
    r"""The text of a JSON string, unchanged if its escapes are invalid.  Half a surrogate pair becomes `?`.

    Older releases of PyTorch wrote the paths of Windows without escapes, as `torch\nn\functional.py(3029): dropout`:
    the path of a file of Python holds no control characters.
    """
    try:
        text = json.loads(b'"' + raw + b'"', strict=False)
    except (ValueError, UnicodeDecodeError):
        return raw
    if _PYTHON_FILE in raw and min(text, default=" ") < " ":
        return raw
    return str(text).encode("utf-8", "replace")
