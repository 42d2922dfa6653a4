"""A program as a graph: what is around an instruction, what a search finds, and the path that takes longest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stepscope.analysis.hlo.module import Module
from stepscope.analysis.hlo.texts import number_texts, texts_of
from stepscope.model.arrays import I64, distinct, run_rows
from stepscope.records import dataclass

MOST_NODES = 400  # of a picture; more cannot be read


@dataclass(frozen=True)
class Neighbourhood:
    """Instructions around others, nearest first.

    Attributes:
        rows: the instructions.
        hops: how far each is.
        cut: True if there are more than are listed.
    """

    rows: list[int]
    hops: list[int]
    cut: bool


def neighbourhood(module: Module, seeds: Sequence[int], hops: int, most: int = MOST_NODES) -> Neighbourhood:
    """The instructions within `hops` of some instructions, along operands and users, in the same computation."""
    distance = np.full(len(module), -1, np.int64)
    front = distinct(np.array([row for row in seeds if 0 <= row < len(module)], np.int64))
    distance[front] = 0
    found = [front]
    for hop in range(1, hops + 1):
        near = np.concatenate([_linked(module.operands.offsets, module.operands.rows, front)])
        near = distinct(np.concatenate([near, _linked(module.users.offsets, module.users.rows, front)]))
        front = near[(near >= 0) & (distance[np.maximum(near, 0)] < 0)]
        if not len(front) or sum(map(len, found)) > most:
            break
        distance[front] = hop
        found.append(front)
    rows = np.concatenate(found)
    return Neighbourhood(rows[:most].tolist(), distance[rows[:most]].tolist(), len(rows) > most)


def _linked(offsets: I64, rows: I64, front: I64) -> I64:
    return rows[run_rows(offsets[front], offsets[front + 1] - offsets[front])]


def edges_among(module: Module, rows: Sequence[int]) -> list[tuple[int, int]]:
    """Which of some instructions take the result of which: (producer, user), in the order of the users."""
    inside = set(rows)
    return [
        (each, row) for row in sorted(inside) for each in dict.fromkeys(module.operands.linked(row)) if each in inside
    ]


def search(module: Module, text: str, most: int = 200) -> list[int]:
    """Instructions whose name, opcode, target or framework op holds a text, in whatever case."""
    wanted = text.lower()
    opcodes = [at for at, opcode in enumerate(module.opcodes) if wanted in opcode.lower()]
    hits = np.isin(module.opcode, opcodes)
    starts, stops = module.name_ranges
    names = [row for row, name in enumerate(texts_of(module.buf, starts, stops)) if wanted in name.lower()]
    hits[names] = True
    if int(hits.sum()) < most:
        start, stop, _, _ = module.framework_op_ranges(np.arange(len(module)))
        code, ops = number_texts(module.buf, start, stop)
        hits |= np.array([wanted in op.lower() for op in ops], np.bool_)[code]
    found: list[int] = np.flatnonzero(hits)[:most].tolist()
    return found


def expensive_path(module: Module, time_ps: I64) -> list[int]:
    """The chain of instructions of the entry computation, each using the one before, that takes longest together.

    Args:
        time_ps: int64 of shape (instructions,), the time of each.
    """
    if module.entry < 0:
        return []
    first, last = module.computation_offsets[module.entry : module.entry + 2].tolist()
    offsets, rows = module.operands.offsets.tolist(), module.operands.rows.tolist()
    times = time_ps[first:last].tolist()
    best = [0] * (last - first)
    before = [-1] * (last - first)
    for row in range(first, last):
        longest, through = 0, -1
        for operand in rows[offsets[row] : offsets[row + 1]]:
            # Operands stand before their users; in a damaged program others are left out, so that there is no circle.
            if first <= operand < row and best[operand - first] > longest:
                longest, through = best[operand - first], operand
        best[row - first] = longest + times[row - first]
        before[row - first] = through
    if not best or not max(best):
        return []
    row = first + max(range(last - first), key=lambda at: best[at])
    path = []
    while row >= 0:
        path.append(row)
        row = before[row - first]
    return path[::-1]
