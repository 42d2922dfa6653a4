"""The function of worker processes: what a loop that waits for them names."""

from __future__ import annotations

import numpy as np
import pytest
from draw import MS, K

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.analysis.account.worker_functions import (
    function_of_worker,
    function_of_workers,
    functions_of_worker,
    worker_lines,
)
from stepscope.analysis.input.worker_processes import slow_function, workers_of
from stepscope.analysis.steps.stack_samples import pool_function
from stepscope.analysis.trace.spans import Spans
from stepscope.formats.spool.layout import SAMPLE_TIMES_PLANE, WORKERS_PLANE
from stepscope.model import HostTrace, LineKind, PlaneKind, TraceBuilder

WAIT = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
STEPS = 6


def waiting(*of_workers: str) -> HostTrace:
    """Steps of 20 ms that wait 16 ms for a batch of worker processes, each of which runs one function all the time.

    The loop's thread is sampled once a step, in the wait; the workers have samples of their own.
    """
    builder = TraceBuilder("host")
    builder.framework = "pytorch"
    main = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "thread 7 (python)", 7)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    samples = builder.line(stacks, "MainThread", 7)
    times = builder.line(builder.plane(SAMPLE_TIMES_PLANE, PlaneKind.CUSTOM_DEVICE), "samples", kind=LineKind.OTHER)
    processes = builder.plane(WORKERS_PLANE, PlaneKind.CUSTOM_DEVICE)
    samples.event("$train.py:18 <module>", 8 * MS, 20 * (STEPS - 1) * MS, K.PYTHON_CALL)
    for step in range(STEPS):
        main.event("train", 20 * step * MS, 20 * MS, K.STEP_MARK, {"step_num": step})
        main.event(WAIT, 20 * step * MS, 16 * MS, K.INPUT_WAIT)
        main.event("aten::mm", (20 * step + 16) * MS, 4 * MS, K.OP)
        times.event("sample", (20 * step + 8) * MS, 0, K.OTHER)
    for number, function in enumerate(of_workers):
        worker = builder.line(processes, f"worker {number}", 100 + number)
        for step in range(STEPS):
            worker.event("prepare", 20 * step * MS, 20 * MS, K.OTHER)
        if function:
            line = builder.line(stacks, f"worker {number}", 100 + number)
            line.event(function, 0, 20 * STEPS * MS, K.PYTHON_CALL)
    return builder.build()


@pytest.mark.parametrize(
    ("workers", "named"),
    [
        (("$data.py:8 blur", "$data.py:8 blur"), "data.py:8 blur"),
        (("$data.py:8 blur", "$data.py:20 read", "$data.py:8 blur"), "data.py:8 blur"),
        (("", ""), None),  # without samples of workers
        (("/usr/lib/python3.11/random.py(10): random",), None),  # a library's alone
    ],
)
def test_verdict_account_and_table_of_workers_name_one_function(workers: tuple[str, ...], named: str | None):
    trace = waiting(*workers)
    account = account_of(trace)

    assert account is not None
    (culprit,) = [row.culprit for row in account.rows if row.cause == "input"]
    assert culprit is not None
    if named is None:
        assert function_of_workers(trace) is None
        assert (culprit.name, culprit.file) != ("blur", "data.py")
        return
    assert (f"{culprit.file}:{culprit.line} {culprit.name}", culprit.op) == (named, WAIT)
    assert judge_account(account).sentence.endswith(", mostly `blur`")
    assert slow_function([workers_of(trace)]) == (named, pytest.approx(100.0))


def sampled_worker(prepares: list[tuple[int, int]], *frames: tuple[str, int, int]) -> HostTrace:
    """A worker process that prepares batches, and the frames of its only thread: name, from, to in ms."""
    builder = TraceBuilder("host")
    processes = builder.line(builder.plane(WORKERS_PLANE, PlaneKind.CUSTOM_DEVICE), "worker 1 (7)", 7)
    stacks = builder.plane("/device:CUSTOM:Python stack samples (Stepscope)", PlaneKind.CUSTOM_DEVICE)
    thread = builder.line(stacks, "worker 1 (7): MainThread", 7)
    for begin, end in prepares:
        processes.event("prepare", begin * MS, (end - begin) * MS, K.OTHER)
    for name, begin, end in frames:
        thread.event(name, begin * MS, (end - begin) * MS, K.PYTHON_CALL)
    return builder.build()


FORKED = ("$train.py:99 <module>", "$train.py:25 main", "/usr/lib/python3.11/multiprocessing/process.py(103): run")
DECODES = ("$data.py:33 __getitem__", "$data.py:19 decode")
GETS = "/usr/lib/python3.11/multiprocessing/queues.py(98): get"


@pytest.mark.parametrize(
    "frames",
    [
        [(name, 0, 290) for name in FORKED + DECODES],  # sampled before its first batch, and never seen elsewhere
        [*((name, 0, 290) for name in FORKED), *((name, 0, 130) for name in DECODES), (GETS, 130, 140)]
        + [(name, 140, 290) for name in DECODES],
        [*((name, 0, 290) for name in FORKED), (GETS, 0, 20), *((name, 20, 290) for name in DECODES)],
    ],
    ids=["one stack", "two stacks", "waits first"],
)
def test_a_forked_worker_names_the_function_that_holds_its_samples_and_not_the_module_it_was_forked_in(frames):
    trace = sampled_worker([(27, 108), (109, 190), (191, 272)], *frames)
    (line,) = worker_lines(trace)

    found = function_of_worker(trace, line)

    assert found is not None
    assert (trace.name_of(found.frame), found.share) == ("$data.py:19 decode", pytest.approx(1.0, abs=0.1))
    assert [trace.name_of(each.frame) for each in functions_of_worker(trace, line)] == [*DECODES]


def test_of_threads_whose_frames_last_equally_long_the_innermost_function_is_named():
    trace = sampled_worker([(0, 290)], *((name, 0, 290) for name in FORKED + DECODES))

    found = pool_function(trace, "worker 1", Spans.union(np.array([0]), np.array([290 * MS])))

    assert found is not None
    assert trace.name_of(found.frame) == "$data.py:19 decode"
