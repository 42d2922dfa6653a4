"""Shapes of results: element types, dimensions, layouts, and bytes."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from stepscope.analysis.hlo.fields import Fields, fields_of
from stepscope.model.arrays import I64, U8, offsets_of
from stepscope.records import dataclass

_ELEMENT_TYPE, _DIMENSIONS, _TUPLE_SHAPES, _LAYOUT = 2, 3, 4, 5
_MINOR_TO_MAJOR, _TILES, _MEMORY_SPACE, _TILE_DIMENSIONS = 1, 6, 8, 1
_DEEPEST = 16  # tuples in tuples; more is a circle or damage
_MOST_ELEMENTS = 1 << 62

# What XLA calls its element types, and their bits; by XLA's numbers.
_TYPES: dict[int, tuple[str, int]] = {
    1: ("pred", 8), 2: ("s8", 8), 3: ("s16", 16), 4: ("s32", 32), 5: ("s64", 64), 6: ("u8", 8), 7: ("u16", 16),
    8: ("u32", 32), 9: ("u64", 64), 10: ("f16", 16), 11: ("f32", 32), 12: ("f64", 64), 13: ("tuple", 0),
    14: ("opaque", 0), 15: ("c64", 64), 16: ("bf16", 16), 17: ("token", 0), 18: ("c128", 128), 19: ("f8e5m2", 8),
    20: ("f8e4m3fn", 8), 21: ("s4", 4), 22: ("u4", 4), 23: ("f8e4m3b11fnuz", 8), 24: ("f8e5m2fnuz", 8),
    25: ("f8e4m3fnuz", 8), 26: ("s2", 2), 27: ("u2", 2), 28: ("f8e4m3", 8), 29: ("f8e3m4", 8), 30: ("s1", 1),
    31: ("u1", 1), 32: ("f4e2m1fn", 4), 33: ("f8e8m0fnu", 8), 34: ("buffer", 0),
}  # fmt: skip
_BITS = np.zeros(256, np.int64)
for _number, (_, _bits) in _TYPES.items():
    _BITS[_number] = _bits
_TUPLE = 13


@dataclass(frozen=True)
class Shapes:
    """Shapes, those inside tuples included.  The first are those of the instructions, in their order.

    Attributes:
        count: how many instructions there are.
        element_type: int64 of shape (shapes,), XLA's number.
        dim_offsets, dims: dimensions of each shape: int64 of shape (shapes + 1,) and (dimensions,).
        child_offsets, children: rows of the shapes in each tuple, likewise.
        elements: int64 of shape (shapes,), elements of an array; of a tuple those of all that is in it.
        nbytes: int64 of shape (shapes,), without padding; of a tuple those of all that is in it.
        layouts: start and stop of each layout: two int64 of shape (shapes,).
    """

    buf: U8
    count: int
    element_type: I64
    dim_offsets: I64
    dims: I64
    child_offsets: I64
    children: I64
    elements: I64
    nbytes: I64
    layouts: tuple[I64, I64]

    def dims_of(self, shape: int) -> list[int]:
        """The dimensions of one shape."""
        found: list[int] = self.dims[self.dim_offsets[shape] : self.dim_offsets[shape + 1]].tolist()
        return found

    def children_of(self, shape: int) -> list[int]:
        """The shapes in a tuple."""
        found: list[int] = self.children[self.child_offsets[shape] : self.child_offsets[shape + 1]].tolist()
        return found

    def leaf(self, shape: int, index: list[int]) -> int:
        """The shape at a place in nested tuples; the outermost that there is where the place is not there."""
        for at in index:
            children = self.children_of(shape)
            if not 0 <= at < len(children):
                return shape
            shape = children[at]
        return shape

    def leaves(self, shape: int) -> list[int]:
        """The arrays in nested tuples, in order; the shape itself if it is no tuple."""
        if self.element_type[shape] != _TUPLE:
            return [shape]
        return [leaf for child in self.children_of(shape) for leaf in self.leaves(child)]

    def type_name(self, shape: int) -> str:
        """The element type as XLA writes it."""
        return _TYPES.get(int(self.element_type[shape]), ("?", 0))[0]

    def type_names(self, shapes: I64) -> list[str]:
        """The same of several shapes."""
        return [_TYPES.get(number, ("?", 0))[0] for number in self.element_type[shapes].tolist()]

    def first_leaves(self, shapes: I64) -> I64:
        """The first array in each shape: int64 of shape (shapes,)."""
        for _ in range(_DEEPEST):
            has_more = self.child_offsets[shapes + 1] > self.child_offsets[shapes]
            if not has_more.any():
                break
            first = self.children[np.where(has_more, self.child_offsets[shapes], 0)]
            shapes = np.where(has_more, first, shapes)
        return shapes

    def text(self, shape: int, layout: bool = False) -> str:
        """The shape as XLA writes it, such as `f32[32,128]` or, with layout, `f32[32,128]{1,0}`."""
        if self.element_type[shape] == _TUPLE:
            return f"({', '.join(self.text(child, layout) for child in self.children_of(shape))})"
        return f"{self.type_name(shape)}[{','.join(map(str, self.dims_of(shape)))}]{self._layout(shape) * layout}"

    def _layout(self, shape: int) -> str:
        start, stop = (int(column[shape]) for column in self.layouts)
        data = self.buf[start:stop].tobytes()
        if data not in self._layout_texts:
            self._layout_texts[data] = self._layout_text(start, stop) if data else ""
        return self._layout_texts[data]

    @cached_property
    def _layout_texts(self) -> dict[bytes, str]:
        """Layouts as text by how they are written: a program has few different ones."""
        return {}

    def _layout_text(self, start: int, stop: int) -> str:
        found = fields_of(self.buf, np.array([start]), np.array([stop]))
        order = found.numbers(_MINOR_TO_MAJOR)[1].tolist()
        _, starts, stops = found.ranges(_TILES)
        offsets, sizes = fields_of(self.buf, starts, stops).numbers(_TILE_DIMENSIONS)
        tiles = [sizes[a:b].tolist() for a, b in pairwise(offsets.tolist())]
        space = int(found.scalar(_MEMORY_SPACE)[0])
        text = ",".join(map(str, order))
        if tiles:
            text += ":T" + "".join(f"({','.join(map(str, tile))})" for tile in tiles)
        if space:
            text += ("" if tiles else ":") + f"S({space})"
        return "{" + text + "}" if text else ""

    def memory_space(self, shape: int) -> int:
        """The memory that a result lies in, as XLA numbers them; 0 is the device's main memory."""
        start, stop = (np.array([column[shape]]) for column in self.layouts)
        return int(fields_of(self.buf, start, stop).scalar(_MEMORY_SPACE)[0])


