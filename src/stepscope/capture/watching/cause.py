"""Why a step was slow, in one sentence: what took the additional time, and where in the program.

The evidence is what Stepscope's own tracers know: where the thread of the steps was in the samples of this step and in
those of other steps, how long the garbage collector ran, how long the thread waited for a processor, and what else the
machine did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from stepscope.capture.watching.places import ThreadPlace
from stepscope.capture.watching.steps import StepRecord
from stepscope.records import dataclass

_MOST_OF, _NEARLY_ALL = 0.5, 0.85  # of the additional time
_CLEAR_PART = 0.35
_UNUSUAL = 2.0  # times its usual share of the samples
_BUSY_PERCENT = 90.0
_OTHERS_PERCENT = 35.0  # of the machine, by other processes
# Of one processor: a thread that wants to run gets that much beside four others.  A process that used less was waiting.
_FAIR_PART = 0.2

GARBAGE, STARVED, PAGING, PLACE, OTHERS, UNKNOWN = (
    "garbage collection",
    "processor contention",
    "paging",
    "program",
    "other processes",
    "unknown",
)
OF_MACHINE = frozenset({STARVED, OTHERS})
"""Causes that say nothing of the job itself."""


@dataclass(frozen=True)
class Blame:
    """Why a step was slow.

    Attributes:
        kind: in a word or two; with `where` it identifies the cause.
        where: `function (file:line)`; empty if no line of the program is to blame.
        ms: the additional time that it explains.
        sentence: all of it, for people.
    """

    kind: str
    where: str
    ms: float
    sentence: str


@dataclass(frozen=True)
class MachineLoad:
    """What the machine did during a step.

    Attributes:
        busy_percent: of all processors; None if unknown.
        own_percent: the part of that by this process; None if unknown.
        processors: that the machine has.
    """

    busy_percent: float | None = None
    own_percent: float | None = None
    processors: int = 1


def find_cause(
    step: StepRecord, during: Sequence[ThreadPlace], usually: Iterable[ThreadPlace], machine: MachineLoad
) -> Blame:
    """Why a step took longer than usual.

    Args:
        step: the slow one.
        during: where its thread was, in samples at equal intervals, those of the overdue part most often.
        usually: the same of other steps.
        machine: what it did meanwhile.
    """
    extra_ns = max(step.length_ns - step.usual_ns, 1)
    head = f"Step {step.number:,} took {_ms(step.length_ns)} instead of {_ms(step.usual_ns)}"
    for found in (
        _blame_collector(step, extra_ns),
        _blame_contention(step, extra_ns, _NEARLY_ALL, during),
        _blame_place(during, usually, extra_ns, step),
        _blame_contention(step, extra_ns, _MOST_OF, during),
        _blame_paging(step),
        _blame_others(machine, extra_ns),
        _blame_most_sampled(during, extra_ns, step),
    ):
        if found is not None:
            kind, where, ns, words = found
            return Blame(kind, where, ns / 1e6, f"{head}: {words}")
    return Blame(UNKNOWN, "", 0.0, f"{head}: no cause was found, and no sample of its stack was taken")


_Found = tuple[str, str, float, str]


def _blame_collector(step: StepRecord, extra_ns: int) -> _Found | None:
    ns = step.end.collector_ns - step.start.collector_ns
    if ns < _MOST_OF * extra_ns:
        return None
    return GARBAGE, "", ns, f"Python's garbage collector ran for {_ms(ns)}"


def _blame_contention(step: StepRecord, extra_ns: int, least: float, during: Sequence[ThreadPlace]) -> _Found | None:
    ns = step.end.queued_ns - step.start.queued_ns
    if ns < least * extra_ns:
        return None
    there = f", mostly in {Counter(during).most_common(1)[0][0].source}" if during else ""
    return STARVED, "", ns, f"its thread waited {_ms(ns)} for a free core{there}"


def _blame_paging(step: StepRecord) -> _Found | None:
    faults = step.end.disk_faults - step.start.disk_faults
    if faults < 10:
        return None
    return PAGING, "", 0.0, f"memory was read back from the disk ({faults:,} page faults)"


def _blame_others(machine: MachineLoad, extra_ns: int) -> _Found | None:
    busy, own = machine.busy_percent, machine.own_percent
    if busy is None or own is None or busy < _BUSY_PERCENT or busy - own < _OTHERS_PERCENT:
        return None
    if own / 100 * machine.processors < _FAIR_PART:
        return None
    words = f"other processes used {busy - own:.0f} % of the machine's processors, which were {busy:.0f} % busy"
    return OTHERS, "", float(extra_ns), words


def _blame_place(
    during: Sequence[ThreadPlace], usually: Iterable[ThreadPlace], extra_ns: int, step: StepRecord
) -> _Found | None:
    """The function of the program in which the step spent a share of its samples that is unusual."""
    if not during:
        return None
    here = Counter(_identify(place) for place in during)
    before = Counter(_identify(place) for place in usually)
    total_before = max(sum(before.values()), 1)
    name, count = max(here.items(), key=lambda item: item[1] / len(during) - before[item[0]] / total_before)
    share, usual_share = count / len(during), before[name] / total_before
    usual_ns = usual_share * step.usual_ns
    more_ns = share * step.length_ns - usual_ns
    is_unusual = share >= _UNUSUAL * usual_share or share - usual_share >= _CLEAR_PART
    if more_ns < _CLEAR_PART * extra_ns or not is_unusual:
        return None
    there = [place for place in during if _identify(place) == name]
    return _describe_place(there, min(more_ns, extra_ns), step.end.queued_ns - step.start.queued_ns)


def _blame_most_sampled(during: Sequence[ThreadPlace], extra_ns: int, step: StepRecord) -> _Found | None:
    """The function in which the step was most, though other steps are there as well: it took longer this time."""
    if not during:
        return None
    name, count = Counter(_identify(place) for place in during).most_common(1)[0]
    there = [place for place in during if _identify(place) == name]
    return _describe_place(there, extra_ns * count / len(during), step.end.queued_ns - step.start.queued_ns)


def _describe_place(places: Sequence[ThreadPlace], more_ns: float, queued_ns: int) -> _Found:
    place, _ = Counter(places).most_common(1)[0]
    activity = place.activity or (f"in {place.leaf}" if not place.leaf.endswith(place.function) else "")
    words = f"{_ms(more_ns)} more in {place.source}" + (f", {activity}" if activity else "")
    if queued_ns > _MOST_OF * more_ns:
        words += f", while its thread waited {_ms(queued_ns)} for a core"
    return place.activity or PLACE, place.source, more_ns, words


def _identify(place: ThreadPlace) -> tuple[str, str, str]:
    """What makes two samples count as the same: the function and what it does, whatever the line."""
    return place.file, place.function, place.activity


def _ms(ns: float) -> str:
    """A time for a sentence.

    >>> _ms(1_234_567_890), _ms(12_300_000), _ms(930_000)
    ('1,235 ms', '12 ms', '0.9 ms')
    """
    ms = ns / 1e6
    return f"{ms:,.0f} ms" if ms >= 10 else f"{ms:.1f} ms"
