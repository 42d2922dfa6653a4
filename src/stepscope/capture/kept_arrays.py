"""What a program keeps: arrays that became more during a capture, what holds them, and the line that adds to it.

No profiler records arrays on a CPU, nor what refers to them.  So live arrays are counted between steps, when a capture
starts and when it ends, on the main thread: TensorFlow may fail to read a shape while another thread lists objects.  It
takes about 0.1 us for each object of the program at first, and later only for the young ones, while none became old.
Frameworks make arrays anew in every step: only more of a type and shape count, more than twice those that are gone.

The program sees nothing of it.  No code of its own runs: what an object holds is read past its methods and properties.
No reference to an array outlasts the look, not even a weak one, which some functions of PyTorch refuse.

Of large matrices a part of their memory is read when a capture starts and lists them: a product goes over one that is
nearly empty as if it were not.  It is read once more after some steps: a matrix that stays can be kept sparse, and a
batch that is made anew in each step cannot.  Labels, of which a loss may ignore most, are read once.  So are gradients
of parameters: those that are all zeros are read again, too, as a step may leave out a part by chance.  Arrays on
devices are left alone: reading them would make the program wait.
"""

from __future__ import annotations

import dis
import gc
import os
import struct
import sys
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import chain, islice, takewhile
from math import prod
from types import CodeType, FrameType, FunctionType, ModuleType
from typing import Any, NamedTuple

from stepscope.capture.handles import move_up
from stepscope.capture.places import is_users_file
from stepscope.formats.spool.layout import StatValue
from stepscope.kernels.observe import read_locals
from stepscope.kernels.stacks import list_frames, list_objects

KEPT = "kept:"  # before the number of a group in the facts of a capture
TYPES = ("torch.Tensor", "torch.nn.parameter.Parameter", "jaxlib._jax.ArrayImpl", "jaxlib.xla_extension.ArrayImpl",
          "tensorflow.python.framework.ops.EagerTensor")  # fmt: skip
_MOST_OBJECTS = 2_000_000  # a fifth of a second
_FEWEST = 5  # arrays more than before, of one type and shape
_MOST_GROUPS, EXAMPLES = 8, 20
_WITH_GRAPH = "arrays with their graph"
_LEVELS = 2  # a list may hold tuples or dicts of arrays
_MOST_VARIABLES, _MOST_LATEST = 3000, 50  # variables that are looked at, and objects in a container
_CONTAINERS = (list, dict, tuple, set)
_ADDS = {"append", "add", "extend", "insert", "appendleft", "setdefault", "update"}
Kind = tuple[str, tuple[int, ...]]
Names = Mapping[str, Any]


def find_types(names: Iterable[str]) -> set[type]:
    """The types of these names that the program has imported."""
    parts = (name.rpartition(".") for name in names)
    known = (getattr(sys.modules.get(module), name, None) for module, _, name in parts)
    return {kind for kind in known if kind is not None}


def kind_of(array: Any) -> Kind:
    """An array's element type and shape."""
    return getattr(array.dtype, "name", str(array.dtype).removeprefix("torch.")), tuple(array.shape)


def count_bytes(array: Any) -> int:
    """How many bytes the elements of an array take; TensorFlow does not say it."""
    return int(getattr(array, "nbytes", None) or prod(array.shape) * getattr(array.dtype, "size", 0))


def describe_use(array: Any) -> str:
    """Whether an array keeps the graph that made it."""
    return _WITH_GRAPH if getattr(array, "grad_fn", None) is not None else "arrays"


def describe_group(kind: Kind, count: int, size: int, name: str, place: str, use: str) -> str:
    """`count, bytes of all, type, shape, holder, place, kind` of arrays, by tabs; name and place of `find_holder`."""
    return "\t".join((str(count), str(size), kind[0], str(list(kind[1])), name, place, use))


