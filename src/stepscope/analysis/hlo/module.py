"""One XLA program as columns: its computations and instructions, read from a serialized HloProto.

    HloProto 1: module { 1: name, 3: computation { 1: name, 2: instruction {...}, 5: id, 6: root }, 17: stack frames }
             3: buffer assignment

The fields of all instructions are found in one pass; what they hold is decoded when it is first used.
A program that is cut keeps what lies before the cut; links to computations or instructions that are not there are -1.
"""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise

import numpy as np

from stepscope.analysis.hlo.fields import Fields, fields_of
from stepscope.analysis.hlo.sources import Sources
from stepscope.analysis.hlo.texts import find_texts, number_texts, texts_of
from stepscope.model.arrays import I64, U8, Mask, offsets_of, places_of
from stepscope.records import dataclass

# ---- Shapes of results -----------------------------------------------------------------------------------------------
# element types, dimensions, layouts, and bytes.


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


FUSION_KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output", "kCustom": "custom"}

_MODULE, _BUFFER_ASSIGNMENT = 1, 3
_NAME, _ENTRY_NAME, _COMPUTATION, _PROGRAM_SHAPE, _ENTRY_ID, _SCHEDULE, _STACK_FRAMES = 1, 2, 3, 4, 6, 7, 17
_PARAMETERS, _RESULT, _PARAMETER_NAMES = 1, 2, 3  # of a program's shape
_COMPUTATION_NAME, _INSTRUCTION, _COMPUTATION_ID, _ROOT_ID = 1, 2, 5, 6
# Of an instruction, and of its metadata.
_INSTRUCTION_NAME, _OPCODE, _SHAPE, _METADATA, _PARAMETER, _FUSION_KIND, _TUPLE_INDEX = 1, 2, 3, 7, 9, 11, 13
_LITERAL, _LITERAL_NUMBERS, _WHOLE_NUMBERS = 8, range(2, 25), (4, 5)  # a field for the numbers of each type
_TARGET, _ID, _OPERANDS, _CALLED, _BACKEND_CONFIG = 28, 35, 36, 38, 43
_OP_TYPE, _OP_NAME = 1, 2
_SEQUENCE, _SEQUENCE_KEY, _SEQUENCE_VALUE, _SEQUENCE_IDS = 1, 1, 2, 1
# Fields that say what an op computes: dimensions, window, convolution, dot, feature groups, batch groups, precision.
DIMENSIONS, WINDOW, CONVOLUTION, DOT, FEATURE_GROUPS, BATCH_GROUPS, FFT_LENGTH = 14, 15, 16, 30, 50, 58, 32


@dataclass(frozen=True)
class LinkedRows:
    """Several rows for each instruction.

    Attributes:
        offsets: int64 of shape (instructions + 1,).
        rows: int64 of shape (links,), -1 for what the program refers to but does not hold.
    """

    offsets: I64
    rows: I64

    def linked(self, row: int) -> list[int]:
        """The rows that one instruction refers to and the program holds."""
        return [each for each in self.rows[self.offsets[row] : self.offsets[row + 1]].tolist() if each >= 0]

    @property
    def owner(self) -> I64:
        """The instruction of each link: int64 of shape (links,)."""
        return np.repeat(np.arange(len(self.offsets) - 1), np.diff(self.offsets))


