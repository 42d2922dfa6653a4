"""From bytes to raw columns: finds the events in a trace's JSON and scans them, even if the text is damaged.

There are two forms:

    document = {"traceEvents": [event, ...], key: value, ...}  or  [event, ...]
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from stepscope.errors import UnreadableError
from stepscope.formats.heads import describe_head
from stepscope.formats.kineto.scanning import PartScanner
from stepscope.formats.kineto.text import Text
from stepscope.formats.kineto.texts import TextTable
from stepscope.kernels import trace_json as scan
from stepscope.model.arrays import I32, I64, U8
from stepscope.records import dataclass

_LONGEST_METADATA = 1 << 20  # longer values are dropped, unless needed
_NEEDED_KEYS = frozenset({"deviceProperties", "distributedInfo"})  # their values grow with the job
_FARTHEST_NS = 1 << 62  # 146 years; bases further apart are damage
_EVENTS_KEY = "traceEvents"
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Raw:
    """The events of a trace as stored in the file: one row each, with interned texts.

    Attributes:
        flags: what an event has, such as `scan.HAS_TIME`.
        us, frac_ps: whole microseconds and ps, which add up to the time; likewise for the duration.
        flow: an `id` that is a whole number, otherwise the id of its text; an `id2` is kept as JSON text.
        stat_offsets: int64 of shape (rows + 1,): row `i` has the stats from `stat_offsets[i]` to the next.
        texts: the texts, with their JSON escapes.
        metadata: the values outside of the events, by key.
        documents: the JSON documents that the text holds: the first row of each, and the values outside of its events.
        cut_at: the position from which nothing could be read; None if the text was read to its end.
        cut_because: the problem at that position.
        damaged: how many damaged places were skipped; `damaged_at` is the first.
        compressed: True if positions refer to the unpacked text.
        size: bytes of text that were read.
        knows_clock: the file says how its clock relates to the time since 1970, whoever wrote it.
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
    documents: tuple[tuple[int, Mapping[str, Any]], ...]
    cut_at: int | None
    cut_because: str
    damaged: int
    damaged_at: int
    compressed: bool
    size: int
    knows_clock: bool = False

    def __len__(self) -> int:
        return len(self.phase)


def decode(data: bytes | Iterator[bytes], source: str) -> Raw:
    """Reads the events of a trace.  Raises UnreadableError if there are none and the text is not an empty trace."""
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
        decoder = _Decoder(text, source)
        try:
            return decoder.decode()
        finally:
            decoder.scanner.close()
    finally:
        text.close()