def find_holder(arrays: list[Any], dead: Sequence[FrameType] = ()) -> tuple[str, str]:
    """The name under which the program holds some arrays, and the line that adds to it; empty where unknown.

    Looked into are the variables of the functions that run, then of the program's modules, each with their objects.

    Args:
        dead: frames of the program that an exception has left.
    """
    frames = [*dead, *frames_of_program()]
    wanted, itself = {*map(id, arrays)}, None
    codes = [frame.f_code for frame in frames]
    known = [_names_of(each) for each in [*sys.modules.values()]]
    modules = (each for each in known if is_users_file(str(each.get("__file__") or "<")))
    roots = (map(read_locals, frames), (frame.f_globals for frame in frames), modules)
    for name, each, held, around in _walk_variables(roots, wanted):
        nearby = chain(codes, (each.__code__ for each in [*around.values()] if type(each) is FunctionType))
        if id(each) in wanted:
            itself = itself or (name, _find_setting_line(nearby, name))
        elif 2 * len(wanted.intersection(map(id, held))) > len(wanted):
            return name, _find_adding_line(nearby, name)
    return itself or ("", "")


def _walk_variables(roots: Iterable[Iterable[Names]], closed: set[int]) -> Iterator[tuple[str, Any, list[Any], Names]]:
    """Each variable once: name, value, what it holds, the names around it.  Those of a root and of the objects that it
    holds, then those of the next; only so many of each, so that none hides the next.  What is `closed` stays so."""
    seen = set[int]()
    for root in roots:
        spaces, most = deque((names, names) for names in root), len(seen) + _MOST_VARIABLES
        while spaces and len(seen) < most:
            names, around = spaces.popleft()
            for name, each in [*names.items()]:
                if id(each) in seen:
                    continue
                seen.add(id(each))
                held = [*_latest(each, _LEVELS)] if _is_container(each) else [each]
                yield name, each, held, around
                inside = (each for each in held if not issubclass(type(each), (type, ModuleType)))
                objects = ((_names_of(each), type(each)) for each in inside if id(each) not in closed)
                spaces.extend((inner, type.__dict__["__dict__"].__get__(kind)) for inner, kind in objects if inner)


def _latest(container: Any, levels: int) -> Iterator[Any]:
    """What was added to a container last, and to the containers in it."""
    kind: Any = next(kind for kind in _CONTAINERS if issubclass(type(container), kind))
    if kind is dict:
        values: Iterable[Any] = reversed(dict.values(container))
    elif kind is set:
        values = set.__iter__(container)
    else:
        values = reversed(kind.__getitem__(container, slice(-_MOST_LATEST, None)))
    for each in islice(values, _MOST_LATEST):
        yield each
        if levels > 1 and _is_container(each):
            yield from _latest(each, levels - 1)


def _is_container(each: Any) -> bool:
    """As `isinstance`, which asks an object for its class, and an object may answer with code of the program."""
    return issubclass(type(each), _CONTAINERS)


def _names_of(each: Any) -> dict[str, Any]:
    """What an object or module holds by name; past its `__getattr__`, which for a lazy module would import it."""
    try:
        names = object.__getattribute__(each, "__dict__")
    except AttributeError:
        return {}
    return names if type(names) is dict else {}


def list_untracked(objects: Iterable[Any]) -> list[Any]:
    """Dicts and tuples that some objects of the garbage collector refer to, and that it does not know itself: those
    that hold nothing but arrays of NumPy, numbers and texts."""
    found = (each for each in gc.get_referents(*objects) if type(each) in (dict, tuple) and not gc.is_tracked(each))
    return [*{id(each): each for each in found}.values()]


def unseen() -> AbstractContextManager[object]:
    """Lets no `TorchFunctionMode` and no subclass of the program see that tensors are asked for their shapes."""
    torch: Any = sys.modules.get("torch._C")
    make = getattr(torch, "DisableTorchFunction", None)
    return make() if make is not None else nullcontext()


def frames_of_program() -> list[FrameType]:
    """The functions of the program that run now, on all threads.

    A function that holds its own frame as it ends lives until the garbage collector comes, and with it all functions
    that had called it: nothing of the frames is left in the variables of this one.
    """
    running = list_frames()
    try:
        return [frame for frame in running if is_users_file(frame.f_code.co_filename)]
    finally:
        running.clear()


