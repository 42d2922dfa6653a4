"""From bytes to raw columns: finds the events in a trace's JSON and has them scanned, whatever state the text is in.

There are two forms:

    document = {"traceEvents": [event, ...], key: value, ...}  or  [event, ...]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.errors import UnreadableError
from stepscope.formats.kineto.text import Text
from stepscope.formats.kineto.texts import TextTable
from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import I32, I64, U8
from stepscope.records import dataclass

_CHUNK_ROWS = 1 << 18
_CHUNK_STATS = 1 << 20
_CHUNK_SLOW = 1 << 12
_LONGEST_METADATA = 1 << 20  # of a value that nobody may ask for
_NEEDED_KEYS = frozenset({"deviceProperties", "distributedInfo"})  # these grow with the job
_FARTHEST_NS = 1 << 62  # of two bases, 146 years; more is damage
_EVENTS_KEY = "traceEvents"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Raw:
    """The events of a trace as they stand in the file: one row each, texts interned; see `scan.Rows`.

    Attributes:
        stat_offsets: int64 of shape (rows + 1,): row `i` has the stats from `stat_offsets[i]` to the next.
        texts: the texts, still with the backslashes of JSON.
        metadata: what stands beside the events, by key.
        documents: how many JSON documents the text holds.
        cut_at: position in the text from which on nothing could be read, None if it was read to its end.
        cut_because: what was found there.
        damaged: places that were stepped over; `damaged_at` is the first.
        compressed: True if positions count in the unpacked text.
        size: bytes of the text that were looked at.
    """

    phase: U8
    flags: U8
    cat: I32
    name: I32
    pid: I32
    tid: I32
    us: I64
    frac_ps: I32
    duration_us: I64
    duration_frac_ps: I32
    flow: I64
    stat_offsets: I64
    stat_name: I32
    stat_tag: U8
    stat_value: I64
    texts: TextTable
    metadata: Mapping[str, Any]
    documents: int
    cut_at: int | None
    cut_because: str
    damaged: int
    damaged_at: int
    compressed: bool
    size: int

    def __len__(self) -> int:
        return len(self.phase)


class _Columns:
    """Columns that grow by whole chunks, which the scanner fills directly and which are joined at the end.

    Chunks that nothing has been written to yet take no memory, so their size does not matter to small traces.
    """

    def __init__(self) -> None:
        self.rows = _row_buffers(_CHUNK_ROWS)
        self.stats = _stat_buffers(_CHUNK_STATS, _CHUNK_SLOW)
        self.n_rows = 0
        self.n_stats = 0
        self._done: dict[str, list[NDArray[Any]]] = {}

    def drain(self, rows: int, stats: int) -> None:
        """Sets aside what is full; with nothing to set aside, one event needs more room than there is, and gets it."""
        if not rows:
            self.stats = _stat_buffers(2 * len(self.stats.name), 2 * len(self.stats.slow))
            return
        self.rows.stat_end[:rows] += self.n_stats
        for name, column in self.rows._asdict().items():
            self._done.setdefault(name, []).append(column[:rows])
        for name in ("name", "tag", "value"):
            self._done.setdefault(f"stat_{name}", []).append(getattr(self.stats, name)[:stats])
        self.n_rows += rows
        self.n_stats += stats
        self._renew(rows, stats)

    def _renew(self, rows: int, stats: int) -> None:
        """What is left of the chunks is used up before there are new ones."""
        if rows < len(self.rows.phase) // 2:
            self.rows = self.rows._replace(**{name: column[rows:] for name, column in self.rows._asdict().items()})
        else:
            self.rows = _row_buffers(_CHUNK_ROWS)
        if stats < len(self.stats.name) // 2:
            left = {name: getattr(self.stats, name)[stats:] for name in ("name", "tag", "value", "double")}
            self.stats = self.stats._replace(**left)
        else:
            self.stats = _stat_buffers(_CHUNK_STATS, _CHUNK_SLOW)

    def finish(self) -> dict[str, NDArray[Any]]:
        """Everything set aside, one array a column."""
        empty = self.rows._asdict() | {f"stat_{name}": column for name, column in self.stats._asdict().items()}
        names = [*scan.Rows._fields, "stat_name", "stat_tag", "stat_value"]
        # One column at a time, each freed before the next, bounds the memory to one column more than there is.
        return {name: np.concatenate(self._done.pop(name, [empty[name][:0]])) for name in names}


def _row_buffers(rows: int) -> scan.Rows:
    wide, narrow = np.int64, np.int32
    types = (np.uint8, np.uint8, narrow, narrow, narrow, narrow, wide, narrow, wide, narrow, wide, wide)
    return scan.Rows(*(np.empty(rows, dtype) for dtype in types))  # type: ignore[arg-type]


def _stat_buffers(rows: int, slow: int) -> scan.StatRows:
    value = np.empty(rows, np.int64)
    return scan.StatRows(
        np.empty(rows, np.int32), np.empty(rows, np.uint8), value, value.view(np.float64), np.empty((slow, 3), np.int64)
    )


def decode(data: bytes | Iterator[bytes], source: str) -> Raw:
    """Reads the events of a trace.  Raises UnreadableError if the text holds none and is no empty trace either."""
    text = Text(data, source)
    try:
        if not text.head(1) and not text.inflater:
            raise UnreadableError(
                "the file is empty",
                code="empty",
                path=source,
                offset=0,
                hint="the capture did not finish; record it again",
            )
        return _Decoder(text, source).decode()
    finally:
        text.close()


class _Decoder:
    def __init__(self, text: Text, source: str) -> None:
        self.text = text
        self.source = source
        self.columns = _Columns()
        self.texts = TextTable()
        self.state = self.texts.state
        self.damaged_at = -1
        self.metadata: list[dict[str, Any]] = []
        self.first_rows: list[int] = []
        self.keys: list[str] = []
        self.arrays = 0
        self.named_arrays = 0
        self.cut_at: int | None = None
        self.cut_because = ""

    # -- documents -----------------------------------------------------------------------------------------------

    def decode(self) -> Raw:
        """Reads document after document to the end of the text."""
        if self.text.head(3) == _BOM:
            self.text.at += 3
        while self.cut_at is None and self._skip_space():
            first = chr(self.text.buf[self.text.at])
            if first not in "{[":
                self._cut("what follows is no JSON" if self.metadata else "")
                break
            self.metadata.append({})
            self.first_rows.append(self._rows_so_far())
            self.text.at += 1
            if first == "[":
                self._events(optional_end=True)
            else:
                self._object()
        self._check_damage()
        raw = self._result()
        self._require_events(raw)
        return raw

    def _rows_so_far(self) -> int:
        return self.columns.n_rows + int(self.state[scan.ROWS])

    def _object(self) -> None:
        """Reads the members of a document up to its closing brace."""
        while self.cut_at is None:
            if not self._skip_space(commas=True):
                return self._cut("the JSON ends before its closing brace")
            byte = self.text.buf[self.text.at]
            if byte == ord("}"):
                self.text.at += 1
                return None
            key = self._key() if byte == ord('"') else None
            if key is None:
                if not self._find_events():
                    return self._cut("this is no JSON" if byte != ord('"') else "the JSON ends in the middle of a key")
            elif key == _EVENTS_KEY and self.text.buf[self.text.at] == ord("["):
                self.text.at += 1
                self.named_arrays += 1
                self._events(optional_end=False)
            else:
                self._member(key)
        return None

    def _find_events(self) -> bool:
        """Steps over damage before the events, to their key.  False if there is none in sight."""
        text = self.text
        ahead = -1 if self.arrays else text.buf[text.at : text.end].tobytes().find(b'"' + _EVENTS_KEY.encode() + b'"')
        if ahead < 0:
            return False
        self.state[scan.DAMAGED] += 1
        self.damaged_at = text.position
        text.at += ahead
        return True

    def _member(self, key: str) -> None:
        self.keys.append(key)
        raw = self._value()
        if raw is None:
            return self._cut(f"the JSON ends in the middle of the value of {key!r}")
        if len(raw) <= _LONGEST_METADATA or key in _NEEDED_KEYS:
            value = _parsed(raw)
            if value is not None:
                self.metadata[-1].setdefault(key, value)
        return None

    def _skip_space(self, commas: bool = False) -> bool:
        """Moves to the next byte that is no space.  False at the end of the text."""
        while True:
            self.text.at = int(scan.skip_space(self.text.buf, self.text.at, self.text.end, commas))
            if self.text.at < self.text.end:
                return True
            if not self.text.more():
                return False

    def _key(self) -> str | None:
        """Reads a key and its colon; None if the text ends first or the colon is missing."""
        raw = self._value()
        if raw is None or not self._skip_space() or self.text.buf[self.text.at] != ord(":"):
            return None
        self.text.at += 1
        return raw[1:-1].decode("utf-8", "replace") if self._skip_space() else None

    def _value(self) -> bytes | None:
        """The JSON text of the value that stands here, after which reading goes on; None if there is no whole one."""
        while True:
            text = self.text
            after = scan.skip_value(text.buf, text.at, text.end)
            if after >= 0:
                raw = text.buf[text.at : after].tobytes()
                text.at = int(after)
                return raw
            if after == scan.MALFORMED or not text.more():
                return None

    def _cut(self, because: str) -> None:
        self.cut_at = self.text.position
        self.cut_because = because
        if self.text.too_long:
            self.cut_because = "a single value is longer than 256 MiB"

    # -- events --------------------------------------------------------------------------------------------------

    def _events(self, optional_end: bool) -> None:
        """Reads the array whose first element is next.  Without an object around it, its end may be missing."""
        self.arrays += 1
        while True:
            why = self._scan()
            if why == scan.CLOSED:
                return None
            if why == scan.FULL:
                self._drain()
            elif why != scan.MORE:
                self.texts.grow(scan.NO_TEXT if why == scan.TEXTS_FULL else scan.NO_BLOB)
            elif not self.text.more():
                break
        if self.state[scan.RECOVERING]:
            return self._cut("nothing after the damage can be read as an event")
        if self.text.at < self.text.end:
            return self._cut("the JSON ends in the middle of an event")
        if not optional_end or (self.text.inflater and self.text.inflater.damage):
            return self._cut("the JSON ends between two events")
        return None

    def _scan(self) -> int:
        text, state = self.text, self.state
        state[scan.AT] = text.at
        state[scan.MEMBER_AT] = 0
        damaged = int(state[scan.DAMAGED])
        why = scan.scan_events(text.buf, text.end, self.texts.arrays, self.columns.rows, self.columns.stats, state)
        text.at = int(state[scan.AT])
        if state[scan.DAMAGED] and not damaged:
            self.damaged_at = text.offset + int(state[scan.DAMAGED_AT])
        self._convert_slow()
        return int(why)

    def _convert_slow(self) -> None:
        """Converts the numbers that the scanner left, those with many digits, before the window moves on."""
        stats = self.columns.stats
        for row, begin, end in stats.slow[: self.state[scan.SLOW]].tolist():
            number = float(self.text.buf[begin:end].tobytes())
            stats.double[row] = min(max(number, -sys.float_info.max), sys.float_info.max)
        self.state[scan.SLOW] = 0

    def _drain(self) -> None:
        self.columns.drain(int(self.state[scan.ROWS]), int(self.state[scan.STATS]))
        self.state[[scan.ROWS, scan.STATS]] = 0

    # -- result --------------------------------------------------------------------------------------------------

    def _check_damage(self) -> None:
        """A damaged stream ends the text wherever it is; the reason for it is the better one."""
        inflater = self.text.inflater
        if inflater and inflater.damage:
            self.cut_at = self.text.position if self.cut_at is None else self.cut_at
            self.cut_because = inflater.damage

    def _require_events(self, raw: Raw) -> None:
        if raw.phase.any() or (self.named_arrays and self.cut_at is None and not len(raw)):
            return
        raise UnreadableError(
            self._what_it_is(),
            path=self.source,
            offset=0,
            lost="everything",
            hint="a trace is a JSON object with the key traceEvents, or a JSON array of events",
        )

    def _what_it_is(self) -> str:
        if self.text.inflater and self.text.inflater.damage:
            return f"{self.text.inflater.damage} before the first event"
        if not self.metadata:
            return f"this is {_looks_like(self.text.head(64))}, not a JSON trace"
        if self.arrays and self.cut_because and not self.state[scan.DAMAGED]:
            return f"{self.cut_because}, before the first whole event"
        if self.arrays:
            return "a JSON array without events"
        some = ", ".join(repr(key[:40]) for key in self.keys[:5]) + (", ..." if len(self.keys) > 5 else "")
        shape = f"a JSON object with the keys {some}" if some else "an empty JSON object"
        return f"{shape}, but no events{f'; {self.cut_because}' if self.cut_because else ''}"

    def _result(self) -> Raw:
        if self.state[scan.ROWS]:
            self._drain()
        columns = self.columns.finish()
        offsets = np.zeros(len(columns["stat_end"]) + 1, np.int64)
        offsets[1:] = columns.pop("stat_end")
        self._align_clocks(columns["us"])
        return Raw(
            **columns,
            stat_offsets=offsets,
            texts=self.texts,
            metadata={key: value for found in reversed(self.metadata) for key, value in found.items()},
            documents=len(self.metadata),
            cut_at=self.cut_at,
            cut_because=self.cut_because,
            damaged=int(self.state[scan.DAMAGED]),
            damaged_at=self.damaged_at,
            compressed=self.text.inflater is not None,
            size=self.text.offset + self.text.end,
        )

    def _align_clocks(self, us: I64) -> None:
        """Counts the times of all documents from the first one's zero."""
        bases = [found.get("baseTimeNanoseconds") for found in self.metadata]
        bounds = [*self.first_rows, len(us)]
        for begin, end, base in zip(bounds[:-1], bounds[1:], bases, strict=True):
            if isinstance(base, int) and isinstance(bases[0], int) and abs(base - bases[0]) < _FARTHEST_NS:
                us[begin:end] += (base - bases[0]) // 1000


def _parsed(raw: bytes) -> Any:
    """A JSON value, None for one that makes no sense, such as a bare N/A."""
    try:
        return json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None


def _looks_like(head: bytes) -> str:
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16 text"
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive"
    if head.startswith((b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"BZh")):
        return "compressed, but not with gzip"
    if head.lstrip()[:1] == b"<":
        return "HTML or XML"
    if not head.strip(b"\0 \t\r\n"):
        return "nothing but blanks"
    printable = all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head)
    return "text" if printable else "binary data"
