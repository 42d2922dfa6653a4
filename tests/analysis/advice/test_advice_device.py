"""Advice on runs with a device: each rule on a picture that it speaks of, and on one of which it says nothing."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
from draw import MS, Sort, draw, traces
from hypothesis import given, settings

from stepscope.analysis.advice import Advice, Context, advise
from stepscope.analysis.advice.rules import device_idle
from stepscope.analysis.facts import compiles
from stepscope.analysis.facts.device_facts import Update, device_facts_of
from stepscope.analysis.overview import overview_tool as overview
from stepscope.analysis.trace.noted_compilations import Change, NotedCompilation
from stepscope.analysis.trace.program_facts import OpThreads
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder, Trait

K = EventKind

SORTS = {
    "a": Sort(K.OP, "aten::linear"),
    "b": Sort(K.KERNEL, "fusion", stats={"hlo_module": "jit_step"}),
    "c": Sort(K.KERNEL, "void at::native::elementwise_kernel<direct_copy_kernel_cuda>()"),
    "d": Sort(K.RUNTIME_CALL, "cudaMalloc"),
    "e": Sort(K.RUNTIME_CALL, "cudaMemcpyAsync"),
    "f": Sort(K.KERNEL, "volta_sgemm_128x64_tn"),
    "g": Sort(K.KERNEL, "ampere_fp16_s16816gemm_fp16", traits=Trait.COMPUTES_16BIT),
    "p": Sort(K.PYTHON_CALL, "$report.py:7 rank"),
    "s": Sort(K.SYNC, "cudaStreamSynchronize"),
    "t": Sort(K.KERNEL, "void cudnn::ops::nchwToNhwcKernel<float>()"),
    "u": Sort(K.COPY_HOST_TO_DEVICE, "Memcpy HtoD (Pageable -> Device)"),
    "v": Sort(K.COPY_HOST_TO_DEVICE, "Memcpy HtoD (Pinned -> Device)"),
    "m": Sort(K.OP, "aten::mm", stats={"Input Dims": "[[64,4],[4,4]]"}),
    "n": Sort(K.OP, "aten::mm", stats={"Input Dims": "[[8,4],[4,4]]"}),
    "q": Sort(K.ITERATOR, "Iterator::Root::Prefetch::Map"),
    "w": Sort(K.OP, "decode:DecodeJpeg"),
}


def context_of(*hosts: HostTrace, framework: str = "", read: Mapping[str, Any] | None = None) -> Context:
    """What the rules see of a session."""
    report = overview.merge([overview.partial(host) for host in hosts])
    return replace(report.context, framework=framework, recorder=framework, read=lambda name: (read or {}).get(name))


def said(*hosts: HostTrace, framework: str = "", read: Mapping[str, Any] | None = None) -> list[Advice]:
    """All advice, first things first."""
    return list(advise(context_of(*hosts, framework=framework, read=read)).items)


def two_steps(host: str, stream: str, **more: str) -> HostTrace:
    """A step of what `host` and `stream` show, twice; further rows by name."""
    length = max(map(len, (host, stream, *more.values())))
    rows = [("host main", host), ("gpu0 s", stream), *((name.replace("_", " ", 1), row) for name, row in more.items())]
    marks = f"host main | M0{'-' * (length - 2)}M1{'-' * (length - 2)}"
    return draw("\n".join([marks, *(f"{name} | {row:<{length}}{row:<{length}}" for name, row in rows)]), SORTS)


def linked(host: str, stream: str) -> HostTrace:
    """Three steps, each as drawn, whose launches and work have numbers of their own."""
    rows = [("host main", host), ("gpu0 s", stream)]
    marks = "".join(f"M{number}{'-' * (len(host) - 2)}" for number in range(3))
    lines = [f"{name} | {''.join(renumber(row, 3 * step) for step in range(3))}" for name, row in rows]
    return draw(
        "\n".join([f"host main | {marks}", *lines]), SORTS | {"f": replace(SORTS["f"], number="correlation_id")}
    )


def renumber(row: str, by: int) -> str:
    """The row with its numbers in the range of a step: 1 to 3 become 4 to 6 in the second."""
    return re.sub(r"\d", lambda found: str(int(found[0]) + by), row)


def first(*hosts: HostTrace, **more: Any) -> tuple[str, str, float | None]:
    """Name, class and predicted speed-up of what is said first."""
    item = said(*hosts, **more)[0]
    return item.id, item.kind, item.predicted_speedup


# -- launching -----------------------------------------------------------------------------------------------------


def test_a_device_that_waits_before_each_of_many_kernels_is_bound_by_launches() -> None:
    trace = two_steps("a" + "-" * 119, "k " * 60)

    assert first(trace) == ("launch.bound", "eager_dispatch", None)


def test_kernels_of_compiled_programs_want_larger_batches() -> None:
    trace = two_steps("a" + "-" * 119, "b " * 60)

    assert first(trace) == ("launch.bound", "small_batch", None)


@pytest.mark.parametrize(("length", "speaks"), [(205, True), (240, False)])
def test_launches_count_from_a_tenth_of_the_step(length: int, speaks: bool) -> None:
    row = "k " * 22 + "k" * (length - 44)

    assert (first(two_steps("a" + "-" * (length - 1), row))[0] == "launch.bound") == speaks


def test_one_long_gap_is_no_matter_of_launches() -> None:
    trace = two_steps("a" + "-" * 199, "k " * 25 + " " * 90 + "k" * 60)

    assert "launch.bound" not in [item.id for item in said(trace)]


@pytest.mark.parametrize(
    ("passes", "op", "kind"),
    [(4, "m", "small_batch"), (3, "m", "eager_dispatch"), (1, "n", "small_batch"), (1, "m", "eager_dispatch")],
    ids=["micro-batches", "few passes", "tiny batches", "large batches"],
)
def test_micro_batches_and_tiny_batches_are_why_launches_bind(passes: int, op: str, kind: str) -> None:
    one = f"{op}{'-' * 13}B{'-' * 13}  "
    inner = f"{' ' * 14}{op}{'-' * 11}    "
    length = len(one) * 4
    trace = two_steps((one * passes).ljust(length, "a"), "k " * (length // 2), host_main=(inner * passes).ljust(length))

    assert said(trace)[0].kind == kind


def test_idle_time_leads_to_the_longest_gaps() -> None:
    item = said(two_steps("a" + "-" * 119, "k " * 58 + "k   "))[0]

    assert [(place.name, place.start_ms, place.end_ms) for place in item.intervals[:2]] == [
        ("devices idle", 117.0, 120.0),
        ("devices idle", 237.0, 240.0),
    ]


def test_steps_that_no_thread_marks_leave_no_python_between_them() -> None:
    trace = draw(
        """
        host main   | o1        o2        o3
        gpu0 Steps  | W1--      W2--      W3--
        gpu0 s      | K1--      K2--      K3--
        """,
        SORTS | {"o": Sort(K.OP, "MatMul", "group_id")},
    )

    assert [item.kind for item in said(trace)] == ["none"]


def test_few_kernels_of_a_program_that_takes_long_to_start_want_larger_batches() -> None:
    context = context_of(two_steps("F--------a", "       bbb"))
    found = device_idle.RULES[0](context)

    assert found is not None
    assert (found.id, found.kind, found.predicted_speedup) == ("launch.programs", "small_batch", None)
    assert found.evidence == "a program runs for 3.00 ms and takes 1.00 ms to start"
    # Most of the step is unexplained, so a gain that is unknown does not stand first.
    assert advise(context).items[0].kind == "none"


def test_a_step_that_waits_for_input_is_not_bound_by_launches() -> None:
    trace = two_steps("I" + "-" * 99 + "a" + "-" * 99, " " * 100 + "k " * 50)

    assert [item.kind for item in said(trace)] == ["input_preprocessing"]


@pytest.mark.parametrize(("length", "advised"), [(61, True), (59, False)])
def test_threads_of_tf_data_that_compete_with_launches_are_told_to_keep_away(length: int, advised: bool) -> None:
    trace = two_steps(
        "a" + "-" * 119, "k " * 60, host_tf_data="q" + "-" * (length - 1), host_tf_data2="w" + "-" * (length - 1)
    )
    (item, *_) = said(trace, framework="tensorflow")

    assert item.kind == "eager_dispatch"
    assert ("TF_GPU_THREAD_MODE=gpu_private" in item.actions[0]) == advised


def test_inference_is_not_told_to_use_the_workers_of_a_loader_first() -> None:
    trace = two_steps("I-----m---", "       f  ")
    (item, *_) = said(trace, framework="pytorch")

    assert item.kind.startswith("input_")
    assert not item.actions[0].startswith("DataLoader")
    assert any("for each call gains nothing" in action for action in item.actions)


@pytest.mark.parametrize(("cores", "workers"), [(2, "num_workers=2"), (16, "num_workers=4 or more"), (None, "or more")])
def test_an_action_names_no_more_workers_than_processors(cores: int | None, workers: str) -> None:
    context = context_of(
        draw("host main | M0--------M1--------\nhost main | I-----a---I-----a---"), framework="pytorch"
    )
    hosts = [replace(host, op_threads=OpThreads(cores, None)) for host in context.hosts]
    (item, *_) = advise(replace(context, hosts=hosts)).items

    assert any(workers in action for action in item.actions)


def test_a_thread_of_its_own_for_launches_is_not_advised_where_there_is_one() -> None:
    trace = two_steps("a" + "-" * 119, "k " * 60, host_tf_data="q" + "-" * 60, host_tf_gpu_private_0="q")
    found = said(trace, framework="tensorflow")

    assert [item.kind for item in found] == ["eager_dispatch"]
    assert not any("TF_GPU_THREAD_MODE" in action for action in found[0].actions)


@pytest.mark.parametrize(
    ("name", "said_of_it"),
    [
        ("batched_transpose_16x32_half", "layout.transposes"),
        ("triton_poi_fused_transpose_3", "layout.transposes"),
        ("SubTensorOpWithScalar1d", None),
        ("SubTensorOpWithCastTensor1d", None),
        ("triton_poi_fused_mean_mul_pow_rsqrt_transpose_3", None),
        ("fused_rms_transpose_kernel", None),
        ("rotary_embedding_transposed_kernel", None),
    ],
)
def test_norms_rotary_embeddings_fills_and_casts_do_more_than_to_reorder(name: str, said_of_it: str | None) -> None:
    row = f"M0{'-' * 18}M1{'-' * 18}"
    picture = f"host main | {row}\nhost main | {('a' + '-' * 19) * 2}\ngpu0 s    | {(' ' + 't' * 19) * 2}"
    trace = draw(picture, SORTS | {"t": Sort(K.KERNEL, name)})

    assert ("layout.transposes" in {item.id for item in said(trace)}) == (said_of_it is not None)


# -- waiting -------------------------------------------------------------------------------------------------------


def test_gaps_after_the_host_has_waited_for_the_device_are_the_price_of_waiting() -> None:
    trace = two_steps("aas---aas---aas---aas---", "kkkk  kkkk  kkkk  kkkk  ")

    assert first(trace) == ("device.sync", "host_sync", None)


@pytest.mark.parametrize(("length", "speaks"), [(60, True), (72, False)])
def test_waiting_counts_from_the_least_gain(length: int, speaks: bool) -> None:
    rest = length - 6
    trace = two_steps("as as " + "a" + "-" * (rest - 1), "kk kk " + "k" * rest)

    assert (first(trace)[0] == "device.sync") == speaks


def test_one_wait_at_the_end_of_a_step_is_usual() -> None:
    trace = two_steps("aaaaaaaasa", "kkkkkkkkk ")

    assert [item.kind for item in said(trace)] == ["none"]


def test_a_call_that_keeps_the_device_idle_once_is_said_with_little_confidence() -> None:
    trace = draw(
        "host main | M0--------M1--------\nhost main | e------- aaaaaaaaaaa\ngpu0 s | k       kkkkkkkkkkkk", SORTS
    )
    item = device_idle.RULES[1](context_of(trace))

    assert item is not None
    assert (item.id, item.confidence) == ("device.sync", 0.3)
    assert "in cudaMemcpyAsync; this does not occur in every step" in item.evidence


# -- moving data ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("letter", "most", "said_of_it"),
    [
        ("t", 25, "layout.transposes"),
        ("c", 10, "memory.device-copies"),
        ("u", 33, "input.pageable"),
        ("v", 33, "input.transfer"),
    ],
    ids=["layouts", "copies in a device", "pageable memory", "pinned memory"],
)
def test_data_that_is_moved_counts_from_a_share_of_the_step(letter: str, most: int, said_of_it: str) -> None:
    """One ms of moving in as many of a step; in a longer step it is too little."""
    for length in (most, most + 1):
        trace = two_steps("a" * length, letter + "k" * (length - 1))
        assert [item.id for item in said(trace)] == [said_of_it if length == most else "none"]


def test_layout_advice_names_the_kernel_and_the_api_of_the_framework() -> None:
    trace = two_steps("a" * 10, "ttt" + "k" * 7)
    (item,) = said(trace, framework="pytorch")

    assert item.kind == "memory_churn"
    assert "nchwToNhwcKernel" in item.evidence and "30.0 %" in item.evidence
    assert "channels_last" in item.actions[0]
    assert [(row.tool, row.value_ms) for row in item.rows] == [("kernel-stats", 3.0)]
    assert [(place.start_ms, place.end_ms) for place in item.intervals] == [(0.0, 1.0)]


def test_copies_and_layouts_count_once_where_streams_overlap() -> None:
    trace = two_steps("a" * 10, "cccccccccc", gpu0_other="kkkkkkkkkk")

    assert said(trace)[0].evidence.split("; ")[-1].startswith("for 50.0 % of each step")


# -- precision and memory ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stream", "ids"),
    [("fkkk", ["precision.low"]), ("fkkkk", ["none"]), ("gkkk", ["none"]), ("kkkk", ["none"])],
    ids=["a quarter", "a fifth", "16 bits", "no products"],
)
def test_products_in_32_bits_count_from_a_quarter_of_the_step(stream: str, ids: list[str]) -> None:
    trace = two_steps("a" * len(stream), stream)

    assert [item.id for item in said(trace)] == ids


def test_half_of_the_products_time_is_what_16_bits_gain() -> None:
    trace = linked("L1L2s-----------", "  f1------K2----")

    assert first(trace) == ("precision.low", "low_precision", 1.33)
    assert said(trace)[0].speedup_range == (1.0, 1.6)


def memories(used: int, fragmentation: float = 0.0) -> dict[str, Any]:
    """What memory-profile says of a device of 100 bytes."""
    peak = {"stack_bytes": 0, "heap_bytes": used, "free_bytes": 100 - used, "fragmentation_percent": fragmentation}
    return {"memory-profile": SimpleNamespace(memories=[{"id": "gpu0", "capacity_bytes": 100, "peak": peak}])}


@pytest.mark.parametrize(
    ("used", "fragmentation", "ids"),
    [
        (95, 0.0, ["memory.nearly-full"]),
        (94, 0.0, ["none"]),
        (94, 60.0, ["memory.fragmented"]),
        (94, 49.0, ["none"]),
        (60, 90.0, ["none"]),
    ],
)
def test_memory_that_is_nearly_full_or_full_of_holes(used: int, fragmentation: float, ids: list[str]) -> None:
    trace = two_steps("a" * 10, "k" * 10)

    assert [item.id for item in said(trace, read=memories(used, fragmentation))] == ids


@pytest.mark.parametrize(("length", "speaks"), [(33, True), (34, False)])
def test_calls_that_take_memory_from_the_driver_stop_the_device(length: int, speaks: bool) -> None:
    trace = two_steps("d" + "a" * (length - 1), " " + "k" * (length - 1))

    assert ("memory.driver-calls" in [item.id for item in said(trace)]) == speaks


# -- several workers -----------------------------------------------------------------------------------------------


def worker(name: str, stream: str) -> HostTrace:
    """Two steps of one of several workers."""
    n = len(stream)
    text = f"host main | M0{'-' * (n - 2)}M1{'-' * (n - 2)}\nhost main | {'a' * 2 * n}\ngpu0 s | {stream * 2}"
    return draw(text, SORTS, host=name)


def test_collectives_that_no_kernel_hides_bind_by_communication() -> None:
    assert first(worker("a", "kkkkkkNNNN")) == ("communication.exposed", "communication_bound", None)


def test_advice_on_communication_leads_to_the_longest_collective() -> None:
    (item, *_) = said(worker("a", "kkN-kkkN--"))

    assert [(place.name, place.start_ms, place.end_ms) for place in item.intervals] == [("ncclAllReduce", 7, 10)]


def test_many_short_collectives_are_to_be_joined() -> None:
    builder = TraceBuilder("host")
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "s", kind=LineKind.STREAM)
    for step in range(2):
        thread.event("train", step * 10 * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
        thread.event("aten::linear", step * 10 * MS, 10 * MS, K.OP)
        for at in range(20):
            begin = (step * 20 + at) * MS // 2
            stream.event("ncclAllReduce", begin, MS // 10, K.COLLECTIVE)
            stream.event("kernel", begin + MS // 10, 4 * MS // 10, K.KERNEL)
    (item,) = said(builder.build())

    assert (item.kind, item.title) == ("communication_bound", "Communicate in fewer, larger messages")
    assert "20.0 %" in item.evidence and "; 20 messages per step" in item.evidence


def test_slow_collectives_of_which_few_ranks_are_recorded_may_be_waiting_for_the_others() -> None:
    row = {"operation": "all_reduce", "ranks": 8, "bytes": 16 << 20, "bus_gb_per_s": 3.454}
    ranks = SimpleNamespace(rows=[{"rank": 0}], collectives=[{**row, "bus_gb_per_s": None}, row])
    (item, *_) = said(worker("a", "kkkkkkNNNN"), read={"distributed": ranks})

    assert "; all_reduce of 16 MiB reaches 3.45 GB/s of bus bandwidth" in item.evidence
    assert item.tool == "distributed"
    assert item.actions[1].startswith("record all 8 ranks (1 is present): ")


def test_with_all_ranks_recorded_none_is_asked_for() -> None:
    row = {"operation": "all_reduce", "ranks": 2, "bytes": None, "bus_gb_per_s": None}
    ranks = SimpleNamespace(rows=[{"rank": 0}, {"rank": 1}], collectives=[row])
    hosts = worker("a", "kkkkkkNNNN"), worker("b", "kkkkkkNNNN")
    (item, *_) = said(*hosts, read={"distributed": ranks})

    assert item.actions == said(*hosts)[0].actions and "bandwidth" not in item.evidence


def test_collectives_beside_kernels_cost_nothing() -> None:
    trace = two_steps("a" * 10, "kkkkkkkkkk", gpu0_comm="NNNNNNNNNN")

    assert [item.kind for item in said(trace)] == ["none"]


def rank(name: str, host: str, stream: str) -> HostTrace:
    """Six steps of one of several workers, whose host waits for the device at their ends."""
    marks = "".join(f"M{step}{'-' * (len(host) - 2)}" for step in range(6))
    rows = [("host main", host), ("gpu0 s", stream)]
    lines = [f"{where} | {''.join(renumber(row, 2 * step) for step in range(6))}" for where, row in rows]
    gather = Sort(K.COLLECTIVE, "ncclDevKernel_AllReduce_Sum_f32", "correlation_id")
    return draw("\n".join([f"host main | {marks}", *lines]), SORTS | {"N": gather}, host=name)


def test_a_worker_whose_device_works_longer_is_a_straggler() -> None:
    slow = rank("a", "L1L2s--------", "  K1------N2 ")
    fast = rank("b", "L1L2s--------", "  K1--N2---- ")

    item = said(slow, fast)[0]

    # 11 and 7 ms until the collective, which the slow worker needs 2 for; the last steps are drawn a little otherwise.
    assert (item.id, item.step_time_ms) == ("straggler", 13.0)
    assert item.predicted_step_time_ms == pytest.approx(11.0, abs=0.3)


def test_a_worker_whose_device_works_longer_is_a_straggler_however_long_its_host_takes() -> None:
    # The host of the fast device works more, beside the device: that says nothing of how long the worker takes.
    slow = rank("a", "L1L2s--------", "  K1------N2 ")
    fast = rank("b", "L1L2a---s----", "  K1--N2---- ")

    assert first(slow, fast)[:2] == ("straggler", "straggler")


def test_workers_that_communicate_equally_long_have_no_straggler() -> None:
    kinds = [item.kind for item in said(worker("a", "kkkkkN----"), worker("b", "kkkkkN----"))]

    assert kinds == ["communication_bound"]


# -- others --------------------------------------------------------------------------------------------------------


def test_python_on_the_host_is_not_explained_by_communication_on_the_device() -> None:
    trace = two_steps("aaaaaaYYYY", "kkkkNN    ")

    assert [item.id for item in said(trace)] == ["python.device-idle", "communication.exposed"]


@pytest.mark.parametrize(
    ("between", "said_first"), [("p", "python.between-launches"), ("pppp----", "python.device-idle")]
)
def test_python_from_launch_to_launch_is_launching_and_a_long_stretch_is_python(between: str, said_first: str) -> None:
    launches = "".join(f"L{at}{between}" for at in range(1, 5))
    kernels = "".join(f"k{at}".ljust(2 + len(between)) for at in range(1, 5))
    marks, rows, works = "", "", ""
    for step in range(6):
        marks += f"M{step}".ljust(len(launches), "-")
        rows += renumber(launches, 0)
        works += kernels
    sorts = {"k": Sort(K.KERNEL, "kernel", "correlation_id")}
    trace = draw(f"host main | {marks}\nhost main | {rows}\ngpu0 s | {works}", SORTS | sorts, column_ps=MS // 10)

    assert said(trace, framework="pytorch")[0].id == said_first


def test_what_the_host_computes_beside_a_device_is_told_to_be_computed_there() -> None:
    found = said(linked("ooooooooL1--", "          f1"), framework="pytorch")

    assert [(item.id, item.kind) for item in found[:1]] == [("host.compute", "input_preprocessing")]
    assert found[0].actions[0].startswith("make tensors where they are used")


def test_an_optimizer_that_calls_others_takes_its_time_once() -> None:
    sorts = {
        **SORTS,
        "U": Sort(K.ANNOTATION, "Optimizer.step#Both.step"),
        "V": Sort(K.ANNOTATION, "Optimizer.step#Adam.step"),
    }
    trace = draw("host main | M0--------\nhost main | a-U------\nhost main |    V----\ngpu0 s | k", sorts)

    facts = device_facts_of(trace)

    assert facts is not None and facts.update == Update("Optimizer.step#Both.step", 7 * MS, 0)


def test_what_only_infers_is_not_told_of_training() -> None:
    context = context_of(two_steps("a" + "-" * 119, "k " * 60), framework="pytorch")
    assert context.device is not None
    updates = replace(context.device, update=Update("Optimizer.step#SGD.step", MS, 1))
    trained = [replace(host, device=updates, purposes={"forward": 1, "backward": 1}) for host in context.hosts]
    infers = [replace(host, purposes={"forward": 1}) for host in context.hosts]

    def actions(hosts: list[Any]) -> str:
        return " ".join(action for item in advise(replace(context, hosts=hosts)).items for action in item.actions)

    assert "the fused form of the optimizer: torch.optim.SGD(params, fused=True)" in actions(trained)
    assert "optimizer" not in actions(infers)


# -- compiling -----------------------------------------------------------------------------------------------------

PJIT = Sort(K.TRACED_FUNCTION, "PjitFunction(move)")
COMPILES = {
    "F": Sort(K.TRACED_FUNCTION, "train_step", stats={"tf_function_call": "traced-nonXla", "tracing_count": 3}),
    "f": Sort(K.TRACED_FUNCTION, "train_step", stats={"tf_function_call": "notTraced-nonXla", "tracing_count": 3}),
    "X": Sort(K.COMPILE, "CpuCompiler::RunBackend", stats={"name": "jit_move"}),
    "Y": Sort(K.COMPILE, "CpuCompiler::RunBackend", stats={"name": "a_inference_step_963__XlaMustCompile_true_.2"}),
    "Z": Sort(K.COMPILE, "entire_frame_compile"),
    "l": Sort(K.OP, "aten::linear", stats={"Input Dims": "[[8,4]]"}),
    "m": Sort(K.OP, "aten::linear", stats={"Input Dims": "[[9,4]]"}),
}


@pytest.mark.parametrize(
    ("first_step", "second_step", "told"),
    [
        ("FX--a-----", "FX--a-----", "; train_step 2 times in total"),
        ("fX--a-----", "fX--a-----", "; jit_move 2 times in total"),
        ("X---a-----", "Y---a-----", "; jit_move once in total"),
        ("Z---l-----", "Z---m-----", "; the input shapes of aten::linear change: [[8,4]], then [[9,4]]"),
        ("Z---l-----", "Z---l-----", "; a compiled frame 2 times in total"),
    ],
    ids=["traced function", "program", "programs", "shapes that change", "equal shapes"],
)
def test_recompilation_names_what_is_compiled_and_what_changes(first_step: str, second_step: str, told: str) -> None:
    trace = draw(f"host main | M0--------M1--------\nhost main | {first_step}{second_step}", COMPILES)
    (item,) = said(trace)

    assert item.kind == "recompilation"
    assert item.evidence.endswith(told)
    assert "; that happens once per step; " in item.evidence


def test_recompilation_names_the_program_with_most_time_and_not_one_that_makes_a_batch() -> None:
    makes_batch = Sort(K.COMPILE, "CpuCompiler::RunBackend", stats={"name": "jit_arange"})
    trace = draw("host main | M0--------M1--------\nhost main | WX---a----WX---a----", {**COMPILES, "W": makes_batch})
    (item,) = said(trace)

    assert item.evidence.endswith("; jit_move 2 times in total")


@pytest.mark.parametrize(
    ("third", "fifth", "kinds"),
    [
        ("WX---a----", "     a----", []),
        ("X----a----", "X----a----", ["recompilation"]),
        ("X----a----", "W----a----", []),
        ("Xm-Xm-a---", "     a----", []),
    ],
    ids=["two programs in one step", "the same program again", "another program", "for two shapes in its first step"],
)
def test_a_program_that_is_needed_for_the_first_time_is_no_recompilation(
    third: str, fifth: str, kinds: list[str]
) -> None:
    makes_batch = Sort(K.COMPILE, "CpuCompiler::RunBackend", stats={"name": "jit_arange"})
    usual, marks = "     a----", "".join(f"M{number}--------" for number in range(6))
    line = usual * 2 + third + usual + fifth + usual
    calls = {"W": makes_batch, "m": Sort(K.TRACED_FUNCTION, "PjitFunction(move)")}
    trace = draw(f"host main | {marks}\nhost main | {line}", {**COMPILES, **calls})

    assert [item.kind for item in said(trace) if item.kind == "recompilation"] == kinds


TAKES = {
    "one changes": (["f32[8,4]", "f32[4]"], ["f32[9,4]", "f32[4]"]),
    "none changes": (["f32[8,4]"], ["f32[8,4]"]),
    "another number": (["f32[8,4]"], ["f32[8,4]", "f32[4]"]),
    "one program": (["f32[8,4]"],),
}


@pytest.mark.parametrize(
    ("takes", "told", "first_action"),
    [
        (
            "one changes",
            "; the input shapes of argument 0 (from 0, trees flattened) of jit_move change: f32[8,4], then f32[9,4]",
            "keep shapes",
        ),
        (
            "none changes",
            ", each time with the same argument shapes: a static argument changes, or the function is new",
            "do not list changing arguments in static_argnums",
        ),
        ("another number", "", "keep shapes"),
        ("one program", "", "keep shapes"),
    ],
)
def test_recompilation_names_the_argument_of_a_program_that_changes(takes: str, told: str, first_action: str) -> None:
    taken = [SimpleNamespace(parameters=[("x", shape) for shape in shapes]) for shapes in TAKES[takes]]
    entries = [SimpleNamespace(module="jit_move", number=number) for number in range(len(taken))]
    known = MagicMock(entries=entries, module=taken.__getitem__)  # a list of no programs that can be read
    trace = draw("host main | M0--------M1--------\nhost main | PX--a-----PX--a-----", {**COMPILES, "P": PJIT})
    trace.derived("xla programs", lambda _: known)
    (item,) = said(trace, framework="jax")

    assert item.evidence.endswith(f"; jit_move 2 times in total{told}")
    assert item.actions[0].startswith(first_action)


@pytest.mark.parametrize(
    ("reason", "changes", "told", "first_action"),
    [
        (
            "again", (("rule", "a partial at 0x7f10", "a partial at 0x7f20"),),
            "argument rule of step (a.py:9) is another partial each time",
            "make the partial that is given to step (a.py:9) as `rule` once, before the loop",
        ),
        (
            "again", (("rate", "0.1", "0.2"),), "argument rate of step (a.py:9) changes: 0.1, then 0.2",
            "drop `rate` from static_argnums, or static_argnames, of step (a.py:9)",
        ),
        ("first", (), "step (a.py:9) is traced for the first time", "make what step (a.py:9) traces once"),
    ],
)  # fmt: skip
def test_recompilation_says_what_a_capture_has_noted(
    monkeypatch: pytest.MonkeyPatch, reason: str, changes: tuple[Change, ...], told: str, first_action: str
) -> None:
    trace = draw("host main | M0--------M1--------\nhost main | PX--a-----PX--a-----", {**COMPILES, "P": PJIT})
    rows = np.flatnonzero(trace.events.kind == K.COMPILE).tolist()
    noted = [NotedCompilation(row, "step", "/b/a.py:9", MS, MS, 0, reason, changes) for row in rows]
    monkeypatch.setattr(compiles, "noted_compilations", lambda _: noted)
    (item,) = said(trace, framework="jax")

    assert item.evidence.endswith(told)
    assert item.actions[0].startswith(first_action)


# -- any trace -----------------------------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(traces())
def test_facts_and_rules_hold_on_any_trace(trace: HostTrace) -> None:
    found = device_facts_of(trace)
    if found is not None:
        assert found.busy_ps + found.idle_ps == found.observed_ps
        assert 0 <= found.after_sync_ps <= found.idle_ps
        assert 0 <= found.exposed_collectives_ps <= found.busy_ps
        assert 0 <= found.exposed_pageable_ps <= found.busy_ps
    advised = advise(context_of(trace))

    assert advised.warnings == ()
    assert all((item.predicted_speedup or 1.0) >= 1.0 for item in advised.items)
