"""The time of XLA ops as trees: by program, by category, by scope of the framework, and by line of the program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from stepscope.analysis.xla.merged import HostOp
from stepscope.records import dataclass
from stepscope.vocabulary.scopes import UNKNOWN, is_gradient, is_in_package, phase_of, scopes_of

TREES = ("program", "category", "scope", "source")


@dataclass
class Node:
    """A node of a tree under construction.

    Attributes:
        kind: `program`, `category`, `phase`, `scope`, `file`, `line` or `op`.
        ops: the ops below it, itself if it is one.
    """

    name: str
    kind: str
    ops: list[HostOp] = field(default_factory=list)
    children: dict[tuple[str, str], Node] = field(default_factory=dict)

    def child(self, name: str, kind: str) -> Node:
        """The child of that name, made on first use."""
        return self.children.setdefault((kind, name), Node(name, kind))

    @property
    def self_ps(self) -> int:
        """Time of all ops below."""
        return sum(each.op.self_ps for each in self.ops)


def tree_of(tree: str, ops: Sequence[HostOp]) -> Node:
    """One of TREES; its root is called by the tree's name."""
    root = Node(tree, "root")
    trained = frozenset(each.program for each in ops if is_gradient(each.op.framework_op))
    for each in ops:
        node = root
        node.ops.append(each)
        for name, kind in _path(tree, each, trained):
            node = node.child(name, kind)
            node.ops.append(each)
    return root


def _path(tree: str, each: HostOp, trained: frozenset[str]) -> Iterator[tuple[str, str]]:
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


def _user_line(each: HostOp) -> str:
    """The innermost call that is not in an installed package, else the innermost."""
    frames = [frame.partition(" ")[0] for frame in each.op.stack]
    return next((frame for frame in frames if not is_in_package(frame)), each.op.source)
