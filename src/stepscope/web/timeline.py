"""The timeline's routes: what the page requests while the user pans, zooms, clicks and searches.

Windows are answered in binary: four bytes with the length of a JSON header (little endian), the header, padded so that
the data starts at a multiple of eight, and the columns that the header lists, one after the other, padded likewise.
No window is larger than `MOST_BYTES`: the rows with most slices get wider cells until it fits, and the header says how
wide.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray
from werkzeug import Request

from stepscope.analysis.account.account_text import culprit_json
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.ribbon import ribbon_of, ribbon_planes, stretch_of, work_wait
from stepscope.analysis.compare.one_step import compare_with_median
from stepscope.analysis.resources.counters import counter_window, counters_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.step_clocks import step_clocks
from stepscope.analysis.timeline import details, index, projection, search, selection, tracks
from stepscope.analysis.timeline.load import group_load, prepare_windows
from stepscope.analysis.workers.late_ranks import late_ranks
from stepscope.errors import UsageError
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.web.answers import Answer, Refused, binary_answer, json_answer
from stepscope.web.api_tools import section_json
from stepscope.web.routes import read_integer

MOST_BYTES = 100_000
"""The largest answer to one window."""

MOST_TILES = 16
"""Windows in one answer: those of a screen of 8,192 pixels at 512 cells each."""

MOST_RANKS = 64
"""The most ranks of one picture."""

MOST_WIDTH = 4096
NAMES_A_PAGE = 512
MOST_BINS = 4096

_HEADER_BYTES = 2_000  # room for the header, and padding
_SLICE_BYTES, _ROW_BYTES, _COUNTER_BYTES, _LOAD_BYTES = 25, 16, 20, 4
_FAR = 1 << 30
_MOST_FRAMES = 12  # of a launch's stack
_FINER = 5  # times are rounded to a 32nd of a cell

_TRACK = re.compile(r"t(?P<line>\d{1,9})(\.(?P<first>\d{1,9})(-(?P<last>\d{1,9}))?)?")
_COUNTER = re.compile(r"c(?P<number>\d{1,9})")
_RIBBON = re.compile(r"r(?P<plane>\d{1,9})")


class Traces(Protocol):
    """What answers need of an open session."""

    def trace(self, host: str | None = None) -> HostTrace:
        """The trace of a host; of the only one if it is None."""

    def working(self) -> AbstractContextManager[None]:
        """A context in which one thread at a time computes."""


class TraceSite(Protocol):
    """What answers need of a site; a notebook has one of a single profile."""

    def opened(self, session: str) -> Traces:
        """An open session by its id."""


# -- tracks, names, steps ----------------------------------------------------------------------------------------


def get_tracks(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the tree of tracks and the span of the trace."""
    trace = requested_trace(site, request, session)
    prepare_windows(trace)
    drawn = index.is_drawn(trace)
    ribbons = {f"p{plane}": f"r{plane}" for plane in ribbon_planes(trace)}
    return json_answer({
        "host": trace.host,
        "span_ps": trace.span_ps(),
        "activity_ps": tracks.activity_ps(trace),
        "events": int(drawn.sum()),
        "not_drawn": int((trace.events.kind == EventKind.AGGREGATE).sum()),
        "kinds": {kind.name.lower(): int(kind) for kind in EventKind},
        "types": len(trace.event_types),
        "names_a_page": NAMES_A_PAGE,
        "partial": trace.partial,
        "causes": [cause.name.lower() for cause in Cause],
        "has_library_calls": index.has_library_calls(trace),
        "groups": [
            asdict(group) | {"ribbon": ribbons.get(group.id)}
            for group in _groups(site, session, trace, shows_own_code(request))
        ],
    })  # fmt: skip


def _groups(site: TraceSite, session: str, trace: HostTrace, own_code: bool) -> tuple[tracks.Group, ...]:
    with site.opened(session).working():
        return projection.add_projections(trace, tracks.groups_of(trace, own_code))


