"""Draws a trace, so that a test of steps or breakdowns is a picture and a table.

    draw('''
        host main | M0--------M1--------
        host main |  I- L1     I- L2
        gpu0 s    |      K1--      K2--
    ''')

Each row is a thread or a stream, each column one millisecond, the first being the one under the `M` above.  A letter
begins an event, dashes continue it; digits after the letter are its number: a step number, a correlation id, whatever
its sort says.  `!` gives it no length.  Rows of one name are one line; stack them to draw nesting.  The place in front
is `host`, `gpuN` or `tpuN`.

Lower-case letters are work named by the letter: ops on a host, kernels on a GPU, ops on a TPU.  Upper-case letters are
the sorts below; a test may bring its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hypothesis import strategies as st

from stepscope.formats.spool.layout import QUEUED_NS, RAN_NS, USAGE_PLANE
from stepscope.model import EventKind, HostTrace, LineBuilder, LineKind, PlaneKind, TraceBuilder, Trait
from stepscope.model.trace import StatValue

K = EventKind
MS = 10**9

POOL = 15  # a context type: which one does not matter as long as both sides name the same


@dataclass(frozen=True)
class Sort:
    """What a letter stands for: kind, name, the stat that takes the number, and further stats."""

    kind: EventKind
    name: str
    number: str = ""
    stats: Mapping[str, StatValue] = field(default_factory=dict)
    traits: Trait = Trait.NONE


SORTS: dict[str, Sort] = {
    "M": Sort(K.STEP_MARK, "train", "step_num"),
    "I": Sort(K.INPUT_WAIT, "IteratorGetNext", "id"),
    "J": Sort(K.ITERATOR, "Iterator::Map"),
    "X": Sort(K.COMPILE, "compile"),
    "A": Sort(K.ANNOTATION, "forward"),
    "F": Sort(K.TRACED_FUNCTION, "train_step"),
    "R": Sort(K.FUNCTION_RUN, "FunctionRun", "id"),
    "Y": Sort(K.PYTHON_CALL, "$loop.py:1 train"),
    "B": Sort(K.BACKWARD, "backward"),
    "G": Sort(K.COLLECTIVE_CALL, "gloo:all_reduce"),
    "L": Sort(K.RUNTIME_CALL, "launch", "correlation_id"),
    "V": Sort(K.COPY_HOST_TO_DEVICE_CALL, "memcpyH2D", "correlation_id"),
    "P": Sort(K.OTHER, "produce", "_p", {"_pt": POOL}),
    "C": Sort(K.OTHER, "consume", "_c", {"_ct": POOL}),
    "S": Sort(K.REGION_BEGIN, "StartRegion", "_c", {"_ct": POOL}),
    "T": Sort(K.REGION_END, "StopRegion"),
    "K": Sort(K.KERNEL, "kernel", "correlation_id"),
    "H": Sort(K.KERNEL, "half_kernel", "correlation_id", traits=Trait.COMPUTES_16BIT),
    "U": Sort(K.COPY_HOST_TO_DEVICE, "MemcpyH2D", "correlation_id"),
    "D": Sort(K.COPY_DEVICE_TO_HOST, "MemcpyD2H", "correlation_id"),
    "E": Sort(K.COPY_DEVICE_TO_DEVICE, "MemcpyD2D", "correlation_id"),
    "N": Sort(K.COLLECTIVE, "ncclAllReduce", "correlation_id"),
    "W": Sort(K.DEVICE_STEP, "step", "group_id"),
}

_PLANES = {"host": PlaneKind.HOST, "gpu": PlaneKind.GPU, "tpu": PlaneKind.TPU}
_LINES = {"host": LineKind.THREAD, "gpu": LineKind.STREAM, "tpu": LineKind.DEVICE_OPS}
_WORK = {"host": K.OP, "gpu": K.KERNEL, "tpu": K.DEVICE_OP}
_LINES_BY_NAME = {"Steps": LineKind.STEPS, "Modules": LineKind.MODULES, "Derived": LineKind.DERIVED,
                  "waits": LineKind.OTHER}  # fmt: skip

_ROW = re.compile(r"\s*(?P<place>host|gpu|tpu)(?P<ordinal>\d*)\s+(?P<line>\w+)\s*\| ?(?P<events>.*)")
_EVENT = re.compile(r"(?P<letter>[A-Za-z])(?P<number>\d*)-*(?P<point>!?)")


def draw(
    text: str,
    sorts: Mapping[str, Sort] | None = None,
    *,
    host: str = "host",
    start_unix_ns: int | None = None,
    usage: Sequence[tuple[int, int, int, int]] = (),
    facts: Mapping[str, StatValue] | None = None,
    column_ps: int = MS,
) -> HostTrace:
    """The trace that a picture shows.  Raises ValueError if it is no picture.

    Args:
        sorts: adds letters or replaces some.
        column_ps: how long a column is.
        usage: what the main thread used: start and end of an interval, how long it ran in it, and how long it was ready
            and had no processor, all in ms.
        facts: what a capture by Stepscope wrote about itself.
    """
    builder = TraceBuilder(host, start_unix_ns=start_unix_ns)
    if facts is not None:
        builder.plane("/stepscope:capture", stats=facts)
    lines: dict[tuple[str, str], LineBuilder] = {}
    planes: dict[str, int] = {}
    for row in filter(str.strip, text.splitlines()):
        found = _ROW.fullmatch(row)
        if found is None:
            raise ValueError(f"not a row of a picture: {row!r}")
        place, device = found["place"], found["place"] + found["ordinal"]
        if device not in planes:
            planes[device] = _plane(builder, place, found["ordinal"])
        if (device, found["line"]) not in lines:
            kind = _LINES_BY_NAME.get(found["line"], _LINES[place])
            lines[device, found["line"]] = builder.line(planes[device], found["line"], kind=kind)
        line = lines[device, found["line"]]
        _add_events(line, found["events"], SORTS | dict(sorts or {}), _WORK[place], column_ps)
    if usage:
        _add_usage(builder, usage)
    return builder.build()


def _add_usage(builder: TraceBuilder, usage: Sequence[tuple[int, int, int, int]]) -> None:
    line = builder.line(builder.plane(USAGE_PLANE, PlaneKind.CUSTOM_DEVICE), "MainThread", kind=LineKind.OTHER)
    for start, end, ran, queued in usage:
        stats = {RAN_NS: ran * 1_000_000, QUEUED_NS: queued * 1_000_000}
        line.event("usage", start * MS, (end - start) * MS, K.OTHER, stats)


def _plane(builder: TraceBuilder, place: str, ordinal: str) -> int:
    name = "/host:CPU" if place == "host" else f"/device:{place.upper()}:{ordinal}"
    return builder.plane(name, _PLANES[place], int(ordinal or -1))


def _add_events(line: LineBuilder, text: str, sorts: Mapping[str, Sort], work: EventKind, column_ps: int) -> None:
    rest = _EVENT.sub("", text).strip()
    if rest:
        raise ValueError(f"not an event: {rest!r} in {text!r}")
    for found in _EVENT.finditer(text):
        letter, number = found["letter"], found["number"]
        sort = sorts.get(letter) or Sort(work, letter, "correlation_id")
        stats = dict(sort.stats)
        if number and sort.number:
            stats[sort.number] = int(number)
        length = 0 if found["point"] else found.end() - found.start()
        line.event(sort.name, found.start() * column_ps, length * column_ps, sort.kind, stats, sort.traits)


_KINDS = [K.OTHER, K.OP, K.INPUT_WAIT, K.ITERATOR, K.COMPILE, K.RUNTIME_CALL, K.PYTHON_CALL, K.COLLECTIVE_CALL]
_DEVICE_KINDS = [K.KERNEL, K.COPY_HOST_TO_DEVICE, K.COPY_DEVICE_TO_HOST, K.COPY_DEVICE_TO_DEVICE, K.COLLECTIVE]
_event = st.tuples(st.integers(0, 60), st.integers(0, 30), st.integers(0, 4))
_line = st.lists(st.tuples(_event, st.integers(0, 7)), max_size=12)


@st.composite
def traces(drawn: st.DrawFn) -> HostTrace:
    """Threads and streams with events anywhere: nested, overlapping, of no length, linked at random, marked or not."""
    builder = TraceBuilder("host")
    host = builder.plane("/host:CPU", PlaneKind.HOST)
    for row in range(drawn(st.integers(0, 3))):
        line = builder.line(host, f"t{row}")
        for (start, length, number), kind in drawn(_line):
            line.event(f"h{number}", start, length, _KINDS[kind], {"correlation_id": number, "_p": number, "_pt": 1})
        if row == 0:
            for start, length, number in drawn(st.lists(_event, max_size=5)):
                line.event("train", start, length, K.STEP_MARK, {"step_num": number})
    for device in range(drawn(st.integers(0, 2))):
        plane = builder.plane(f"/device:GPU:{device}", PlaneKind.GPU, device)
        stream = builder.line(plane, "s", kind=LineKind.STREAM)
        for (start, length, number), kind in drawn(_line):
            stream.event(f"k{number}", start, length, _DEVICE_KINDS[kind % 5], {"correlation_id": number})
    return builder.build()
