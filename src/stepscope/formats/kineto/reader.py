"""Reads PyTorch's Kineto traces and other Chrome trace JSON: bytes in, columns out.

Each stage is a module:

    text (unpacked on another thread) -> document (raw rows) -> events -> lines, links -> HostTrace
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stepscope.errors import Problem, counted
from stepscope.formats.kineto import ranks
from stepscope.formats.kineto.classify import is_exported, is_pytorch
from stepscope.formats.kineto.devices import gpu_stats, host_stats
from stepscope.formats.kineto.document import Raw, decode
from stepscope.formats.kineto.events import EventClasses, Kept, Oddities, classify_rows, keep_events
from stepscope.formats.kineto.graph_annotations import normalize_annotations
from stepscope.formats.kineto.lines import Labels, LineLayout, lay_out, read_labels, time_order
from stepscope.formats.kineto.links import EXTERNAL_ID, Extra, canonical_names, link, unescape
from stepscope.formats.kineto.processes import Processes, count_unknown, sort_rows
from stepscope.formats.tables import make_lines, make_planes, make_stats
from stepscope.formats.threads import run_in_parts
from stepscope.formats.xspace import classify as xspace
from stepscope.kernels import trace_events
from stepscope.model import (
    EventKind,
    Events,
    EventTypes,
    HostTrace,
    LineKind,
    PlaneKind,
    Planes,
    Stats,
    StatTag,
    Strings,
)
from stepscope.model.arrays import I32, I64, distinct, number_pairs, offsets_of
from stepscope.model.stat_names import CORRELATION_ID
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.torch import WINDOW_END

FindDamage = Callable[[Raw, int, str], list[Problem]]

_KINETO_KEYS = ("schemaVersion", "deviceProperties", "traceName")
_METADATA_OF_COPY = {"highres-ticks": True}
_EPOCH_US = 10**15  # times above this many microseconds are counted from 1970: it was 2001 then
_LOG_PREFIX = Pattern(r"(?:ERROR|WARNING):[\d-]+ [\d:]+ \d+:\d+ \S+:\d+\] ")  # as Kineto's logger writes it
_LAST_NS = 1 << 62  # the year 2116; a later time comes from a broken clock
_KIND_OF_LINE = {
    LineKind.STEPS: EventKind.DEVICE_STEP,
    LineKind.MODULES: EventKind.MODULE,
    LineKind.DERIVED: EventKind.SCOPE,
    LineKind.COUNTERS: EventKind.COUNTER,
}


def read(data: bytes | Iterator[bytes], source: str, host: str) -> HostTrace:
    """Reads one trace in JSON: PyTorch's, or any other in Chrome's format.

    Args:
        data: the file's bytes, plain or compressed with gzip, or its pieces in order; any size.
        source: the name to use in messages.
        host: the host's name; if empty, the name in the file is used.

    Returns:
        The trace.  If the text is cut or damaged, it holds all that can be read, with `partial` and `problems` set.

    Raises:
        UnreadableError: the data holds no events, or unpacks to more than `STEPSCOPE_MAX_JSON_BYTES` or, without that
            variable, to more than 100 times its size.
    """
    raw = decode(data, source)
    unescape(raw)
    return build_trace(raw, read_labels(raw), source, host, _find_damage)


def read_hosts(data: bytes | Iterator[bytes], source: str, host: str) -> tuple[HostTrace, ...]:
    """Reads one trace in JSON, into which a tool may have merged those of several processes: one trace for each.

    Args, Raises: as for `read`; a process of several has a name of its own.
    """
    raw = decode(data, source)
    unescape(raw)
    return build_traces(raw, read_labels(raw), source, host, _find_damage)


def build_traces(raw: Raw, labels: Labels, source: str, host: str, find_damage: FindDamage) -> tuple[HostTrace, ...]:
    """Makes a trace of each process of a file, whichever format its rows were written in; arguments as of
    `build_trace`."""
    told = ranks.of_documents(raw)
    owners = [] if told else ranks.find_owners(raw, labels.process)
    if told is None and not owners:
        return (build_trace(raw, labels, source, host, find_damage),)
    if told is None:
        normalize_annotations(raw)
        names = canonical_names(raw)
        normalize_ids(raw, names, (EXTERNAL_ID, CORRELATION_ID[0]))
        told = ranks.tell_apart(raw, labels.process, owners, names)
    problem = ranks.describe(told, bool(raw.damaged), source)

    def find_all_damage(raw: Raw, events: int, source: str) -> list[Problem]:
        return [problem, *find_damage(raw, events, source)]

    parts = ((ranks.raw_of(raw, process), process) for process in told.processes)
    return tuple(
        build_trace(part, read_labels(part) if process.metadata else labels, source, process.name, find_all_damage)
        for part, process in parts
    )


def build_trace(raw: Raw, labels: Labels, source: str, host: str, find_damage: FindDamage) -> HostTrace:
    """Makes a trace of the rows of a file, whichever format they were written in.

    Args:
        raw: the rows.
        labels: the names of processes and threads.
        source: the name to use in messages.
        host: the host's name; if empty, the name in the file is used.
        find_damage: what could not be read, given the rows, the number of events that were, and `source`.
    """
    normalize_annotations(raw)
    processes = sort_rows(raw, labels.process, labels.thread)
    names = canonical_names(raw)
    normalize_ids(raw, names, (EXTERNAL_ID, CORRELATION_ID[0]))
    classes = classify_rows(raw)
    kept = keep_events(raw, classes)
    kineto = _is_kineto(raw, classes)
    layout = lay_out(raw, kept, labels, kineto, processes)
    with ThreadPoolExecutor(1) as other_thread:
        order_in_time = other_thread.submit(time_order, layout, kept)
        extra = link(raw, classes, kept, names)
        order = order_in_time.result()
    planes, plane_stats = _plane_table(raw, layout)
    types, type_of, type_stats = _type_table(raw, classes, kept, layout)
    events = _event_table(raw, kept, layout, types, type_of, order)
    lines = make_lines(layout.lines, np.array(layout.plane_row, np.int32), events, raw.texts.add)
    start_ns = _start_unix_ns(raw, kept, kineto)
    strings = raw.texts.strings()
    problems = [*find_damage(raw, len(kept), source), *_find_oddities(raw, kept, source)]
    problems += count_unknown(processes, source)
    framework = _framework_of(raw, classes, processes, strings)
    if not framework and (events.kind == EventKind.OTHER).all():
        events.kind[:] = EventKind.ANNOTATION  # of a maker that is not known: all that it recorded has been named
    return HostTrace(
        host=host or _recorded_host(raw) or "localhost",
        planes=planes,
        lines=lines,
        events=events,
        event_types=types,
        event_stats=_event_stats(raw, kept, extra, order, names),
        type_stats=type_stats,
        plane_stats=plane_stats,
        strings=strings,
        start_unix_ns=start_ns,
        stop_unix_ns=_stop_unix_ns(raw, start_ns, kept),
        source=source,
        problems=tuple(problems),
        partial=raw.cut_at is not None or bool(raw.damaged),
        recorder_messages=_recorder_messages(raw.metadata),
        framework=framework,
        recorder="" if framework or _is_of_another(raw, classes) else "chrome",
    )


def _recorded_host(raw: Raw) -> str:
    host = raw.metadata.get("host_name")
    return host if isinstance(host, str) else ""


def _framework_of(raw: Raw, classes: EventClasses, processes: Processes, strings: Strings) -> str:
    """The framework that wrote a trace, empty if nothing tells."""
    if _is_kineto(raw, classes):
        return "pytorch"
    if processes.framework:
        return processes.framework
    return xspace.detect_framework(strings) if _is_of_another(raw, classes) else ""


def _is_kineto(raw: Raw, classes: EventClasses) -> bool:
    if any(key in raw.metadata for key in _KINETO_KEYS):
        return True
    return any(is_pytorch(raw.texts[cat]) for cat in distinct(classes.cat).tolist())


def _is_of_another(raw: Raw, classes: EventClasses) -> bool:
    """True for a copy, and for what Stepscope exported: its names are those that a framework wrote."""
    return _is_copy(raw) or any(is_exported(raw.texts[cat]) for cat in distinct(classes.cat).tolist())


def _is_copy(raw: Raw) -> bool:
    """True for JSON that JAX or, in the past, TensorFlow's profiler converted from an xplane file."""
    return raw.metadata.get("metadata") == _METADATA_OF_COPY


