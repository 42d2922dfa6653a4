"""The string table while a trace is read: the scanner adds to it, and so does whoever needs another name later."""

from __future__ import annotations

import json

import numpy as np

from stepscope.kernels import trace_json as scan
from stepscope.model import Strings
from stepscope.model.arrays import I64

_FIRST_TEXTS = 1 << 15
_FIRST_BYTES = 1 << 22


class TextTable:
    """Equal bytes, equal id.  Text 0 is empty.

    Attributes:
        arrays: what the scanner works on.
        state: the scanner's state, of which the places TEXTS and BLOB belong to this table.
    """

    def __init__(self) -> None:
        self.arrays = _room(_FIRST_TEXTS, _FIRST_BYTES)
        self.state = np.zeros(scan.STATE_WIDTH, np.int64)
        self.state[scan.TEXTS] = 1

    def __len__(self) -> int:
        return int(self.state[scan.TEXTS])

    def raw(self, text: int) -> bytes:
        """The bytes of a text."""
        begin, end = self.arrays.offsets[text : text + 2]
        return self.arrays.blob[begin:end].tobytes()

    def __getitem__(self, text: int) -> str:
        return self.raw(text).decode("utf-8", "replace")

    def add(self, text: str | bytes) -> int:
        """The id of a text, made on first use."""
        raw = text.encode("utf-8", "replace") if isinstance(text, str) else text
        if not raw:
            return 0
        buf = np.frombuffer(raw, np.uint8)
        while True:
            found = int(scan.add_text(buf, self.arrays, self.state))
            if found >= 0:
                return found
            self.grow(found)

    def grow(self, lacking: int) -> None:
        """Makes room for more texts (`scan.NO_TEXT`) or for more bytes (`scan.NO_BLOB`)."""
        old, count, used = self.arrays, len(self), int(self.state[scan.BLOB])
        more_texts, more_bytes = (2 if lacking == reason else 1 for reason in (scan.NO_TEXT, scan.NO_BLOB))
        new = _room(len(old.hashes) * more_texts, len(old.blob) * more_bytes)
        new.blob[:used] = old.blob[:used]
        new.offsets[: count + 1] = old.offsets[: count + 1]
        new.hashes[:count] = old.hashes[:count]
        new.escaped[:count] = old.escaped[:count]
        new.follower[:count] = old.follower[:count]
        scan.fill_slots(new.hashes, count, new.slots)
        self.arrays = new

    def unescape(self) -> I64:
        """Takes the backslashes of JSON out of the texts that have them.

        Returns:
            int64 of shape (texts before,): the text that each text became.
        """
        became = np.arange(len(self), dtype=np.int64)
        for text in np.flatnonzero(self.arrays.escaped[: len(self)]).tolist():
            became[text] = self.add(_unescaped(self.raw(text)))
        return became

    def strings(self) -> Strings:
        """The finished table."""
        blob, offsets = self.arrays.blob, self.arrays.offsets
        return Strings(blob[: self.state[scan.BLOB]].copy(), offsets[: len(self) + 1].copy())


def _room(texts: int, blob: int) -> scan.Texts:
    return scan.Texts(
        blob=np.empty(blob, np.uint8),
        offsets=np.zeros(texts + 1, np.int64),
        hashes=np.zeros(texts, np.uint64),
        escaped=np.zeros(texts, np.uint8),
        follower=np.zeros(texts, np.int32),
        slots=np.zeros(2 * texts, np.int32),
    )


def _unescaped(raw: bytes) -> bytes:
    """The text of a JSON string; as it stands if its escapes are no JSON, half a surrogate pair as a question mark."""
    try:
        text = json.loads(b'"' + raw + b'"', strict=False)
    except (ValueError, UnicodeDecodeError):
        return raw
    return str(text).encode("utf-8", "replace")
