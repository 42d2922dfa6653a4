"""One XLA program as columns: its computations and instructions, read from a serialized HloProto.

    HloProto 1: module { 1: name, 3: computation { 1: name, 2: instruction {...}, 5: id, 6: root }, 17: stack frames }
             3: buffer assignment

Nothing is decoded twice, and what no tool asks for is not decoded at all.  A program that is cut keeps what lies before
the cut; links to computations or instructions that are not there are -1.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from stepscope.analysis.xla.fields import Fields, fields_of, text_codes
from stepscope.analysis.xla.shapes import Shapes, shapes_of
from stepscope.analysis.xla.sources import Sources
from stepscope.model.arrays import I64, U8, Mask, offsets_of
from stepscope.records import dataclass

FUSION_KINDS = {"kLoop": "loop", "kInput": "input", "kOutput": "output", "kCustom": "custom"}

_MODULE, _BUFFER_ASSIGNMENT = 1, 3
_NAME, _ENTRY_NAME, _COMPUTATION, _MODULE_ID, _ENTRY_ID, _SCHEDULE, _STACK_FRAMES = 1, 2, 3, 5, 6, 7, 17
_COMPUTATION_NAME, _INSTRUCTION, _COMPUTATION_ID, _ROOT_ID = 1, 2, 5, 6
_OPCODE, _SHAPE, _METADATA, _PARAMETER, _FUSION_KIND, _TUPLE_INDEX = 2, 3, 7, 9, 11, 13
_TARGET, _ID, _OPERANDS, _CALLED, _BACKEND_CONFIG = 28, 35, 36, 38, 43
_SEQUENCE, _SEQUENCE_KEY, _SEQUENCE_VALUE, _SEQUENCE_IDS = 1, 1, 2, 1
# Fields that say what an op computes: dimensions, window, convolution, dot, feature groups, batch groups, precision.
DIMENSIONS, WINDOW, CONVOLUTION, DOT, FEATURE_GROUPS, BATCH_GROUPS, FFT_LENGTH = 14, 15, 16, 30, 50, 58, 32


@dataclass(frozen=True)
class Links:
    """Several rows for each instruction.

    Attributes:
        offsets: int64 of shape (instructions + 1,).
        rows: int64 of shape (links,), -1 for what the program refers to but does not hold.
    """

    offsets: I64
    rows: I64

    def of(self, row: int) -> list[int]:
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
        fields: the fields of all instructions.
        computation_names: the names of the computations, in order.
        computation_offsets: int64 of shape (computations + 1,): the instructions of a computation are neighbours.
        computation: int64 of shape (instructions,), row of the computation.
        entry: row of the computation that runs first, -1 if there is none.
        roots: int64 of shape (computations,), row of the instruction that makes a computation's result, or -1.
        ids: int64 of shape (instructions,), as the program numbers them.
        opcode: int64 of shape (instructions,), place in `opcodes`.
        opcodes: the different opcodes.
        damaged: True if a part could not be read.
    """

    buf: U8
    name: str
    fields: Fields
    computation_names: tuple[str, ...]
    computation_offsets: I64
    computation: I64
    computation_ids: I64
    entry: int
    roots: I64
    ids: I64
    opcode: I64
    opcodes: tuple[str, ...]
    damaged: bool
    parts: Fields
    module_parts: Fields

    def __len__(self) -> int:
        return len(self.ids)

    # -- texts ---------------------------------------------------------------------------------------------------

    def text(self, start: int, stop: int) -> str:
        """A text of the program."""
        data: bytes = self.buf[start:stop].tobytes()
        return data.decode("utf-8", "replace")

    def instruction_name(self, row: int) -> str:
        """The name of an instruction."""
        return self.text(*self._place(_NAME, row))

    def opcode_of(self, row: int) -> str:
        """What an instruction does."""
        return self.opcodes[int(self.opcode[row])]

    def is_opcode(self, *wanted: str) -> Mask:
        """Which instructions do one of these: bool of shape (instructions,)."""
        return np.isin(self.opcode, [at for at, opcode in enumerate(self.opcodes) if opcode in wanted])

    def target_of(self, row: int) -> str:
        """What a custom call calls; empty for others."""
        return self.text(*self._place(_TARGET, row))

    def backend_config_of(self, row: int) -> str:
        """What the backend noted for an instruction, mostly JSON."""
        return self.text(*self._place(_BACKEND_CONFIG, row))

    def fusion_kind_of(self, row: int) -> str:
        """`kLoop` and the like; empty for what is no fusion."""
        return self.text(*self._place(_FUSION_KIND, row))

    def fusion_kinds(self, rows: I64) -> list[str]:
        """The same of several instructions."""
        start, stop = self._find_range(_FUSION_KIND)
        code, texts = text_codes(self.buf, start[rows], stop[rows])
        return [texts[each] for each in code.tolist()]

    def part_of(self, row: int, number: int) -> Fields:
        """The fields of a message in an instruction; none if it has no such message."""
        start, stop = self._place(number, row)
        return fields_of(self.buf, np.array([start]), np.array([stop]))

    def _place(self, number: int, row: int) -> tuple[int, int]:
        start, stop = self._ranges[number] if number in self._ranges else self._find_range(number)
        return int(start[row]), int(stop[row])

    @cached_property
    def _ranges(self) -> dict[int, tuple[I64, I64]]:
        return {}

    def _find_range(self, number: int) -> tuple[I64, I64]:
        return self._ranges.setdefault(number, self.fields.range(number))

    @cached_property
    def row_by_name(self) -> dict[bytes, int]:
        """The instructions by name.  The entry computation's win over others of the same name."""
        start, stop = self._find_range(_NAME)
        whole = self.buf.tobytes()
        names = [whole[a:b] for a, b in zip(start.tolist(), stop.tolist(), strict=True)]
        found = dict(zip(names, range(len(names)), strict=True))
        if self.entry >= 0:
            first, last = self.computation_offsets[self.entry : self.entry + 2].tolist()
            found.update(zip(names[first:last], range(first, last), strict=True))
        return found

    # -- links ---------------------------------------------------------------------------------------------------

    @cached_property
    def operands(self) -> Links:
        """The instructions whose results an instruction takes."""
        offsets, ids = self.fields.numbers(_OPERANDS)
        owner = np.repeat(np.arange(len(self)), np.diff(offsets))
        return Links(offsets, _rows_in_computation(self.ids, self.computation, ids, self.computation[owner]))

    @cached_property
    def users(self) -> Links:
        """The instructions that take an instruction's result."""
        links = self.operands
        known = links.rows >= 0
        order = np.argsort(links.rows[known], kind="stable")
        counts = np.bincount(links.rows[known], minlength=len(self))
        return Links(offsets_of(counts), links.owner[known][order])

    @cached_property
    def called(self) -> Links:
        """The computations that an instruction calls: a fusion's body, a loop's condition and body, a reducer."""
        offsets, ids = self.fields.numbers(_CALLED)
        return Links(offsets, rows_of_ids(self.computation_ids, ids))

    @cached_property
    def parameter_number(self) -> I64:
        """Which parameter an instruction is, if its opcode is `parameter`: int64 of shape (instructions,)."""
        return self.fields.scalar(_PARAMETER)

    @cached_property
    def tuple_index(self) -> I64:
        """Which element a `get-tuple-element` takes: int64 of shape (instructions,)."""
        return self.fields.scalar(_TUPLE_INDEX)

    def numbers(self, number: int) -> Links:
        """A repeated number of all instructions, such as DIMENSIONS."""
        return Links(*self.fields.numbers(number))

    @cached_property
    def is_fused(self) -> Mask:
        """Instructions that run as a part of another: in a fusion or in a reducer: bool of shape (instructions,)."""
        inside = np.zeros(len(self.computation_names) + 1, np.bool_)
        starts_others = self.is_opcode("while", "conditional", "call", "async-start")
        links = self.called
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
        return shapes_of(self.buf, *self._find_range(_SHAPE))

    @cached_property
    def sources(self) -> Sources:
        """Where in the framework and in the user's program instructions come from."""
        start, stop = self.module_parts.range(_STACK_FRAMES)
        return Sources(self.buf, *self._find_range(_METADATA), int(start[0]), int(stop[0]))

    @cached_property
    def schedule(self) -> dict[int, I64]:
        """For each computation with a schedule its instructions in the order in which they run."""
        start, stop = self.module_parts.range(_SCHEDULE)
        _, starts, stops = fields_of(self.buf, start, stop).ranges(_SEQUENCE)
        entries = fields_of(self.buf, starts, stops)
        computation = rows_of_ids(self.computation_ids, entries.scalar(_SEQUENCE_KEY))
        offsets, ids = fields_of(self.buf, *entries.range(_SEQUENCE_VALUE)).numbers(_SEQUENCE_IDS)
        owner = np.repeat(computation, np.diff(offsets))
        rows = _rows_in_computation(self.ids, self.computation, ids, owner)
        found = {}
        for at, each in enumerate(computation.tolist()):
            if each >= 0:
                here = rows[offsets[at] : offsets[at + 1]]
                found[each] = here[here >= 0]
        return found

    @property
    def buffer_assignment(self) -> tuple[int, int]:
        """Where the buffer assignment lies in `buf`; an empty range if there is none."""
        start, stop = self.parts.range(_BUFFER_ASSIGNMENT)
        return int(start[0]), int(stop[0])


