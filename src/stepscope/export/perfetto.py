"""Perfetto's protobuf: one sequence of packets per host, with each name written once and referred to by number.

Perfetto counts in ns, so times are cut to whole ns; starts and ends of a track keep their order.  The field numbers
are those of perfetto/trace/trace_packet.proto and the files that it includes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from stepscope.analysis.resources.counters import Counter
from stepscope.export.content import FULL_NAME, Content, Process, contents, display_names
from stepscope.formats.kineto.classify import EXPORTED
from stepscope.formats.xspace.encode import Messages, delimited_head, varint
from stepscope.model import EventKind, HostTrace, Stats, StatTag, Strings
from stepscope.model.arrays import I32, I64, Mask, distinct, offsets_of, run_rows
from stepscope.records import dataclass

_AT_ONCE = 1 << 15

_PACKET = 1
_TIMESTAMP, _SEQUENCE, _TRACK_EVENT, _INTERNED, _FLAGS, _TRACK = 8, 10, 11, 12, 13, 60
_STARTS_SEQUENCE, _NEEDS_NAMES = 1, 2
_UUID, _NAME, _PROCESS, _THREAD, _PARENT, _COUNTER = 1, 2, 3, 4, 5, 8
_PID, _PROCESS_NAME = 1, 6
_THREAD_PID, _THREAD_TID, _THREAD_NAME = 1, 2, 5
_UNIT, _BYTES_UNIT = 3, 3
_CATEGORY, _ANNOTATION, _TYPE, _EVENT_NAME, _EVENT_TRACK, _DOUBLE_VALUE, _FLOW, _LAST_OF_FLOW = (
    3,
    4,
    9,
    10,
    11,
    44,
    47,
    48,
)
_BEGIN, _END, _VALUE = 1, 2, 4
_KEY, _UNSIGNED, _INTEGER, _REAL, _TEXT = 1, 3, 4, 5, 17
_CATEGORIES, _EVENT_NAMES, _KEYS, _TEXTS = 1, 2, 3, 29
_CLOCKS, _CLOCK, _CLOCK_ID, _CLOCK_NS, _REAL_TIME, _TRACE_CLOCK = 6, 1, 1, 2, 1, 6


def pieces(traces: Iterable[HostTrace], hosts: int = 1) -> Iterator[bytes]:
    """The file in pieces: a sequence of packets for each host."""
    for sequence, content in enumerate(contents(traces, hosts), 1):
        yield from _name_packets(content, sequence)
        yield from _track_packets(content)
        yield from _event_packets(content, sequence)
        for at, (process, counter) in enumerate(content.counters):
            yield from _counter_packets(content, sequence, _counter_uuid(content, at), process, counter)


# -- names and tracks --------------------------------------------------------------------------------------------------


def _name_packets(content: Content, sequence: int) -> Iterator[bytes]:
    trace = content.trace
    yield _packet({_SEQUENCE: sequence, _FLAGS: _STARTS_SEQUENCE})
    if trace.start_unix_ns is not None:
        yield _clock_packet(trace.start_unix_ns, content.shift_ps // 1000)
    kinds = {int(kind) + 1: f"{kind.name.lower()},{EXPORTED}" for kind in EventKind}
    yield _interned(sequence, b"".join(_name(_CATEGORIES, number, name) for number, name in kinds.items()))
    types = distinct(trace.events.type[content.rows])
    yield from _text_packets(sequence, _EVENT_NAMES, trace.strings, types, display_names(trace)[types])
    keys = np.union1d(trace.event_stats.name, trace.type_stats.name)
    yield from _text_packets(sequence, _KEYS, trace.strings, keys, keys)
    yield _interned(sequence, _name(_KEYS, len(trace.strings) + 1, FULL_NAME))
    texts = np.union1d(_values_with_tag(trace, StatTag.STRING), trace.event_types.name[types])
    yield from _text_packets(sequence, _TEXTS, trace.strings, texts, texts)
    raw = _values_with_tag(trace, StatTag.BYTES)
    for row, number in zip(raw.tolist(), _bytes_numbers(trace, raw).tolist(), strict=True):
        yield _interned(sequence, _name(_TEXTS, number, f"{len(trace.strings.raw(row)):,} bytes"))


def _clock_packet(start_unix_ns: int, start_ns: int) -> bytes:
    """What the clock of the file shows at the start of the session, and the time since 1970 then."""
    clocks = ((_TRACE_CLOCK, start_ns), (_REAL_TIME, start_unix_ns))
    return _packet(
        {_CLOCKS: b"".join(_message(_CLOCK, _fields({_CLOCK_ID: number, _CLOCK_NS: time})) for number, time in clocks)}
    )


def _values_with_tag(trace: HostTrace, tag: StatTag) -> I64:
    """String rows that are the value of a stat with a tag."""
    return np.union1d(*(stats.value[stats.tag == tag] for stats in (trace.event_stats, trace.type_stats)))


def _bytes_numbers(trace: HostTrace, rows: I64) -> I64:
    """The numbers of the texts that stand for values of raw bytes ("12 bytes").  They follow those of all texts."""
    return len(trace.strings) + 1 + rows


def _text_packets(sequence: int, field: int, strings: Strings, numbers: I64 | I32, texts: I64 | I32) -> Iterator[bytes]:
    """Some texts of a string table, under their numbers plus one."""
    for first in range(0, len(texts), _AT_ONCE):
        here = slice(first, first + _AT_ONCE)
        entries = Messages(len(texts[here])).numbers(1, numbers[here].astype(np.int64) + 1)
        yield _interned(sequence, entries.texts(2, strings, texts[here]).encode(field))


def _name(field: int, number: int, text: str) -> bytes:
    return _message(field, _fields({1: number, 2: text}))


def _interned(sequence: int, entries: bytes) -> bytes:
    return _packet({_SEQUENCE: sequence, _FLAGS: _NEEDS_NAMES, _INTERNED: entries})


def _track_packets(content: Content) -> Iterator[bytes]:
    for process in content.processes:
        about = _fields({_PID: process.pid, _PROCESS_NAME: process.name})
        yield _packet({_TRACK: _fields({_UUID: process.pid, _PROCESS: about})})
    for track in content.tracks:
        thread = _fields({_THREAD_PID: track.process.pid, _THREAD_TID: track.tid, _THREAD_NAME: track.name})
        yield _packet({_TRACK: _fields({_UUID: track.tid, _PARENT: track.process.pid, _THREAD: thread})})
    for at, (process, counter) in enumerate(content.counters):
        unit = _fields({_UNIT: _BYTES_UNIT} if counter.unit == "bytes" else {})
        place = _fields({_UUID: _counter_uuid(content, at), _PARENT: process.pid})
        yield _packet({_TRACK: place + _fields({_NAME: counter.name, _COUNTER: unit})})


def _counter_uuid(content: Content, number: int) -> int:
    first = content.tracks[0].tid if content.tracks else content.processes[0].pid
    return (first << 32) + number


# -- events ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Arrows:
    """Numbers of the arrows that leave or reach each event, as compressed rows."""

    numbers: I64
    offsets: I64

    @classmethod
    def build(cls, ends: I64, events: int, first: int) -> _Arrows:
        order = np.argsort(ends, kind="stable")
        return cls(order + first, np.searchsorted(ends[order], np.arange(events + 1)))

    def select(self, events: I64) -> tuple[I64, I64]:
        """The arrows of some events, and the offsets of each event's arrows.  -1 stands for an event without any."""
        counts = np.where(events < 0, 0, self.offsets[events + 1] - self.offsets[events])
        return self.numbers[run_rows(self.offsets[events], counts)], offsets_of(counts)


