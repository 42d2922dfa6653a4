"""`stepscope.records.dataclass` is the standard library's in everything but the time it takes."""

from __future__ import annotations

import ast
import copy
import dataclasses
import importlib
import inspect
import pickle
import pkgutil
import re
from dataclasses import KW_ONLY, field
from typing import ClassVar

import msgspec
import numpy as np
import pytest
from imports import PACKAGE

import stepscope.analysis
import stepscope.formats
import stepscope.model
from stepscope.records import dataclass

_THEIRS = re.compile(r"^\s*(?:from dataclasses import .*\bdataclass\b|@dataclasses\.dataclass)", re.MULTILINE)
_ARRAY = re.compile(r"\b(I64|I32|U8|F64|F32|Mask|NDArray|ndarray)\b")

DECORATORS = {"ours": dataclass, "theirs": dataclasses.dataclass}


@dataclass(frozen=True)
class Point:
    x: int
    y: float = 1.5
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Slotted:
    x: int
    y: str = "y"


@dataclass(frozen=True, kw_only=True)
class Base:
    hosts: tuple[str, ...]
    partial: bool = False


@dataclass(frozen=True, kw_only=True)
class Derived(Base):
    rows: tuple[int, ...]


@dataclass
class Queue:
    name: str
    waiting: list[int] = field(default_factory=list)
    secret: int = field(default=0, repr=False, compare=False)


def drawn(decorator):
    """One class of each kind, made by a decorator."""

    @decorator(frozen=True)
    class Frozen:
        x: int
        y: list[int] = field(default_factory=list)
        z: float = 2.0

    @decorator
    class Plain:
        x: int
        later: int = field(default=3, kw_only=True)

    @decorator(frozen=True, eq=False)
    class Unequal:
        x: int

    @decorator(frozen=True)
    class Shared:
        LIMIT: ClassVar[int] = 4
        x: int
        _: KW_ONLY
        y: list[int] | None = None

    return Frozen, Plain, Unequal, Shared


@pytest.mark.parametrize("index", range(4))
def test_the_signature_is_that_of_the_standard_library(index):
    ours, theirs = (inspect.signature(drawn(decorator)[index]) for decorator in DECORATORS.values())

    assert str(ours) == str(theirs)


@pytest.mark.parametrize("index", range(4))
def test_equality_hash_and_text_are_those_of_the_standard_library(index):
    seen = []
    for decorator in DECORATORS.values():
        cls = drawn(decorator)[index]
        seen.append((cls(1) == cls(1), cls(1) == cls(2), cls(1) == 1, cls.__hash__ is None, repr(cls(1))))

    assert seen[0] == seen[1]


@pytest.mark.parametrize("value", [Point(3), Slotted(1), Derived(hosts=("a",), rows=(1, 2)), Queue("q", [1])])
def test_objects_survive_being_copied_and_stored(value):
    assert pickle.loads(pickle.dumps(value)) == value
    assert copy.deepcopy(value) == value
    assert dataclasses.replace(value) == value
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=type(value)) == value


@pytest.mark.parametrize("index", range(4))
def test_the_fields_and_their_types_are_those_of_the_standard_library(index):
    ours, theirs = (drawn(decorator)[index] for decorator in DECORATORS.values())

    seen = [[(each.name, each.type, each.kw_only) for each in dataclasses.fields(cls)] for cls in (ours, theirs)]
    assert seen[0] == seen[1]
    assert ours.__annotations__ == theirs.__annotations__


def test_fields_of_a_base_come_first_and_by_name_only():
    assert [each.name for each in dataclasses.fields(Derived)] == ["hosts", "partial", "rows"]
    with pytest.raises(TypeError):
        Derived(("a",), rows=())


def test_what_a_class_defines_itself_stays():
    @dataclass(frozen=True)
    class Own:
        x: int

        def __post_init__(self):
            object.__setattr__(self, "x", self.x + 1)

        def __repr__(self):
            return "own"

        def __hash__(self):
            return 7

    assert (repr(Own(1)), hash(Own(1)), Own(1).x) == ("own", 7, 2)


