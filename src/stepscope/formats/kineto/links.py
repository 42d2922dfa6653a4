"""Links events: device work to the call that launched it and to its op, forward ops to backward ops.

op (External id) <- call (External id, correlation) <- kernel (correlation, External id)
"""

from __future__ import annotations

import json
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.formats.kineto.classify import LineType, is_op, kernel_computes_16bit
from stepscope.formats.kineto.document import Raw
from stepscope.formats.kineto.events import EventClasses, Kept, is_phase
from stepscope.kernels import trace_events
from stepscope.kernels import trace_json as scan
from stepscope.model import EventKind, StatTag, Trait
from stepscope.model.arrays import I32, I64, U8, Mask, distinct, number_pairs, places_of
from stepscope.model.stat_names import CORRELATION_ID, FRAMEWORK_OP, STEP_NUM
from stepscope.records import dataclass
from stepscope.vocabulary.precision import inputs_are_16bit
from stepscope.vocabulary.torch import DISPATCH_MODES, MEMORY_NAME, step_number

EXTERNAL_ID = "External id"
FLOW_ID = "fwdbwd_id"

# Spellings of older releases, and the names that the model uses instead.
_SPELLINGS = {"correlation": CORRELATION_ID[0], "external id": EXTERNAL_ID, "connection_id": CORRELATION_ID[0]}
_LAUNCHES = ("async_npu", "cpu_to_cuda")  # arrows from ops to the work that they launch
_MISSING = -1

_BYTES, _COLLECTIVE, _INPUT_TYPE = "Bytes", "Collective name", "Input type"
_LINKING = (EXTERNAL_ID, CORRELATION_ID[0], _BYTES, _COLLECTIVE, _INPUT_TYPE)


@dataclass
class Extra:
    """Stats that are derived, not stored in the trace, as columns; `event` is a row of `Kept`."""

    event: list[I64] = field(default_factory=list)
    name: list[I32] = field(default_factory=list)
    tag: list[U8] = field(default_factory=list)
    value: list[I64] = field(default_factory=list)

    def add(self, event: I64, name: int, tag: StatTag, value: NDArray[np.integer]) -> None:
        """Adds one stat to each of some events."""
        self.event.append(np.asarray(event, np.int64))
        self.name.append(np.full(len(event), name, np.int32))
        self.tag.append(np.full(len(event), tag, np.uint8))
        self.value.append(np.asarray(value, np.int64))


def unescape(raw: Raw) -> None:
    """Decodes the escapes of all texts, in place."""
    became = raw.texts.unescape()
    if not np.array_equal(became, np.arange(len(became))):
        for column in (raw.cat, raw.name, raw.pid, raw.tid, raw.stat_name):
            column[:] = became[column]
        texts = raw.stat_tag == StatTag.STRING
        raw.stat_value[texts] = became[raw.stat_value[texts]]


def canonical_names(raw: Raw) -> I32:
    """The name to give to a stat that has one of these texts for its name in the file: int32 of shape (texts,)."""
    names = np.arange(len(raw.texts), dtype=np.int32)
    for old, new in _SPELLINGS.items():
        row = raw.texts.add(old)
        if row < len(names):
            names[row] = raw.texts.add(new)
    return names


class StatColumns:
    """Stats of the file that links are made of, as dense columns over the kept events; found in one walk."""

    def __init__(self, raw: Raw, kept: Kept, names: I32) -> None:
        self._slots = {name: slot for slot, name in enumerate(_LINKING)}
        slot_of_name = np.full(len(names), _MISSING, np.int16)
        for name, slot in self._slots.items():
            slot_of_name[names == raw.texts.add(name)] = slot
        self._value = np.empty((len(_LINKING), len(kept)), np.int64)
        self._tag = np.zeros((len(_LINKING), len(kept)), np.uint8)
        kernels.stats.gather(
            raw.stat_offsets, kept.row, raw.stat_name, raw.stat_tag, raw.stat_value, slot_of_name,
            self._value, self._tag,
        )  # fmt: skip

    def ints(self, name: str) -> I64:
        """An integer stat of each event, -1 where there is none."""
        tag = self._tag[self._slots[name]]
        return self._dense(name, (tag == StatTag.INT) | (tag == StatTag.UINT))

    def texts(self, name: str) -> I64:
        """A text stat of each event, -1 where there is none."""
        return self._dense(name, self._tag[self._slots[name]] == StatTag.STRING)

    def _dense(self, name: str, known: Mask) -> I64:
        return np.where(known, self._value[self._slots[name]], _MISSING)


class Lookup:
    """Finds the event with an id; the first of several."""

    def __init__(self, ids: I64, events: I64) -> None:
        order = np.argsort(ids, kind="stable")
        self._ids, self._events = ids[order], events[order]

    def __call__(self, ids: I64) -> I64:
        """The events with these ids; -1 where there is none or the id is not positive."""
        return np.where(ids > 0, np.append(self._events, _MISSING)[places_of(self._ids, ids)], _MISSING)


