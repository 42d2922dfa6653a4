"""The tool `op-profile`: where the time of XLA programs goes, as trees, and how much of it the hardware did not need.

There is a tree for each way to ask: by program and category, by category, by scope, and by line of the program that
asked for the op. The tree of scopes starts with the phase: forward, backward, update, or a program of the capture that
computes no gradient, such as an evaluation inside training. A fusion opens into the instructions that cost most in
it; these have no time of their own.

IDLE, below the root of each tree, is the time between the first and the last work of a device in which it had none.
Wasted time is self time above the least that the device's peaks allow, for operations and bytes whichever takes longer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, ClassVar

from stepscope.analysis.trace.origin import header
from stepscope.analysis.xla.op_table import (
    DEVICE_FIELDS,
    PROGRAM_FIELDS,
    TOTAL_FIELDS,
    UsedOp,
    device_rows,
    host_ops,
    program_rows,
    rates_of_op,
    totals,
    warnings_of,
    why_empty,
)
from stepscope.analysis.xla.ops import XlaOpsOfHost
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Field,
    Part,
    Report,
    Role,
    Row,
    Table,
    as_figures,
    as_table,
    not_in_json,
    percent,
    round_us,
)
from stepscope.vocabulary.scopes import UNKNOWN, is_gradient, is_in_package, phase_of, scopes_of

TREES = ("program", "category", "scope", "source")


@dataclass
class TreeNode:
    """A node of a tree under construction.

    Attributes:
        kind: `program`, `category`, `phase`, `scope`, `file`, `line` or `op`.
        ops: the ops below it, itself if it is one.
    """

    name: str
    kind: str
    ops: list[UsedOp] = field(default_factory=list)
    children: dict[tuple[str, str], TreeNode] = field(default_factory=dict)

    def child(self, name: str, kind: str) -> TreeNode:
        """The child of that name, made on first use."""
        return self.children.setdefault((kind, name), TreeNode(name, kind))

    @property
    def self_ps(self) -> int:
        """Time of all ops below."""
        return sum(each.op.self_ps for each in self.ops)


def tree_of(tree: str, ops: Sequence[UsedOp]) -> TreeNode:
    """One of TREES; its root is called by the tree's name."""
    root = TreeNode(tree, "root")
    trained = frozenset(each.program for each in ops if is_gradient(each.op.framework_op))
    for each in ops:
        node = root
        node.ops.append(each)
        for name, kind in _path(tree, each, trained):
            node = node.child(name, kind)
            node.ops.append(each)
    return root


