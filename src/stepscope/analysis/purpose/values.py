"""Which ops compute the same value again, by the tensors that they take.

    tril        w12        value 1         linear      t3 t9    value 6
    sub         t14 t16    value 2         ...
    solve       t21 t23    value 4         tril        w12      value 1: again, as nothing has written w12

A recording of our own tells which tensors last for the whole capture (`w`, and `c` that is never written); see
`stepscope.capture.tracers.torch_tensors`.  Other tensors (`t`) come and go, and an address is used again.  So what such
a tensor holds is only said where one op alone can have made it: the results of ops that none has taken yet are kept,
and an operand that has not been seen since is the one of its size.  Where two may be meant, or none, it has a value of
its own, which no other has.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from stepscope.analysis.purpose.autograd import passes_of
from stepscope.analysis.purpose.computing import computing_of, update_ranges
from stepscope.analysis.purpose.sizes import Size
from stepscope.model import HostTrace, stat_names
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import (
    DRAWS,
    GIVES_NUMBERS,
    GIVES_SEVERAL,
    LOOKS_AT,
    MAKES_OF_SIZE,
    MAY_LOOK_AT,
    SUMS_UP,
)
from stepscope.vocabulary.lookup import type_names
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.torch import COMPILED_REGION

_LONGEST = 100  # ops from making a tensor to its first use: what is not used until then has no use that we see
_WORD = Pattern(r"([cwut])(\d+)\.(\d+)")
_TEXT = Pattern(r'"([^"]*)"')
_LIST = Pattern(r"\[([\d, ]*)\]")


class TracedOp(NamedTuple):
    """What is read of an op: its row, its name, the sizes of its operands, and its step."""

    row: int
    name: str
    sizes: tuple[Size, ...]
    step: int


@dataclass(frozen=True)
class Values:
    """What ops compute; one entry per op.

    Attributes:
        number: equal for equal values of a step; -1 where it is not known.
        constant: it is of tensors that nothing writes, and of plain numbers.
        again: an op of the step computed it before, which could have been kept: what is trained is needed anew for each
            backward pass.
        takes_tensors: it has a tensor among its operands.
        sources: the places of the ops that made its operands, or may have.
    """

    number: list[int]
    constant: list[bool]
    again: list[bool]
    takes_tensors: list[bool]
    sources: list[tuple[int, ...]]

    def feeding(self, places: Iterable[int]) -> set[int]:
        """Some ops and all whose results flow into them, or may."""
        front = list(places)
        found = set(front)
        while front:
            front = list({each for at in front for each in self.sources[at]} - found)
            found.update(front)
        return found


class _Made(NamedTuple):
    """A result that no op has taken yet: its value, whether it is constant, its size if that is known, the storage that
    it looks at if it is a view, and the place of its op.  It may be a copy instead, and have several parts, of which
    some may have been taken."""

    value: int
    constant: bool
    size: Size | None
    storage: int
    at: int
    may_copy: bool = False
    several: bool = False
    taken: int = 0


def tensors_are_known(trace: HostTrace) -> bool:
    """Whether the recording tells which tensors ops take; not if compiled code runs, which writes without any op."""
    return trace.has_stat(stat_names.INPUT_TENSORS) and not trace.derived("runs compiled code", _runs_compiled_code)


def _runs_compiled_code(trace: HostTrace) -> bool:
    types = distinct(trace.events.type).astype(np.int64)
    return any(name.startswith(COMPILED_REGION) for name in type_names(trace, types))


def has_operands(trace: HostTrace) -> Mask:
    """Of which ops the recording tells the tensors that they take: bool, of the length of `computing_of`."""
    found: Mask = trace.stat_strings(stat_names.INPUT_TENSORS, rows=computing_of(trace).rows) >= 0
    return found


def takes_what_steps_write(trace: HostTrace) -> Mask:
    """Which ops take a lasting tensor that the steps write, as weights: bool, of the length of `computing_of`."""
    text = trace.stat_strings(stat_names.INPUT_TENSORS, rows=computing_of(trace).rows)
    writes = [row for row in distinct(text[text > 0]).tolist() if re.search(r"\b[wu]\d", trace.strings[row])]
    found: Mask = np.isin(text, writes)
    return found


def values_of(trace: HostTrace, ops: Sequence[TracedOp]) -> Values:
    """What some ops compute: the outermost ones of forward passes, by thread and time."""
    rows = np.array([op.row for op in ops], np.int64)
    texts = trace.stat_strings(stat_names.INPUT_TENSORS, rows=rows)
    plain = trace.stat_strings(stat_names.CONCRETE_INPUTS, rows=rows)
    words = {row: _words(trace.strings[row]) if row > 0 else [] for row in distinct(texts).tolist()}
    work, start = computing_of(trace), trace.events.start_ps[rows]
    updates = np.searchsorted(np.sort(trace.events.start_ps[update_ranges(trace)]), start).tolist()
    passes = np.searchsorted(_begins_of_passes(trace), start)
    learned = work.learned[np.minimum(np.searchsorted(work.rows, rows), max(len(work) - 1, 0))]
    passes = np.where(learned, passes, -1).tolist()
    found = Values([], [], [], [], [])
    reader, place, seen = _Reader(trace), (-1, -1), dict[int, set[int]]()
    columns = ops, trace.events.line[rows].tolist(), texts.tolist(), plain.tolist(), updates, passes
    for at, (op, line, text, numbers, update, own_pass) in enumerate(zip(*columns, strict=True)):
        if (line, op.step) != place:
            place, seen = (line, op.step), {}
            reader.begin()
        if text < 0:  # the recording tells nothing of it
            value, constant, sources, operands = -1, False, tuple[int, ...](), []
            reader.begin()
        else:
            operands = words[text]
            value, constant, sources = reader.read(at, op, operands, numbers, update)
        found.number.append(value)
        found.constant.append(constant)
        before = seen.setdefault(value, set())
        found.again.append(value >= 0 and bool(before if own_pass < 0 else before & {-1, own_pass}))
        found.takes_tensors.append(bool(operands))
        found.sources.append(sources)
        before.add(own_pass)
    return found


def _words(text: str) -> list[tuple[str, int, int]]:
    return [(kind, int(tensor), int(storage)) for kind, tensor, storage in _WORD.findall(text)]


def _begins_of_passes(trace: HostTrace) -> I64:
    passes = passes_of(trace)
    _, first = np.unique(passes.of, return_index=True)
    found: I64 = trace.events.start_ps[passes.rows[first]]
    return found


_Word = tuple[str, int, int]
_Key = tuple[int, int]


class _Held(NamedTuple):
    """What a tensor holds: its value, whether that is constant, the places of the ops that made it, or may have, and of
    the last op that took it."""

    value: int
    constant: bool
    makers: tuple[int, ...] = ()
    last: int = -1


class _Reader:
    """Reads the ops of a step one after another."""

    def __init__(self, trace: HostTrace) -> None:
        self._trace = trace
        self._numbers: dict[object, int] = {}
        self._alone = 0
        self.begin()

    def begin(self) -> None:
        """Forgets the tensors of the step before."""
        self._bound: dict[_Key, _Held] = {}
        self._made: list[_Made] = []
        self._writes: dict[int, int] = {}

    def read(
        self, at: int, op: TracedOp, words: list[_Word], plain: int, update: int
    ) -> tuple[int, bool, tuple[int, ...]]:
        """The value of an op, -1 if it is not known, whether it is constant, and which ops made its operands.

        Args:
            plain: the row of the text of its operands that are no tensors; update: how many there were before it.
        """
        if self._made and at - self._made[0].at > _LONGEST:
            self._made = [each for each in self._made if at - each.at <= _LONGEST]
        sizes = _sizes_of_tensors(op, len(words))
        taken = self._take(at, words, sizes, update)
        draws, known = DRAWS.fullmatch(op.name) is not None, all(each.value >= 0 for each in taken)
        constant = all(each.constant for each in taken) and not draws
        # The operands of an op that takes rows are not all recorded: they may be any that was made.
        sources = {at for each in taken for at in each.makers} | {each.at for each in self._made if draws}
        if draws or not known:
            value = self._new()
        else:
            value = self._number((op.name, op.sizes, plain, tuple(each.value for each in taken)))
        if op.name.endswith("_") and words:
            self._write(at, words[0], value, constant)
        else:
            may_copy, several = MAY_LOOK_AT.fullmatch(op.name), GIVES_SEVERAL.fullmatch(op.name)
            storage = words[0][2] if words and (may_copy or LOOKS_AT.fullmatch(op.name)) else -1
            size = size_of_result(self._trace, op, sizes, plain)
            self._made.append(_Made(value, constant, size, storage, at, bool(may_copy), bool(several)))
        return (value if known else -1), constant, tuple(sources)

    def _new(self) -> int:
        """A value that no other has."""
        self._alone += 1
        return self._number(("alone", self._alone))

    def _number(self, said: object) -> int:
        return self._numbers.setdefault(said, len(self._numbers))

    def _write(self, at: int, word: _Word, value: int, constant: bool) -> None:
        """A tensor has another value now, and what looks at it, too."""
        storage = word[2]
        self._writes[storage] = self._writes.get(storage, 0) + 1
        for key, held in self._bound.items():
            if key[1] == storage:
                self._bound[key] = _Held(self._new(), False, (*held.makers, at), at)
        self._made = [each._replace(value=self._new()) if each.storage == storage else each for each in self._made]
        if word[0] == "t":
            makers = self._bound[word[1:]].makers if word[1:] in self._bound else (at,)
            self._bound[word[1:]] = _Held(value, constant, makers, at)

    def _take(self, at: int, words: list[_Word], sizes: list[Size | None], update: int) -> list[_Held]:
        found: list[_Held] = []
        fresh: dict[_Key, tuple[int, Size | None]] = {}
        for place, (word, size) in enumerate(zip(words, sizes, strict=True)):
            kind, key = word[0], word[1:]
            if kind == "c":
                found.append(_Held(self._number(("lasting", key)), True))
            elif kind == "w":
                found.append(_Held(self._number(("lasting", key, self._writes.get(key[1], 0), update)), False))
            else:
                known = self._bound.get(key)
                # What was made before a tensor was seen last has an address of its own.
                is_left = known is not None and not self._candidates(key, size, known.last)
                found.append(known if kind == "t" and known is not None and is_left else _Held(-1, False))
                if kind == "t" and not is_left:
                    fresh.setdefault(key, (place, size))
        self._match(at, fresh, found)
        for place, word in enumerate(words):
            if word[1:] in fresh:  # the same tensor twice
                found[place] = found[fresh[word[1:]][0]]
            if word[1:] in self._bound:
                self._bound[word[1:]] = self._bound[word[1:]]._replace(last=at)
        return found

    def _candidates(self, key: _Key, size: Size | None, since: int = -1) -> list[_Made]:
        made = [each for each in self._made if each.at > since]
        views = [each for each in made if each.storage == key[1] and each.storage >= 0]
        if views:
            return views
        own = [each for each in made if each.storage < 0]
        return (
            [each for each in own if each.size is not None and each.size == size]
            or [each for each in own if each.size is None or size is None]
            or [each for each in made if each.may_copy]
        )

    def _match(self, at: int, fresh: dict[_Key, tuple[int, Size | None]], found: list[_Held]) -> None:
        """Gives operands that have not been seen the results that they can be, in the order in which they were made."""
        groups: dict[tuple[int, ...], list[_Key]] = {}
        for key, (_, size) in fresh.items():
            since = self._bound[key].last if key in self._bound else -1
            groups.setdefault(tuple(each.at for each in self._candidates(key, size, since)), []).append(key)
        for places, keys in groups.items():
            made = [each for each in self._made if each.at in places]
            given = made[: len(keys)]
            if len(made) == 1 and made[0].several:
                self._take_parts(at, made[0], keys, fresh, found)
            elif made and (len(made) == len(keys) or len({each.value for each in made}) == 1):
                for key, each in zip(keys, [*given, *given[-1:] * (len(keys) - len(given))], strict=True):
                    self._bind(key, fresh[key][0], _Held(each.value, each.constant, (each.at,), at), found)
                self._made = [each for each in self._made if each not in given]
            elif made:  # which is meant is not known, nor which of them are left
                self._made = [each._replace(value=self._new()) if each.at in places else each for each in self._made]
                for key in keys:
                    self._bind(key, fresh[key][0], _Held(self._new(), False, places, at), found)

    def _bind(self, key: _Key, place: int, held: _Held, found: list[_Held]) -> None:
        found[place] = self._bound[key] = held

    def _take_parts(
        self,
        at: int,
        made: _Made,
        keys: list[_Key],
        fresh: dict[_Key, tuple[int, Size | None]],
        found: list[_Held],
    ) -> None:
        """Gives operands the parts of one result, in the order in which they are taken."""
        for number, key in enumerate(keys, made.taken):
            value = self._number(("part", made.value, number))
            self._bind(key, fresh[key][0], _Held(value, made.constant, (made.at,), at), found)
        later = made._replace(taken=made.taken + len(keys))
        self._made = [later if each.at == made.at else each for each in self._made]


def size_of_result(trace: HostTrace, op: TracedOp, sizes: list[Size | None], plain: int) -> Size | None:
    """The size of an op's result, where it follows from those of its operands.

    Args:
        sizes: of its tensors; plain: the row of the text of its operands that are no tensors.
    """
    if MAKES_OF_SIZE.fullmatch(op.name):
        listed = _LIST.search(trace.strings[plain][1:]) if plain > 0 else None
        return tuple(map(int, filter(None, listed[1].split(",")))) if listed else None
    if SUMS_UP.fullmatch(op.name) or "loss" in op.name:
        return _size_of_sum(op, sizes, trace.strings[plain] if plain > 0 else "")
    if GIVES_NUMBERS.fullmatch(op.name) or any(size is None for size in sizes) or not sizes:
        return None
    product = _size_of_product(op)
    return product if product is not None else _spread([size for size in sizes if size is not None])


def _sizes_of_tensors(op: TracedOp, count: int) -> list[Size | None]:
    """The sizes of the operands of an op that are tensors: numbers have none, and neither have tensors of one."""
    sides = [size for size in op.sizes if size]
    if len(sides) == count:
        return list(sides)
    return list(op.sizes) if len(op.sizes) == count else [None] * count


def _size_of_sum(op: TracedOp, sizes: list[Size | None], plain: str) -> Size | None:
    """The size of a sum over all sides or some, by the text of the operands that are no tensors."""
    told = [text.strip() for text in _TEXT.findall(plain)]
    if "loss" in op.name:
        return None if "0" in told else ()  # 0: a loss for each row
    sides = [int(each) for each in re.findall(r"-?\d+", told[1])] if len(told) > 1 else []
    whole = sizes[0] if sizes else None
    if not sides or whole is None or any(not -len(whole) <= each < len(whole) for each in sides):
        return () if not sides else None
    gone = {each % len(whole) for each in sides}
    stays = len(told) > 2 and told[2] == "True"
    return tuple(1 if at in gone else side for at, side in enumerate(whole) if stays or at not in gone)


def _size_of_product(op: TracedOp) -> Size | None:
    sizes = [size for size in op.sizes if size]
    if op.name in ("addmm", "baddbmm"):
        sizes = sizes[1:]
    if len(sizes) < 2:
        return None
    one, two = sizes[:2]
    if op.name == "linear":
        return (*one[:-1], two[0])
    if op.name in ("matmul", "mm", "bmm", "addmm", "baddbmm"):
        return (*one[:-1], two[-1]) if len(two) > 1 else one[:-1]
    return None


def _spread(sizes: list[Size]) -> Size | None:
    """The size of several tensors spread over each other; None where they do not fit."""
    length = max(map(len, sizes))
    padded = [(1,) * (length - len(each)) + each for each in sizes]
    spread: Size = tuple(max(sides) for sides in zip(*padded, strict=True))
    fits = all(side in (1, whole) for each in padded for side, whole in zip(each, spread, strict=True))
    return spread if fits and all(spread) else None