def _find_adding_line(codes: Iterable[CodeType], name: str) -> str:
    """`train.py:9`, the first line that adds to what has a name; empty if no code at hand does."""
    for code in codes:
        line, seen = code.co_firstlineno, 0
        for at, step in enumerate(dis.get_instructions(code)):
            line = (step.positions.lineno if step.positions else None) or line
            if step.argval == name and step.opname.startswith("LOAD_"):
                seen = at
            if seen and at - seen <= 2 and (step.argval in _ADDS or step.opname == "STORE_SUBSCR"):
                return f"{code.co_filename.rpartition('/')[2]}:{line}"
    return ""


def _find_setting_line(codes: Iterable[CodeType], name: str) -> str:
    """`train.py:9`, the first line that gives something a name; empty if no code at hand does."""
    for code in codes:
        for step in dis.get_instructions(code):
            if step.argval == name and step.opname.startswith("STORE_") and step.positions:
                return f"{code.co_filename.rpartition('/')[2]}:{step.positions.lineno}"
    return ""


class KeptArrays:
    """Counts the arrays of a program at the start, during and at the end of a capture.

    Attributes:
        held: what `find_empty` says of those that stay, `find_ignored` and `find_padded` of those at the start, and
            `find_zero_gradients` of both.
    """

    def __init__(self) -> None:
        self._types = find_types(TYPES)
        self._ages = _count_agings() if gc.isenabled() else -1
        self._young = {*map(id, self._list_young())}
        # By number: an array that is made where one was freed counts as that one, as in each step of a loop.
        groups = self._group(self._list_all())
        self._before = {kind: {*map(id, arrays)} for kind, arrays in groups.items()}
        with unseen():
            self._empty = find_empty(groups)
            self._held = find_ignored(groups) | find_padded(groups)
            self._same = find_same(groups)
            self._zero = find_zero_gradients(groups)
        groups.clear()
        self._was_read = False
        self._seen: dict[str, StatValue] = {}
        self._holders: dict[Kind, tuple[str, str, str]] = {}

    @property
    def held(self) -> dict[str, str]:
        """See above.  When the program has ended, its matrices are gone, so that an earlier look counts."""
        if not self._was_read:
            self._leave_out_changed()
        empty = {f"{EMPTY}{number}": each.text for number, each in enumerate(self._empty)}
        same = {f"{each.kind}{number}": each.text for number, each in enumerate(self._same)}
        return empty | same | describe_zero_gradients(self._zero) | self._held

    def _leave_out_changed(self) -> None:
        """Leaves out what holds something else by now, shapes of which there are other arrays, and gradients that are
        no longer zero."""
        self._empty = [each for each in self._empty if each.is_as_before()]
        groups = self._group(self._list_all()) if self._same or self._zero else {}
        if self._same:
            beside = shapes_of_numpy(frames_of_program())
            now = defaultdict[tuple[int, ...], set[object]](set)
            with unseen():
                for (_, shape), arrays in groups.items():
                    now[shape].update(map(_state_of, arrays))
            self._same = [
                each for each in self._same
                if each.is_as_before() and now[each.shape] == each.arrays and each.shape not in beside
            ]  # fmt: skip
        if self._zero:
            with unseen():
                still = find_zero_gradients(groups)
            self._zero = {number: shape for number, shape in self._zero.items() if still.get(number) == shape}
        groups.clear()
        self._was_read = True

    def look(self) -> None:
        """Counts between two steps, if that takes no time: when the program has ended, its variables are gone."""
        if not self._was_read:
            self._leave_out_changed()
        if self._ages == _count_agings():
            self._seen = self.find()

    def find(self) -> dict[str, StatValue]:
        """What became more: for each type and shape `count, bytes, type, shape, holder, place, kind`, by tabs."""
        is_young = self._ages == _count_agings()
        if is_young and not self._compare(self._list_young(), self._young):
            return {}  # no need to know which of the old ones are gone
        more = self._compare(self._list_all())
        most = sorted(more, key=lambda kind: -more[kind][0])[:_MOST_GROUPS]
        with unseen():
            for kind in most:
                if not self._holders.get(kind, ("",))[0]:
                    self._holders[kind] = (*find_holder(more[kind][1]), describe_use(more[kind][1][-1]))
            sizes = {kind: count * count_bytes(examples[-1]) for kind, (count, examples) in more.items()}
        return {
            f"{KEPT}{number}": describe_group(kind, more[kind][0], sizes[kind], *self._holder(kind, most))
            for number, kind in enumerate(most)
        }

    def _compare(self, arrays: list[Any], listed: Set[int] | None = None) -> dict[Kind, tuple[int, list[Any]]]:
        """For each type and shape of which there are more among some arrays: how many more, and some of them.

        Args:
            listed: those of before that would be among these; None for all.
        """
        more = dict[Kind, tuple[int, list[Any]]]()
        for kind, group in self._group(arrays).items():
            before = self._before.get(kind, set())
            new = [array for array in group if id(array) not in before]
            gone = len((before if listed is None else before & listed).difference(map(id, group)))
            if len(new) >= max(_FEWEST + gone, 3 * gone + 1):
                more[kind] = len(new) - gone, new[-EXAMPLES:]
        return more

    def find_last(self) -> dict[str, StatValue]:
        """As `find`, at the end of a capture; what was seen before if no function of the program runs any more."""
        return self.find() or ({} if frames_of_program() else self._seen)

    def _holder(self, kind: Kind, kinds: list[Kind]) -> tuple[str, str, str]:
        """What holds the arrays; for those that only a graph holds, what holds the results of such a graph."""
        name, place, use = self._holders[kind]
        others = (self._holders[each] for each in kinds)
        graph = next((each for each in others if each[0] and each[2] == _WITH_GRAPH), None)
        return (*graph[:2], use) if not name and graph is not None else (name, place, use)

    def _list_all(self) -> list[Any]:
        return list_objects(self._types, most=_MOST_OBJECTS) if self._types else []

    def _list_young(self) -> list[Any]:
        if not self._types:
            return []
        return [each for age in (0, 1) for each in list_objects(self._types, age, _MOST_OBJECTS)]

    def _group(self, arrays: list[Any]) -> dict[Kind, list[Any]]:
        groups: dict[Kind, list[Any]] = defaultdict(list)
        with unseen():
            for each in arrays:
                if not (hasattr(each, "is_deleted") and each.is_deleted()):
                    groups[kind_of(each)].append(each)
        return groups


