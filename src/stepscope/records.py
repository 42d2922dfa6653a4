"""`dataclass`, as the standard library's, with methods that cost nothing until they are used.

The standard library writes the text of up to seven methods for each class and compiles them when the class is made:
two thirds of a millisecond.  A command imports a hundred classes and makes objects of a quarter of them, so this was a
third of what importing Stepscope took.  Here the standard library only collects the fields, once somebody asks for
them or makes an object.  Comparing, hashing and showing need no text of their own; `__init__` gets its text when some
objects were made.

`msgspec.Struct` makes an object in 0.13 instead of 0.87 us, but a cold command does not gain: 200 classes take 20 ms to
import as structs and 17 ms here, and `stepscope summary` with the 66 records of the account as structs took 2.02 s of
processor time instead of 2.01 s, and 1.78 s instead of 1.80 s (medians of 12; 30 November 2026, on a busy machine).

The classes are dataclasses to everyone who asks: `fields`, `replace`, `asdict`, `is_dataclass`, msgspec, pickle.  Only
one that inherits from them has to be made here too: the standard library takes them for classes that are not frozen.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import threading
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

# From this many objects on the text of an `__init__` pays: it takes 0.15 ms to compile and saves 4 us an object.
_WORTH_COMPILING = 32

if TYPE_CHECKING:
    from collections.abc import Callable
    from dataclasses import dataclass
else:

    def dataclass(cls=None, /, *, frozen=False, slots=False, kw_only=False, eq=True):
        """Decorates a class; the arguments mean what they mean to `dataclasses.dataclass`."""

        def decorate(cls):
            if cls.__doc__ is None:
                cls.__doc__ = f"{cls.__name__}."  # or else the standard library would work out a signature for it
            sets_hash = eq and not _defines_hash(cls)
            made = _collect_fields(cls, slots, kw_only)
            _add_methods(made, frozen, sets_hash, eq)
            if frozen and slots:
                _add(made, {"__getstate__": _get_state, "__setstate__": _set_state})
            return made

        return decorate if cls is None else decorate(cls)


def _collect_fields(cls: type[Any], slots: bool, kw_only: bool) -> type[Any]:
    """Makes a dataclass of a class that has no more methods than before: at once where that makes another class, or
    changes what the class says of a default."""
    if slots or any(isinstance(each, dataclasses.Field) for each in cls.__dict__.values()):
        return _collect_now(cls, slots, kw_only)
    cls.__dataclass_fields__ = _LateFields(cls, kw_only)
    return cls


class _LateFields:
    """Stands in the place of the fields of a class that nobody has asked for yet."""

    _collecting = threading.RLock()

    def __init__(self, cls: type[Any], kw_only: bool) -> None:
        self._class, self._kw_only = cls, kw_only

    def are_plain(self, types: dict[str, object]) -> bool:
        """Whether all fields are the class's own, and given in the order of their types."""
        inherits = any("__dataclass_fields__" in base.__dict__ for base in self._class.__mro__[1:])
        return not (inherits or self._kw_only or any(_may_be_no_field(text) for text in types.values()))

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        with self._collecting:
            if self._class.__dict__["__dataclass_fields__"] is self:
                _collect_now(self._class, slots=False, kw_only=self._kw_only)
        return self._class.__dict__["__dataclass_fields__"]


def _collect_now(cls: type[Any], slots: bool, kw_only: bool) -> type[Any]:
    """Lets the standard library collect the fields.

    It matches the text of each field's type with patterns, to find what is no field, which is half of its time.  Most
    classes have no such text: theirs is hidden from it meanwhile.
    """
    collect = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    types = inspect.get_annotations(cls)
    if not types or any(_may_be_no_field(text) for text in types.values()):
        return collect(cls)
    cls.__annotations__ = dict.fromkeys(types, object)
    made = collect(cls)
    cls.__annotations__ = made.__annotations__ = types
    for name, text in types.items():
        made.__dataclass_fields__[name].type = text
    return made


def _may_be_no_field(text: object) -> bool:
    """Whether an annotation may stand for what is not a field; all are texts, as in all modules here."""
    return not isinstance(text, str) or "ClassVar" in text or "InitVar" in text or "KW_ONLY" in text


def _defines_hash(cls: type[Any]) -> bool:
    """Whether the class has a `__hash__` of its own; Python writes None into one that defines `__eq__` alone."""
    own = cls.__dict__.get("__hash__", dataclasses.MISSING)
    return own is not dataclasses.MISSING and not (own is None and "__eq__" in cls.__dict__)


def _add_methods(cls: type[Any], frozen: bool, sets_hash: bool, eq: bool) -> None:
    if sets_hash:
        cls.__hash__ = _hash if frozen else None  # type: ignore[assignment]
    methods: dict[str, Any] = {"__init__": _LateInit(cls, frozen), "__repr__": _repr}
    if eq:
        methods["__eq__"] = _equal
    if frozen:
        methods |= {"__setattr__": _refuse_to_set, "__delattr__": _refuse_to_delete}
    _add(cls, methods)


def _add(cls: type[Any], methods: dict[str, Any]) -> None:
    """Adds what the class does not define itself."""
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(cls, name, method)


# ---- `__init__` ------------------------------------------------------------------------------------------------------


