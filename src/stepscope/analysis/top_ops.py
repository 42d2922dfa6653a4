"""Which ops take most time: self time by op, on the devices or, where there is none, on the host."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.analysis.grouping import forest, is_device_work, spread_labels
from stepscope.model import EventKind, HostTrace, Trait, stat_names

I64 = NDArray[np.int64]
MOST_OPS = 1000  # kept per host
K = EventKind

# name:Type of TensorFlow, scope:primitive[parameters] of JAX.
_TYPED = re.compile(r"(?P<name>[^:]+):(?P<type>[A-Za-z_]\w*)(?:\[.*\])?", re.DOTALL)

_COPIES = {
    K.COPY_HOST_TO_DEVICE: "copy host to device",
    K.COPY_DEVICE_TO_HOST: "copy device to host",
    K.COPY_DEVICE_TO_DEVICE: "copy device to device",
    K.COPY_PEER: "copy between devices",
    K.COPY_OTHER: "copy",
    K.MEMSET: "memset",
}
# What counts as an op on a host, best first: a trace without the one is ranked by the next.
_HOST_OPS: tuple[tuple[EventKind, ...], ...] = (
    (K.OP, K.BACKWARD),
    (K.ANNOTATION,),
    (K.TRACED_FUNCTION,),
    (K.PYTHON_CALL,),
)
_JOINTS = str.maketrans("", "", "_-.")


@dataclass(frozen=True)
class OpTime:
    """One op, its self time and how often it ran."""

    name: str
    category: str
    self_ps: int
    calls: int


@dataclass(frozen=True)
class OpTable:
    """The ops of one host or device class.

    Attributes:
        ops: by self time, longest first, at most MOST_OPS.
        total_self_ps: of all ops, also those that are not in the list.
        total_calls: likewise.
        eager_self_ps: self time of ops that were dispatched one by one; None where the trace does not tell.
    """

    ops: list[OpTime]
    total_self_ps: int
    total_calls: int
    eager_self_ps: int | None


def device_ops(trace: HostTrace) -> OpTable:
    """Ops by device time.  Kernels of one op add up; an op is named by its HLO op, its framework op, or its kernel."""
    rows = np.flatnonzero(is_device_work(trace))
    parent = forest(trace).parent
    counts = np.zeros(len(trace.events), np.bool_)
    counts[rows] = True
    return _table(trace, rows, _self_times(trace, parent, counts)[rows], _op_names(trace, rows), None)


def host_ops(trace: HostTrace) -> OpTable:
    """Ops by time on the host's threads."""
    kinds = next((kinds for kinds in _HOST_OPS if np.isin(trace.events.kind, kinds).any()), _HOST_OPS[0])
    counts = np.isin(trace.events.kind, kinds)
    rows = np.flatnonzero(counts)
    own = _self_times(trace, forest(trace).parent, counts)[rows]
    eager = _eager(trace)
    eager_ps = None if eager is None else int(np.maximum(own, 0)[eager[rows]].sum())
    return _table(trace, rows, own, trace.event_names()[rows].astype(np.int64), eager_ps)


def _self_times(trace: HostTrace, parent: NDArray[np.int32], counts: NDArray[np.bool_]) -> I64:
    own = np.empty(len(trace.events), np.int64)
    kernels.nesting.self_times(trace.events.duration_ps, parent, counts, own)
    return own


def _op_names(trace: HostTrace, rows: I64) -> I64:
    """String row of the op that each event belongs to."""
    name = trace.event_names()[rows].astype(np.int64)
    framework, hlo = trace.stat_strings(stat_names.FRAMEWORK_OP)[rows], trace.stat_strings(stat_names.HLO_OP)[rows]
    name = np.where(framework > 0, framework, name)
    return np.where(hlo > 0, hlo, name)


def _eager(trace: HostTrace) -> NDArray[np.bool_] | None:
    """Whether each event was dispatched eagerly, None if the trace holds no eager dispatch at all."""
    dispatch = np.flatnonzero(trace.events.kind == K.EAGER_EXECUTE)
    marked = (trace.events.traits & np.uint8(Trait.EAGER)) != 0
    if not len(dispatch):
        return marked if marked.any() else None
    function = trace.stat_ints(stat_names.IS_FUNCTION)[dispatch]
    label = np.full(len(trace.events), -1, np.int32)
    label[dispatch[function >= 0]] = function[function >= 0]
    eager: NDArray[np.bool_] = marked | (spread_labels(trace, label) == 0)
    return eager


