"""How batches reach the loop: through which stages, and what takes time in them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from stepscope.analysis.account.causes import LONG_GAP_PS
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time, steps_of
from stepscope.analysis.steps.stack_samples import rows_on, sampled_frames
from stepscope.analysis.trace.columns import events_of_kind, is_inside
from stepscope.analysis.trace.spans import Spans, is_outermost, spans_of
from stepscope.model import EventKind, HostTrace, Trait
from stepscope.model.arrays import I64, Mask, distinct
from stepscope.records import dataclass
from stepscope.vocabulary.computing_ops import JOINS, PICKS, strip_library
from stepscope.vocabulary.grain import is_wait
from stepscope.vocabulary.lines import holds_stack_samples, holds_worker_processes
from stepscope.vocabulary.lookup import has_trait, name_has, type_names
from stepscope.vocabulary.tf_data import last_part, passes_over, plain_name
from stepscope.vocabulary.traits import InputTrait, OpTrait

K = EventKind

FEWEST_ROWS = 8  # of a batch: a sampler of whole batches takes one of each array
_WORTH_SAYING = 0.01  # of the steps: less changes no figure that is shown


@dataclass(frozen=True)
class FeedFacts:
    """What the input stages of one host do during the capture, in ps.

    Attributes:
        has_iterators: input iterators (tf.data) were recorded.
        has_prefetch: an iterator hands elements over to another thread.
        in_the_wait_ps: time in which the waiting thread itself runs functions of the stages, such as those after the
            last hand-over.
        in_parallel: an iterator works on several elements at a time.
        repeatable: functions of the dataset run ops, and none of them is random.
        iterators_ps, file_read_ps: duration of the longest iterator call, and total time of those that read files.
        ops_ps: time of ops that iterators run.
        python_ps, reading_ps: time of such ops that call Python, and of those that read files; python_calls: how many
            call Python.
        threads: number of threads that run such ops.
        events: recorded events on input threads; of the busiest thread only if they work in parallel.
        produced_ps: time in which elements are made on threads other than the waiting ones.
        loader: "single" or "multi" for a DataLoader of PyTorch or Grain that works in the training process or in worker
            processes, where that was recorded; else "".
        of_keras: samples of stacks show that Keras takes the batches from a PyDataset.
        loader_ops_ps: time of tensor ops inside the loader's calls.
        made_tensors, from_arrays, from_storage: tensors that these calls make from Python numbers, NumPy arrays and
            stored bytes, as of a file, a pickle or a decoded picture.
        takes_rows: how many rows of tensors a batch takes one by one, where the loader's ops do nothing else but join
            them; else 0.
        starts, starting_ps: how often a loader's iterator starts in the steps, worker processes included, and how long
            that and ending them takes, by recorded Python calls or samples of the stack.
        skipped_by: the stage of tf.data that has passed over elements which stages below have made, the one with most;
            skipped, made_below: how many, of how many.
        between_marks: the loop fetches most of its batches outside of the marks of its steps.
    """

    has_iterators: bool = False
    has_prefetch: bool = False
    in_the_wait_ps: int = 0
    in_parallel: bool = False
    repeatable: bool = False
    iterators_ps: int = 0
    file_read_ps: int = 0
    ops_ps: int = 0
    python_ps: int = 0
    python_calls: int = 0
    reading_ps: int = 0
    threads: int = 0
    events: int = 0
    produced_ps: int = 0
    loader: str = ""
    of_keras: bool = False
    loader_ops_ps: int = 0
    made_tensors: int = 0
    from_arrays: int = 0
    from_storage: int = 0
    takes_rows: int = 0
    starts: int = 0
    starting_ps: int = 0
    skipped_by: str = ""
    skipped: int = 0
    made_below: int = 0
    between_marks: bool = False


def feed_of(trace: HostTrace) -> FeedFacts:
    """How batches reach the loop of a host, computed once per trace."""
    return trace.derived("feed", _find_feed_facts)


def _find_feed_facts(trace: HostTrace) -> FeedFacts:
    events = trace.events
    rows = events_of_kind(trace, K.ITERATOR)
    reads = rows[(events.traits[rows] & np.uint8(Trait.FILE_READ)) != 0]
    ops = ops_of_iterators(trace) if len(rows) else rows
    python, reading = (_has_trait(trace, ops, trait) for trait in (OpTrait.CALLS_PYTHON, OpTrait.READS_FILE))
    generator, parallel = (_has_trait(trace, rows, trait) for trait in (InputTrait.FROM_PYTHON, InputTrait.PARALLEL))
    waits = events_of_kind(trace, K.INPUT_WAIT)
    handed = rows[~np.isin(events.line[rows], events.line[waits])]  # calls on waiting threads are part of the wait
    start, called, loader = events.start_ps[handed], events_of_kind(trace, K.INPUT_CALLBACK), _loader_kind(trace, waits)
    calls, made, arrays, stored = _loader_facts(trace) if loader else (0, 0, 0, 0)
    return FeedFacts(
        has_iterators=len(rows) > 0,
        has_prefetch=len(events_of_kind(trace, K.INPUT_HANDOVER)) > 0,
        in_the_wait_ps=spans_of(trace, called[is_inside(trace, called, K.INPUT_WAIT)]).total,
        in_parallel=bool(parallel.any()),
        repeatable=len(ops) > 0 and not _has_trait(trace, ops, OpTrait.IS_RANDOM).any(),
        iterators_ps=int(events.duration_ps[rows].max(initial=0)),
        file_read_ps=int(events.duration_ps[reads].sum()),
        ops_ps=int(events.duration_ps[ops].sum()),
        python_ps=int(events.duration_ps[ops if generator.any() else ops[python]].sum()),
        python_calls=int(python.sum()),
        reading_ps=int(events.duration_ps[ops[reading]].sum()),
        threads=len(distinct(events.line[ops])),
        events=_events_in_a_row(trace, handed, ops, bool(parallel.any())),
        produced_ps=Spans.union(start, start + events.duration_ps[handed]).total,
        loader=loader,
        of_keras=bool(_has_trait(trace, rows_on(trace, holds_stack_samples), InputTrait.OF_KERAS).any()),
        loader_ops_ps=calls,
        made_tensors=made,
        from_arrays=arrays,
        from_storage=stored,
        takes_rows=_count_rows(trace, waits) if loader == "single" else 0,
        **_find_restarts(trace),
        **_find_skipped(trace),
        between_marks=_is_between_marks(trace, np.append(rows, waits)),
    )


def _find_skipped(trace: HostTrace) -> dict[str, Any]:
    """What stages have passed over, as `dataset.map(f).skip(n)` does with elements that `f` was called for: each of
    their calls gives one element, and each call of the stage below makes one."""
    types, count = np.unique(trace.events.type[events_of_kind(trace, K.ITERATOR)], return_counts=True)
    by_name = Counter[str]()
    for name, made in zip(type_names(trace, types.astype(np.int64)), count.tolist(), strict=True):
        by_name[plain_name(name)] += made
    found = {(above, name): made - by_name[above] for name, made in by_name.items() if (above := passes_over(name))}
    if not found:
        return {}
    above, name = max(found, key=lambda pair: found[pair])
    return {"skipped_by": last_part(above), "skipped": max(found[above, name], 0), "made_below": by_name[name]}


def _is_between_marks(trace: HostTrace, rows: I64) -> bool:
    marks = events_of_kind(trace, K.STEP_MARK)
    fetches = spans_of(trace, rows[trace.events.line[rows] == steps_of(trace).line])
    between = (fetches - spans_of(trace, marks)).total
    return len(marks) > 1 and between > max(fetches.total / 2, _WORTH_SAYING * observed_time(trace).total)


def _find_restarts(trace: HostTrace) -> dict[str, Any]:
    """What of the loop's thread starts and ends loaders, and waits for the first batch after that; the stacks of worker
    processes show for ever that a loader's start made them."""
    line, seen = threads_of(trace).main, observed_time(trace)
    calls = events_of_kind(trace, K.PYTHON_CALL)
    rows = np.append(calls[trace.events.line[calls] == line], sampled_frames(trace, line) if line >= 0 else [])
    rows = rows.astype(np.int64)
    starts, ends = (
        spans_of(trace, rows[_has_trait(trace, rows, trait)]).drop_shorter(LONG_GAP_PS) & seen
        for trait in (InputTrait.STARTS_LOADER, InputTrait.ENDS_LOADER)
    )
    waits = events_of_kind(trace, K.INPUT_WAIT)
    awaited = spans_of(trace, waits[trace.events.line[waits] == line])
    first = np.searchsorted(awaited.end, starts.end)
    first = first[first < len(awaited.end)]
    starting = starts | ends | Spans.union(awaited.start[first], awaited.end[first])
    return {"starts": len(starts.start), "starting_ps": (starting & seen).total}


