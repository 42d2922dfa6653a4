"""What is told of recordings that others made, which often lack steps, devices or most of their time."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import MS, Sort, draw
from reporting import overview_of

from stepscope.analysis.account.account import account_of
from stepscope.analysis.advice import Advice, advise
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind
SORTS = {
    "n": Sort(K.OP, "aten::normal_"),
    "c": Sort(K.OP, "aten::mkldnn_convolution"),
    "w": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
    "s": Sort(K.SYNC, "cudaDeviceSynchronize"),
    "B": Sort(K.RUNTIME_CALL, "hipMemcpyWithStream", "correlation_id"),
    "Y": Sort(K.PYTHON_CALL, "serve.py(7): make_batch"),
    "i": Sort(K.COPY_HOST_TO_DEVICE, "%copy-done.1 = f32[1024,256]{1,0} copy-done(%copy-start.1)"),
    "o": Sort(K.COPY_DEVICE_TO_HOST, "%copy-done.2 = f32[1024,256]{1,0:S(5)} copy-done(%copy-start.2)"),
    "L": Sort(K.RUNTIME_CALL, "cudaLaunchKernel", "correlation_id"),
}


def first(trace: HostTrace) -> tuple[str, Advice]:
    """The headline and the first advice."""
    report = overview_of(trace)
    return report.verdict.sentence, report.advice[0]


def test_random_numbers_that_the_host_draws_are_to_be_drawn_on_the_device() -> None:
    said, item = first(draw("host main | " + "".join(f"M{at}nnnnnnnL{at}" for at in range(6)), SORTS))

    assert said.startswith("host-bound as recorded: ") and said.endswith("mostly `aten::normal_`")
    assert (item.id, item.title, item.predicted_speedup) == ("host.compute", "Draw random numbers on the device", None)
    assert "ProfilerActivity.CUDA" in item.actions[-1] or "record" in item.actions[-1]


def test_the_only_batch_of_worker_processes_is_their_start() -> None:
    said, item = first(draw("host main | w-----------L1        \ngpu0 s | K!          K1        ", SORTS))

    assert said.startswith("input-bound: ")
    assert item.title.startswith("Start the loader's worker processes once, and record later batches")


def test_a_wait_after_the_last_launch_of_a_capture_without_steps_fetches_nothing() -> None:
    trace = draw(
        """
        host main | L1s-------------
        gpu0 s    |      K1---------
        """,
        SORTS,
    )

    assert "device.sync" not in [item.id for item in overview_of(trace).advice]


def test_the_call_that_waits_while_launched_work_does_is_named() -> None:
    trace = draw(
        """
        host main | L1Y-------------------
        host main |   B2------------------L3
        gpu0 s    |                   K1--U2K3
        """,
        SORTS,
    )
    account = account_of(trace)

    assert account is not None and account.is_silent
    assert [
        (row.culprit.name, row.culprit.inside) for row in account.rows if row.cause == "unknown" and row.culprit
    ] == [("make_batch", "hipMemcpyWithStream")]
    assert first(trace)[0].endswith("the host waits in `hipMemcpyWithStream` for unrecorded work")


def test_what_a_program_copies_from_the_memory_of_the_host_is_no_input() -> None:
    marks = "".join(f"W{at}--------" for at in range(4))
    said, item = first(draw(f"tpu0 Steps | {marks}\ntpu0 XLA | {'iiiioooofff'[:10] * 4}", SORTS))

    assert said == "copy-bound: 80.0 % of each step is copies"
    assert item.id == "memory.offload"
    assert "up to 1 MiB in one copy" in item.evidence


@pytest.mark.parametrize(("device", "told"), [("Tesla T4", True), ("", False)])
def test_a_device_that_the_computing_host_does_not_use_is_named(device: str, told: bool) -> None:
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST, stats={"device_listed": device})
    line = builder.line(plane, "main")
    for at in range(4):
        line.event("aten::mkldnn_convolution", 10 * at * MS, 9 * MS, K.OP)
    item = overview_of(builder.build()).advice[0]

    assert any(f"this machine's {device}" in each for each in item.actions) == told


@pytest.mark.parametrize(("cores", "told"), [(0.2, True), (0.7, False), (None, False)])
def test_ops_that_run_for_far_longer_than_the_program_had_a_core_are_warned_of(cores: float | None, told: bool) -> None:
    context = overview_of(draw("host main | " + "".join(f"M{at}ccccccc" for at in range(6)), SORTS)).context
    found = advise(replace(context, hosts=[replace(host, cores_used=cores) for host in context.hosts]))

    assert any("had a core for 20 % of it" in warning for warning in found.warnings) == told
