"""Finds the traits of names in the tables of all frameworks, for the events of a trace or for one text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from enum import IntFlag
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask, look_up, used_rows
from stepscope.vocabulary import devices, gpu_kernels, jax, python, ranges, set_up, tensorflow, tf_data, torch, xla
from stepscope.vocabulary.tables import NameTable

U64 = NDArray[np.uint64]

_TABLES = (*python.NAMES, *torch.NAMES, *tensorflow.NAMES, *tf_data.NAMES, *jax.NAMES, *xla.NAMES, *devices.NAMES,
           *gpu_kernels.NAMES, *ranges.NAMES, *set_up.NAMES)  # fmt: skip


class _Reader(NamedTuple):
    """Reads the traits of a name.

    Attributes:
        key: unique among readers.
        traits: all that it can find.
        read: reads them.
        table: whose rules it applies.
        of_key: reads the traits of what the table's rules test of a name, where several classes share that.
    """

    key: str
    traits: int
    read: Callable[[str], int]
    table: NameTable
    of_key: Callable[[str | None], int] | None


def has_trait(trace: HostTrace, types: NDArray[np.integer], traits: IntFlag) -> Mask:
    """Which events, given by their types, have a name with one of some traits: bool of the shape of `types`.

    Each name is judged once per trace, and only names of the given types.
    """
    found = traits_by_type(trace, types, traits) != 0
    return look_up(found, types) if found.any() else np.zeros(len(types), np.bool_)


def traits_by_type(trace: HostTrace, types: NDArray[np.integer], traits: IntFlag) -> U64:
    """The given traits that the names of `types` have: uint64 of shape (event types,), 0 for all other types."""
    present = used_rows(types, len(trace.event_types))
    found = np.zeros(len(trace.event_types), np.uint64)
    for reader in _readers(type(traits), int(traits)):
        found[present] |= _read_traits(trace, reader, present)
    return found & np.uint64(traits)


def name_has(name: str, traits: IntFlag) -> bool:
    """True if a name has one of some traits."""
    return any(reader.read(name) & int(traits) for reader in _readers(type(traits), int(traits)))


def names_have(names: Iterable[str], traits: IntFlag) -> Mask:
    """Which names have one of some traits: bool of shape (names,)."""
    return np.array([name_has(name, traits) for name in names], np.bool_)


def is_called(trace: HostTrace, names: Iterable[str]) -> Mask:
    """Which events of a trace have one of some names: bool of shape (events,).  It decodes no name."""
    rows = [row for row in map(trace.strings.find, names) if row > 0]
    if not rows:
        return np.zeros(len(trace.events), np.bool_)
    return look_up(np.isin(trace.event_types.name, rows), trace.events.type)


def share_nameless(trace: HostTrace) -> float:
    """The share of the events that have no name, or one that stands for none: libkineto writes `unknown` for what it
    cannot print."""
    rows = [0, *(row for row in map(trace.strings.find, ("unknown", "<unknown>")) if row > 0)]
    nameless = look_up(np.isin(trace.event_types.name, rows), trace.events.type)
    return int(np.count_nonzero(nameless)) / max(len(trace.events), 1)


def type_names(trace: HostTrace, types: I64) -> list[str]:
    """The names of some event types, each decoded once per trace."""
    return _texts_of_types(
        trace, "type names", types, lambda missing: trace.strings.texts(trace.event_types.name[missing])
    )


def _texts_of_types(trace: HostTrace, key: str, types: I64, read: Callable[[I64], list[Any]]) -> list[Any]:
    """What is read of the names of some event types, once per trace and type, under a key."""
    size = len(trace.event_types)
    texts, is_known = trace.derived(key, lambda _: (np.empty(size, object), np.zeros(size, np.bool_)))
    missing = types[~is_known[types]]
    if len(missing):
        texts[missing] = read(missing)
        is_known[missing] = True  # after the texts are set, since another thread may read them
    found: list[Any] = texts[types].tolist()
    return found


def _read_traits(trace: HostTrace, reader: _Reader, present: I64) -> U64:
    """The traits that a reader finds in the names of some event types.  The trace caches them."""
    size = len(trace.event_types)
    bits, is_known = trace.derived(reader.key, lambda _: (np.zeros(size, np.uint64), np.zeros(size, np.bool_)))
    missing = present[~is_known[present]]
    if len(missing):
        if reader.of_key is None:
            read = map(reader.read, type_names(trace, missing))
        else:
            read = map(reader.of_key, _keys_of_types(trace, reader.table, missing))
        bits[missing] = np.fromiter(read, np.uint64, len(missing))
        is_known[missing] = True  # after the bits are set, since another thread may read them
    found: U64 = bits[present]
    return found


def _keys_of_types(trace: HostTrace, table: NameTable, types: I64) -> list[str | None]:
    """The parts of the names of some event types that a table's rules test.  The trace caches them, since a table has
    rules for several classes of traits."""
    key = f"keys of table {id(table)}"
    return _texts_of_types(trace, key, types, lambda missing: table.keys_of(type_names(trace, missing)))


@cache
def _readers(kind: type[IntFlag], traits: int) -> tuple[_Reader, ...]:
    """The readers that can find one of some traits."""
    return tuple(reader for reader in _all_readers(kind) if reader.traits & traits)


@cache
def _all_readers(kind: type[IntFlag]) -> tuple[_Reader, ...]:
    """A reader for each table with rules for a class of traits, and one for all exact names."""
    with_rules = [table for table in _TABLES if any(type(trait) is kind for trait, _ in table.rules)]
    exact: dict[str, int] = {}
    for table in _TABLES:
        for name, trait in table.exact.items():
            if type(trait) is kind and table not in with_rules:
                exact[name] = exact.get(name, 0) | int(trait)
    fixed = NameTable(exact={name: kind(bits) for name, bits in exact.items()})
    tables = [*with_rules, fixed] if exact else with_rules
    return tuple(
        _Reader(
            f"{kind.__name__} by table {at}",
            table.traits[kind],
            table.reader(kind),
            table,
            table.reader_of_keys(kind) if table.key or (table.applies and len(table.traits) > 1) else None,
        )
        for at, table in enumerate(tables)
    )
