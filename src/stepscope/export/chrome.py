"""Chrome's trace JSON.  Each distinct name is encoded once, and a kernel assembles the lines.

Times are microseconds with up to six decimals, so nothing is rounded.  An event's category is its kind in our model
and the word `stepscope`, by which our own reader recognizes it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

import msgspec
import numpy as np

from stepscope import kernels
from stepscope.analysis.resources.counters import Counter
from stepscope.export.content import FULL_NAME, Content, Process, contents, display_names
from stepscope.model import EventKind, HostTrace, StatTag
from stepscope.model.arrays import I32, I64, U8, distinct, offsets_of
from stepscope.records import dataclass

_AT_ONCE = 1 << 16
_KIND_NAMES = {int(kind): kind.name.lower() for kind in EventKind}


def pieces(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[bytes]:
    """The file in pieces."""
    left_out, names = 0, []
    yield b'{"displayTimeUnit":"ns","traceEvents":[\n{"ph":"M","pid":0,"name":"written_by","args":{"name":"stepscope"}}'
    for content in contents(traces, hosts):
        names.append(content.trace.host)
        left_out += content.left_out
        yield _name_lines(content)
        yield from _event_lines(content)
        yield from _arrow_lines(content)
        for process, counter in content.counters:
            yield from _counter_lines(content, process, counter)
    facts = {"hosts": names, "records_without_position_in_time": left_out}
    yield b'\n],"otherData":' + msgspec.json.encode(facts) + b"}\n"


# -- names -------------------------------------------------------------------------------------------------------------


def _name_lines(content: Content) -> bytes:
    lines = []
    for at, process in enumerate(content.processes):
        lines.append({"ph": "M", "pid": process.pid, "name": "process_name", "args": {"name": process.name}})
        lines.append({"ph": "M", "pid": process.pid, "name": "process_sort_index", "args": {"sort_index": at}})
    for at, track in enumerate(content.tracks):
        place = {"ph": "M", "pid": track.process.pid, "tid": track.tid}
        lines.append({**place, "name": "thread_name", "args": {"name": track.name}})
        lines.append({**place, "name": "thread_sort_index", "args": {"sort_index": at}})
    return b"".join(b",\n" + msgspec.json.encode(line) for line in lines)


def _line_heads(content: Content, phase: str) -> list[bytes]:
    """The start of each track's lines."""
    return [f',\n{{"ph":"{phase}","pid":{one.process.pid},"tid":{one.tid},"ts":'.encode() for one in content.tracks]


# -- events ------------------------------------------------------------------------------------------------------------


def _event_lines(content: Content) -> Iterator[bytes]:
    trace, fragments = content.trace, _Fragments()
    heads = fragments.add(_line_heads(content, "X"))
    length = fragments.add([b',"dur":'])
    kinds = fragments.add(_encode_kind(kind) for kind in range(int(max(EventKind)) + 1))
    types = distinct(trace.events.type[content.rows])
    names = fragments.add(_type_names(trace, types))
    common = fragments.add(_type_stats(trace, types))
    stats = _EventStats(trace, fragments)
    glue = np.array([fragments.add([b","]), fragments.add([b"}}"])], np.int32)
    table = fragments.table()
    for first in range(0, len(content.rows), _AT_ONCE):
        rows = content.rows[first : first + _AT_ONCE]
        of_type = np.searchsorted(types, trace.events.type[rows])
        parts = np.empty((len(rows), 5), np.int32)
        parts[:, 0] = heads + content.track[first : first + _AT_ONCE]
        parts[:, 1] = length
        parts[:, 2] = names + of_type
        parts[:, 3] = kinds + trace.events.kind[rows].astype(np.int32)
        # A type without stats gets the empty fragment: the first stat after it needs no comma.
        parts[:, 4] = np.where(table.sizes[common + of_type] > 0, common + of_type, 0)
        times = content.time_ps(trace.events.start_ps[rows]), trace.events.duration_ps[rows]
        yield table.lines(parts, *times, glue, stats.select(rows))


def _encode_kind(kind: int) -> bytes:
    name = _KIND_NAMES.get(kind, "other")
    return f',"cat":"{name},stepscope","args":{{'.encode()


def _type_names(trace: HostTrace, types: I32) -> Iterator[bytes]:
    strings = trace.strings
    return (b',"name":' + msgspec.json.encode(strings[text]) for text in display_names(trace)[types].tolist())


def _type_stats(trace: HostTrace, types: I32) -> Iterator[bytes]:
    """The stats that all events of a type share, and the full name of types that are shown by a short one."""
    table = trace.event_types
    for row in types.tolist():
        facts = {name: _json_value(value) for name, value in trace.stats_of_type(row).items()}
        if table.display_name[row] > 0 and table.name[row] != table.display_name[row]:
            facts[FULL_NAME] = trace.strings[table.name[row]]
        yield msgspec.json.encode(facts)[1:-1]


def _json_value(value: int | float | str | bytes) -> int | float | str | None:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    return None if isinstance(value, float) and not math.isfinite(value) else value