def _event_packets(content: Content, sequence: int) -> Iterator[bytes]:
    """A packet for each start and each end."""
    trace, rows = content.trace, content.rows
    first_number = (content.tracks[0].tid << 32) + 1 if content.tracks else 0
    leaving = _Arrows.build(content.cause, len(rows), first_number)
    reaching = _Arrows.build(content.effect, len(rows), first_number)
    tids = np.array([track.tid for track in content.tracks], np.int64)
    types = _type_stats(trace)
    for first in range(0, len(content.order), _AT_ONCE):
        part = content.order[first : first + _AT_ONCE]
        at, is_begin = part >> 1, (part & 1) == 0
        time = trace.events.start_ps[rows[at]] + np.where(is_begin, 0, trace.events.duration_ps[rows[at]])
        begun = np.where(is_begin, at, -1)
        events = Messages(len(at))
        events.numbers(_CATEGORY, trace.events.kind[rows[at]].astype(np.int64) + 1, is_begin)
        annotations, offsets = _annotations(trace, types, rows[at], is_begin)
        events.children(_ANNOTATION, annotations, offsets)
        events.numbers(_TYPE, np.where(is_begin, _BEGIN, _END))
        events.numbers(_EVENT_NAME, trace.events.type[rows[at]].astype(np.int64) + 1, is_begin)
        events.numbers(_EVENT_TRACK, tids[content.track[at]])
        events.fixed_lists(_FLOW, *leaving.select(begun)).fixed_lists(_LAST_OF_FLOW, *reaching.select(begun))
        yield _track_events(content, sequence, time, events)