# -- tables ------------------------------------------------------------------------------------------------------------


def _plane_table(raw: Raw, layout: LineLayout) -> tuple[Planes, Stats]:
    facts = [
        gpu_stats(raw.metadata, plane.ordinal, plane.name)
        if plane.kind == PlaneKind.GPU
        else (host_stats(raw.metadata) if at == 0 and plane.kind == PlaneKind.HOST else {})
        for at, plane in enumerate(layout.planes)
    ]
    return make_planes(layout.planes, raw.texts.add), make_stats(facts, raw.texts.add)


def _type_table(raw: Raw, classes: EventClasses, kept: Kept, layout: LineLayout) -> tuple[EventTypes, I32, Stats]:
    """Event types, the type of each kept event, and the types' one stat: the category."""
    plane_of_line = np.array(layout.plane_row, np.int32)
    plane = plane_of_line[layout.line_of]
    type_of, first = number_pairs(plane, kept.event_class)
    event_class = kept.event_class[first]
    types = EventTypes(
        name=classes.name[event_class].astype(np.int32),
        display_name=np.zeros(len(first), np.int32),
        plane=plane[first],
        metadata_id=np.arange(1, len(first) + 1, dtype=np.int64),
    )
    cat = classes.cat[event_class]
    has = cat > 0
    stats = Stats(
        name=np.full(int(has.sum()), raw.texts.add("category"), np.int32),
        tag=np.full(int(has.sum()), StatTag.STRING, np.uint8),
        value=cat[has],
        offsets=offsets_of(has),
    )
    return types, type_of, stats


