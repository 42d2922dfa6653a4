"""From rows of a file to events: which rows are events, when they started, and how long they took.

Phases of the format: X is a whole event; B and E, or b and e if it is asynchronous, are its start and end; i is an
instant, C a counter, M metadata; s and f are the two ends of an arrow.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.kineto.classify import LineType, classify
from stepscope.formats.kineto.document import Raw
from stepscope.kernels import trace_events
from stepscope.kernels import trace_json as scan
from stepscope.model import EventKind, Trait
from stepscope.model.arrays import I32, I64, U8, Mask, T, look_up, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.torch import MEMORY_NAME

# Times more than 23 days from the median time are damage.  This limit keeps all sums inside int64.
_FAR_US = 2 * 10**12
_UNNAMED = "unnamed"
_SAMPLE = 1 << 16  # rows whose median stands for that of all
_ROLES = np.zeros(256, np.uint8)  # what each phase makes of a row
_ROLES[[*b"iIRPn"]], _ROLES[[*b"bS"]], _ROLES[[*b"EeF"]] = trace_events.MARK, trace_events.LOOSE_BEGIN, trace_events.END
_ROLES[[*b"XBC\0"]] = trace_events.WHOLE, trace_events.BEGIN, trace_events.COUNTER, trace_events.UNSAID


def is_phase(raw: Raw, letters: str) -> Mask:
    """Which rows have one of these phases: bool of shape (rows,)."""
    found: Mask = raw.phase == ord(letters[0])
    for letter in letters[1:]:
        found |= raw.phase == ord(letter)
    return found


@dataclass(frozen=True)
class EventClasses:
    """The distinct pairs of category and name in a trace, called classes, and the kind of each.

    Attributes:
        of_row: int32 of shape (rows,): the class of each row.
        cat, name: int64 of shape (classes,): text ids.
        place, kind, traits: uint8 of shape (classes,).
    """

    of_row: I32
    cat: I64
    name: I64
    place: U8
    kind: U8
    traits: U8


def classify_rows(raw: Raw) -> EventClasses:
    """Classifies each distinct pair of category and name once."""
    of_row, first = number_pairs(raw.cat, raw.name)
    cat, name = raw.cat[first].astype(np.int64), raw.name[first].astype(np.int64)
    texts = raw.texts
    if (name == 0).any():
        name[name == 0] = texts.add(_UNNAMED)
    found = [classify(texts[a], texts[b]) for a, b in zip(cat.tolist(), name.tolist(), strict=True)]
    columns = np.array(found, np.uint8).reshape(len(found), 3)
    return EventClasses(of_row, cat, name, *(columns[:, k].copy() for k in range(3)))


@dataclass
class Oddities:
    """How many events had which defect; the first ones in the order of the counts of `trace_events`."""

    no_event: int = 0
    no_time: int = 0
    far: int = 0
    long: int = 0
    negative: int = 0
    no_duration: int = 0
    no_thread: int = 0
    open_ends: int = 0
    stray_ends: int = 0


@dataclass(frozen=True)
class Kept:
    """The rows that are events.

    Attributes:
        row: int64 of shape (events,): the file's row of each event.
        end_row: the row of its end if start and end are separate rows, otherwise -1.
        start_ps, duration_ps: int64; starts count from `zero_ns`.
        event_class: int32, its class, a row of `EventClasses`.
        place, kind, traits: uint8.
        zero_ns: the first event's time on the file's own clock, in ns.
        oddities: counts of defects.
    """

    row: I64
    end_row: I64
    start_ps: I64
    duration_ps: I64
    event_class: I32
    place: U8
    kind: U8
    traits: U8
    zero_ns: int
    oddities: Oddities = field(default_factory=Oddities)

    def __len__(self) -> int:
        return len(self.row)

    def column(self, values: NDArray[T]) -> NDArray[T]:
        """The values of the events, of those of all rows; not a copy where every row is an event."""
        return values if len(values) == len(self.row) else values[self.row]


def keep_events(raw: Raw, classes: EventClasses) -> Kept:
    """Finds the events among the rows and converts their times to one clock."""
    counts = np.zeros(trace_events.COUNTS, np.int64)
    rows = np.empty(len(raw), np.int64)
    is_kept = classes.place != LineType.NOWHERE
    found = trace_events.find_events(
        raw.phase, raw.flags, raw.us, raw.frac_ps, classes.of_row, is_kept, _ROLES, _middle_us(raw), _FAR_US, rows,
        counts,
    )  # fmt: skip
    row = rows[:found]
    zero_ns = int(counts[trace_events.FIRST_US]) * 1000 + int(counts[trace_events.FIRST_PS]) // 1000
    start_ps, duration_ps = np.empty(found, np.int64), np.empty(found, np.int64)
    role = np.empty(found, np.uint8)
    trace_events.convert_events(
        row, raw.phase, raw.flags, raw.us, raw.frac_ps, raw.duration_us, raw.duration_frac_ps, _ROLES,
        zero_ns // 1000, zero_ns % 1000 * 1000, _FAR_US, start_ps, duration_ps, role, counts,
    )  # fmt: skip
    odd = Oddities(*counts[: trace_events.FIRST_US].tolist())
    end_row = np.full(found, -1, np.int64)
    ends = role == trace_events.END
    opens = (role == trace_events.BEGIN) | (role == trace_events.LOOSE_BEGIN)
    if opens.any() or ends.any():
        _match_ends(raw, row, start_ps, opens, ends, duration_ps, end_row, odd)
        columns = (row, end_row, start_ps, duration_ps, role)
        row, end_row, start_ps, duration_ps, role = (column[~ends] for column in columns)
    event_class = classes.of_row[row]
    kept = Kept(
        row=row,
        end_row=end_row,
        start_ps=start_ps,
        duration_ps=duration_ps,
        event_class=event_class,
        place=look_up(classes.place, event_class),
        kind=look_up(classes.kind, event_class),
        traits=look_up(classes.traits, event_class),
        zero_ns=zero_ns,
        oddities=odd,
    )
    _apply_roles(raw, classes, kept, role)
    return kept


def _middle_us(raw: Raw) -> int:
    """The median of the times, of some ten thousand rows if there are more; 0 if none has one."""
    for step in dict.fromkeys((len(raw) // _SAMPLE + 1, 1)):
        role, has = _ROLES[raw.phase[::step]], raw.flags[::step]
        timed = (role != trace_events.NO_EVENT) & ((has & scan.HAS_TIME) != 0)
        us = raw.us[::step][timed]
        if len(us):
            return int(np.partition(us, len(us) // 2)[len(us) // 2])
    return 0


def _match_ends(
    raw: Raw, row: I64, start_ps: I64, opens: Mask, closes: Mask, duration_ps: I64, end_row: I64, odd: Oddities
) -> None:
    """Matches the starts and ends of events, in place.

    Events of a thread nest.  Asynchronous events match by category and id, and by process if the id is local.
    """
    halves = np.flatnonzero(opens | closes)
    halves = halves[np.argsort(start_ps[halves], kind="stable")]
    at = row[halves]
    loose = is_phase(raw, "beSF")[at]
    owner = np.where((raw.flags[at] & scan.LOCAL_ID) != 0, raw.pid[at], -1)
    scope, _ = number_pairs(raw.cat[at], owner)
    outer = np.where(loose, -1 - scope.astype(np.int64), raw.pid[at])
    group, first = number_pairs(outer, np.where(loose, raw.flow[at], raw.tid[at]))
    partner = np.empty(len(halves), np.int64)
    tops = np.full(len(first), -1, np.int64)
    trace_events.match_pairs(group, opens[halves], np.empty(len(halves), np.int64), tops, partner)
    begin = np.flatnonzero(opens[halves] & (partner >= 0))
    begins, ends = halves[begin], halves[partner[begin]]
    duration_ps[begins] = start_ps[ends] - start_ps[begins]
    end_row[begins] = row[ends]
    odd.open_ends = int((opens[halves] & (partner < 0)).sum())
    odd.stray_ends = int((closes[halves] & (partner < 0)).sum())


def _apply_roles(raw: Raw, classes: EventClasses, kept: Kept, role: U8) -> None:
    """Corrects kinds, traits and durations according to the phase, in place."""
    counter = role == trace_events.COUNTER
    kept.place[counter] = LineType.COUNTER
    kept.kind[counter] = EventKind.COUNTER
    kept.traits[role == trace_events.LOOSE_BEGIN] |= np.uint8(Trait.ASYNC)
    # One of PyTorch's exporters gives allocations a duration that lasts to the end of the trace.
    memory = classes.name == raw.texts.add(MEMORY_NAME)
    if memory.any():
        kept.duration_ps[memory[kept.event_class]] = 0