def _track_events(content: Content, sequence: int, time_ps: I64, events: Messages) -> bytes:
    count = len(time_ps)
    packets = Messages(count).numbers(_TIMESTAMP, content.time_ps(time_ps) // 1000)
    packets.numbers(_SEQUENCE, np.full(count, sequence)).children(_TRACK_EVENT, events, np.arange(count + 1))
    return packets.numbers(_FLAGS, np.full(count, _NEEDS_NAMES)).encode(_PACKET)


def _type_stats(trace: HostTrace) -> Stats:
    """The stats of event types, with the full name of those that are shown by a short one."""
    types, stats = trace.event_types, trace.type_stats
    has = (types.display_name > 0) & (types.display_name != types.name)
    ends = stats.offsets[1:][has]
    return Stats(
        name=np.insert(stats.name, ends, len(trace.strings)),
        tag=np.insert(stats.tag, ends, np.uint8(StatTag.STRING)),
        value=np.insert(stats.value, ends, types.name[has]),
        offsets=offsets_of(np.diff(stats.offsets) + has),
    )


def _annotations(trace: HostTrace, types: Stats, events: I64, wanted: Mask) -> tuple[Messages, I64]:
    """The stats of the wanted events and of their types, and the offsets of each event's stats."""
    owners = np.flatnonzero(wanted)
    of_type, type_offsets = types.owned_rows(trace.events.type[events[owners]].astype(np.int64))
    own, own_offsets = trace.event_stats.owned_rows(events[owners])
    owner = np.concatenate([np.repeat(owners, np.diff(type_offsets)), np.repeat(owners, np.diff(own_offsets))])
    order = np.argsort(owner, kind="stable")
    name, tag, value = (
        np.concatenate([mine[of_type], theirs[own]])[order]
        for mine, theirs in (
            (types.name, trace.event_stats.name),
            (types.tag, trace.event_stats.tag),
            (types.value, trace.event_stats.value),
        )
    )
    messages = Messages(len(order)).numbers(_KEY, name.astype(np.int64) + 1)
    messages.numbers(_UNSIGNED, value, tag == StatTag.UINT).numbers(_INTEGER, value, tag == StatTag.INT)
    messages.doubles(_REAL, value, tag == StatTag.DOUBLE)
    messages.numbers(_TEXT, value + 1, tag == StatTag.STRING)
    messages.numbers(_TEXT, _bytes_numbers(trace, value), tag == StatTag.BYTES)
    return messages, np.searchsorted(owner[order], np.arange(len(events) + 1))


def _counter_packets(content: Content, sequence: int, uuid: int, process: Process, counter: Counter) -> Iterator[bytes]:
    for first in range(0, len(counter.time_ps), _AT_ONCE):
        time, value = counter.time_ps[first : first + _AT_ONCE], counter.value[first : first + _AT_ONCE]
        everywhere = np.ones(len(time), np.bool_)
        events = Messages(len(time)).numbers(_TYPE, np.full(len(time), _VALUE))
        events.numbers(_EVENT_TRACK, np.full(len(time), uuid)).doubles(_DOUBLE_VALUE, value.view(np.int64), everywhere)
        yield _track_events(content, sequence, time, events)


# -- single messages ---------------------------------------------------------------------------------------------------


def _packet(fields: Mapping[int, int | str | bytes]) -> bytes:
    return _message(_PACKET, _fields(fields))


def _fields(fields: Mapping[int, int | str | bytes]) -> bytes:
    parts = []
    for field, value in fields.items():
        if isinstance(value, int):
            parts.append(varint(field << 3) + varint(value))
        else:
            parts.append(_message(field, value.encode() if isinstance(value, str) else value))
    return b"".join(parts)


def _message(field: int, content: bytes) -> bytes:
    return delimited_head(field, len(content)) + content