def _event_table(raw: Raw, kept: Kept, layout: LineLayout, types: EventTypes, type_of: I32, order: I64) -> Events:
    events = Events(
        start_ps=kept.start_ps[order],
        duration_ps=kept.duration_ps[order],
        type=type_of[order],
        line=layout.line_of[order],
        kind=kept.kind[order],
        traits=kept.traits[order],
    )
    _classify_by_plane(raw, layout, types, events)
    return events


def _classify_by_plane(raw: Raw, layout: LineLayout, types: EventTypes, events: Events) -> None:
    """Sets the kinds of events in a trace that was converted from XSpace, in place.

    Its events have no category, so their kinds are still unknown.
    """
    if not layout.is_converted:
        return
    kinds = np.array([plane.kind for plane in layout.planes], np.uint8)
    place = np.array([line.kind for line in layout.lines], np.uint8)[events.line]
    silent = events.kind == EventKind.OTHER
    by_name, _ = xspace.classify_types(raw.texts.strings(), types.name, types.plane, kinds)
    events.kind[silent] = by_name[events.type[silent]]
    for line, kind in _KIND_OF_LINE.items():
        events.kind[silent & (place == line)] = kind
    nameless = silent & (events.kind == EventKind.OTHER)
    events.kind[nameless & (place == LineKind.STREAM)] = EventKind.KERNEL
    events.kind[nameless & (place == LineKind.DEVICE_OPS)] = EventKind.DEVICE_OP


def _event_stats(raw: Raw, kept: Kept, extra: Extra, order: I64, names: I32) -> Stats:
    """The file's stats by their canonical names, in the order of the events; derived stats follow each event's own."""
    owner = _join_columns(extra.event, np.int64)
    if len(owner):
        place = np.empty(len(kept), np.int64)
        place[order] = np.arange(len(kept))
        owner = place[owner]
    by_owner = np.argsort(owner, kind="stable")
    extra_counts = np.bincount(owner, minlength=len(kept))
    columns = (
        _join_columns(extra.name, np.int32)[by_owner],
        _join_columns(extra.tag, np.uint8)[by_owner],
        _join_columns(extra.value, np.int64)[by_owner],
    )
    row, end_row = kept.row[order], kept.end_row[order]
    counts = np.diff(raw.stat_offsets)
    total = counts[row] + extra_counts
    two_ended = np.flatnonzero(end_row >= 0)
    total[two_ended] += counts[end_row[two_ended]]
    offsets = offsets_of(total)
    stats = Stats(
        name=np.empty(offsets[-1], np.int32),
        tag=np.empty(offsets[-1], np.uint8),
        value=np.empty(offsets[-1], np.int64),
        offsets=offsets,
    )

    extra_offsets = offsets_of(extra_counts)

    def move(first: int, last: int) -> None:
        trace_events.gather_stats(
            first, last, row, end_row, raw.stat_offsets, raw.stat_name, raw.stat_tag, raw.stat_value,
            names, extra_offsets, columns, offsets, stats.name, stats.tag, stats.value,
        )  # fmt: skip

    run_in_parts(len(kept), move)
    return stats


