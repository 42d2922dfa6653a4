"""The function in which the worker processes of a loader spend their time, by samples of their stacks."""

from __future__ import annotations

from collections import Counter

import numpy as np

from stepscope.analysis.steps.stack_samples import SampledFunction, functions_called, main_function, pool_function
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import HostTrace
from stepscope.model.arrays import I64, Mask
from stepscope.vocabulary.grain import is_wait
from stepscope.vocabulary.lines import holds_worker_processes
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import CodeTrait, InputTrait

_PREPARE = "prepare"


def waits_for_workers(name: str) -> bool:
    """True for the name of a call that takes a batch from worker processes."""
    return name_has(name, InputTrait.MULTI_PROCESS) or is_wait(name)


def worker_lines(trace: HostTrace) -> list[int]:
    """The lines of worker processes; none where they were not recorded."""
    planes = [row for row in range(len(trace.planes)) if holds_worker_processes(trace.plane_name(row))]
    lines: list[int] = np.flatnonzero(np.isin(trace.lines.plane, planes)).tolist()
    return lines


def is_preparing(trace: HostTrace, rows: I64) -> Mask:
    """Which events of workers are the preparing of a batch: bool of shape (n,)."""
    return np.array([trace.name_of(row) == _PREPARE for row in rows.tolist()], np.bool_)


def function_of_worker(trace: HostTrace, line: int) -> SampledFunction | None:
    """The function that most of a worker's preparing is in, on its own thread or on those of its pool; None if its
    stacks do not tell."""
    preparing = _time_preparing(trace, line)
    found = main_function(trace, line, preparing)
    if found is None or not name_has(trace.name_of(found.frame), CodeTrait.OF_USER):
        found = pool_function(trace, f"{trace.line_label(line)}: ", preparing) or found
    return found


def functions_of_worker(trace: HostTrace, line: int) -> list[SampledFunction]:
    """The program's functions that a worker runs on its own thread while it prepares; see `functions_called`."""
    return functions_called(trace, line, _time_preparing(trace, line))


def _time_preparing(trace: HostTrace, line: int) -> Spans:
    rows: I64 = np.arange(int(trace.lines.event_begin[line]), int(trace.lines.event_end[line]))
    return spans_of(trace, rows[is_preparing(trace, rows)])


def function_of_workers(trace: HostTrace) -> SampledFunction | None:
    """The function of the program that most workers spend most of their preparing in; found once, None without."""
    return trace.derived("function of workers", _function_of_workers)


def _function_of_workers(trace: HostTrace) -> SampledFunction | None:
    found = [function for line in worker_lines(trace) if (function := function_of_worker(trace, line)) is not None]
    names = [trace.name_of(function.frame) for function in found]
    count = Counter(name for name in names if name_has(name, CodeTrait.OF_USER))
    return found[names.index(count.most_common(1)[0][0])] if count else None