def get_names(site: TraceSite, request: Request, session: str, page: int) -> Answer:
    """Answers with the names of `NAMES_A_PAGE` event types, from `page * NAMES_A_PAGE` on; after them come scopes."""
    trace = requested_trace(site, request, session)
    first, own = page * NAMES_A_PAGE, len(trace.event_types)
    names = [details.short_name(trace, at) for at in range(first, min(first + NAMES_A_PAGE, own))]
    further = (projection.scope_name(trace, at) for at in range(max(first, own), first + NAMES_A_PAGE))
    return json_answer({"first": first, "names": names + [name for name in further if name is not None]})


def get_steps(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the steps, for marks on the ruler."""
    opened = site.opened(session)
    trace = requested_trace(site, request, session)
    with opened.working():
        steps, clocks = steps_of(trace), step_clocks(trace)
    return json_answer({
        "source": steps.source,
        "how": steps.how,
        "clocks": clocks.sentence() if clocks else "",
        "name": steps.name,
        "number": steps.number.tolist(),
        "start_ps": steps.start_ps.tolist(),
        "end_ps": steps.end_ps.tolist(),
    })  # fmt: skip


def get_step(site: TraceSite, request: Request, session: str, step: int) -> Answer:
    """Answers with a step above the median of the others: both in the order of time, and a table of what differs."""
    trace = requested_trace(site, request, session)
    with site.opened(session).working():
        found = compare_with_median(trace, step)
    body = {"sentence": found.sentence, "step": asdict(found.step), "median": asdict(found.median)}
    return json_answer(body | {"section": section_json(found.section(), {})})


def get_late(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the rank that is late in a step (`step`, else the median one) of the ranks in `hosts`, and where the
    others wait for it."""
    opened, hosts = site.opened(session), request.args.getlist("ranks")[:MOST_RANKS]
    step = read_integer(request, "step", -_HUGE, _HUGE) if request.args.get("step") else None
    with opened.working():
        found = late_ranks([opened.trace(host) for host in hosts], step)
    return json_answer(asdict(found))


# -- windows -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Wanted:
    """What a window is requested of: rows of the index and of the projection, groups, counters and ribbons."""

    rows: list[int]
    projected: list[int]
    groups: list[tracks.Group]
    counters: list[int]
    ribbons: list[int]


def get_window(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with slices of tracks, loads of groups and values of counters in a time window.

    With `tiles=N` the N - 1 windows after it, each as long, follow in the same answer.
    """
    trace = requested_trace(site, request, session)
    begin, end = _window(request)
    width = read_integer(request, "width", 1, MOST_WIDTH)
    tiles = read_integer(request, "tiles", 1, MOST_TILES, 1)
    wanted, own = _requested_tracks(trace, request), shows_own_code(request)
    starts = [begin + tile * (end - begin) for tile in range(tiles)]
    # Only ribbons compute: a window of rows does not wait for a tool that is at work.
    with site.opened(session).working() if wanted.ribbons else nullcontext():
        packed = [_pack_window(trace, wanted, start, start + end - begin, width, own) for start in starts]
    return binary_answer(b"".join(packed))


def _pack_window(trace: HostTrace, wanted: _Wanted, begin: int, end: int, width: int, own_code: bool) -> bytes:
    level = index.level_for(begin, end, width)
    first, cells = begin >> level, -(-end >> level) - (begin >> level)
    n_rows, each = len(wanted.rows) + len(wanted.projected), len(wanted.groups) * _LOAD_BYTES
    each += len(wanted.counters) * _COUNTER_BYTES + len(wanted.ribbons) * len(Cause)
    room = (MOST_BYTES - _HEADER_BYTES - cells * each - _ROW_BYTES * (n_rows + 2)) // _SLICE_BYTES
    if room < 4 * n_rows:
        raise Refused(400, "these are too many rows for one answer", "request fewer at a time")
    unit = 1 << max(0, level - _FINER)
    share = room * len(wanted.rows) // max(1, n_rows)
    found = index.find_slices(trace, begin, end, wanted.rows, width, share, own_code)
    columns = _slices(found, index.index_of(trace, own_code).first_row, first << level, unit)
    columns |= {"type": trace.events.type[found.event], "kind": trace.events.kind[found.event]}
    if wanted.projected:
        above = projection.find_projected(trace, begin, end, wanted.projected, width, room - share)
        first_row = projection.projection_of(trace).index.first_row
        more = _slices(above.window, first_row, first << level, unit)
        columns = _add_rows(columns, {**more, "type": above.type, "kind": above.kind}, len(trace.lines))
    loads = [group_load(trace, group, first << level, cells, level) for group in wanted.groups]
    columns |= {"load": np.concatenate(loads).astype(np.float32)} if loads else {}
    columns |= _counters(trace, wanted.counters, first << level, cells, level)
    shares = [ribbon_of(trace, plane).shares(first << level, cells, level) for plane in wanted.ribbons]
    columns |= {"causes": np.concatenate(shares).ravel()} if shares else {}
    head = {"begin_ps": first << level, "level": level, "cells": cells, "causes": len(Cause), "unit_ps": unit}
    return pack(head, columns)


def get_stretch(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with what most of a window of a ribbon is spent on, and on whose account; null where that is unknown."""
    trace, name = requested_trace(site, request, session), request.args.get("cause", "")
    if name and name.upper() not in Cause.__members__:
        raise Refused(400, f"there is no cause {name!r}", "causes are those of the tracks")
    cause = Cause[name.upper()] if name else None
    with site.opened(session).working():
        found = stretch_of(trace, _plane(trace, request.args.get("ribbon", "")), *_window(request), cause)
    if found is None:
        return json_answer(None)
    spot = asdict(details.spot_of(trace, found.event, shows_own_code(request))) if found.event >= 0 else None
    return json_answer(asdict(found) | {"culprit": culprit_json(found.culprit), "spot": spot})


def _plane(trace: HostTrace, ribbon: str) -> int:
    found, planes = _RIBBON.fullmatch(ribbon), ribbon_planes(trace)
    if found is None or int(found["plane"]) not in planes:
        names = [f"r{plane}" for plane in planes]
        raise Refused(404, f"there is no ribbon {ribbon!r}", "ribbons are those of the tracks", names)
    return int(found["plane"])


def pack(head: dict[str, Any], columns: dict[str, NDArray[Any]]) -> bytes:
    """Packs a header and arrays into bytes; see the module."""
    ordered = sorted(columns.items(), key=lambda item: -item[1].itemsize)  # so that each stays aligned
    head = head | {"columns": [[name, array.dtype.str[1:], len(array)] for name, array in ordered]}
    text = msgspec.json.encode(head)
    text += b" " * (-(len(text) + 4) % 8)
    little = [array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes() for _, array in ordered]
    end = b" " * (-sum(map(len, little)) % 8)
    return b"".join([len(text).to_bytes(4, "little"), text, *little, end])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The header and the arrays of a window's bytes."""
    at = 4 + int.from_bytes(data[:4], "little")
    head = msgspec.json.decode(data[4:at])
    columns = {}
    for name, kind, length in head["columns"]:
        columns[name] = np.frombuffer(data, np.dtype(f"<{kind}"), length, at)
        at += columns[name].nbytes
    return head, columns


def _slices(found: index.Window, first_row: NDArray[np.int64], begin: int, unit: int) -> dict[str, NDArray[Any]]:
    line = np.searchsorted(first_row, found.rows, side="right") - 1
    start, end = ((time - begin) // unit for time in (found.start_ps, found.end_ps + unit - 1))
    return {
        "row_line": line.astype(np.int32),
        "row_lane": (found.rows - first_row[line]).astype(np.int32),
        "row_level": found.levels.astype(np.int32),
        "row_begin": found.row_begin.astype(np.int32),
        "start": np.clip(start, -_FAR, _FAR).astype(np.int32),
        "end": np.clip(end, -_FAR, _FAR).astype(np.int32),
        "busy_ps": found.busy_ps.astype(np.float32),
        "count": found.count,
        "event": found.event,
    }


def _add_rows(columns: dict[str, NDArray[Any]], more: dict[str, NDArray[Any]], lines: int) -> dict[str, NDArray[Any]]:
    """The slices of projected lines behind those of the trace, whose `lines` come first."""
    after = {**more, "row_line": more["row_line"] + np.int32(lines)}
    after["row_begin"] = more["row_begin"][1:] + columns["row_begin"][-1]
    return {name: np.concatenate([column, after[name]]) for name, column in columns.items()}


def _counters(trace: HostTrace, numbers: Sequence[int], begin: int, cells: int, level: int) -> dict[str, NDArray[Any]]:
    if not numbers:
        return {}
    parts = [counter_window(counters_of(trace)[number], begin, cells, level) for number in numbers]
    sizes = np.cumsum([0, *(len(part.cell) for part in parts)])
    return {
        "counter_begin": sizes.astype(np.int32),
        "counter_cell": np.concatenate([part.cell for part in parts]),
        "counter_low": np.concatenate([part.lowest for part in parts]).astype(np.float32),
        "counter_high": np.concatenate([part.highest for part in parts]).astype(np.float32),
        "counter_last": np.concatenate([part.last for part in parts]).astype(np.float32),
        "counter_count": np.concatenate([part.count for part in parts]),
    }


# -- events ------------------------------------------------------------------------------------------------------


def get_event(site: TraceSite, request: Request, session: str, event: int) -> Answer:
    """Answers with the facts of an event from its own line and stats."""
    trace = requested_trace(site, request, session)
    found = details.details_of(trace, _check_event(trace, event), shows_own_code(request))
    stats = [[name, _stat_value(value)] for name, value in found.stats.items()]
    return json_answer(asdict(found) | {"stats": stats})


def get_links(site: TraceSite, request: Request, session: str, event: int) -> Answer:
    """Answers with the step, op, cause and effects of an event."""
    opened = site.opened(session)
    trace = requested_trace(site, request, session)
    with opened.working():
        own_code = shows_own_code(request)
        links = asdict(details.links_of(trace, _check_event(trace, event), own_code))
        wait = work_wait(trace, event) if event < len(trace.events) else None
    if wait is None:
        return json_answer(links | {"work": None})
    spot = asdict(details.spot_of(trace, wait.event, own_code)) if wait.event >= 0 else None
    stack = _stack(trace, links["cause"]["event"], own_code) if links["cause"] else []
    work = {"how": wait.how, "idle_ps": wait.idle_ps, "waited_for": spot, "culprit": culprit_json(wait.culprit)}
    return json_answer(links | {"work": work | {"stack": stack}})


def _stack(trace: HostTrace, event: int, own_code: bool) -> list[Any]:
    """The events around a launch that are not folded, the outermost first: spots of the nearest few."""
    around = details.details_of(trace, event, own_code).around
    return [asdict(spot) for spot in around if spot.lane >= 0][-_MOST_FRAMES:]


def get_search(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with how many events match a name, where they are, and the nearest one to a time."""
    trace, query = requested_trace(site, request, session), request.args
    found = search.find_events(trace, query.get("text", ""), query.get("regex") == "1")
    begin, end = trace.span_ps()
    bins = read_integer(request, "bins", 1, MOST_BINS, 512)
    answer: dict[str, Any] = {
        "total": len(found.rows),
        "bins": search.match_histogram(trace, found, begin, end, bins).tolist(),
        "types": base64.b64encode(np.packbits(found.types, bitorder="little").tobytes()).decode(),
        "place": None,
    }
    direction = query.get("direction")
    if direction in ("next", "previous"):
        at, event = read_integer(request, "from_ps", -_HUGE, _HUGE), read_integer(request, "from_event", -1, _HUGE, -1)
        place = search.find_nearest(trace, found, at, event, direction == "next")
        if place is not None:
            spot = details.spot_of(trace, place.event, shows_own_code(request))
            answer["place"] = {"number": place.number, "spot": asdict(spot)}
    return json_answer(answer)


def get_selection(site: TraceSite, request: Request, session: str) -> Answer:
    """Answers with the events in a window on some tracks, summed by name, op or track (`by`)."""
    trace, by = requested_trace(site, request, session), request.args.get("by") or "name"
    with site.opened(session).working():
        found = selection.sum_selection(trace, *_window(request), requested_lines(trace, request), by)
    return json_answer(asdict(found))


def _stat_value(value: object) -> object:
    if isinstance(value, bytes):
        return f"{len(value):,} bytes"
    if isinstance(value, str) and len(value) > details.LONGEST_TEXT:
        return f"{value[: details.LONGEST_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, int) and abs(value) > 1 << 53:  # JavaScript would round it
        return str(value)
    return value


# -- parameters --------------------------------------------------------------------------------------------------

_HUGE = 1 << 62


def requested_trace(site: TraceSite, request: Request, session: str) -> HostTrace:
    """The trace of the requested host, or of the only one."""
    return site.opened(session).trace(request.args.get("host") or None)


def shows_own_code(request: Request) -> bool:
    """Whether `code=own` asks for the Python calls of libraries to be folded."""
    return request.args.get("code") == "own"


def _window(request: Request) -> tuple[int, int]:
    begin, end = read_integer(request, "begin", -_HUGE, _HUGE), read_integer(request, "end", -_HUGE, _HUGE)
    if end <= begin:
        raise Refused(400, f"the window from {begin} to {end} ps is empty", "begin and end are in ps; end is later")
    return begin, end


def requested_window(trace: HostTrace, request: Request) -> tuple[int, int]:
    """The requested window; the whole trace if none is."""
    if "begin" in request.args:
        return _window(request)
    begin, end = trace.span_ps()
    return begin, end + 1


def _check_event(trace: HostTrace, event: int) -> int:
    """The number of an event or a scope, if there is one."""
    try:
        projection.scope_place(trace, event)
    except UsageError as error:
        raise Refused(404, error.problem.reason, error.problem.hint or "") from None
    return event


def _track_names(request: Request) -> list[str]:
    return [name for name in request.args.get("tracks", "").split(",") if name]


def _requested_tracks(trace: HostTrace, request: Request) -> _Wanted:
    """The requested tracks, separated by commas: `t3`, `t3.0-4`, `p1`, `c2`, `r0`."""
    wanted = _Wanted([], [], [], [], [])
    own_code = shows_own_code(request)
    for name in _track_names(request):
        if found := _TRACK.fullmatch(name):
            into = wanted.rows if int(found["line"]) < len(trace.lines) else wanted.projected
            into += _track_rows(trace, found, own_code)
        elif (found := _COUNTER.fullmatch(name)) and int(found["number"]) < len(counters_of(trace)):
            wanted.counters.append(int(found["number"]))
        elif _RIBBON.fullmatch(name):
            wanted.ribbons.append(_plane(trace, name))
        elif group := tracks.group_named(trace, name):
            wanted.groups.append(group)
        else:
            raise _unknown_track(trace, name)
    return wanted


def _track_rows(trace: HostTrace, found: re.Match[str], own_code: bool) -> Iterable[int]:
    line = int(found["line"])
    if line < len(trace.lines):
        first_row = index.index_of(trace, own_code).first_row
    else:
        line -= len(trace.lines)
        first_row = projection.projection_of(trace).index.first_row
        if line >= len(first_row) - 1:
            raise _unknown_track(trace, found[0])
    rows = range(int(first_row[line]), int(first_row[line + 1]))
    if found["first"] is None:
        return rows
    return rows[int(found["first"]) : int(found["last"] or found["first"]) + 1]


def requested_lines(trace: HostTrace, request: Request) -> list[int]:
    """The lines of the requested tracks, all lines if none are named.

    A group stands for its tracks, and a projected line for the stream on which its work ran.
    """
    lines: dict[int, None] = {}
    for name in _track_names(request):
        found = _TRACK.fullmatch(name)
        group = tracks.group_named(trace, name)
        if found:
            lines[_line_of_trace(trace, found)] = None
        elif group:
            lines |= dict.fromkeys(group.lines())
        elif not _COUNTER.fullmatch(name):
            raise _unknown_track(trace, name)
    return list(lines) if _track_names(request) else list(range(len(trace.lines)))


def _line_of_trace(trace: HostTrace, found: re.Match[str]) -> int:
    line = int(found["line"])
    if line < len(trace.lines):
        return line
    stream = projection.projection_of(trace).stream
    if line - len(trace.lines) >= len(stream):
        raise _unknown_track(trace, found[0])
    return int(stream[line - len(trace.lines)])


def _unknown_track(trace: HostTrace, name: str) -> Refused:
    groups = [group.id for group in tracks.groups_of(trace)]
    return Refused(404, f"there is no track {name!r}", "tracks are named t0, t1, ..., groups as listed", groups)
