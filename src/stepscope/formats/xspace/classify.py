"""Decides the kind of each event from its name, its line and its stats.

This module knows the stats of XSpace files; the rules for names are in the vocabulary.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from stepscope import kernels
from stepscope.formats.spool.layout import WITHOUT_FRAMEWORK
from stepscope.formats.xspace.stat_flags import (
    ASYNC,
    COLLECTIVE,
    CORRELATION,
    COUNTER,
    EAGER,
    FUNCTION_CALL,
    HLO_OP,
    KERNEL,
    MEMCPY,
    MEMORY,
    MEMSET,
    ROOT,
    STEP_NUM,
)
from stepscope.kernels.wire import FLAG_AGGREGATE
from stepscope.model import (
    EventKind,
    Events,
    EventTypes,
    LineKind,
    PlaneKind,
    Stats,
    StatTag,
    Strings,
    Trait,
)
from stepscope.model.arrays import I32, I64, U8, Mask, look_up
from stepscope.vocabulary import collectives, devices, grain, jax, python, tensorflow, tf_data, torch, user_ranges, xla
from stepscope.vocabulary.frameworks import framework_of
from stepscope.vocabulary.precision import is_narrow
from stepscope.vocabulary.tables import KindRule

K = EventKind

# The first rule that matches wins.  Rules for ops come last: they match anything in the form of an op.
_HOST_RULES: tuple[KindRule, ...] = (
    *python.KINDS,
    *user_ranges.KINDS,
    *torch.STEP_KINDS,
    *tensorflow.KERAS_STEPS,
    *tf_data.KINDS,
    *grain.KINDS,
    *tensorflow.RUNTIME,
    *jax.KINDS,
    *devices.HOST_CALLS,
    *xla.COMPILING,
    *tensorflow.OPS,
    *jax.OPS,
    *tensorflow.UNTYPED_OPS,
)
_GPU_RULES: tuple[KindRule, ...] = (*collectives.STREAM_WORK, *devices.DEVICE_WORK)
_RULES_OF_PLANE: dict[PlaneKind, tuple[KindRule, ...]] = {
    PlaneKind.HOST: _HOST_RULES,
    PlaneKind.GPU: _GPU_RULES,
    PlaneKind.TPU: xla.CORE_OPS,
    PlaneKind.SPARSE_CORE: xla.CORE_OPS,
}
_KINDS = max(EventKind) + 1
_KIND_OF_LINE = {
    LineKind.STEPS: K.DEVICE_STEP,
    LineKind.MODULES: K.MODULE,
    LineKind.DERIVED: K.SCOPE,
    LineKind.COUNTERS: K.COUNTER,
    LineKind.OVERHEAD: K.OVERHEAD,
}


def _compile_rules(rules: Sequence[KindRule]) -> re.Pattern[bytes]:
    # Each rule ends with a group, so `lastindex` of a match is the rule's number.  A rule that began with one would be
    # tried at every name, whatever letter that starts with.
    return re.compile("|".join(f"(?:{pattern})()" for pattern, _, _ in rules).encode())


def classify_types(strings: Strings, names: I32, planes: I32, plane_kinds: U8) -> tuple[U8, U8]:
    """Kind and traits of event types, from their names alone.

    Args:
        names, planes: int32 of shape (types,): string row and plane row of each type.
        plane_kinds: uint8 of shape (planes,).

    Returns:
        Two uint8 of shape (types,).
    """
    kinds = np.zeros(len(names), np.uint8)
    traits = np.zeros(len(names), np.uint8)
    for plane_kind, rules in _RULES_OF_PLANE.items():
        here = np.flatnonzero(plane_kinds[planes] == plane_kind)
        if not len(here):  # compiling the rules of a device takes a millisecond
            continue
        rule = _find_rules(rules, strings, names[here])
        kinds[here] = np.array([K.OTHER, *(kind for _, kind, _ in rules)], np.uint8)[rule]
        traits[here] = np.array([Trait.NONE, *(trait for _, _, trait in rules)], np.uint8)[rule]
    return kinds, traits


def _find_rules(rules: Sequence[KindRule], strings: Strings, names: I32) -> I64:
    """Which rule each of some names follows: int64 of shape (names,), from 1; 0 for none."""
    match, blob = _compile_rules(rules).match, strings.blob.data
    places = zip(strings.offsets[names].tolist(), strings.offsets[names + 1].tolist(), strict=True)
    found = [match(blob, begin, end) for begin, end in places]
    return np.array([each.lastindex if each else 0 for each in found], np.int64)


_BLOCK = 1 << 18  # events at a time, to save memory


def classify_events(
    event_type: I32,
    event_line: I32,
    flags: NDArray[np.uint16],
    type_kind: U8,
    type_traits: U8,
    line_kind: U8,
) -> tuple[U8, U8]:
    """Kind and traits of each event: those of its type, corrected by its line and its stats.

    Events share few combinations of these, so the rules are applied to the combinations.

    Args:
        flags: the bits of `FLAG_OF_STAT` that each event has.

    Returns:
        Two uint8 of shape (events,).
    """
    kinds, traits = np.empty(len(event_type), np.uint8), np.empty(len(event_type), np.uint8)
    found = np.zeros(1 << 16, np.uint8)
    kernels.combine.seen(flags, found)
    known_flags = np.flatnonzero(found)
    shape = (len(known_flags), len(LineKind), 2, _KINDS)
    marks = (type_traits & np.uint8(Trait.MARKS_IF_ROOT)) != 0
    own = type_traits & np.uint8(0xFF - Trait.MARKS_IF_ROOT)
    of_type, of_line = marks * np.int32(_KINDS) + type_kind, line_kind * np.int32(2 * _KINDS)
    of_flags = np.zeros(1 << 16, np.int32)
    of_flags[known_flags] = np.arange(len(known_flags)) * (len(LineKind) * 2 * _KINDS)
    cell = np.empty(_BLOCK, np.int32)
    for begin in range(0, len(event_type), _BLOCK):
        rows = slice(begin, min(begin + _BLOCK, len(event_type)))
        cells, here = cell[: rows.stop - begin], np.zeros(math.prod(shape), np.uint8)
        kernels.combine.combine(
            event_type[rows], event_line[rows], flags[rows], of_type, of_line, of_flags, cells, here
        )
        by_cell = _classify_combinations(np.flatnonzero(here), shape, known_flags)
        kernels.combine.apply(cells, event_type[rows], *by_cell, own, kinds[rows], traits[rows])
    return kinds, traits


def _classify_combinations(cells: I64, shape: tuple[int, ...], known_flags: I64) -> tuple[U8, U8]:
    """Kind and traits of those combinations that there are: two uint8 of shape (combinations,)."""
    flag, line, mark, kind = np.unravel_index(cells, shape)
    kinds, traits = np.zeros(math.prod(shape), np.uint8), np.zeros(math.prod(shape), np.uint8)
    kinds[cells], traits[cells] = _refine_kinds(
        kind.astype(np.uint8), mark.astype(np.bool_), line, known_flags[flag].astype(np.uint16)
    )
    return kinds, traits


def _refine_kinds(kind: U8, marks_if_root: Mask, place: I64, flags: NDArray[np.uint16]) -> tuple[U8, U8]:
    """Kind and traits of combinations of kind by name, step mark by name, line kind and flags."""

    def has(bit: int) -> Mask:
        wanted: Mask = (flags & np.uint16(bit)) != 0
        return wanted

    nameless = kind == K.OTHER
    host = place == LineKind.THREAD
    kind[host & nameless & has(HLO_OP)] = K.OP
    kind[host & nameless & has(FUNCTION_CALL)] = K.TRACED_FUNCTION
    kind[host & nameless & has(CORRELATION)] = K.RUNTIME_CALL
    kind[host & has(STEP_NUM)] = K.STEP_MARK
    kind[host & (kind == K.OTHER) & has(ROOT) & marks_if_root] = K.STEP_MARK

    stream = (place == LineKind.STREAM) & nameless
    kind[stream & (has(CORRELATION) | has(KERNEL) | has(HLO_OP))] = K.KERNEL
    kind[stream & has(MEMCPY)] = K.COPY_OTHER
    kind[stream & has(MEMSET)] = K.MEMSET
    kind[stream & has(MEMORY)] = K.DEVICE_MEMORY

    core = place == LineKind.DEVICE_OPS
    kind[core & nameless] = K.DEVICE_OP
    kind[core & has(COLLECTIVE)] = K.COLLECTIVE

    for line, fixed in _KIND_OF_LINE.items():
        kind[place == line] = fixed
    kind[has(COUNTER)] = K.COUNTER
    kind[has(FLAG_AGGREGATE)] = K.AGGREGATE

    traits = np.zeros(len(kind), np.uint8)
    for bit, trait in ((ROOT, Trait.EXPLICIT_ROOT), (ASYNC, Trait.ASYNC), (EAGER, Trait.EAGER)):
        traits[has(bit)] |= np.uint8(trait)
    return kind, traits


def mark_16bit(strings: Strings, events: Events, types: EventTypes, stats: Stats) -> None:
    """Marks device work that computes in 16 bits or fewer, by its shape stat if there is one, otherwise by its name.

    Unlike in XProf, bf16 and fp8 count too.
    """
    computes = np.zeros(256, np.bool_)
    computes[[K.KERNEL, K.DEVICE_OP]] = True
    rows = np.flatnonzero(look_up(computes, events.kind))
    if not len(rows):
        return
    text = types.name.take(events.type.take(rows)).astype(np.int64)
    shape = np.zeros(len(rows), np.int64)
    _put_texts(strings, stats, "shape", rows, shape)
    text = np.where(shape > 0, shape, text)
    narrow = np.zeros(len(strings), np.bool_)
    for row in np.flatnonzero(np.bincount(text)).tolist():
        narrow[row] = is_narrow(strings.raw(row))
    events.traits[rows[narrow.take(text)]] |= np.uint8(Trait.COMPUTES_16BIT)


def mark_compiles(strings: Strings, events: Events, stats: Stats) -> None:
    """Marks the calls of traced functions that caused a new trace."""
    name = strings.find("tf_function_call")
    rows = np.flatnonzero(stats.name == name) if name > 0 else np.empty(0, np.int64)
    traced = [strings.find("traced-xla"), strings.find("traced-nonXla")]
    rows = rows[(stats.tag[rows] == StatTag.STRING) & np.isin(stats.value[rows], traced)]
    owners = np.searchsorted(stats.offsets, rows, side="right") - 1
    events.traits[owners] |= np.uint8(Trait.COMPILES)


def _put_texts(strings: Strings, stats: Stats, name: str, rows: I64, out: I64) -> None:
    """Puts the text that some events have under a name into a column, as its row in the string table."""
    wanted = strings.find(name)
    if wanted > 0:
        kernels.stats.put_some(
            stats.offsets, rows, stats.name, stats.tag, stats.value, wanted, 1 << StatTag.STRING, out
        )


def detect_framework(strings: Strings) -> str:
    """The framework that wrote the file; `python` if Stepscope recorded a program without one; empty if unknown."""
    return framework_of(strings) or ("python" if strings.find(WITHOUT_FRAMEWORK) > 0 else "")