def _count_agings() -> int:
    """How often the garbage collector may have made young objects old."""
    return sum(int(generation["collections"]) for generation in gc.get_stats()[1:])


# ---- what arrays hold: matrices that are nearly empty, labels that a loss ignores, rows that are filled up -----------

# Before the number of a kind of arrays in the facts of a capture.
EMPTY, IGNORED, PADDED, SAME, ZERO = "empty:", "ignored:", "padded:", "same:", "zero_gradient:"
SAME_TENSORS = "same_tensors:"  # of PyTorch
_LARGE_MATRIX = 1 << 18  # bytes: a product with less takes no time worth a change
_MOST_READ = 20  # arrays that are read: 1 ms each, while the program waits
_NEARLY_EMPTY = 50  # of 1000 numbers: with more, a dense product is about as fast
_PIECES, _PIECE = 256, 256  # bytes that are read of each
# Pieces that are read of arrays that are looked at twice: in all, 5 us each, and of each.  PyTorch counts writes, too.
_MOST_COMPARED, _COMPARED, _COMPARED_TENSOR = 800, 4, 1
_NO_LABEL = (-100).to_bytes(8, "little", signed=True)  # PyTorch's `ignore_index`, where a loss is given none
_FEWEST_LABELS, _LATEST = 64, 3  # of a batch; arrays of a shape that are read: a data set may be a list of them
_MANY_IGNORED = 100  # of 1000 labels: with fewer, leaving their rows out saves little
_NUMBER_CODES = {"int32": "i", "int64": "q"}
_FEWEST_ROWS, _SHORTEST_ROW = 4, 16  # of a batch: of fewer or shorter ones, to end alike is chance
_OF_A_BATCH = 8  # arrays of one shape that are read: a batch has masks and labels, too, and the next one may be there
_LARGEST_BATCH = 1 << 20  # bytes, all of which are read: 8 ms
_MOST_GRADIENTS = 2000  # that are read: 20 us each where the first numbers are not zero
_FIRST, _MOST_OF_ZEROS = 4096, 1 << 24  # bytes of each that are read first, and in all of those that begin with zeros
_ZEROS = b"\x00\x80"  # bytes of 0 and -0; numbers of other such bytes are below 1e-37
_WIDTHS = {"float16": 2, "bfloat16": 2, "float32": 4, "float64": 8}