class _EventStats:
    """The stats of all events, as fragments."""

    def __init__(self, trace: HostTrace, fragments: _Fragments) -> None:
        stats = self._stats = trace.event_stats
        strings = trace.strings
        keys = distinct(stats.name)
        self._key = np.zeros(len(strings), np.int32)
        self._key[keys] = fragments.add(msgspec.json.encode(strings[row]) + b":" for row in keys.tolist()) + np.arange(
            len(keys)
        )
        self._text = {
            StatTag.STRING: self._add(fragments, StatTag.STRING, lambda row: msgspec.json.encode(strings[row])),
            StatTag.BYTES: self._add(
                fragments, StatTag.BYTES, lambda row: msgspec.json.encode(f"{len(strings.raw(row)):,} bytes")
            ),
            StatTag.DOUBLE: self._add(fragments, StatTag.DOUBLE, _encode_double),
            StatTag.UINT: self._add(fragments, StatTag.UINT, lambda bits: str(bits & 0xFFFF_FFFF_FFFF_FFFF).encode()),
        }

    def _add(self, fragments: _Fragments, tag: StatTag, text: Callable[[int], bytes]) -> tuple[I64, int]:
        """The distinct values of a tag, and the fragment of the first.  Of unsigned integers only those above 2^63."""
        values = self._stats.value[self._stats.tag == tag]
        different = distinct(values[values < 0] if tag == StatTag.UINT else values)
        return different, fragments.add(map(text, different.tolist()))

    def select(self, rows: I64) -> _StatText:
        """The stats of some events."""
        at, offsets = self._stats.owned_rows(rows)
        tag, value = self._stats.tag[at], self._stats.value[at]
        text = np.full(len(at), -1, np.int32)
        for kind, (different, first) in self._text.items():
            here = (tag == kind) & ((value < 0) | (kind != StatTag.UINT))
            text[here] = first + np.searchsorted(different, value[here])
        return _StatText(offsets, self._key[self._stats.name[at]], text, value)


def _encode_double(bits: int) -> bytes:
    value = float(np.int64(bits).view(np.float64))
    return msgspec.json.encode(value) if math.isfinite(value) else b"null"


# -- arrows and counters -----------------------------------------------------------------------------------------------


def _arrow_lines(content: Content) -> Iterator[bytes]:
    """Each arrow as two lines with the same number: one at the start of its cause, one at the start of its effect."""
    fragments = _Fragments()
    heads = [fragments.add(_line_heads(content, phase)) for phase in "sf"]
    cat = fragments.add([b',"name":"cause","cat":"cause"', b',"name":"cause","cat":"cause","bp":"e"'])
    number = fragments.add([b',"id":'])
    glue = np.array([0, fragments.add([b"}"])], np.int32)
    table = fragments.table()
    start = content.time_ps(content.trace.events.start_ps[content.rows])
    for first in range(0, len(content.cause), _AT_ONCE):
        ids = np.arange(first, min(first + _AT_ONCE, len(content.cause)))
        for end, ends in enumerate((content.cause[ids], content.effect[ids])):
            parts = np.zeros((len(ids), 4), np.int32)
            parts[:, 0] = heads[end] + content.track[ends]
            parts[:, 2] = cat + end
            none, key = np.full(len(ids), -1), np.full(len(ids), number, np.int32)
            stats = _StatText(np.arange(len(ids) + 1), key, none.astype(np.int32), _arrow_ids(content, ids))
            yield table.lines(parts, start[ends], none, glue, stats)


def _arrow_ids(content: Content, arrows: I64) -> I64:
    """Ids of arrows that are unique among all hosts in the file."""
    return (content.tracks[0].tid << 32) + arrows


def _counter_lines(content: Content, process: Process, counter: Counter) -> Iterator[bytes]:
    fragments = _Fragments()
    head = fragments.add([f',\n{{"ph":"C","pid":{process.pid},"ts":'.encode()])
    name = fragments.add([b',"name":' + msgspec.json.encode(counter.name) + b',"args":{"value":'])
    bits, place = np.unique(counter.value.view(np.int64), return_inverse=True)
    values = fragments.add(map(_encode_double, bits.tolist()))
    glue = np.array([0, fragments.add([b"}}"])], np.int32)
    table = fragments.table()
    for first in range(0, len(place), _AT_ONCE):
        here = place[first : first + _AT_ONCE]
        parts = np.zeros((len(here), 5), np.int32)
        parts[:, 0], parts[:, 2], parts[:, 3] = head, name, values + here
        time = content.time_ps(counter.time_ps[first : first + _AT_ONCE])
        yield table.lines(parts, time, np.full(len(here), -1), glue, _no_stats(len(here)))


# -- lines from fragments: a kernel puts together texts of which each is encoded once --------------------------------


class _Fragments:
    """The texts that lines are assembled from; number 0 is the empty one."""

    def __init__(self) -> None:
        self._texts = [b""]

    def add(self, texts: Iterable[bytes]) -> int:
        """Adds texts; returns the number of the first."""
        first = len(self._texts)
        self._texts += texts
        return first

    def table(self) -> _FragmentTable:
        """The texts so far, for assembling lines."""
        sizes = np.fromiter(map(len, self._texts), np.int64, len(self._texts))
        return _FragmentTable(np.frombuffer(b"".join(self._texts), np.uint8), offsets_of(sizes), sizes)


@dataclass(frozen=True)
class _FragmentTable:
    """The texts in one blob: text `i` is `blob[bounds[i]:bounds[i + 1]]`."""

    blob: U8
    bounds: I64
    sizes: I64

    def lines(self, parts: I32, time: I64, length: I64, glue: I32, stats: _StatText) -> bytes:
        """One line for each row of `parts`; see `kernels.tracks.render`."""
        return kernels.tracks.render(
            self.blob, self.bounds, parts, time, length, glue, stats.offsets, stats.key, stats.text, stats.value
        )


@dataclass(frozen=True)
class _StatText:
    """Stats of some lines: the offsets of each line's stats, the fragments of key and value, or the value itself."""

    offsets: I64
    key: I32
    text: I32
    value: I64


def _no_stats(lines: int) -> _StatText:
    """No stats for any of some lines."""
    none = np.empty(0, np.int32)
    return _StatText(np.zeros(lines + 1, np.int64), none, none, np.empty(0, np.int64))
