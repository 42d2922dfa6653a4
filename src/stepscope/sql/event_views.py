"""The views whose rows are events: all of them, device work, launches, ops.

What is kept per event in the trace is handed over as it is.  Names are numbers of event types into a list of texts, so
a million events need no million texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import steps_of, steps_of_events
from stepscope.analysis.trace.attribution import Attribution, attribute
from stepscope.analysis.trace.grouping import forest, self_times
from stepscope.analysis.trace.kernel_facts import Launch, launches_of, stated_bytes
from stepscope.analysis.trace.op_work import OpWork, device_work, host_work
from stepscope.analysis.trace.thread_labels import thread_label
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64
from stepscope.records import dataclass
from stepscope.report import Role
from stepscope.sql.arrow import SMALL_TEXT, numbers, texts, texts_of_types
from stepscope.sql.views import View, ViewColumn, host_column, instant, number, real, text

_KIND_WORDS = [""] * 256
for _kind in EventKind:
    _KIND_WORDS[_kind] = _kind.name.lower()

Rows = Callable[[Any], I64 | slice]
"""The rows of `events` that a view shows, from what the view prepared."""

_ALL = slice(None)


# -- columns that several of these views have --------------------------------------------------------------------------


def _row_numbers(trace: HostTrace, rows: I64 | slice) -> I64:
    return np.arange(len(trace.events)) if isinstance(rows, slice) else rows


def _event_names(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    words = trace.derived("sql names", lambda host: texts_of_types(host, host.event_types.name))
    return texts(trace.events.type[rows], words)


def _display_names(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    types = trace.event_types
    shown = np.where(types.display_name > 0, types.display_name, types.name)
    return texts(trace.events.type[rows], texts_of_types(trace, shown))


def _tracks(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    labels = [thread_label(trace, line) for line in range(len(trace.lines))]
    return texts(trace.events.line[rows], labels)


def _processes(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    labels = [trace.plane_name(plane) for plane in trace.lines.plane.tolist()]
    return texts(trace.events.line[rows], labels)


def _ends(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    return numbers(trace.events.start_ps[rows] + trace.events.duration_ps[rows])


def _own_times(trace: HostTrace) -> I64:
    return self_times(trace, np.ones(len(trace.events), np.bool_))


def _linked(links: I32) -> pa.Array:
    return numbers(links.astype(np.int64), links >= 0)


def _step_numbers(trace: HostTrace, rows: I64 | slice) -> pa.Array:
    steps = steps_of(trace)
    at = steps_of_events(trace, _row_numbers(trace, rows))
    if not len(steps.number):
        return numbers(at, np.zeros(len(at), np.bool_))
    return numbers(steps.number[at], at >= 0)


def _event_columns(rows: Rows, what: str) -> tuple[ViewColumn, ...]:
    """Number, host, name and kind."""
    return (
        number(
            "event",
            "row",
            f"the number of the event, unique in the session; {what}",
            lambda trace, found: numbers(_row_numbers(trace, rows(found))),
        ),
        host_column(lambda trace, found: len(_row_numbers(trace, rows(found)))),
        text("name", "its full name", lambda trace, found: _event_names(trace, rows(found)), Role.NAME),
        text(
            "kind",
            "what it is, such as `op`, `python_call`, `runtime_call`, `kernel`, `copy_host_to_device`",
            lambda trace, found: texts(trace.events.kind[rows(found)], _KIND_WORDS),
            Role.TERM,
            SMALL_TEXT,
        ),
    )


def _time_columns(rows: Rows) -> tuple[ViewColumn, ...]:
    return (
        instant("start_ps", "when it starts", lambda trace, found: numbers(trace.events.start_ps[rows(found)])),
        number("duration_ps", "ps", "how long", lambda trace, found: numbers(trace.events.duration_ps[rows(found)])),
        instant("end_ps", "when it ends", lambda trace, found: _ends(trace, rows(found))),
    )


def _step_column(rows: Rows) -> ViewColumn:
    return number(
        "step",
        "",
        "the number of the step that it belongs to, else of the step during which it starts; NULL outside steps",
        lambda trace, found: _step_numbers(trace, rows(found)),
        Role.STEP,
    )


def _track_column(rows: Rows, name: str = "track", doc: str = "its thread, stream or other line") -> ViewColumn:
    return text(name, doc, lambda trace, found: _tracks(trace, rows(found)), Role.PLACE)


# -- all events --------------------------------------------------------------------------------------------------------


def _every_row(_: Any) -> slice:
    return _ALL


EVENTS = View(
    "events",
    "Everything that was recorded, an event a row. Events of a track follow each other, sorted by their start.",
    (
        *_event_columns(_every_row, "`parent`, `cause` and other views refer to it"),
        *_time_columns(_every_row),
        number(
            "self_ps",
            "ps",
            "its duration without the events directly inside it",
            lambda trace, _: numbers(trace.derived("sql self times", _own_times)),
        ),
        _step_column(_every_row),
        number(
            "parent",
            "row",
            "the event around it on its track; NULL for an outermost one",
            lambda trace, _: _linked(forest(trace).parent),
        ),
        number(
            "cause",
            "row",
            "the event on another track that made it happen, such as the call that launched a kernel",
            lambda trace, _: _linked(forest(trace).cause),
        ),
        _track_column(_every_row),
        text(
            "process",
            "the host's threads or the device that the track belongs to",
            lambda trace, _: _processes(trace, _ALL),
            Role.PLACE,
        ),
        text(
            "display_name",
            "the short name by which the timeline shows it",
            lambda trace, _: _display_names(trace, _ALL),
            Role.NAME,
        ),
    ),
    prepare=lambda _: None,
    length=lambda trace, _: len(trace.events),
)


# -- device work -------------------------------------------------------------------------------------------------------


def _work_rows(found: Attribution) -> I64:
    return found.rows


def _devices(trace: HostTrace, found: Attribution) -> pa.Array:
    planes = [device_name(trace, plane) for plane in trace.lines.plane.tolist()]
    return texts(trace.events.line[found.rows], planes)


def _op_of_work(part: int) -> Callable[[HostTrace, Attribution], pa.Array]:
    return lambda trace, found: texts(found.op, [op[part] for op in found.ops], found.op >= 0)


def _launch_facts(trace: HostTrace, found: Attribution) -> tuple[I32, list[Launch]]:
    return trace.derived("sql kernel launches", lambda host: launches_of(host, found.rows))


def _launch_number(
    read: Callable[[Launch], float | None], dtype: type[np.generic] = np.int64
) -> Callable[[HostTrace, Attribution], pa.Array]:
    def compute(trace: HostTrace, found: Attribution) -> pa.Array:
        place, facts = _launch_facts(trace, found)
        values = [read(fact) for fact in facts]
        known = np.array([value is not None for value in values], np.bool_)
        return numbers(np.array([value or 0 for value in values], dtype)[place], known[place])

    return compute


def _launch_shape(name: str) -> Callable[[HostTrace, Attribution], pa.Array]:
    def compute(trace: HostTrace, found: Attribution) -> pa.Array:
        place, facts = _launch_facts(trace, found)
        shapes = [getattr(fact, name) for fact in facts]
        known = np.array([shape is not None for shape in shapes], np.bool_)
        return texts(place, ["x".join(map(str, shape or ())) for shape in shapes], known[place])

    return compute


def _bytes_of_work(trace: HostTrace, found: Attribution) -> pa.Array:
    stated = stated_bytes(trace, found.rows)
    values = np.full(len(found.rows), -1) if stated is None else stated
    return numbers(values, values >= 0)


KERNELS = View(
    "kernels",
    "The work that devices did, a piece a row: kernels, copies, collectives. `kind` says which it is.",
    (
        *_event_columns(_work_rows, "as in `events`"),
        *_time_columns(_work_rows),
        _step_column(_work_rows),
        text("device", "the device, such as `GPU:0`", _devices, Role.PLACE),
        _track_column(_work_rows, "stream", "the stream or core that ran it"),
        text("op", "the op that it belongs to; NULL where unknown", _op_of_work(0), Role.NAME),
        text("op_type", "the type of that op", _op_of_work(1), Role.TYPE),
        number(
            "launch",
            "row",
            "the event of the host's call that launched it",
            lambda _, found: numbers(found.call, found.call >= 0),
        ),
        number("bytes", "bytes", "what it copies, or accesses, as recorded", _bytes_of_work),
        number("registers_per_thread", "count", "registers of a thread", _launch_number(lambda fact: fact.registers)),
        number(
            "shared_memory_bytes", "bytes", "shared memory of a block", _launch_number(lambda fact: fact.shared_bytes)
        ),
        text("block_dim", "threads of a block, such as `128x1x1`", _launch_shape("block"), Role.SHAPE),
        text("grid_dim", "blocks of the grid", _launch_shape("grid"), Role.SHAPE),
        real(
            "occupancy_percent",
            "percent",
            "share of the device's warps that can be active",
            _launch_number(lambda fact: fact.occupancy_percent, np.float64),
        ),
    ),
    prepare=attribute,
    length=lambda _, found: len(found.rows),
)


# -- launches ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Calls:
    """The host's calls that launched device work.

    Attributes:
        rows: int64 of shape (n,), the calls.
        first: int64 of shape (n,), the first piece of work of each, as a row of `events`.
        pieces: int64 of shape (n,), how many pieces each launched.
        op: int32 of shape (n,), the op of that first piece, index into `found.ops`; -1 without one.
    """

    found: Attribution
    rows: I64
    first: I64
    pieces: I64
    op: I32


def _launching_calls(trace: HostTrace) -> _Calls:
    found = attribute(trace)
    known = np.flatnonzero(found.call >= 0)
    order = known[np.lexsort((trace.events.start_ps[found.rows[known]], found.call[known]))]
    rows, first, pieces = np.unique(found.call[order], return_index=True, return_counts=True)
    return _Calls(found, rows, found.rows[order[first]], pieces, found.op[order[first]])


def _call_rows(calls: _Calls) -> I64:
    return calls.rows


LAUNCHES = View(
    "launches",
    "The host's calls that launched device work, a call a row.",
    (
        *_event_columns(_call_rows, "as in `events`"),
        *_time_columns(_call_rows),
        _step_column(_call_rows),
        _track_column(_call_rows, "thread", "the thread that called"),
        text(
            "op",
            "the op that the work belongs to; NULL where unknown",
            lambda _, calls: texts(calls.op, [op[0] for op in calls.found.ops], calls.op >= 0),
            Role.NAME,
        ),
        number("pieces", "count", "how many pieces of work it launched", lambda _, calls: numbers(calls.pieces)),
        number("kernel", "row", "the event of the first of them", lambda _, calls: numbers(calls.first)),
        instant(
            "kernel_start_ps",
            "when that starts on the device",
            lambda trace, calls: numbers(trace.events.start_ps[calls.first]),
        ),
        number(
            "delay_ps",
            "ps",
            "launch latency: from the start of the call to that of the work; below 0 if the clocks disagree",
            lambda trace, calls: numbers(trace.events.start_ps[calls.first] - trace.events.start_ps[calls.rows]),
        ),
    ),
    prepare=lambda trace: trace.derived("sql launches", _launching_calls),
    length=lambda _, calls: len(calls.rows),
)


# -- ops ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Ops:
    """The ops of a host and its devices, as `op-stats` counts them."""

    host: OpWork
    device: OpWork

    @property
    def rows(self) -> I64:
        return np.concatenate([self.host.rows, self.device.rows])

    def column(self, name: str) -> I64:
        found: I64 = np.concatenate([getattr(self.host, name), getattr(self.device, name)])
        return found

    def texts(self, part: int) -> pa.Array:
        """Name or type of each op."""
        number = np.concatenate([self.host.op, self.device.op + np.int32(len(self.host.ops))])
        return texts(number.astype(np.int32), [op[part] for op in (*self.host.ops, *self.device.ops)])

    def sides(self) -> pa.Array:
        counts = len(self.host.rows), len(self.device.rows)
        return texts(np.repeat(np.array([0, 1], np.uint8), counts), ["host", "device"])


def _op_rows(ops: _Ops) -> I64:
    return ops.rows


OPS = View(
    "ops",
    "Every run of an op, on the host and on devices, as `op-stats` adds them up.",
    (
        number("event", "row", "the event, as in `events`", lambda _, ops: numbers(ops.rows)),
        host_column(lambda _, ops: len(ops.rows)),
        text("side", "`host` or `device`: where it ran", lambda _, ops: ops.sides(), Role.PLACE, SMALL_TEXT),
        text("name", "the op", lambda _, ops: ops.texts(0), Role.NAME),
        text("type", "the type of the op", lambda _, ops: ops.texts(1), Role.TYPE),
        instant("start_ps", "when it starts", lambda trace, ops: numbers(trace.events.start_ps[ops.rows])),
        number(
            "duration_ps",
            "ps",
            "how long; on devices by their own clock where that was recorded",
            lambda _, ops: numbers(ops.column("time_ps")),
        ),
        instant("end_ps", "when it ends", lambda trace, ops: _ends(trace, ops.rows)),
        number("self_ps", "ps", "its duration without the ops inside it", lambda _, ops: numbers(ops.column("own_ps"))),
        _step_column(_op_rows),
        _track_column(_op_rows),
    ),
    prepare=lambda trace: trace.derived("sql ops", lambda host: _Ops(host_work(host), device_work(host))),
    length=lambda _, ops: len(ops.rows),
)
