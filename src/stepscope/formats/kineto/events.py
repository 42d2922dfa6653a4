"""From rows of a file to events: which rows are events, when they started, and how long they took.

Phases of the format: X is a whole event; B and E, or b and e if it is asynchronous, are its start and end; i is an
instant, C a counter, M metadata; s and f are the two ends of an arrow.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from stepscope.formats.kineto.classify import Place, classify
from stepscope.formats.kineto.document import Raw
from stepscope.kernels import trace_events
from stepscope.kernels import trace_json as scan
from stepscope.model import EventKind, Trait
from stepscope.model.arrays import I32, I64, U8, Mask, number_pairs
from stepscope.records import dataclass
from stepscope.vocabulary.torch import MEMORY_NAME

# Times more than 23 days from the median time are damage.  This limit keeps all sums inside int64.
_FAR_US = 2 * 10**12
_PS_PER_US = 1_000_000


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
    found = [classify(texts[a], texts[b]) for a, b in zip(cat.tolist(), name.tolist(), strict=True)]
    columns = np.array(found, np.uint8).reshape(len(found), 3)
    return EventClasses(of_row, cat, name, *(columns[:, k].copy() for k in range(3)))


@dataclass
class Oddities:
    """How many events had which defect."""

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


def keep_events(raw: Raw, classes: EventClasses) -> Kept:
    """Finds the events among the rows and converts their times to one clock."""
    odd = Oddities()
    flags = raw.flags
    # An object with a time and a duration is an event even without a phase.
    whole = is_phase(raw, "X") | ((raw.phase == 0) & ((flags & scan.HAS_DURATION) != 0))
    begins, ends = is_phase(raw, "BbS"), is_phase(raw, "EeF")
    wanted = whole | begins | ends | is_phase(raw, "iIRPnC")
    odd.no_event = int(((raw.phase == 0) & ~whole).sum())
    wanted &= classes.place[classes.of_row] != Place.NOWHERE
    usable, zero_ns = _usable_times(raw, wanted, odd)
    row = np.flatnonzero(usable)
    start_ps = _join_ps(raw.us[row] - zero_ns // 1000, raw.frac_ps[row]) - zero_ns % 1000 * 1000
    duration_ps, end_row, single = _find_durations(raw, row, start_ps, odd)
    if not single.all():
        row, end_row, start_ps, duration_ps = (column[single] for column in (row, end_row, start_ps, duration_ps))
    event_class = classes.of_row[row]
    kept = Kept(
        row=row,
        end_row=end_row,
        start_ps=start_ps,
        duration_ps=duration_ps,
        event_class=event_class,
        place=classes.place[event_class],
        kind=classes.kind[event_class],
        traits=classes.traits[event_class],
        zero_ns=zero_ns,
        oddities=odd,
    )
    _apply_phases(raw, classes, kept)
    return kept


def _join_ps(us: I64, frac_ps: NDArray[np.integer]) -> I64:
    return us * _PS_PER_US + frac_ps


def _usable_times(raw: Raw, wanted: Mask, odd: Oddities) -> tuple[Mask, int]:
    """Which of the wanted rows have a plausible time, and the earliest of these times in ns."""
    timed = wanted & ((raw.flags & scan.HAS_TIME) != 0)
    odd.no_time = int(wanted.sum() - timed.sum())
    us = raw.us[timed]
    if not len(us):
        return timed, 0
    middle = int(np.partition(us, len(us) // 2)[len(us) // 2])
    near = np.abs(us.astype(np.float64) - middle) < _FAR_US
    # A recorder writes 0 for an unknown time.
    near &= (us != 0) | (abs(middle) < _FAR_US // 1000)
    odd.far = int(len(us) - near.sum())
    usable = timed.copy()
    usable[timed] = near
    whole = us[near]
    first = int(whole.min())
    fractions = raw.frac_ps[usable][whole == first]
    return usable, first * 1000 + int(fractions.min()) // 1000


def _find_durations(raw: Raw, row: I64, start_ps: I64, odd: Oddities) -> tuple[I64, I64, Mask]:
    """The duration of each event, the row of its end or -1, and whether it counts (a row that is an end does not)."""
    flags, phase = raw.flags[row], raw.phase
    us = raw.duration_us[row]
    too_long = us > _FAR_US
    duration_ps = np.where(too_long, 0, _join_ps(np.where(too_long, 0, us), raw.duration_frac_ps[row]))
    has = (flags & scan.HAS_DURATION) != 0
    duration_ps[~has] = 0
    odd.long = int(too_long.sum())
    odd.negative = int(((flags & scan.NEGATIVE) != 0).sum())
    odd.no_duration = int((~has & (phase[row] == ord("X"))).sum())
    end_row = np.full(len(row), -1, np.int64)
    opens, closes = is_phase(raw, "BbS")[row], is_phase(raw, "EeF")[row]
    if opens.any() or closes.any():
        duration_ps[opens | closes] = 0
        _match_ends(raw, row, start_ps, opens, closes, duration_ps, end_row, odd)
    return duration_ps, end_row, ~closes


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


def _apply_phases(raw: Raw, classes: EventClasses, kept: Kept) -> None:
    """Corrects kinds, traits and durations according to the phase, in place."""
    phase = raw.phase[kept.row]
    counter = phase == ord("C")
    kept.place[counter] = Place.COUNTER
    kept.kind[counter] = EventKind.COUNTER
    loose = is_phase(raw, "bS")[kept.row]
    kept.traits[loose] |= np.uint8(Trait.ASYNC)
    # One of PyTorch's exporters gives allocations a duration that lasts to the end of the trace.
    memory = (classes.name == raw.texts.add(MEMORY_NAME))[kept.event_class]
    kept.duration_ps[memory] = 0
    both = np.uint8(scan.HAS_PID | scan.HAS_TID)
    kept.oddities.no_thread = int((((raw.flags[kept.row] & both) != both) & ~counter).sum())