def _table(trace: HostTrace, rows: I64, own: I64, names: I64, eager_ps: int | None) -> OpTable:
    unique, inverse = np.unique(names, return_inverse=True)
    inverse = inverse.reshape(-1)
    own = np.maximum(own, 0)
    total = np.zeros(len(unique), np.int64)
    np.add.at(total, inverse, own)
    calls = np.bincount(inverse, minlength=len(unique))
    kind = np.zeros(len(unique), np.uint8)
    kind[inverse] = trace.events.kind[rows]
    merged: dict[tuple[str, str], list[int]] = {}
    for row, name in enumerate(unique.tolist()):
        entry = merged.setdefault(parse_op(trace.strings[name], EventKind(kind[row])), [0, 0])
        entry[0] += int(total[row])
        entry[1] += int(calls[row])
    ops = [OpTime(*key, *value) for key, value in merged.items()]
    ops.sort(key=lambda op: (-op.self_ps, op.name))
    return OpTable(ops[:MOST_OPS], int(own.sum()), len(rows), eager_ps)


def parse_op(text: str, kind: EventKind) -> tuple[str, str]:
    """Name and category of an op.

    >>> parse_op("model/dense/MatMul:MatMul", EventKind.OP)
    ('model/dense/MatMul', 'MatMul')
    >>> parse_op("%copy-done.2 = f32[5,8]{1,0:T(8,128)} copy-done((f32[5,8], u32[]{:S(2)}) %x)", EventKind.DEVICE_OP)
    ('copy-done.2', 'copy-done')
    """
    text = text.partition("#")[0] or text  # older writers append facts as #key=value#
    if kind in _COPIES:
        return text.partition(":")[0] or text, _COPIES[kind]
    if kind == EventKind.COLLECTIVE:
        return text, "collective"
    if kind == EventKind.PYTHON_CALL:
        return text.lstrip("$"), "Python"
    if text.startswith("%"):  # a whole HLO instruction
        name, _, expression = text.partition(" = ")
        return name.lstrip("%"), _opcode(expression)
    if text.startswith("aten::"):
        return text, text.removeprefix("aten::")
    typed = _TYPED.fullmatch(text)
    if typed:
        return typed["name"], typed["type"]
    if len(text) > 1 and text.endswith(":"):  # TensorFlow's way to say that the type is the name's last part
        return text[:-1], re.sub(r"_\d+$", "", text[:-1].rpartition("/")[2])
    if kind == EventKind.OP or kind.is_device:
        return text, _word(text) or ("kernel" if kind.is_device else "op")
    return text, "op"


def _opcode(expression: str) -> str:
    """The opcode of `shape opcode(operands)`, where a shape may hold spaces inside parentheses of its own."""
    depth = 0
    for at, char in enumerate(expression):
        depth += (char in "({[") - (char in ")}]")
        if char == " " and not depth:
            return expression[at + 1 :].partition("(")[0].strip() or "op"
    return "op"


def _word(text: str) -> str:
    """What sort of op a short name speaks of: the name without its number; empty for other names."""
    stem = text.rstrip("0123456789").rstrip("._")
    return stem if len(stem) <= 40 and stem.translate(_JOINTS).isalnum() else ""


def add_tables(tables: Sequence[OpTable]) -> OpTable:
    """The ops of several hosts together."""
    merged: dict[tuple[str, str], list[int]] = {}
    for table in tables:
        for op in table.ops:
            entry = merged.setdefault((op.name, op.category), [0, 0])
            entry[0] += op.self_ps
            entry[1] += op.calls
    ops = sorted((OpTime(*key, *value) for key, value in merged.items()), key=lambda op: (-op.self_ps, op.name))
    known = [table.eager_self_ps for table in tables if table.eager_self_ps is not None]
    return OpTable(
        ops=ops,
        total_self_ps=sum(table.total_self_ps for table in tables),
        total_calls=sum(table.total_calls for table in tables),
        eager_self_ps=sum(known) if known else None,
    )