class _LateInit:
    """Stands in the place of an `__init__` whose text is not compiled yet."""

    def __init__(self, cls: type[Any], frozen: bool) -> None:
        self._class, self._frozen, self._left = cls, frozen, _WORTH_COMPILING
        self._fields: list[tuple[str, bool, Any, Any]] = []
        self._ordered: list[str] = []

    def __get__(self, instance: Any, owner: type[Any]) -> Any:
        self._left -= 1
        if instance is None or self._left < 0:
            return self._compile().__get__(instance, owner)
        return functools.partial(self._fill, instance)

    def _compile(self) -> Callable[..., None]:
        init = _compiled_init(self._class, self._frozen)
        self._class.__init__ = init
        return init

    def _read_fields(self) -> list[tuple[str, bool, Any, Any]]:
        """The fields' names, whether they are given, their defaults and what makes these."""
        own, missing = self._class.__dict__, dataclasses.MISSING
        types = inspect.get_annotations(self._class)
        if isinstance(own["__dataclass_fields__"], _LateFields) and own["__dataclass_fields__"].are_plain(types):
            self._ordered = list(types)
            self._fields = [(name, True, own.get(name, missing), missing) for name in types]
        else:
            fields = dataclasses.fields(self._class)
            self._ordered = [field.name for field in fields if field.init and not field.kw_only]
            self._fields = [(field.name, field.init, field.default, field.default_factory) for field in fields]
        return self._fields

    def _fill(self, record: Any, /, *values: Any, **named: Any) -> None:
        """Does what the text would do; a call that it would refuse, it refuses itself."""
        fields, missing = self._fields or self._read_fields(), dataclasses.MISSING
        given = {**dict(zip(self._ordered, values, strict=False)), **named}
        left, put = len(values) + len(named), object.__setattr__ if self._frozen else setattr
        for name, is_given, default, make in fields:
            if is_given and name in given:
                put(record, name, given[name])
                left -= 1
            elif make is not missing:
                put(record, name, make())
            elif is_given and default is not missing:
                put(record, name, default)
            elif is_given:
                return self._compile()(record, *values, **named)
        if left:  # given twice, or no field
            return self._compile()(record, *values, **named)
        if hasattr(record, "__post_init__"):
            record.__post_init__()
        return None


class _Factory:
    """The default in a signature where a call makes the value."""

    def __repr__(self) -> str:
        return "<factory>"


_FACTORY = _Factory()


def _compiled_init(cls: type[Any], frozen: bool) -> Callable[..., None]:
    """The `__init__` of a class with the fields that it has; each is set past the guard of a frozen class."""
    wanted = [field for field in dataclasses.fields(cls) if field.init]
    names: dict[str, Any] = {"_set": object.__setattr__, "_factory": _FACTORY}
    ordered = [field for field in wanted if not field.kw_only]
    named = [field for field in wanted if field.kw_only]
    parameters = [_parameter(field, names) for field in ordered]
    parameters += ["*", *(_parameter(field, names) for field in named)] if named else []
    lines = [_assignment(field, names, frozen) for field in dataclasses.fields(cls)]
    lines += ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    body = "\n ".join(line for line in lines if line) or "pass"
    exec(f"def __init__({', '.join(['self', *parameters])}):\n {body}", names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    init.__annotations__ = {field.name: field.type for field in wanted} | {"return": None}
    return init


def _parameter(field: dataclasses.Field[Any], names: dict[str, Any]) -> str:
    if field.default is not dataclasses.MISSING:
        names[f"_default_{field.name}"] = field.default
        return f"{field.name}=_default_{field.name}"
    return f"{field.name}=_factory" if _has_factory(field) else field.name


def _assignment(field: dataclasses.Field[Any], names: dict[str, Any], frozen: bool) -> str:
    """The line that sets a field; none for a field whose default in the class is enough."""
    value = field.name
    if _has_factory(field):
        names[f"_make_{field.name}"] = field.default_factory
        made = f"_make_{field.name}()"
        value = f"{made} if {field.name} is _factory else {field.name}" if field.init else made
    elif not field.init:
        return ""
    return f"_set(self, {field.name!r}, {value})" if frozen else f"self.{field.name} = {value}"


def _has_factory(field: dataclasses.Field[Any]) -> bool:
    return field.default_factory is not dataclasses.MISSING


# ---- methods that all share ------------------------------------------------------------------------------------------


def _values(record: Any) -> tuple[Any, ...]:
    """What is compared; a field may be left out of it."""
    return tuple([getattr(record, field.name) for field in dataclasses.fields(record) if field.compare])


def _equal(self: Any, other: object) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self is other or _are_same(_values(self), _values(other))


def _are_same(one: Any, other: Any) -> bool:
    """Whether two values are equal, arrays being so if they have one shape and equal elements.

    The standard library compares records of arrays only where these are the same objects, and fails otherwise.
    """
    if one is other:
        return True
    if isinstance(one, (tuple, list)) and one.__class__ is other.__class__:
        return len(one) == len(other) and all(map(_are_same, one, other))
    if isinstance(one, dict) and one.__class__ is other.__class__:
        return one.keys() == other.keys() and all(_are_same(value, other[key]) for key, value in one.items())
    if hasattr(one, "__array__") or hasattr(other, "__array__"):
        is_alike = getattr(one, "shape", ()) == getattr(other, "shape", ())
        return is_alike and bool((one == other).all() if getattr(one, "shape", ()) else one == other)
    return bool(one == other)


def _hash(self: Any) -> int:
    fields = dataclasses.fields(self)
    hashed = [field for field in fields if (field.compare if field.hash is None else field.hash)]
    return hash(tuple([getattr(self, field.name) for field in hashed]))


def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")


def _get_state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