def link(raw: Raw, classes: EventClasses, kept: Kept, names: I32) -> Extra:
    """Finds all links.  Corrects kinds and traits in place, and returns the other results as stats.

    `names` is what `canonical_names` returns.
    """
    extra = Extra()
    stats = StatColumns(raw, kept, names)
    _set_dispatch_modes_aside(raw, classes, kept)
    _mark_deallocations(raw, classes, kept, stats)
    _mark_collectives(kept, stats)
    _number_steps(raw, classes, kept, extra)
    device = np.flatnonzero(kept.place == LineType.STREAM)
    texts = raw.texts
    class_is_op = [
        is_op(texts[cat], kind) for cat, kind in zip(classes.cat.tolist(), classes.kind.tolist(), strict=True)
    ]
    ops = np.flatnonzero(np.array(class_is_op, np.bool_)[kept.event_class])
    op_of = _find_ops(raw, kept, stats, device, ops)
    linked = op_of >= 0
    extra.add(device[linked], texts.add(FRAMEWORK_OP[0]), StatTag.STRING, classes.name[kept.event_class[op_of[linked]]])
    _mark_16bit(raw, classes, kept, stats, device, ops, op_of)
    _store_flows(raw, kept, ops, extra)
    return extra


def _set_dispatch_modes_aside(raw: Raw, classes: EventClasses, kept: Kept) -> None:
    """Ops that a mode of Python only passes on become other events, in place: the same op runs inside them."""
    modes = np.isin(classes.name, [raw.texts.add(name) for name in DISPATCH_MODES])
    if not modes.any():
        return
    ops = np.flatnonzero(kept.kind == EventKind.OP)
    thread, _ = number_pairs(raw.pid[kept.row[ops]], raw.tid[kept.row[ops]])
    start, end = kept.start_ps[ops], kept.start_ps[ops] + kept.duration_ps[ops]
    order = np.lexsort((-end, start, thread))
    ops, parent, scratch = ops[order], np.empty(len(ops), np.int64), np.empty(len(ops), np.int64)
    trace_events.innermost(
        thread[order].astype(np.int64), start[order], end[order], np.ones(len(ops), np.bool_), scratch, parent
    )
    is_mode, name = modes[kept.event_class[ops]], classes.name[kept.event_class[ops]]
    inner = np.flatnonzero((parent >= 0) & is_mode[parent] & (parent[parent] >= 0))
    outer = parent[parent[inner]]
    passed_on = outer[name[outer] == name[inner]]
    kept.kind[ops[passed_on]] = EventKind.OTHER
    kept.kind[ops[is_mode]] = EventKind.OTHER


def _mark_deallocations(raw: Raw, classes: EventClasses, kept: Kept, stats: StatColumns) -> None:
    """Allocations of negative bytes become deallocations, in place."""
    memory = (classes.name == raw.texts.add(MEMORY_NAME))[kept.event_class] & (kept.kind == EventKind.ALLOCATION)
    if memory.any():
        kept.kind[memory & (stats.ints(_BYTES) < 0)] = EventKind.DEALLOCATION


def _mark_collectives(kept: Kept, stats: StatColumns) -> None:
    """Kernels with the details of a collective become collectives, whatever their name, in place."""
    kept.kind[(kept.kind == EventKind.KERNEL) & (stats.texts(_COLLECTIVE) >= 0)] = EventKind.COLLECTIVE


def _number_steps(raw: Raw, classes: EventClasses, kept: Kept, extra: Extra) -> None:
    marks = np.flatnonzero(kept.kind == EventKind.STEP_MARK)
    numbers = [step_number(raw.texts[name]) for name in classes.name[kept.event_class[marks]].tolist()]
    extra.add(marks, raw.texts.add(STEP_NUM[0]), StatTag.INT, np.array(numbers, np.int64))


def _find_ops(raw: Raw, kept: Kept, stats: StatColumns, device: I64, ops: I64) -> I64:
    """The op that launched each piece of device work, -1 if none is known: int64 of shape (device,)."""
    if not len(device) or not len(ops):
        return np.full(len(device), _MISSING, np.int64)
    external, correlation = stats.ints(EXTERNAL_ID), stats.ints(CORRELATION_ID[0])
    # Some releases store the correlation id if they know no op; that is not the id of an op.
    external = np.where(external == correlation, _MISSING, external)
    op_with = Lookup(external[ops], ops)
    calls = np.flatnonzero(
        np.isin(kept.kind, (EventKind.RUNTIME_CALL, EventKind.SYNC)) & (kept.place == LineType.THREAD)
    )
    call = Lookup(correlation[calls], calls)(correlation[device])
    op_of = op_with(external[device])
    started = op_of < 0  # by an op without a call in between, as in timelines of TensorFlow 1
    op_of[started] = Lookup(correlation[ops], ops)(correlation[device[started]])
    through_call = (op_of < 0) & (call >= 0)
    op_of[through_call] = op_with(external[call[through_call]])
    lost = np.flatnonzero((op_of < 0) & (call >= 0))
    if len(lost):
        asked, back = np.unique(call[lost], return_inverse=True)
        op_of[lost] = _find_enclosing_ops(raw, kept, ops, asked)[back]
    by_arrow = _find_ops_by_arrow(raw, kept, ops, device) if (op_of < 0).any() else op_of
    return np.where(op_of < 0, by_arrow, op_of)