class _Decoder:
    def __init__(self, text: Text, source: str) -> None:
        self.text = text
        self.source = source
        self.scanner = PartScanner()
        self.damaged = 0  # places that were skipped before the events
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
                self._note_cut("what follows is not JSON" if self.metadata else "")
                break
            self.metadata.append({})
            self.first_rows.append(self.scanner.whole.rows)
            self.text.at += 1
            if first == "[":
                self._read_events(optional_end=True)
            else:
                self._read_object()
        self._check_damage()
        raw = self._make_raw()
        self._require_events(raw)
        return raw

    def _read_object(self) -> None:
        """Reads the members of a document up to its closing brace."""
        while self.cut_at is None:
            if not self._skip_space(commas=True):
                return self._note_cut("the JSON ends before its closing brace")
            byte = self.text.buf[self.text.at]
            if byte == ord("}"):
                self.text.at += 1
                return None
            key = self._read_key() if byte == ord('"') else None
            if key is None:
                if not self._find_events():
                    return self._note_cut(
                        "this is not JSON" if byte != ord('"') else "the JSON ends in the middle of a key"
                    )
            elif key == _EVENTS_KEY and self.text.buf[self.text.at] == ord("["):
                self.text.at += 1
                self.named_arrays += 1
                self._read_events(optional_end=False)
            else:
                self._read_member(key)
        return None

    def _find_events(self) -> bool:
        """Skips damage up to the key of the events.  False if the window does not hold that key."""
        text = self.text
        ahead = -1 if self.arrays else text.buf[text.at : text.end].tobytes().find(b'"' + _EVENTS_KEY.encode() + b'"')
        if ahead < 0:
            return False
        if not self._damaged_places:
            self.damaged_at = text.position
        self.damaged += 1
        text.at += ahead
        return True

    def _read_member(self, key: str) -> None:
        self.keys.append(key)
        raw = self._read_value()
        if raw is None:
            return self._note_cut(f"the JSON ends in the middle of the value of {key!r}")
        if len(raw) <= _LONGEST_METADATA or key in _NEEDED_KEYS:
            value = _parse_json(raw)
            if value is not None:
                self.metadata[-1].setdefault(key, value)
        return None

    def _skip_space(self, commas: bool = False) -> bool:
        """Moves to the next byte that is not a space.  False at the end of the text."""
        while True:
            self.text.at = int(scan.skip_space(self.text.buf, self.text.at, self.text.end, commas))
            if self.text.at < self.text.end:
                return True
            if not self.text.more():
                return False

    def _read_key(self) -> str | None:
        """Reads a key and its colon; None if the text ends first or the colon is missing."""
        raw = self._read_value()
        if raw is None or not self._skip_space() or self.text.buf[self.text.at] != ord(":"):
            return None
        self.text.at += 1
        return raw[1:-1].decode("utf-8", "replace") if self._skip_space() else None

    def _read_value(self) -> bytes | None:
        """Reads the JSON text of the next value; None if it is incomplete."""
        while True:
            text = self.text
            after = scan.skip_value(text.buf, text.at, text.end)
            if after >= 0:
                raw = text.buf[text.at : after].tobytes()
                text.at = int(after)
                return raw
            if after == scan.MALFORMED or not text.more():
                return None

    def _note_cut(self, because: str) -> None:
        self.cut_at = self.text.position
        self.cut_because = because
        if self.text.too_long:
            self.cut_because = "a single value is longer than 256 MiB"

    # -- events --------------------------------------------------------------------------------------------------

    def _read_events(self, optional_end: bool) -> None:
        """Reads the array whose first element is next.  Its end may be missing if it is not inside an object."""
        self.arrays += 1
        while True:
            if self._scan_window() == scan.CLOSED:
                return None
            if not self.text.more():
                break
        self.scanner.finish()
        if self.scanner.whole.recovering:
            return self._note_cut("nothing after the damage can be read as an event")
        if self.text.at < self.text.end:
            return self._note_cut("the JSON ends in the middle of an event")
        if not optional_end or (self.text.inflater and self.text.inflater.damage):
            return self._note_cut("the JSON ends between two events")
        return None

    def _scan_window(self) -> int:
        text, damaged = self.text, self._damaged_places
        why = self.scanner.scan(text.buf, text.at, text.end)
        text.at = self.scanner.at
        if self._damaged_places and not damaged:
            self.damaged_at = text.offset + self.scanner.whole.damaged_at
        return why

    @property
    def _damaged_places(self) -> int:
        return self.damaged + self.scanner.whole.damaged

    # -- result --------------------------------------------------------------------------------------------------

    def _check_damage(self) -> None:
        """A damaged gzip stream ends the text, and explains the cut better than the JSON around it."""
        inflater = self.text.inflater
        if inflater and inflater.damage:
            self.cut_at = self.text.position if self.cut_at is None else self.cut_at
            self.cut_because = inflater.damage

    def _require_events(self, raw: Raw) -> None:
        if raw.phase.any() or (self.named_arrays and self.cut_at is None and not len(raw)):
            return
        raise UnreadableError(
            self._describe_text(),
            path=self.source,
            offset=0,
            lost="everything",
            hint="a trace is a JSON object with the key traceEvents, or a JSON array of events",
        )

    def _describe_text(self) -> str:
        if self.text.inflater and self.text.inflater.damage:
            return f"{self.text.inflater.damage} before the first event"
        if not self.metadata:
            return f"this is {describe_head(self.text.head(64)) or 'binary data'}, not a JSON trace"
        if self.arrays and self.cut_because and not self._damaged_places:
            return f"{self.cut_because}, before the first whole event"
        if self.arrays:
            return "a JSON array without events"
        some = ", ".join(repr(key[:40]) for key in self.keys[:5]) + (", ..." if len(self.keys) > 5 else "")
        shape = f"a JSON object with the keys {some}" if some else "an empty JSON object"
        return f"{shape}, but no events{f'; {self.cut_because}' if self.cut_because else ''}"

    def _make_raw(self) -> Raw:
        columns: dict[str, Any] = {**self.scanner.whole.take()}
        offsets = np.zeros(len(columns["stat_end"]) + 1, np.int64)
        offsets[1:] = columns.pop("stat_end")
        self._align_clocks(columns["us"])
        return Raw(
            **columns,
            stat_offsets=offsets,
            texts=TextTable(self.scanner.whole),
            metadata={key: value for found in reversed(self.metadata) for key, value in found.items()},
            documents=tuple(zip(self.first_rows, self.metadata, strict=True)),
            cut_at=self.cut_at,
            cut_because=self.cut_because,
            damaged=self._damaged_places,
            damaged_at=self.damaged_at,
            compressed=self.text.inflater is not None,
            size=self.text.offset + self.text.end,
        )

    def _align_clocks(self, us: I64) -> None:
        """Makes the times of all documents count from the first document's zero, in place."""
        bases = [found.get("baseTimeNanoseconds") for found in self.metadata]
        bounds = [*self.first_rows, len(us)]
        for begin, end, base in zip(bounds[:-1], bounds[1:], bases, strict=True):
            if isinstance(base, int) and isinstance(bases[0], int) and abs(base - bases[0]) < _FARTHEST_NS:
                us[begin:end] += (base - bases[0]) // 1000


def _parse_json(raw: bytes) -> Any:
    """A JSON value; None if it is invalid, such as a bare N/A."""
    try:
        return json.loads(raw.decode("utf-8", "replace"), strict=False)
    except (ValueError, RecursionError):
        return None
