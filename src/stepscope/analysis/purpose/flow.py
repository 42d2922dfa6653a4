"""Where the values of a compiled program come from and where they go, across the edges of its fusions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from stepscope.model.arrays import I64
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.analysis.hlo.module import Module

_LONGEST = 64  # instructions between a value and what makes it; more is a circle in a damaged program

# The value stays, in another type, order or place.
SAME_VALUE = frozenset({
    "bitcast", "bitcast-convert", "convert", "copy", "copy-done", "copy-start", "optimization-barrier", "reshape",
    "transpose",
})  # fmt: skip
REPEATED_VALUE = SAME_VALUE | {"broadcast"}


@dataclass(frozen=True)
class Flow:
    """The values of one program."""

    module: Module

    @cached_property
    def _callers(self) -> I64:
        """The instruction that calls each computation, -1 for the first one: int64 of shape (computations,)."""
        links = self.module.callees
        callers = np.full(len(self.module.computation_names), -1, np.int64)
        known = links.rows >= 0
        callers[links.rows[known]] = links.owner[known]
        return callers

    def operand(self, row: int, place: int) -> int:
        """An operand of an instruction; -1 if it has none there."""
        offsets, rows = self.module.operands.offsets, self.module.operands.rows
        at = int(offsets[row]) + place
        return int(rows[at]) if at < offsets[row + 1] else -1

    def origin(self, row: int, through: Collection[str] = SAME_VALUE) -> int:
        """The instruction that makes the value of another, behind some opcodes and the edges of fusions."""
        for _ in range(_LONGEST):
            before = self._find_source(row, through)
            if before < 0:
                break
            row = before
        return row

    def _find_source(self, row: int, through: Collection[str]) -> int:
        opcode = self.module.opcode_of(row)
        if opcode == "parameter":
            caller = int(self._callers[self.module.computation[row]])
            fused = caller >= 0 and self.module.opcode_of(caller) in ("fusion", "call")
            return self.operand(caller, int(self.module.parameter_number[row])) if fused else -1
        if opcode in ("fusion", "call"):
            root = self._root(row)
            return -1 if root < 0 or self.module.opcode_of(root) == "tuple" else root
        if opcode == "get-tuple-element":
            return self._element(row)
        return self.operand(row, 0) if opcode in through else -1

    def _root(self, caller: int) -> int:
        called = self.module.callees.linked(caller)
        return int(self.module.roots[called[0]]) if called else -1

    def _element(self, row: int) -> int:
        """What a `get-tuple-element` takes, where the tuple is made in sight."""
        source = self.operand(row, 0)
        if source >= 0 and self.module.opcode_of(source) in ("fusion", "call"):
            source = self._root(source)
        is_tuple = source >= 0 and self.module.opcode_of(source) == "tuple"
        return self.operand(source, int(self.module.tuple_index[row])) if is_tuple else -1

    def outer(self, row: int) -> int:
        """The instruction that runs another one: itself, or the fusion around it."""
        for _ in range(_LONGEST):
            caller = int(self._callers[self.module.computation[row]])
            if not self.module.is_fused[row] or caller < 0:
                break
            row = caller
        return row

    def outers(self, rows: Iterable[int]) -> set[int]:
        """The same for several instructions."""
        return {self.outer(row) for row in rows}

    def dims(self, row: int) -> tuple[int, ...]:
        """The dimensions of an instruction's result; of a tuple none."""
        return tuple(self.module.shapes.dims_of(row))

    def sizes(self, row: int) -> set[tuple[int, ...]]:
        """The dimensions of all arrays in an instruction's result."""
        shapes = self.module.shapes
        return {tuple(shapes.dims_of(leaf)) for leaf in shapes.leaves(row)}

    def elements(self, row: int) -> int:
        """How many numbers an instruction's result has."""
        return int(self.module.shapes.elements[row])

    def results(self) -> list[int]:
        """The instructions that make the program's results."""
        root = int(self.module.roots[self.module.entry]) if self.module.entry >= 0 else -1
        if root < 0:
            return []
        return self.module.operands.linked(root) if self.module.opcode_of(root) == "tuple" else [root]

    def needed_by(self, rows: Iterable[int]) -> set[int]:
        """Some instructions of one computation and all that they take, directly or not."""
        return _reach(rows, self.module.operands.linked)

    def followers(self, rows: Iterable[int], size: tuple[int, ...]) -> set[int]:
        """Some instructions and all that take their results and give an array of a size themselves."""
        users = self.module.users.linked
        return _reach(rows, lambda row: [user for user in users(row) if size in self.sizes(user)])


def _reach(rows: Iterable[int], further: Callable[[int], Iterable[int]]) -> set[int]:
    front = list(rows)
    found = set(front)
    while front:
        front = list({each for row in front for each in further(row)} - found)
        found.update(front)
    return found
