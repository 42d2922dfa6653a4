"""Where the host waits for a device: which calls, in which op, from which line of the program.

It counts the calls that return only when a device is done: waits for a device, a stream or an event, and blocking
copies. Most are easy to overlook: `.item()`, `print(loss)` or `if loss > 1` read a value, and the host cannot continue
or launch work until the device has computed it. Each is listed with the outermost op around it. If Python calls were
recorded (`torch.profiler.profile(with_stack=True)`), the line of the program is listed too.

Ops that read a value are listed as well, even on a host without devices. They cost little there, but on a device the
same program would wait.

The time is what the host spends in the call. A necessary wait at the end of a step costs nothing by itself. A wait in
the middle of a step keeps the host from running ahead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntFlag
from functools import reduce
from typing import ClassVar

import numpy as np

from stepscope.analysis.account.account import account_without_culprits
from stepscope.analysis.account.devices import busy_by_device
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.attribution import event_name_rows
from stepscope.analysis.trace.blocking import blocking_calls
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.columns import events_of_kind, is_any_kind
from stepscope.analysis.trace.grouping import OPS, enclosing_events, is_device_work
from stepscope.analysis.trace.origin import Origin, header, origin_of, session_recorder
from stepscope.analysis.trace.remedies import CALL_SITES, HOST_ACTIVITY, remedy
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I32, I64, Groups
from stepscope.records import dataclass
from stepscope.report import (
    Comparable,
    Field,
    Lines,
    Report,
    Role,
    Table,
    as_prose,
    as_table,
    duration_text,
    fields_named,
    percent,
)
from stepscope.report.relation import Counted, Merged, Relation
from stepscope.vocabulary.lookup import has_trait, name_has
from stepscope.vocabulary.traits import CallTrait, CodeTrait, OpTrait

K = EventKind

MOST_ROWS = 2000  # kept per host
_REASONS: tuple[tuple[str, tuple[IntFlag, ...]], ...] = (
    ("reads a value", (CallTrait.READS_VALUE, OpTrait.COMPARES_VALUES)),
    ("size depends on data", (OpTrait.SIZED_BY_DATA,)),
    ("copies and waits", (OpTrait.COPIES_AND_WAITS,)),
)

FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host that waits", role=Role.HOST),
    Field("call", "text", "the call that waits", role=Role.NAME),
    Field("op", "text", "the outermost op around it; unknown if the program itself waits", role=Role.NAME),
    Field("reason", "text", "why such an op waits; `explicit` without an op", role=Role.TERM),
    Field("call_site", "text", "the line of the program, if Python calls were recorded", role=Role.SOURCE),
    Field("count", "count", "number of calls", "int"),
    Field("per_step", "count", "calls per step, on average; unknown without steps"),
    Field("total_us", "us", "time in the call"),
    Field("avg_us", "us", "time per call"),
    Field("max_us", "us", "the longest call"),
    Field(
        "step_percent",
        "percent",
        "time inside steps in which such a call lasts, as a share of the time of all steps; calls of several threads "
        "that last at the same time count once",
    ),
)
READ_FIELDS: tuple[Field, ...] = (
    Field("op", "text", "the op that reads a value from a tensor: `.item()`, `float(x)`, `if x > 1`", role=Role.NAME),
    Field("call_site", "text", "the line of the program, if Python calls were recorded", role=Role.SOURCE),
    Field("count", "count", "number of calls", "int"),
    Field("per_step", "count", "calls per step, on average; unknown without steps"),
    Field("waits", "count", "calls that wait for a device", "int"),
    Field("total_us", "us", "time in the op"),
    Field("max_us", "us", "the longest call"),
)
_NO_READS = "no op that reads a value was recorded"
_SELDOM = 0.05  # times per step
_LEAST_SAID = 0.05  # percent: less is written 0.0
_MOST_SILENT = 20.0  # percent of the calls' time without work: calls return some time after it, and copies have gaps


def _empty(recorder: str) -> str:
    return f"no calls that wait for a device: if a GPU took part, {remedy(HOST_ACTIVITY, recorder)}"


CALLS = Relation(
    ("host", "call", "op", "call_site"),
    ("count", "in_steps", "total_ps", "max_ps", "in_steps_ps"),
    order=("-total_ps", "host", "call", "op", "call_site"),
    most=MOST_ROWS,
)
"""`in_steps` are the calls inside steps, and `in_steps_ps` the time inside steps in which any of them lasts."""
READS = Relation(
    ("op", "call_site"),
    ("count", "in_steps", "waits", "total_ps", "max_ps"),
    order=("-count", "op", "call_site"),
    most=MOST_ROWS,
)
"""`waits` are the calls that wait for a device."""


@dataclass(frozen=True)
class SyncsOfHost:
    """The part of one host, with its `steps`, their time, that in which any call waits, and whether any device works.

    `sync_ps` is the time that the median step is in such calls for longer than devices work, of `median_ps`;
    `silent_ps` the part of the calls' own time, `called_ps`, in which no work of a device was recorded.
    """

    origin: Origin
    calls: Counted
    reads: Counted
    steps: int
    steps_ps: int
    waits_ps: int
    sync_ps: int
    median_ps: int
    called_ps: int
    silent_ps: int
    has_device: bool


RELATIONS = {"calls": CALLS, "reads": READS}


@dataclass(frozen=True, kw_only=True)
class SyncsReport(Report):
    """Waits of the host for devices, longest total time first; see FIELDS."""

    TOOL: ClassVar[str] = "syncs"

    findings: Lines = as_prose("Waiting for devices")
    rows: Table = as_table("Calls that wait for a device", FIELDS, lambda report: _empty(report.recorder))
    reads: Table = as_table("Ops that read a value", READ_FIELDS, _NO_READS)


COMPARABLES = (
    Comparable(
        id="syncs",
        title="Calls that wait for a device",
        keys=fields_named(FIELDS, "call", "call_site"),
        measure=Field("total_us", "us", "time that the host spends in the call"),
        count="count",
        is_total=True,
        empty="the host waits for a device on neither side",
    ),
)


def partial(trace: HostTrace) -> SyncsOfHost:
    """The part of one host."""
    waits, steps = blocking_calls(trace), steps_of(trace)
    waiting = _time_in_steps(trace, waits, np.zeros(len(waits), np.int32))
    whole = int(steps.length_ps.sum()) if steps.source != "none" else 0
    called = spans_of(trace, waits)
    silent = reduce(lambda left, busy: left - busy, busy_by_device(trace).values(), called)
    return SyncsOfHost(
        origin_of(trace), _count_calls(trace, waits), _count_reads(trace, waits),
        len(steps.number) if whole else 0, whole, int(waiting.sum()),
        *_sync_in_median(trace, bool(len(waits))), called.total, silent.total, bool(is_device_work(trace).any()),
    )  # fmt: skip


def _sync_in_median(trace: HostTrace, waits: bool) -> tuple[int, int]:
    """How long the median step is in calls that wait although devices are done, by its account, and how long it is."""
    account = account_without_culprits(trace)
    if account is None:
        return 0, 0
    return sum(row.ps for row in account.rows if waits and row.cause == "sync"), account.step_ps


def _time_in_steps(trace: HostTrace, rows: I64, group: I32) -> I64:
    """For each call the time inside its step in which no earlier call of its group lasts: int64 of shape (n,), ps."""
    steps = steps_of(trace)
    label = steps.label[rows]
    start = np.maximum(trace.events.start_ps[rows], np.append(steps.start_ps, 0)[label])
    end = np.minimum(trace.events.start_ps[rows] + trace.events.duration_ps[rows], np.append(steps.until_ps, 0)[label])
    found = np.zeros(len(rows), np.int64)
    inside = np.flatnonzero((label >= 0) & (end > start))
    order = inside[np.lexsort((start[inside], group[inside]))]
    first = np.append(True, np.diff(group[order]) != 0)[: len(order)]
    # Groups one behind the other, so that the latest end so far is that of the group.
    shift = np.cumsum(first) * (int(end.max(initial=0)) + 1)
    free = np.append(0, np.maximum.accumulate(end[order] + shift))[: len(order)] - shift
    found[order] = np.maximum(end[order] - np.maximum(start[order], np.where(first, 0, free)), 0)
    return found


def _count_calls(trace: HostTrace, rows: I64) -> Counted:
    name, site = event_name_rows(trace, rows), call_sites(trace, rows)
    op = enclosing_events(trace, is_any_kind(trace.events.kind, OPS))[rows].astype(np.int64)
    op = np.where(op >= 0, event_name_rows(trace, np.maximum(op, 0)) if len(trace.events) else -1, -1)
    in_steps_ps = _time_in_steps(trace, rows, Groups.of(name, op, site).number)
    text = trace.strings.__getitem__
    keys = {
        "host": (np.zeros(len(rows), np.int64), lambda _: trace.host),
        **{"call": (name, text), "op": (op, text), "call_site": (site, lambda row: site_text(text(row)))},
    }
    return CALLS.count(keys, {**_measures(trace, rows), "in_steps_ps": in_steps_ps})


def _count_reads(trace: HostTrace, waits: I64) -> Counted:
    is_read, ops = np.zeros(len(trace.events), np.bool_), events_of_kind(trace, K.OP)
    is_read[ops] = has_trait(trace, trace.events.type[ops], CallTrait.READS_VALUE)
    outer = enclosing_events(trace, is_read)
    rows = np.flatnonzero(is_read & (outer == np.arange(len(outer))))
    waiting = np.isin(rows, outer[waits]).astype(np.int64)
    text = trace.strings.__getitem__
    keys = {
        "op": (event_name_rows(trace, rows), text),
        "call_site": (call_sites(trace, rows), lambda row: site_text(text(row))),
    }
    return READS.count(keys, {**_measures(trace, rows), "waits": waiting})


def _measures(trace: HostTrace, rows: I64) -> dict[str, I64]:
    duration = trace.events.duration_ps[rows]
    in_steps = (steps_of(trace).label[rows] >= 0).astype(np.int64)
    return {"in_steps": in_steps, "total_ps": duration, "max_ps": duration}


def merge(partials: Sequence[SyncsOfHost]) -> SyncsReport:
    """The calls of all hosts; ops of several that read a value are merged."""
    calls, reads = CALLS.merge([part.calls for part in partials]), READS.merge([part.reads for part in partials])
    steps, steps_ps, waits_ps = (
        sum(getattr(part, name) for part in partials) for name in ("steps", "steps_ps", "waits_ps")
    )

    recorder = session_recorder([part.origin for part in partials])
    of_host = {part.origin.host: part.steps_ps for part in partials}
    steps_of_host = {part.origin.host: part.steps for part in partials}

    def per_step(rows: Merged) -> list[float | None]:
        return [round(count / steps, 3) if steps else None for count in rows["in_steps"]]

    return SyncsReport(
        **header([part.origin for part in partials], _warnings(partials, calls, calls.left_out + reads.left_out)),
        findings=(
            *(_findings(calls, steps, percent(waits_ps, steps_ps)) if len(calls) else [_empty(recorder)]),
            *_describe_account(partials, percent(waits_ps, steps_ps)),
            *_read_findings(reads, steps),
        ),
        rows=calls.table(
            FIELDS,
            per_step=[
                round(count / steps_of_host[host], 3) if steps_of_host[host] else None
                for count, host in zip(calls["in_steps"], calls["host"], strict=True)
            ],
            reason=[_reason(op) for op in calls["op"]],
            avg_us=calls.mean("total_ps", "count"),
            step_percent=[
                percent(ps, of_host[host]) for ps, host in zip(calls["in_steps_ps"], calls["host"], strict=True)
            ],
        ),
        reads=reads.table(READ_FIELDS, per_step=per_step(reads)),
    )


def _reason(op: str) -> str:
    if not op:
        return "explicit"
    return next((reason for reason, traits in _REASONS if any(name_has(op, each) for each in traits)), "inside an op")


def _describe_account(partials: Sequence[SyncsOfHost], by_calls: float | None) -> Iterator[str]:
    """How much of the median step the account puts down to these calls, on the host where it is longest.

    Args:
        by_calls: the share of the steps that the calls themselves take, in percent.
    """
    part = max(partials, key=lambda part: part.median_ps)
    share = percent(part.sync_ps, part.median_ps)
    where = "median step" if part.steps else "capture"
    if share is not None and share >= LEAST_PERCENT:
        inferred = (
            ", which is more than its calls show: the account infers the rest" if share >= (by_calls or 0) + 0.1 else ""
        )
        yield f"for {share:.1f} % of the {where} it waits for an idle device{inferred}"
    elif share is not None and (by_calls or 0) >= LEAST_PERCENT and part.has_device:
        silent = percent(part.silent_ps, part.called_ps) or 0.0
        idle = f"{share:.1f} %" if share >= _LEAST_SAID else "nothing"
        if silent <= _MOST_SILENT:
            yield f"a device works nearly all that time: {idle} of the {where} is a wait for an idle one"
        else:
            yield f"for {silent:.1f} % of that time no work of a device was recorded"


def _findings(calls: Merged, steps: int, share: float | None) -> list[str]:
    frequency = _frequency_text(sum(calls["count"]), sum(calls["in_steps"]), steps)
    total = sum(calls["total_ps"])
    hosts = len({*calls["host"]})
    often = f"{frequency}, {duration_text(total / hosts / 1e9)} {'in total' if hosts == 1 else 'on each host'}"
    if (outside := total - sum(calls["in_steps_ps"])) > total / 2 and steps:
        often += f", {duration_text(outside / hosts / 1e9)} of that outside of the steps"
    if share is not None and share < LEAST_PERCENT:
        return [
            f"nothing to gain here: the host waits for a device for {share:.1f} % of each step",
            f"it waits {often}",
        ]
    if share is None:
        return [f"the host waits for a device {often}"]
    return [f"the host waits for a device for {share:.1f} % of each step", f"it waits {often}"]


def _frequency_text(count: int, in_steps: int, steps: int) -> str:
    """The count in the capture, with the count per step unless that is close to 0."""
    times = f"{count:,} times" if count != 1 else "once"
    a_step = in_steps / steps if steps else 0.0
    if a_step < _SELDOM:
        return f"{times} in the capture"
    if steps == 1:
        return times if in_steps == count else f"{times} ({in_steps:,} in the step)"
    return f"{times} ({a_step:.1f} per step)"


def _read_findings(reads: Merged, steps: int) -> list[str]:
    if not len(reads):
        return []
    often = _frequency_text(sum(reads["count"]), sum(reads["in_steps"]), steps)
    waits = sum(reads["waits"])
    waited = f"; the device was waited for {waits:,} time{'' if waits == 1 else 's'}"
    return [f"a value is read from a tensor {often}{waited if waits else ', which waits for no device'}"]


def _warnings(partials: Sequence[SyncsOfHost], calls: Merged, left_out: int) -> list[str]:
    found = [f"{left_out:,} kinds of calls are not listed"] if left_out else []
    is_known = any(calls["call_site"]) or any(name_has(call, CodeTrait.WAITS_FOR_DEVICE) for call in calls["call"])
    if not any(part.has_device for part in partials):
        found.append("no device works in this profile, so there is nothing to wait for")
    elif len(calls) and not is_known:
        how = remedy(CALL_SITES, session_recorder([part.origin for part in partials]))
        found.append(f"no Python calls were recorded: {how}")
    return found