def read_module(buf: U8) -> Module:
    """Reads a serialized HloProto, whatever it holds."""
    parts = fields_of(buf, np.array([0]), np.array([len(buf)]))
    module = fields_of(buf, *parts.range(_MODULE))
    _, starts, stops = module.ranges(_COMPUTATION)
    computations = fields_of(buf, starts, stops)
    owner, starts, stops = computations.ranges(_INSTRUCTION)
    fields = fields_of(buf, starts, stops)
    opcode, opcodes = text_codes(buf, *fields.range(_OPCODE))
    ids, computation_ids = fields.scalar(_ID), computations.scalar(_COMPUTATION_ID)
    names = _texts(buf, *computations.range(_COMPUTATION_NAME))
    roots = _rows_in_computation(ids, owner, computations.scalar(_ROOT_ID, -1), np.arange(len(names)))
    return Module(
        buf=buf,
        name=_texts(buf, *module.range(_NAME))[0],
        fields=fields,
        computation_names=names,
        computation_offsets=offsets_of(np.bincount(owner, minlength=len(names))),
        computation=owner,
        computation_ids=computation_ids,
        entry=_entry(buf, module, names, computation_ids),
        roots=roots,
        ids=ids,
        opcode=opcode,
        opcodes=tuple(opcodes),
        damaged=any(part.damaged.any() for part in (parts, module, computations, fields)),
        parts=parts,
        module_parts=module,
    )