def _path(tree: str, each: UsedOp, trained: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The nodes from the root to an op."""
    op = each.op
    if tree == "program":
        yield each.program, "program"
    if tree in ("program", "category"):
        yield op.category, "category"
    elif tree == "scope":
        yield phase_of(op.framework_op, each.program in trained, bool(trained)), "phase"
        for part in scopes_of(op.framework_op)[:-1]:
            yield part, "scope"
    else:
        file, _, line = _user_line(each).rpartition(":")
        yield file or UNKNOWN, "file"
        if file:
            yield f"line {line}", "line"
    yield op.name, "op"


def _user_line(each: UsedOp) -> str:
    """The innermost call that is not in an installed package, else the innermost."""
    frames = [frame.partition(" ")[0] for frame in each.op.stack]
    return next((frame for frame in frames if not is_in_package(frame)), each.op.source)


MOST_CHILDREN = 100  # of a node; the rest are one row

FIELDS: tuple[Field, ...] = (
    Field("tree", "text", "which tree: `program`, `category`, `scope` or `source`", role=Role.TERM),
    Field("id", "number", "number of the node", "int", role=Role.ORDINAL),
    Field("parent", "number", "number of the node above, unknown for the first of a tree", "int", role=Role.ORDINAL),
    Field("depth", "number", "how far below the first node of its tree it is", "int", role=Role.ORDINAL),
    Field(
        "kind",
        "text",
        "`root`, `program`, `category`, `phase`, `scope`, `file`, `line`, `op`, `idle`, or `instruction` of a fusion",
        role=Role.TERM,
    ),
    Field("name", "text", "the node", role=Role.NAME),
    Field("occurrences", "count", "how often its ops ran", "int"),
    Field("self_us", "us", "self time of all ops below"),
    Field("self_percent", "percent", "share of the time of all work of the devices"),
    Field("wasted_us", "us", "time above the least that the device's peaks allow, of ops for which that is known"),
    Field("flops", "FLOP", "operations of the ops below whose operations are known"),
    Field("gflop_per_s", "GFLOP/s", "these by the time of these ops", label="Rate"),
    Field("compute_percent", "percent", "share of the peaks for their precisions"),
    Field("gib_per_s", "GiB/s", "bytes that ops read and write, by the time of these", label="Bandwidth"),
    Field("memory_percent", "percent", "share of the device's memory bandwidth"),
)


_UNKNOWN: dict[str, Cell] = dict.fromkeys(field.name for field in FIELDS[6:])  # the figures of a node

_PARTS = (
    Part(
        "Where the time of programs goes",
        (
            *("tree", "kind", "name", "occurrences", "self_us", "self_percent", "wasted_us", "gflop_per_s"),
            *("compute_percent", "gib_per_s", "memory_percent"),
        ),
    ),
)


def _indented(row: Row) -> Row:
    return row | {"name": f"{'  ' * int(str(row['depth']))}{row['name']}"}


@dataclass(frozen=True, kw_only=True)
class OpProfileReport(Report):
    """Trees of ops; see the FIELDS tables of this module for the meaning of its parts."""

    TOOL: ClassVar[str] = "op-profile"

    rows: Table = as_table("Nodes", FIELDS, lambda report: report.empty, _PARTS, _indented)
    programs: Table = as_table("Programs", PROGRAM_FIELDS, lambda report: report.empty)
    totals: Row = as_figures("How device work is matched to instructions", TOTAL_FIELDS)
    devices: Table = as_table("Devices", DEVICE_FIELDS, "no device worked")
    empty: str = not_in_json()


def merge(partials: Sequence[XlaOpsOfHost]) -> OpProfileReport:
    """The trees of all hosts together."""
    ops = host_ops(partials)
    busy, idle = sum(part.busy_ps for part in partials), sum(part.idle_ps for part in partials)
    rows: list[dict[str, Cell]] = []
    for tree in TREES if ops else ():
        _Writer(tree, busy, idle, rows).write(tree_of(tree, ops), None, 0)
    return OpProfileReport(
        **header([part.origin for part in partials], warnings_of(partials)),
        rows=tuple(rows),
        programs=tuple(program_rows(partials, ops)),
        totals=totals(partials),
        devices=tuple(device_rows([(part.origin.host, part.devices) for part in partials])),
        empty=why_empty(partials),
    )


class _Writer:
    """Writes a tree as rows, each node before those below it."""

    def __init__(self, tree: str, busy: int, idle_ps: int, rows: list[dict[str, Cell]]) -> None:
        self.tree, self.busy, self.idle_ps, self.rows = tree, busy, idle_ps, rows

    def write(self, node: TreeNode, parent: int | None, depth: int) -> None:
        """One node and what is below."""
        place = self._put(node.name, node.kind, parent, depth, self._figures(node.ops))
        if node.kind == "op":
            for inside in node.ops[0].op.inside:
                self._put(inside.name, "instruction", place, depth + 1, _UNKNOWN | {"flops": inside.flops})
            return
        for child in _children(node):
            self.write(child, place, depth + 1)
        if parent is None and self.idle_ps:  # which is no share of the work
            self._put("IDLE", "idle", place, 1, _UNKNOWN | {"self_us": round_us(self.idle_ps)})

    def _put(self, name: str, kind: str, parent: int | None, depth: int, figures: dict[str, Cell]) -> int:
        head: dict[str, Cell] = {"tree": self.tree, "id": len(self.rows), "parent": parent, "depth": depth}
        self.rows.append(head | {"kind": kind, "name": name} | figures)
        return len(self.rows) - 1

    def _figures(self, ops: Sequence[UsedOp]) -> dict[str, Cell]:
        rates = [(each.op, rates_of_op(each.op, each.peaks)) for each in ops]
        self_ps = sum(op.self_ps for op, _ in rates)
        wasted = [max(op.self_ps - rate.least_ps, 0) for op, rate in rates if rate.least_ps is not None]
        costed = [op for op, _ in rates if op.flops is not None]
        moved = [op for op, rate in rates if rate.byte_per_s is not None]
        flops, nbytes = sum(op.flops or 0.0 for op in costed), sum(op.bytes or 0.0 for op in moved)
        shares = [
            _weighted([(getattr(rate, name), op.self_ps) for op, rate in rates])
            for name in ("compute_percent", "memory_percent")
        ]
        return {
            "occurrences": sum(op.runs for op, _ in rates),
            "self_us": round_us(self_ps),
            "self_percent": percent(self_ps, self.busy),
            "wasted_us": round_us(sum(wasted)) if wasted else None,
            "flops": flops if costed else None,
            "gflop_per_s": _rate(flops, [op for op, rate in rates if rate.flop_per_s is not None], 1e9),
            "compute_percent": shares[0],
            "gib_per_s": _rate(nbytes, moved, 2**30),
            "memory_percent": shares[1],
        }


def _children(node: TreeNode) -> Iterator[TreeNode]:
    """The nodes below, longest first; those that are too many are one."""
    children = sorted(node.children.values(), key=lambda child: (-child.self_ps, child.name))
    yield from children[:MOST_CHILDREN]
    rest = children[MOST_CHILDREN:]
    if rest:
        yield TreeNode(f"{len(rest)} more", "scope", [op for child in rest for op in child.ops])


def _rate(amount: float, ops: Sequence[Any], unit: float) -> float | None:
    seconds = sum(op.self_ps for op in ops) / 1e12
    return amount / seconds / unit if seconds > 0 else None


def _weighted(shares: Sequence[tuple[float | None, int]]) -> float | None:
    """The mean of the known shares by time."""
    known = [(share, time) for share, time in shares if share is not None]
    total = sum(time for _, time in known)
    return sum(share * time for share, time in known) / total if total else None


NOT_COMPARABLE = "hlo-stats compares the same instructions one by one"