class EmptyMatrices(NamedTuple):
    """The matrices of one type and size, which are all nearly empty.

    Attributes:
        text: `type, sides, numbers of 1000 that are not zero`, by tabs.
        read: of each the places in memory that were read, and a number for what was there.
    """

    text: str
    read: list[tuple[Sequence[int], int]]

    def is_as_before(self) -> bool:
        """Whether the same is there still."""
        return all(hash(_read_memory(places)) == was for places, was in self.read)


def find_empty(groups: Mapping[tuple[str, tuple[int, ...]], Iterable[Any]]) -> list[EmptyMatrices]:
    """The kinds of matrices that are all nearly empty.

    Args:
        groups: arrays by their type and shape.
    """
    found, left = list[EmptyMatrices](), _MOST_READ
    for (type_, shape), arrays in groups.items():
        width = _WIDTHS.get(type_, 0)
        size = shape[0] * shape[1] * width if len(shape) == 2 else 0
        if size < _LARGE_MATRIX:
            continue
        shares, pieces = list[int](), list[tuple[Sequence[int], int]]()
        for array in arrays:
            left -= 1
            places = _places_of(array, size, width) if left >= 0 else ()
            content = _read_memory(places)
            shares.append(1000 - _count_equal(content, bytes(width)))
            pieces.append((places, hash(content)))
            if shares[-1] > _NEARLY_EMPTY:
                break
        if shares and max(shares) <= _NEARLY_EMPTY:
            found.append(EmptyMatrices(f"{type_}\t{shape[0]},{shape[1]}\t{max(shares)}", pieces))
    return found


class SameArrays(NamedTuple):
    """All arrays of JAX, or all tensors of PyTorch, of one shape, which the program may keep as they are.

    Attributes:
        shape: their sides; arrays: see `_state_of`; read: what was read of each: where pieces begin, how long each is,
            and the hash of what they held.
        kind: before its number in the facts of a capture.
    """

    shape: tuple[int, ...]
    arrays: set[object]
    read: list[tuple[Sequence[int], int, int]]
    kind: str = SAME

    @property
    def text(self) -> str:
        """`sides, how many`, by tabs."""
        return f"{','.join(map(str, self.shape))}\t{len(self.arrays)}"

    def is_as_before(self) -> bool:
        """Whether the same is there still: a number may be that of another object by now."""
        return all(hash(_read_memory(places, size)) == was for places, size, was in self.read)


