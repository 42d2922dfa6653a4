"""The time of XLA ops as trees: by program, by category, by scope of the framework, and by line of the program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import field

from stepscope.analysis.xla.merged import HostOp
from stepscope.records import dataclass

TREES = ("program", "category", "scope", "source")

_CALL = re.compile(r"^(?P<what>[\w.]+)\((?P<inside>.*)\)$")
_TRANSFORMS = frozenset({"jvp", "transpose", "vmap", "remat", "checkpoint", "rematted_computation", "custom_vjp_call"})
_PROGRAM_WRAPPERS = frozenset({"jit", "pjit", "pmap", "xla_computation", "shard_map"})
_GRADIENT = re.compile(r"transpose\(|gradient_tape/|gradients/|/grad/")
_FORWARD = re.compile(r"jvp\(")
_UPDATE = re.compile(r"optimizer|apply_updates|[Aa]dam|sgd|momentum|ResourceApply|update", re.ASCII)
_PACKAGES = re.compile(r"/(?:site|dist)-packages/|/lib/python3")
UNKNOWN = "unknown"


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
    trained = frozenset(each.program for each in ops if _GRADIENT.search(each.op.framework_op))
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
    return next((frame for frame in frames if not _PACKAGES.search(frame)), each.op.source)


def phase_of(op_name: str, is_trained: bool, any_trained: bool) -> str:
    """Which part of training an op belongs to, by the path of its name.

    Args:
        op_name: the op's path in the framework.
        is_trained: its program computes a gradient.
        any_trained: a program of the capture does.

    >>> phase_of("jit(step)/transpose(jvp(layer))/dot_general", True, True)
    'backward'
    """
    if not op_name:
        return UNKNOWN
    if _GRADIENT.search(op_name):
        return "backward"
    if _FORWARD.search(op_name):
        return "forward"
    if is_trained:
        return "update" if _UPDATE.search(op_name) else "update and others"
    return "evaluation and others" if any_trained else "computation"


def scopes_of(op_name: str) -> list[str]:
    """The scopes of an op and its own name, without the transformations around them.

    >>> scopes_of("jit(step)/transpose(jvp(layer))/while/body/dot_general")
    ['layer', 'while', 'body', 'dot_general']
    """
    found = []
    for part in _split(op_name):
        while (match := _CALL.match(part)) and match["what"] in _TRANSFORMS:
            part = match["inside"]
        if part and not (match and match["what"] in _PROGRAM_WRAPPERS):
            found.append(part)
    return found or [op_name]


def _split(path: str) -> Iterator[str]:
    """The parts of a path; a slash in parentheses separates none."""
    depth = start = 0
    for at, letter in enumerate(path):
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth <= 0:
            yield path[start:at]
            start = at + 1
    yield path[start:]
