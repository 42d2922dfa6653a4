"""The programs that were compiled during the capture, as rows: which, why again, and at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from stepscope.analysis.steps.find_steps import steps_of, steps_of_events
from stepscope.analysis.trace.call_sites import call_sites, site_text
from stepscope.analysis.trace.compilations import HIT, MISS, Compilation, compilations_of
from stepscope.analysis.trace.noted_compilations import AGAIN, Change
from stepscope.model import HostTrace
from stepscope.report import Cell, Field, Role, Row, make_rows, round_ms
from stepscope.vocabulary.patterns import Pattern
from stepscope.vocabulary.python import place_of

MOST_COMPILATIONS = 500
_MOST_SHAPES = 4
_SHAPED = Pattern(r"\w+\[[\d,?.]*\]$")

FUNCTION_FIELDS: tuple[Field, ...] = (
    Field("function", "text", "the function that was compiled", role=Role.NAME),
    Field("compilations", "count", "how many of its programs were compiled or loaded during the capture", "int"),
    Field("total_ms", "ms", "time of the calls that needed them: tracing, lowering, compiling or loading, launching"),
    Field("compile_ms", "ms", "of that, compiling"),
    Field("cache_hits", "count", "programs loaded from the cache on disk; unknown without a cache", "int"),
    Field("cache_misses", "count", "programs that were not in the cache on disk; unknown without a cache", "int"),
    Field("argument", "text", "the argument that changed most often", role=Role.LABEL),
    Field("shapes", "text", "shapes and types, or values, that this argument had, in order of time", role=Role.SHAPE),
    Field("place", "text", "the line of the program that defines the function, or that calls it", role=Role.SOURCE),
)
COMPILATION_FIELDS: tuple[Field, ...] = (
    Field("function", "text", "the function that was compiled", role=Role.NAME),
    Field(
        "program", "text", "the program and its number; unknown if the numbers do not show which it is", role=Role.LABEL
    ),
    Field("host", "text", "the host", role=Role.HOST),
    Field("step", "number", "the step in which it was compiled", "int", role=Role.ORDINAL),
    Field("start_ms", "ms", "when the call started that needed it", role=Role.INSTANT),
    Field("total_ms", "ms", "time of that call: tracing, lowering, compiling or loading, launching"),
    Field("lower_ms", "ms", "of that, lowering; tracing for TensorFlow and PyTorch"),
    Field("compile_ms", "ms", "of that, compiling"),
    Field("cache", "text", "`hit` or `miss` of the cache on disk; unknown without a cache", role=Role.TERM),
    Field(
        "changed",
        "text",
        "what differs from the program of this function before it: `first` if there is none, `shape`, `type`, `shape "
        "and type`, `value` of a Python argument, `arguments` if it takes another number of them, `function` if the "
        "same code was made a new function, `variables` for TensorFlow's second tracing of a function that made "
        "variables, `other` for another condition of PyTorch, `nothing` if these are equal",
        role=Role.TERM,
    ),
    Field("argument", "text", "the argument that changed", role=Role.LABEL),
    Field("before", "text", "its shape and type before, or its value", role=Role.SHAPE),
    Field("after", "text", "its shape and type now, or its value", role=Role.SHAPE),
    Field("place", "text", "the line of the program that defines the function, or that calls it", role=Role.SOURCE),
)


class HostCompilation(NamedTuple):
    """One compilation of a host; times in ps, unknown is None or empty.  See COMPILATION_FIELDS."""

    function: str
    program: str
    step: int | None
    start_ps: int
    total_ps: int
    lower_ps: int
    compile_ps: int
    cache: str
    changed: str
    argument: str
    before: str
    after: str
    place: str


def compiled_programs(trace: HostTrace) -> list[HostCompilation]:
    """The compilations of a host, in order of time."""
    found = compilations_of(trace)[:MOST_COMPILATIONS]
    start = trace.span_ps()[0]
    steps = _step_numbers(trace, [each.event for each in found])
    return [
        HostCompilation(
            each.function, each.program, step, int(trace.events.start_ps[each.event]) - start, each.total_ps,
            each.lower_ps, each.compile_ps, each.cache, *find_change(each), each.place or site,
        )
        for each, step, site in zip(found, steps, _call_places(trace, [each.event for each in found]), strict=True)
    ]  # fmt: skip


def _step_numbers(trace: HostTrace, events: list[int]) -> list[int | None]:
    place = steps_of_events(trace, np.array(events, np.int64))
    number = steps_of(trace).number
    return [int(number[at]) if at >= 0 else None for at in place.tolist()]


def _call_places(trace: HostTrace, events: list[int]) -> list[str]:
    """File and line of the user's frame around each call; empty where Python calls were not recorded."""
    sites = call_sites(trace, np.array(events, np.int64)).tolist()
    places = (place_of(site_text(trace.strings[site]) if site >= 0 else "") for site in sites)
    return [f"{file}:{line}" if file else "" for _, file, line in places]