def _find_ops_by_arrow(raw: Raw, kept: Kept, ops: I64, device: I64) -> I64:
    """The op at whose start an arrow begins that ends at the start of device work, -1 if there is none: int64 of shape
    (device,)."""
    found = np.full(len(device), _MISSING, np.int64)
    known, cats = len(raw.texts), [raw.texts.add(name) for name in _LAUNCHES]
    if min(cats) >= known:
        return found
    arrows = np.flatnonzero(is_phase(raw, "sf") & np.isin(raw.cat, cats) & ((raw.flags & scan.HAS_FLOW) != 0))
    rows = np.concatenate([kept.row[ops], kept.row[device], arrows])
    thread, _ = number_pairs(raw.pid[rows], raw.tid[rows])
    moment, _ = number_pairs(raw.us[rows], raw.frac_ps[rows])
    place = number_pairs(thread, moment)[0].astype(np.int64) + 1
    of_op, of_work, of_arrow = np.split(place, [len(ops), len(ops) + len(device)])
    begins = raw.phase[arrows] == ord("s")
    op = Lookup(of_op, ops)(of_arrow[begins])
    flow_of_work = Lookup(of_arrow[~begins], np.arange(int((~begins).sum())))(of_work)
    key = number_pairs(raw.cat[arrows], raw.flow[arrows])[0].astype(np.int64) + 1
    op_of_flow = Lookup(key[begins], op)
    ended = flow_of_work >= 0
    found[ended] = op_of_flow(key[~begins][flow_of_work[ended]])
    return found


def _find_enclosing_ops(raw: Raw, kept: Kept, ops: I64, calls: I64) -> I64:
    """The innermost op that encloses each call on its thread, -1 if there is none: int64 of shape (calls,)."""
    events = np.concatenate([ops, calls])
    thread, _ = number_pairs(raw.pid[kept.row[events]], raw.tid[kept.row[events]])
    start, end = kept.start_ps[events], kept.start_ps[events] + kept.duration_ps[events]
    holds = np.arange(len(events)) < len(ops)
    order = np.lexsort((~holds, -end, start, thread))
    found = np.empty(len(events), np.int64)
    scratch = np.empty(len(events), np.int64)
    trace_events.innermost(thread[order].astype(np.int64), start[order], end[order], holds[order], scratch, found)
    nearest = np.full(len(events), _MISSING, np.int64)
    nearest[order] = np.where(found >= 0, events[order][found], _MISSING)
    return nearest[len(ops) :]


def _mark_16bit(
    raw: Raw, classes: EventClasses, kept: Kept, stats: StatColumns, device: I64, ops: I64, op_of: I64
) -> None:
    """Marks work in 16 bits, in place: ops by their input types, kernels by their names or else by their op."""
    types = stats.texts(_INPUT_TYPE)
    known = {text: _has_narrow_types(raw.texts.raw(text)) for text in distinct(types[ops]).tolist() if text >= 0}
    narrow = np.zeros(len(kept), np.bool_)
    narrow[ops] = np.isin(types[ops], [text for text, yes in known.items() if yes])
    kernel = kept.kind[device] == EventKind.KERNEL
    rows, its_op = device[kernel], op_of[kernel]
    event_class = kept.event_class[rows]
    different = np.flatnonzero(np.bincount(event_class, minlength=len(classes.name)))
    answer = np.zeros(len(classes.name), np.int8)
    answers = (kernel_computes_16bit(raw.texts[name]) for name in classes.name[different].tolist())
    answer[different] = [_MISSING if known is None else known for known in answers]
    by_name, silent = (answer == 1)[event_class], (answer == _MISSING)[event_class]
    narrow[rows] = by_name | (silent & (its_op >= 0) & narrow[its_op])
    kept.traits[narrow] |= np.uint8(Trait.COMPUTES_16BIT)


def _has_narrow_types(json_text: bytes) -> bool:
    try:
        types = json.loads(json_text)
    except (ValueError, RecursionError):
        return False
    return isinstance(types, list) and inputs_are_16bit(types)


def _store_flows(raw: Raw, kept: Kept, ops: I64, extra: Extra) -> None:
    """Stores the number of each arrow from forward to backward with the two ops that start at its ends."""
    has_id = (raw.flags & scan.HAS_FLOW) != 0
    arrows = np.flatnonzero(is_phase(raw, "sf") & (raw.cat == raw.texts.add("fwdbwd")) & has_id)
    if not len(arrows) or not len(ops):
        return
    rows = np.concatenate([kept.row[ops], arrows])
    thread, _ = number_pairs(raw.pid[rows], raw.tid[rows])
    moment, _ = number_pairs(raw.us[rows], raw.frac_ps[rows])
    place, _ = number_pairs(thread, moment)
    op = Lookup(place[: len(ops)].astype(np.int64) + 1, ops)(place[len(ops) :].astype(np.int64) + 1)
    hit = op >= 0
    extra.add(op[hit], raw.texts.add(FLOW_ID), StatTag.INT, raw.flow[arrows[hit]])