@dataclass(frozen=True)
class Module:
    """The instructions of a program.

    Attributes:
        buf: uint8 of shape (bytes,), the serialized HloProto.
        name: the module's name.
        computation_names: the names of the computations, in order.
        computation_offsets: int64 of shape (computations + 1,): the instructions of a computation are neighbours.
        computation: int64 of shape (instructions,), row of the computation.
        computation_ids: int64 of shape (computations,), as the program numbers them.
        entry: row of the computation that runs first, -1 if there is none.
        damaged: True if a part could not be read.
        parts, module_parts: the fields of the HloProto and of its module.
        root_ids: int64 of shape (computations,), id of the instruction that makes a computation's result.
        starts, stops: int64 of shape (instructions,), where each instruction lies in `buf`.
        instructions: the fields of the instructions.
    """

    buf: U8
    name: str
    computation_names: tuple[str, ...]
    computation_offsets: I64
    computation: I64
    computation_ids: I64
    entry: int
    damaged: bool
    parts: Fields
    module_parts: Fields
    root_ids: I64
    starts: I64
    stops: I64
    instructions: Fields

    def __len__(self) -> int:
        return len(self.starts)

    @cached_property
    def ids(self) -> I64:
        """The instructions as the program numbers them: int64 of shape (instructions,)."""
        return self.instructions.scalar(_ID)

    @cached_property
    def roots(self) -> I64:
        """The instruction that makes each computation's result: int64 of shape (computations,), or -1."""
        computations = np.arange(len(self.computation_names))
        return _find_in_computation(self.ids, self.computation, self.root_ids, computations)

    # -- texts ---------------------------------------------------------------------------------------------------

    def text(self, start: int, stop: int) -> str:
        """A text of the program."""
        data: bytes = self.buf[start:stop].tobytes()
        return data.decode("utf-8", "replace")

    def instruction_name(self, row: int) -> str:
        """The name of an instruction."""
        starts, stops = self.name_ranges
        return self.text(int(starts[row]), int(stops[row]))

    @cached_property
    def name_ranges(self) -> tuple[I64, I64]:
        """Start and stop of each instruction's name: two int64 of shape (instructions,)."""
        return self.instructions.range(_INSTRUCTION_NAME)

    @cached_property
    def opcode(self) -> I64:
        """What each instruction does: int64 of shape (instructions,), place in `opcodes`."""
        return self._opcodes[0]

    @property
    def opcodes(self) -> tuple[str, ...]:
        """The different opcodes; the first is empty."""
        return self._opcodes[1]

    @cached_property
    def _opcodes(self) -> tuple[I64, tuple[str, ...]]:
        return number_texts(self.buf, *self.instructions.range(_OPCODE))

    def opcode_of(self, row: int) -> str:
        """What an instruction does."""
        return self.opcodes[int(self.opcode[row])]

    def is_opcode(self, *wanted: str) -> Mask:
        """Which instructions do one of these: bool of shape (instructions,)."""
        is_wanted = np.array([opcode in wanted for opcode in self.opcodes], np.bool_)
        found: Mask = is_wanted[self.opcode]
        return found

    def target_of(self, row: int) -> str:
        """What a custom call calls; empty for others."""
        return self._rare_text(row, _TARGET)

    def backend_config_of(self, row: int) -> str:
        """What the backend noted for an instruction, mostly JSON."""
        return self._rare_text(row, _BACKEND_CONFIG)

    def _rare_text(self, row: int, number: int) -> str:
        start, stop = self.fields_of(np.array([row])).range(number)
        return self.text(int(start[0]), int(stop[0]))

    def fusion_kind_of(self, row: int) -> str:
        """`kLoop` and the like; empty for what is no fusion."""
        return self._rare_text(row, _FUSION_KIND)

    def number_fusion_kinds(self, rows: I64) -> tuple[I64, tuple[str, ...]]:
        """The fusion kinds of several instructions: int64 of shape (rows,), and the different kinds."""
        starts, stops = self.instructions.range(_FUSION_KIND)
        return number_texts(self.buf, starts[rows], stops[rows])

    def fields_of(self, rows: I64) -> Fields:
        """All fields of some instructions, for what only few of them have."""
        return fields_of(self.buf, self.starts[rows], self.stops[rows])

    def part_of(self, row: int, number: int) -> Fields:
        """The fields of a message in an instruction; none if it has no such message."""
        return fields_of(self.buf, *self.fields_of(np.array([row])).range(number))

    def literal_of(self, row: int) -> bytes:
        """The numbers of a constant, one after another; empty for others, and where the program does not hold them."""
        literal = self.part_of(row, _LITERAL)
        parts = [literal.range(number) for number in _LITERAL_NUMBERS] if literal.count else []
        return b"".join(self.buf[int(start[0]) : int(stop[0])].tobytes() for start, stop in parts)

    def number_of(self, row: int) -> int | None:
        """The number of a constant that is one whole number; None for all others."""
        literal = self.part_of(row, _LITERAL)
        values = [value for number in _WHOLE_NUMBERS for value in literal.numbers(number)[1].tolist()]
        return values[0] if len(values) == 1 else None

    def axes_of(self, row: int) -> tuple[int, ...]:
        """The axes that a broadcast has from its operand, or that a sum goes over."""
        return tuple(self.fields_of(np.array([row])).numbers(DIMENSIONS)[1].tolist())

    def framework_op_ranges(self, rows: I64) -> tuple[I64, I64, I64, I64]:
        """Where name and type of the framework's op of some instructions lie: start and stop of each."""
        starts, stops = self.instructions.range(_METADATA)
        found = fields_of(self.buf, starts[rows], stops[rows])
        return *found.range(_OP_NAME), *found.range(_OP_TYPE)

    # -- search --------------------------------------------------------------------------------------------------

    def row_of(self, name: str) -> int:
        """The instruction of a name, -1 if there is none; see `find_rows`."""
        wanted = np.frombuffer(name.encode(), np.uint8)
        return int(self.find_rows(wanted, np.array([0]), np.array([len(wanted)]))[0])

    def rows_of(self, computation: int) -> range:
        """The instructions of a computation."""
        return range(*self.computation_offsets[computation : computation + 2].tolist())

    def rows_called(self, row: int) -> list[int]:
        """The instructions of the computations that one calls: of a fusion its body."""
        return [each for called in self.callees.linked(row) for each in self.rows_of(called)]

    def find_rows(self, buf: U8, starts: I64, stops: I64) -> I64:
        """Instructions by their names: int64 of shape (names,), -1 for what is not there.

        The entry computation's instructions win over others of the same name.

        Args:
            buf: uint8 of shape (bytes,), holds the names; starts, stops: int64 of shape (names,).
        """
        order = self._search_order
        name_starts, name_stops = (column[order] for column in self.name_ranges)
        found = find_texts(self.buf, name_starts, name_stops, buf, starts, stops)
        return np.where(found >= 0, order[found], -1) if len(order) else found

    @cached_property
    def _search_order(self) -> I64:
        if self.entry < 0:
            return np.arange(len(self))
        first, last = self.computation_offsets[self.entry : self.entry + 2].tolist()
        return np.concatenate([np.arange(first), np.arange(last, len(self)), np.arange(first, last)])

    # -- links ---------------------------------------------------------------------------------------------------

    @cached_property
    def operands(self) -> LinkedRows:
        """The instructions whose results an instruction takes."""
        offsets, wanted = self.instructions.numbers(_OPERANDS)
        inside = np.repeat(self.computation, np.diff(offsets))
        return LinkedRows(offsets, _find_in_computation(self.ids, self.computation, wanted, inside))

    @cached_property
    def users(self) -> LinkedRows:
        """The instructions that take an instruction's result."""
        links = self.operands
        known = links.rows >= 0
        order = np.argsort(links.rows[known], kind="stable")
        counts = np.bincount(links.rows[known], minlength=len(self))
        return LinkedRows(offsets_of(counts), links.owner[known][order])

    @cached_property
    def callees(self) -> LinkedRows:
        """The computations that an instruction calls: a fusion's body, a loop's condition and body, a reducer."""
        offsets, wanted = self.instructions.numbers(_CALLED)
        return LinkedRows(offsets, places_of(self.computation_ids, wanted))

    @cached_property
    def parameter_number(self) -> I64:
        """Which parameter an instruction is, if its opcode is `parameter`: int64 of shape (instructions,)."""
        return self.instructions.scalar(_PARAMETER)

    @cached_property
    def tuple_index(self) -> I64:
        """Which element a `get-tuple-element` takes: int64 of shape (instructions,)."""
        return self.instructions.scalar(_TUPLE_INDEX)

    @cached_property
    def is_fused(self) -> Mask:
        """Instructions that run as a part of another: in a fusion or in a reducer: bool of shape (instructions,)."""
        inside = np.zeros(len(self.computation_names) + 1, np.bool_)
        starts_others = self.is_opcode("while", "conditional", "call", "async-start")
        links = self.callees
        inside[links.rows[~starts_others[links.owner]]] = True
        for _ in range(len(self.computation_names)):  # a reducer in a fusion calls on
            more = links.rows[inside[self.computation[links.owner]]]
            if inside[more].all():
                break
            inside[more] = True
        return inside[self.computation]

    @cached_property
    def shapes(self) -> Shapes:
        """The shapes of all results."""
        return shapes_of(self.buf, *self.instructions.range(_SHAPE))

    def shapes_of_rows(self, rows: I64) -> Shapes:
        """The shapes of the results of some instructions; decodes no others."""
        start, stop = self.instructions.range(_SHAPE)
        return shapes_of(self.buf, start[rows], stop[rows])

    @cached_property
    def sources(self) -> Sources:
        """Where in the framework and in the user's program instructions come from."""
        start, stop = self.module_parts.range(_STACK_FRAMES)
        return Sources(self.buf, *self.instructions.range(_METADATA), int(start[0]), int(stop[0]))

    @cached_property
    def schedule(self) -> dict[int, I64]:
        """For each computation with a schedule its instructions in the order in which they run."""
        start, stop = self.module_parts.range(_SCHEDULE)
        _, starts, stops = fields_of(self.buf, start, stop).ranges(_SEQUENCE)
        entries = fields_of(self.buf, starts, stops)
        computation = places_of(self.computation_ids, entries.scalar(_SEQUENCE_KEY))
        offsets, ids = fields_of(self.buf, *entries.range(_SEQUENCE_VALUE)).numbers(_SEQUENCE_IDS)
        owner = np.repeat(computation, np.diff(offsets))
        rows = _find_in_computation(self.ids, self.computation, ids, owner)
        found = {}
        for at, each in enumerate(computation.tolist()):
            if each >= 0:
                here = rows[offsets[at] : offsets[at + 1]]
                found[each] = here[here >= 0]
        return found

    @cached_property
    def parameters(self) -> tuple[tuple[str, str], ...]:
        """Name and shape, such as `f32[32,128]`, of what the program takes; empty if it does not say or is damaged."""
        if self.damaged:
            return ()
        taken = fields_of(self.buf, *self.module_parts.range(_PROGRAM_SHAPE))
        _, starts, stops = taken.ranges(_PARAMETERS)
        shapes = shapes_of(self.buf, starts, stops)
        names = texts_of(self.buf, *taken.ranges(_PARAMETER_NAMES)[1:])
        names += ("",) * (shapes.count - len(names))
        return tuple((names[at], shapes.text(at)) for at in range(shapes.count))

    @cached_property
    def results(self) -> tuple[str, ...]:
        """The shapes of what the program gives, tuples taken apart; empty if it does not say or is damaged."""
        if self.damaged:
            return ()
        given = fields_of(self.buf, *self.module_parts.range(_PROGRAM_SHAPE))
        shapes = shapes_of(self.buf, *given.ranges(_RESULT)[1:])
        return tuple(shapes.text(leaf) for shape in range(shapes.count) for leaf in shapes.leaves(shape))

    @property
    def buffer_assignment(self) -> tuple[int, int]:
        """Where the buffer assignment lies in `buf`; an empty range if there is none."""
        start, stop = self.parts.range(_BUFFER_ASSIGNMENT)
        return int(start[0]), int(stop[0])