def find_change(each: Compilation) -> tuple[str, str, str, str]:
    """What changed, and of the argument that changed its name, and its shape before and now."""
    if each.reason:
        return _find_noted_change(each)
    if not each.program:
        return "", "", "", ""
    if each.earlier is None:
        return "first", "", "", ""
    if len(each.earlier) != len(each.arguments):
        return "arguments", "", f"{len(each.earlier)} arguments", f"{len(each.arguments)} arguments"
    changed = [pair for pair in zip(each.earlier, each.arguments, strict=True) if pair[0][1] != pair[1][1]]
    if not changed:
        return "nothing", "", "", ""
    return _describe_change([(name, before, after) for (_, before), (name, after) in changed])


def _find_noted_change(each: Compilation) -> tuple[str, str, str, str]:
    """The same of a function that TensorFlow traced or PyTorch compiled."""
    if each.reason != AGAIN:
        return each.reason, "", "", ""
    if not each.changes:
        return "nothing", "", "", ""
    shaped = [change for change in each.changes if _SHAPED.match(change[1]) and _SHAPED.match(change[2])]
    if shaped:
        return _describe_change(shaped)
    _, name, before, after = _describe_change(each.changes)
    return ("value" if before or after else "other"), name, before, after


def _describe_change(changed: Sequence[Change]) -> tuple[str, str, str, str]:
    """What changed, and of the first argument that changed its name, and its shape before and now."""
    name, before, after = changed[0]
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return _kind_of_change(changed), name + more, before, after


def _kind_of_change(changed: Sequence[Change]) -> str:
    """`f32[8,64]` is a type and a shape."""
    pairs = [(before.partition("["), after.partition("[")) for _, before, after in changed]
    kinds = [
        kind
        for kind, part in (("shape", 2), ("type", 0))
        if any(before[part] != after[part] for before, after in pairs)
    ]
    return " and ".join(kinds)


def compilation_cells(hosts: Sequence[tuple[str, Sequence[HostCompilation]]]) -> list[Row]:
    """One row for each compilation of all hosts."""
    return [row for host, compiled in hosts for row in make_rows(COMPILATION_FIELDS, compiled, host=host)]


def function_cells(hosts: Sequence[tuple[str, Sequence[HostCompilation]]]) -> list[dict[str, Cell]]:
    """One row for each function that was compiled, the one that took longest first."""
    groups: dict[str, list[HostCompilation]] = {}
    for _, compiled in hosts:
        for each in compiled:
            groups.setdefault(each.function, []).append(each)
    rows = [_function_row(function, group) for function, group in groups.items()]
    return sorted(rows, key=lambda row: (-float(str(row["total_ms"])), str(row["function"])))


def _function_row(function: str, group: Sequence[HostCompilation]) -> dict[str, Cell]:
    caches = [each.cache for each in group if each.cache]
    names = [each.argument for each in group if each.argument]
    places = [each.place for each in group if each.place]
    argument = max(names, key=names.count, default="")
    changes = [each for each in group if argument and each.argument == argument]
    shapes = list(dict.fromkeys(shape for each in changes for shape in (each.before, each.after) if shape))
    more = f", ... {len(shapes) - _MOST_SHAPES} more" if len(shapes) > _MOST_SHAPES else ""
    return {
        "function": function,
        "compilations": len(group),
        "total_ms": round_ms(sum(each.total_ps for each in group)),
        "compile_ms": round_ms(sum(each.compile_ps for each in group)),
        "cache_hits": caches.count(HIT) if caches else None,
        "cache_misses": caches.count(MISS) if caches else None,
        "argument": argument or None,
        "shapes": ", ".join(shapes[:_MOST_SHAPES]) + more or None,
        "place": max(places, key=places.count, default=None),
    }