def _has_trait(trace: HostTrace, rows: I64, trait: OpTrait | InputTrait) -> Mask:
    """Whether the name of each event has a trait."""
    return has_trait(trace, trace.events.type[rows], trait)


def _events_in_a_row(trace: HostTrace, handed: I64, ops: I64, in_parallel: bool) -> int:
    """Events on input threads: all of them if the threads take turns, those of the busiest if they work in parallel."""
    lines = distinct(np.concatenate([trace.events.line[handed], trace.events.line[ops]]))
    lengths = trace.lines.event_end[lines] - trace.lines.event_begin[lines]
    return int(lengths.max(initial=0) if in_parallel else lengths.sum())


def ops_of_iterators(trace: HostTrace) -> I64:
    """Ops outside all steps or on input threads: those of the functions that iterators run; found once per trace."""
    return trace.derived("ops of iterators", _find_ops_of_iterators)


def _find_ops_of_iterators(trace: HostTrace) -> I64:
    ops = events_of_kind(trace, K.OP)
    return ops[(steps_of(trace).label[ops] < 0) | threads_of(trace).serves_input[trace.events.line[ops]]]


def _count_rows(trace: HostTrace, waits: I64) -> int:
    """How many rows of tensors each of a loader's calls takes one by one; 0 where its ops do anything else but join."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[is_inside(trace, ops, K.INPUT_WAIT)]
    start = trace.events.start_ps[ops]
    types, calls = np.unique(
        trace.events.type[ops[is_outermost(start, start + trace.events.duration_ps[ops])]], return_counts=True
    )
    names = [strip_library(name) for name in type_names(trace, types.astype(np.int64))]
    rows, joins = (
        sum(count for name, count in zip(names, calls.tolist(), strict=True) if pattern.fullmatch(name))
        for pattern in (PICKS, JOINS)
    )
    return round(rows / max(len(waits), 1)) if rows + joins == calls.sum() and rows >= FEWEST_ROWS * len(waits) else 0


_LOADERS = (("single", InputTrait.SINGLE_PROCESS), ("multi", InputTrait.MULTI_PROCESS))
_MAKING = (OpTrait.LIFTS_VALUES, OpTrait.DETACHES_IN_PLACE, OpTrait.SETS_STORAGE)


def _loader_kind(trace: HostTrace, waits: I64) -> str:
    name = trace.name_of(int(waits[0])) if len(waits) else ""
    if is_wait(name) and any(holds_worker_processes(trace.plane_name(row)) for row in range(len(trace.planes))):
        return "multi"  # Grain's calls look the same with and without workers
    return next((kind for kind, trait in _LOADERS if name_has(name, trait)), "")


def _loader_facts(trace: HostTrace) -> tuple[int, int, int, int]:
    """Op time inside a DataLoader's calls, and the number of tensors made from numbers, arrays and files."""
    ops = events_of_kind(trace, K.OP)
    ops = ops[is_inside(trace, ops, K.INPUT_WAIT)]
    start = trace.events.start_ps[ops]
    time = Spans.union(start, start + trace.events.duration_ps[ops]).total
    lifted, empty, rebuilt = (int(_has_trait(trace, ops, trait).sum()) for trait in _MAKING)
    return time, min(lifted, empty), max(lifted - empty, 0), rebuilt