def read_module(buf: U8) -> Module:
    """Reads a serialized HloProto, whatever it holds."""
    parts = fields_of(buf, np.array([0]), np.array([len(buf)]))
    module = fields_of(buf, *parts.range(_MODULE))
    computations = fields_of(buf, *module.ranges(_COMPUTATION)[1:])
    owner, starts, stops = computations.ranges(_INSTRUCTION)
    instructions = fields_of(buf, starts, stops)
    names = texts_of(buf, *computations.range(_COMPUTATION_NAME))
    computation_ids = computations.scalar(_COMPUTATION_ID)
    return Module(
        buf=buf,
        name=texts_of(buf, *module.range(_NAME))[0],
        computation_names=names,
        computation_offsets=offsets_of(np.bincount(owner, minlength=len(names))),
        computation=owner,
        computation_ids=computation_ids,
        entry=_entry(buf, module, names, computation_ids),
        damaged=any(part.damaged.any() for part in (parts, module, computations, instructions)),
        parts=parts,
        module_parts=module,
        root_ids=computations.scalar(_ROOT_ID, -1),
        starts=starts,
        stops=stops,
        instructions=instructions,
    )


def may_have_buffer_assignment(buf: U8) -> bool:
    """False if a serialized HloProto is sound and does not say how the program's memory is laid out."""
    parts = fields_of(buf, np.array([0]), np.array([len(buf)]))
    start, stop = parts.range(_BUFFER_ASSIGNMENT)
    return bool(stop[0] > start[0] or parts.damaged[0])


def _entry(buf: U8, module: Fields, names: tuple[str, ...], ids: I64) -> int:
    """The computation that runs first; the last one, which calls the others, where the program does not say."""
    wanted = int(module.scalar(_ENTRY_ID, -1)[0])
    here = np.flatnonzero(ids == wanted)
    if wanted >= 0 and len(here):
        return int(here[0])
    name = texts_of(buf, *module.range(_ENTRY_NAME))[0]
    return names.index(name) if name in names else len(names) - 1


def _find_in_computation(ids: I64, computation: I64, wanted: I64, inside: I64) -> I64:
    """The first row that has each wanted id, among the instructions of a computation each, since ids of old programs
    repeat: int64 of shape (wanted,), -1 for none."""
    known, code = np.unique(ids, return_inverse=True)
    place, width = places_of(known, wanted), len(known)
    return np.where(place >= 0, places_of(computation * width + code, inside * width + place), -1)