def test_a_frozen_object_takes_no_value():
    point = Point(1)

    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'x'"):
        point.x = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'x'"):
        del point.x


def test_each_object_has_a_list_of_its_own():
    one, other = Queue("one"), Queue("other")
    one.waiting.append(1)

    assert other.waiting == []
    assert repr(one) == "Queue(name='one', waiting=[1])"
    assert Queue("q", secret=1) == Queue("q", secret=2)


@pytest.mark.parametrize("index", range(4))
def test_all_objects_of_a_class_are_made_alike(index):
    """The first ones without a compiled `__init__`, the others by it."""
    ours, theirs = (drawn(decorator)[index] for decorator in DECORATORS.values())
    calls = [((1,), {}), ((), {"x": 1}), ((), {}), ((1,), {"x": 2}), ((1,), {"other": 2}), ((1, 2, 3, 4), {})]

    for _ in range(12):
        for values, named in calls:
            made = []
            for cls in (ours, theirs):
                try:
                    made.append(dataclasses.asdict(cls(*values, **named)))
                except TypeError as error:
                    made.append(str(error).replace(theirs.__qualname__, ours.__qualname__))
            assert made[0] == made[1]


# -- arrays ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    name: str
    rows: np.ndarray
    parts: tuple[np.ndarray, ...] = ()


def test_records_of_arrays_are_compared_by_their_elements():
    first, longer = Rows("a", np.arange(5), (np.zeros(2),)), Rows("a", np.arange(6), (np.zeros(2),))

    assert first == Rows("a", np.arange(5), (np.zeros(2),))
    assert first not in (
        longer,
        Rows("a", np.arange(5), (np.ones(2),)),
        Rows("a", np.arange(5)),
        Rows("b", np.arange(5)),
    )
    found = [longer, Rows("a", np.arange(5)), first]
    found.remove(Rows("a", np.arange(5), (np.zeros(2),)))
    assert len(found) == 2


def _records_with_arrays():
    """The classes of the rooms of columns that are made by `dataclass` and have a field of an array."""
    rooms = (stepscope.analysis, stepscope.formats, stepscope.model)
    modules = [each for room in rooms for each in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    for module in modules:
        content = vars(importlib.import_module(module.name))
        for each in list(content.values()):
            if inspect.isclass(each) and each.__module__ == module.name and dataclasses.is_dataclass(each):
                arrays = [field.name for field in dataclasses.fields(each) if _ARRAY.search(str(field.type))]
                if arrays:
                    yield each, arrays


def test_no_record_of_the_package_fails_when_it_is_compared():
    """`in`, `remove`, `index` and `==` of the standard library's records fail where arrays differ in shape."""
    seen = 0
    for cls, arrays in _records_with_arrays():
        pair = []
        for length in (5, 6):
            record = object.__new__(cls)
            for each in dataclasses.fields(cls):
                object.__setattr__(record, each.name, np.arange(length) if each.name in arrays else 0)
            pair.append(record)
        assert pair[0] in pair, cls
        assert pair[0] != pair[1] or cls.__eq__ is object.__eq__, cls
        seen += 1
    assert seen > 50


def test_no_named_tuple_holds_arrays():
    """It is compared as a tuple, which fails; those of the kernels are taken apart and never compared."""
    found = [
        f"{path.stem}.{each.name}"
        for path in PACKAGE.rglob("*.py")
        if "kernels" not in path.parts and "NamedTuple" in (text := path.read_text("utf-8"))
        for each in ast.walk(ast.parse(text))
        if isinstance(each, ast.ClassDef) and "NamedTuple" in map(ast.unparse, each.bases)
        if any(isinstance(line, ast.AnnAssign) and _ARRAY.search(ast.unparse(line.annotation)) for line in each.body)
    ]
    assert found == []


def test_all_records_are_made_by_our_decorator():
    ours = {"records.py", "addresses.py"}  # itself, and what a training job imports that has no arrays
    theirs = [path.name for path in PACKAGE.rglob("*.py") if _THEIRS.search(path.read_text("utf-8"))]
    assert set(theirs) <= ours