def _join_columns(parts: list[Any], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


# -- facts about the trace ---------------------------------------------------------------------------------------------


def _start_unix_ns(raw: Raw, kept: Kept, kineto: bool) -> int | None:
    """The start of the session.  Times count from the base in the file; without one, PyTorch's count from 1970."""
    base = raw.metadata.get("baseTimeNanoseconds")
    if not len(kept) or not (kineto or raw.knows_clock):
        return None
    if isinstance(base, int) and base > 0:
        start = base + kept.zero_ns
    else:
        start = kept.zero_ns if kept.zero_ns > _EPOCH_US * 1000 else 0
    return start if 0 < start < _LAST_NS else None


def _stop_unix_ns(raw: Raw, start_ns: int | None, kept: Kept) -> int | None:
    """The end of the session: where its recorder marked it, else the end of the last event."""
    if start_ns is None:
        return None
    marks = np.flatnonzero(raw.name == raw.texts.add(WINDOW_END))
    if len(marks):
        after_ns = int(raw.us[marks].max()) * 1000 - kept.zero_ns
        if 0 < after_ns < _LAST_NS - start_ns:
            return start_ns + after_ns
    return start_ns + int((kept.start_ps + kept.duration_ps).max()) // 1000


def _recorder_messages(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Warnings and errors that the profiler logged, each without the prefix of its log, and once."""
    found = [metadata.get(key) for key in ("ERROR", "WARNING")]
    said = [str(message) for messages in found if isinstance(messages, list) for message in messages]
    return tuple(dict.fromkeys(_without_log_prefix(each) for each in said))


def _without_log_prefix(message: str) -> str:
    """`the profiler itself says: ...` of a line of its log, which begins with level, time, threads and source."""
    found = _LOG_PREFIX.match(message)
    return message if found is None else f"the profiler itself says: {message[found.end() :].strip()}"


def _find_damage(raw: Raw, events: int, source: str) -> list[Problem]:
    """What is wrong with the text of the file."""
    found = []
    if raw.cut_at is not None:
        found.append(_cut_problem(raw, events, source))
    if raw.damaged:
        found.append(
            Problem(
                "damaged",
                f"{counted(raw.damaged, 'place')} could not be read as JSON{_position_text(raw, raw.damaged_at)}",
                path=source,
                offset=None if raw.compressed else raw.damaged_at,
                kept=f"{events:,} events, before and after",
                lost="the events at these places",
                hint="copy the file again, or record again if the capture was interrupted",
            )
        )
    if len(raw.documents) > 1:
        found.append(
            Problem(
                "concatenated",
                f"the file holds {len(raw.documents):,} traces one after the other",
                path=source,
                kept="the events of all, as if of one trace",
            )
        )
    return found


def _find_oddities(raw: Raw, kept: Kept, source: str) -> tuple[Problem, ...]:
    """What is wrong with the events."""
    found = []
    odd = kept.oddities
    if _is_copy(raw):
        odd = replace(odd, no_event=max(odd.no_event - 1, 0))  # its list ends with an empty object
    if not len(kept) and odd.no_time + odd.far:
        reason = "no event has a time that a trace can have: a number of microseconds, within 23 days of the others"
        found.append(Problem("times", reason, path=source, hint="look at `ts` in the file, and at what wrote it"))
    elif not len(kept):
        found.append(Problem("no-events", "the trace holds no events", path=source, hint="record again, for longer"))
    if _is_copy(raw):
        found.append(_copy_problem(source))
    return (*found, *_oddity_problems(odd, source))


def _copy_problem(source: str) -> Problem:
    return Problem(
        "copy",
        "this is the JSON copy that JAX and TensorFlow make of an xplane file; it holds at most a million events, "
        "and few details of each",
        path=source,
        hint="give the *.xplane.pb that was written with it, if it still exists",
    )


def _cut_problem(raw: Raw, events: int, source: str) -> Problem:
    assert raw.cut_at is not None
    return Problem(
        "truncated",
        f"{raw.cut_because}{_position_text(raw, raw.cut_at)}",
        path=source,
        offset=None if raw.compressed else raw.cut_at,
        kept=f"{events:,} events",
        lost="what followed",
        hint="if the file is still being written, open it again later; else copy it again",
    )


def _position_text(raw: Raw, position: int) -> str:
    return f", at byte {position:,} of the unpacked text" if raw.compressed else ""


def _oddity_problems(odd: Oddities, source: str) -> Iterable[Problem]:
    dropped, shortened = "nothing of these", "these, with duration 0"
    unknown = "how long they took: what ran then counts as idle"
    defects = (
        (odd.no_event, "not-events", "of unknown type", dropped),
        (odd.no_time, "no-time", "without a time that is a number", dropped),
        (odd.far, "impossible-times", "more than 23 days from the others, or at time 0", dropped),
        (odd.long, "impossible-durations", "longer than 23 days", shortened),
        (odd.negative, "negative-durations", "with a negative duration", shortened),
        (odd.no_duration, "no-duration", "without a duration", shortened),
        (odd.no_thread, "no-thread", "without process or thread", "these, on a line of their own"),
        (odd.open_ends, "unmatched-begins", "that start and never end", shortened),
        (odd.stray_ends, "unmatched-ends", "that end but never started", dropped),
    )
    for number, code, reason, kept in defects:
        if number:
            lost = unknown if kept is shortened else None
            yield Problem(code, f"{counted(number, 'event')} {reason}", path=source, kept=kept, lost=lost)


# ---- ids that join events --------------------------------------------------------------------------------------------
# Ids that join events, as every writer spells them: numbers, text of digits, and numbers beyond a signed 64-bit word.
#
# Whoever comes after sees whole numbers from 1 to 2^63 - 1: ids beyond get numbers from the top of that range.

_DIGITS = re.compile(rb"\s*([0-9]{1,20})\s*")
_MOST = (1 << 63) - 1


def normalize_ids(raw: Raw, names: I32, keys: tuple[str, ...]) -> None:
    """Makes whole numbers of the stats with these names, in place.

    Args:
        raw: the rows.
        names: the canonical name of each text, as of `canonical_names`.
        keys: canonical names of stats that hold ids.
    """
    is_key = np.isin(names, [raw.texts.add(key) for key in keys])
    if not is_key.any():
        return
    odd = np.flatnonzero(is_key[raw.stat_name] & (raw.stat_tag != StatTag.INT))
    if not len(odd):
        return
    texts, big = (odd[raw.stat_tag[odd] == tag] for tag in (StatTag.STRING, StatTag.UINT))
    spelled, place = np.unique(raw.stat_value[texts], return_inverse=True)
    found = np.array([_number_of(raw.texts.raw(text)) for text in spelled.tolist()], np.uint64)[place]
    known = (found > 0) & (found <= _MOST)
    raw.stat_tag[texts[known]], raw.stat_value[texts[known]] = StatTag.INT, found[known].astype(np.int64)
    beyond = found > _MOST
    rows = np.concatenate([big, texts[beyond]])
    if len(rows):
        _, place = np.unique(np.concatenate([raw.stat_value[big].view(np.uint64), found[beyond]]), return_inverse=True)
        raw.stat_tag[rows], raw.stat_value[rows] = StatTag.INT, _MOST - place


def _number_of(text: bytes) -> int:
    """The number that a text spells; 0 for what is no id."""
    digits = _DIGITS.fullmatch(text)
    return number if digits and (number := int(digits[1])) < 1 << 64 else 0