def shapes_of(buf: U8, start: I64, stop: I64) -> Shapes:
    """The shapes in some ranges, and what is in them."""
    levels: list[Fields] = []
    parents: list[I64] = []
    first = 0
    while len(start) and len(levels) < _DEEPEST:
        level = fields_of(buf, start, stop)
        levels.append(level)
        message, start, stop = level.ranges(_TUPLE_SHAPES)
        parents.append(first + message)
        first += level.count
    kinds = _concatenate([level.scalar(_ELEMENT_TYPE) for level in levels])
    counts, dims = _dimensions(levels)
    layouts = [level.range(_LAYOUT) for level in levels]
    parent = _concatenate(parents[:-1])  # of every shape but those of the first level
    top = levels[0].count if levels else 0
    children = top + np.argsort(parent, kind="stable")
    child_counts = np.bincount(parent, minlength=len(kinds))
    dim_offsets = offsets_of(counts)
    elements, nbytes = _measure_sizes(kinds, dim_offsets, dims)
    _add_up_levels(levels, parent, top, elements, nbytes)
    both = _concatenate([pair[0] for pair in layouts]), _concatenate([pair[1] for pair in layouts])
    return Shapes(buf, top, kinds, dim_offsets, dims, offsets_of(child_counts), children, elements, nbytes, both)


def _add_up_levels(levels: list[Fields], parent: I64, top: int, elements: I64, nbytes: I64) -> None:
    """Adds what is in tuples to these, the innermost first, in place."""
    ends = np.cumsum([level.count for level in levels])
    for low, high in reversed(list(zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True))):
        inside = parent[low - top : high - top]
        np.add.at(elements, inside, elements[low:high])
        np.add.at(nbytes, inside, nbytes[low:high])


def _concatenate(parts: list[I64]) -> I64:
    return np.concatenate(parts) if parts else np.zeros(0, np.int64)


def _dimensions(levels: list[Fields]) -> tuple[I64, I64]:
    """How many dimensions each shape has, and all of them."""
    found = [level.numbers(_DIMENSIONS) for level in levels]
    return _concatenate([np.diff(offsets) for offsets, _ in found]), _concatenate([values for _, values in found])


def _measure_sizes(kinds: I64, offsets: I64, dims: I64) -> tuple[I64, I64]:
    """Elements and bytes of each array; 0 for tuples and tokens, and for dimensions that are no sizes."""
    counts = np.diff(offsets)
    product = np.ones(len(kinds), np.float64)
    whole = np.ones(len(kinds), np.int64)
    for at in range(int(counts.max(initial=0))):
        here = np.flatnonzero(counts > at)
        size = np.maximum(dims[offsets[here] + at], 0)
        product[here] *= size
        whole[here] *= size
    bits = _BITS[np.clip(kinds, 0, len(_BITS) - 1)]
    whole[(product > _MOST_ELEMENTS / 128) | (bits == 0)] = 0
    return whole, (whole * bits + 7) // 8
