"""The function of worker processes: what a loop that waits for them names."""

from __future__ import annotations

import pytest
from draw import MS, K

from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.verdict import judge_account
from stepscope.analysis.account.worker_functions import function_of_workers
from stepscope.analysis.input.worker_processes import slow_function, workers_of
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