def _entry(buf: U8, module: Fields, names: tuple[str, ...], ids: I64) -> int:
    """The computation that runs first; the last one, which calls the others, where the program does not say."""
    wanted = int(module.scalar(_ENTRY_ID, -1)[0])
    here = np.flatnonzero(ids == wanted)
    if wanted >= 0 and len(here):
        return int(here[0])
    name = _texts(buf, *module.range(_ENTRY_NAME))[0]
    return names.index(name) if name in names else len(names) - 1


def _texts(buf: U8, start: I64, stop: I64) -> tuple[str, ...]:
    pairs = zip(start.tolist(), stop.tolist(), strict=True)
    return tuple(buf[a:b].tobytes().decode("utf-8", "replace") for a, b in pairs)


def rows_of_ids(ids: I64, wanted: I64) -> I64:
    """The first row that has each wanted id: int64 of shape (wanted,), -1 for none."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    order = np.argsort(ids, kind="stable")
    place = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    found = order[place]
    return np.where(ids[found] == wanted, found, -1)


def _rows_in_computation(ids: I64, computation: I64, wanted: I64, inside: I64) -> I64:
    """The same among the instructions of a computation each, since ids of old programs repeat."""
    if not len(ids):
        return np.full(len(wanted), -1, np.int64)
    known, code = np.unique(ids, return_inverse=True)
    place = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    hit = known[place] == wanted
    width = len(known)
    rows = rows_of_ids(computation * width + code, inside * width + place)
    return np.where(hit, rows, -1)