def find_same(groups: Mapping[tuple[str, tuple[int, ...]], Sequence[Any]]) -> list[SameArrays]:
    """The shapes of arrays of JAX, which no op writes, and of tensors of PyTorch: to be compared with those of a later
    look.

    Args:
        groups: arrays by their type and shape.
    """
    shapes: dict[tuple[int, ...], list[Any]] = defaultdict(list)
    for (_, shape), arrays in groups.items():
        shapes[shape] += arrays
    found, left = list[SameArrays](), _MOST_COMPARED
    for shape, arrays in shapes.items():
        kinds = {_kind_of_same(each) for each in arrays} if shape else {""}
        kind = kinds.pop()
        count = _COMPARED_TENSOR if kind == SAME_TENSORS else _COMPARED
        left -= count * len(arrays)
        if kinds or not kind or left < 0:
            continue
        read = list[tuple[Sequence[int], int, int]]()
        for array in arrays:
            size = min(count_bytes(array), _PIECE)
            places = _places_of(array, count_bytes(array), 1)[:: _PIECES // count]
            content = _read_memory(places, size)
            read += [(places, size, hash(content))] if content else []
        if len(read) == len(arrays):
            found.append(SameArrays(shape, {*map(_state_of, arrays)}, read, kind))
    return found


def _kind_of_same(array: Any) -> str:
    """Of which facts an array may be; empty where nothing tells whether it was written."""
    if hasattr(array, "unsafe_buffer_pointer"):
        return SAME
    # A tensor with a gradient is one that is trained.
    is_tensor = type(array).__module__.startswith("torch") and not array.is_inference()
    return SAME_TENSORS if is_tensor and not (array.is_leaf and array.grad is not None) else ""


def _state_of(array: Any) -> object:
    """The number of an array as an object; of a tensor of PyTorch also how often it was written."""
    with suppress(Exception):  # a tensor of an inference counts nothing
        if type(array).__module__.startswith("torch"):
            return id(array), int(array._version)
    return id(array)


def shapes_of_numpy(frames: Iterable[FrameType]) -> set[tuple[int, ...]]:
    """The shapes of arrays of NumPy that the functions of the program hold in variables, and in containers there: what
    a compiled function is given may be one of these."""
    found = set[tuple[int, ...]]()
    array = getattr(sys.modules.get("numpy"), "ndarray", None)
    for frame in frames if array is not None else ():
        for each in [*read_locals(frame).values()]:
            held = _latest(each, _LEVELS) if _is_container(each) else [each]
            found.update(one.shape for one in held if type(one) is array)
    return found


def find_ignored(groups: Mapping[tuple[str, tuple[int, ...]], Sequence[Any]]) -> dict[str, str]:
    """`sides, labels of 1000 that are ignored`, by tabs, of the shapes of arrays of whole numbers with such labels.

    Args:
        groups: arrays by their type and shape.
    """
    found, left = list[str](), _MOST_READ
    for (type_, shape), arrays in groups.items():
        size = prod(shape) * len(_NO_LABEL)
        if type_ != "int64" or not shape or prod(shape) < _FEWEST_LABELS:
            continue
        shares = list[int]()
        for array in arrays[-_LATEST:] if left > 0 else ():
            left -= 1
            content = _read_memory(_places_of(array, size, len(_NO_LABEL)))[:size]
            shares.append(_count_equal(content, _NO_LABEL))
        if max(shares, default=0) >= _MANY_IGNORED:
            found.append(f"{','.join(map(str, shape))}\t{max(shares)}")
    return {f"{IGNORED}{number}": text for number, text in enumerate(found)}


def find_padded(groups: Mapping[tuple[str, tuple[int, ...]], Sequence[Any]]) -> dict[str, str]:
    """`sides, the longest row, the mean of rows`, by tabs, of the shapes of batches of whole numbers, such as tokens,
    all rows of which are filled up with one number, at their ends or at their starts.

    Args:
        groups: arrays by their type and shape.
    """
    found, left = dict[str, tuple[int, float]](), _MOST_READ
    for (type_, shape), arrays in groups.items():
        code = _NUMBER_CODES.get(type_)
        if code is None or len(shape) != 2 or shape[0] < _FEWEST_ROWS or shape[1] < _SHORTEST_ROW:
            continue
        rows = list[int]()
        for array in arrays[-_OF_A_BATCH:] if left > 0 else ():
            left -= 1
            rows += _lengths_of_rows(array, shape, code)
        if any(rows):
            sides = ",".join(map(str, shape))
            longest = max(max(rows), found.get(sides, (0, 0.0))[0])
            found[sides] = longest, sum(rows) / len(rows)
    filled = {sides: each for sides, each in found.items() if each[0] < int(sides.rpartition(",")[2])}
    texts = (f"{sides}\t{longest}\t{mean:.0f}" for sides, (longest, mean) in filled.items())
    return {f"{PADDED}{number}": text for number, text in enumerate(texts)}


def find_zero_gradients(groups: Mapping[tuple[str, tuple[int, ...]], Sequence[Any]]) -> dict[int, tuple[int, ...]]:
    """The shapes of tensors whose gradients are all zeros, by the number of each; none where no gradient has others, as
    after all have been reset.

    Args:
        groups: arrays by their type and shape.
    """
    found, has_others = dict[int, tuple[int, ...]](), False
    gradients, bytes_left = _MOST_GRADIENTS, _MOST_OF_ZEROS
    for (type_, shape), arrays in groups.items():
        size = prod(shape) * _WIDTHS.get(type_, 0)
        for each in arrays if size else ():
            start = _start_of_gradient(each, size) if gradients > 0 else 0
            if not start:
                continue
            gradients -= 1
            first = _read_memory([start], min(size, _FIRST))
            if first.strip(_ZEROS):
                has_others = True
            elif first and size <= bytes_left:
                bytes_left -= size
                content = _read_memory([start], size)
                if len(content) == size and not content.strip(_ZEROS):
                    found[id(each)] = shape
    return found if has_others else {}


def describe_zero_gradients(shapes: Mapping[int, tuple[int, ...]]) -> dict[str, str]:
    """`sides, how many`, by tabs, of each shape."""
    count = Counter(shapes.values())
    texts = (f"{','.join(map(str, shape))}\t{number}" for shape, number in count.items())
    return {f"{ZERO}{number}": text for number, text in enumerate(texts)}


def _start_of_gradient(array: Any, size: int) -> int:
    """Where the numbers of the gradient of a tensor begin that a program trains; 0 where there is none."""
    with suppress(Exception):  # a subclass may refuse
        if type(array).__module__.startswith("torch") and array.requires_grad and array.is_leaf:
            return 0 if array.grad is None else _start_of(array.grad, size)
    return 0


def _lengths_of_rows(array: Any, shape: tuple[int, ...], code: str) -> list[int]:
    """How long each row is without what fills all of them up; none where they are one number."""
    count, width = shape
    size = count * width * struct.calcsize(code)
    start = _start_of(array, size) if size <= _LARGEST_BATCH else 0
    content = _read_memory([start], size) if start else b""
    if len(content) < size:
        return []
    numbers = struct.unpack(f"{count * width}{code}", content)
    rows = [numbers[at : at + width] for at in range(0, count * width, width)]
    found = list[list[int]]()
    for each in (rows, [row[::-1] for row in rows]):
        filled = [sum(1 for _ in takewhile(each[0][-1].__eq__, reversed(row))) for row in each]
        found.append([width - number for number in filled])
    shorter = min(found, key=max)
    return shorter if max(shorter) else []


def _places_of(array: Any, size: int, width: int) -> Sequence[int]:
    """Where to read pieces of the memory of an array; nowhere where it is not to be read."""
    start = _start_of(array, size)
    if not start:
        return ()
    each = (size - _PIECE) // _PIECES // width * width
    whole = min(size, _PIECES * _PIECE)
    return range(start, start + _PIECES * each, each) if each >= _PIECE else range(start, start + whole, _PIECE)


def _count_equal(content: bytes, wanted: bytes) -> int:
    """How many of 1000 numbers are equal to one; 0 where none was read."""
    width = len(wanted)
    equal = sum(content[at : at + width] == wanted for at in range(0, len(content), width))
    return 1000 * equal * width // len(content) if content else 0


def _read_memory(places: Iterable[int], size: int = _PIECE) -> bytes:
    """Pieces of a size of this process' memory; nothing if the system does not allow it, or if one is there no longer:
    another thread of the program may free what an array has held, and whoever looked there would end by a signal."""
    try:
        memory = move_up(os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC))  # only Linux has it
        try:
            return b"".join(os.pread(memory, size, place) for place in places)
        finally:
            os.close(memory)
    except OSError:
        return b""


def _start_of(array: Any, size: int) -> int:
    """Where an array's numbers begin; 0 where they are not to be read."""
    with suppress(Exception):  # another release names it otherwise
        return _address(array, size)
    return 0


def _address(array: Any, size: int) -> int:
    """Where an array's numbers begin in the host's memory; 0 where they are elsewhere or not one after another."""
    if type(array).__module__.startswith("torch"):
        whole = array.device.type == "cpu" and str(array.layout) == "torch.strided" and array.is_contiguous()
        return int(array.data_ptr()) if whole and array.untyped_storage().nbytes() >= size else 0
    if hasattr(array, "unsafe_buffer_pointer"):
        (device, *others) = array.devices()
        return int(array.unsafe_buffer_pointer()) if device.platform == "cpu" and not others and array.is_ready() else 0
    return int(array._numpy_internal().ctypes.data) if "CPU" in array.device else 0
