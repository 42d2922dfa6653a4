"""Advice that was wrong once: each a picture of the program that it was wrong about."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draw import MS, Sort, draw
from reporting import context_of

from stepscope.analysis.advice import Advice, advise
from stepscope.analysis.advice.rule import fit_actions
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.workers import distributed_tool as distributed
from stepscope.model import EventKind, HostTrace
from stepscope.vocabulary.accelerators import has_bfloat16

K = EventKind

SORTS: dict[str, Sort] = {
    "g": Sort(K.PYTHON_CALL, "$train.py:9 __getitem__"),
    "n": Sort(K.PYTHON_CALL, "numpy/core.py(3): augment_batch"),
    "s": Sort(K.SYNC, "cudaStreamSynchronize"),
    "m": Sort(K.RUNTIME_CALL, "cudaMemcpyAsync", "correlation_id"),
    "z": Sort(K.EAGER_EXECUTE, "EagerLocalExecute: ReadVariableOp"),
    "w": Sort(K.OP, "weights:AssignVariableOp"),
    "d": Sort(K.ANNOTATION, "DistributedDataParallel.forward"),
    "f": Sort(K.KERNEL, "volta_sgemm_128x64_tn", "correlation_id"),
}


def said(*hosts: HostTrace, **more: object) -> list[Advice]:
    return list(advise(replace(context_of(*hosts), **more)).items)  # type: ignore[arg-type]


def test_input_that_a_device_waits_for_is_not_blamed_on_the_sync_that_ends_in_it() -> None:
    trace = draw(
        """
        host main | M0------------------M1------------------M2------------------
        host main | g-----------L1s-----g-----------L2s-----g-----------L3s-----
        gpu0 s    |              K1---                K2---               K3---
        """,
        SORTS,
    )

    assert said(trace)[0].kind.startswith("input_")


def test_variables_that_are_read_are_no_checkpoint() -> None:
    sorts = SORTS | {"F": Sort(K.TRACED_FUNCTION, "train_step")}

    def kinds(written: str) -> list[str]:
        marks = "".join(f"M{step}{'-' * 18}" for step in range(3))
        thread, pool = "F-------zzzz        " * 3, f"  {written:<18}" * 3
        trace = draw(f"host main | {marks}\nhost main | {thread}\nhost pool | {pool}", sorts)
        return [item.kind for item in said(trace)]

    assert "checkpoint_stall" not in kinds("www")
    assert "checkpoint_stall" not in kinds("wwwwww")


def test_a_device_that_stands_idle_in_a_capture_without_steps_is_spoken_of() -> None:
    trace = draw(f"host main | {'a' + '-' * 599}\ngpu0 s | {IRREGULAR}", SORTS)
    (item, *_) = said(trace)

    assert (item.id, item.predicted_speedup) == ("launch.bound", None)
    assert "of the capture is waiting for launches: the host launches 70 kernels, " in item.evidence
    assert item.reasoning.startswith("not predictable from this recording, because ")


def test_advice_on_figures_that_may_be_wrong_has_little_confidence() -> None:
    context = context_of(draw("host main | M0--------M1--------\nhost main | I-----aaaaI-----aaaa", SORTS))
    first = advise(context).items[0]
    gain, usual = first.gain_percent, first.confidence
    assert gain is not None

    def sure(percent: float) -> float:
        doubted = replace(context, record_first="record less", doubtful_percent=percent)
        return advise(doubted).items[0].confidence

    assert advise(context).warnings == ()
    assert (sure(100.0), sure(gain - 1.0)) == (0.5 * usual, usual)


IRREGULAR = "".join("bcehijklopqrtuvxy"[(at * at * 7 + at) // 3 % 17] + " " * (at * at % 11 + 1) for at in range(70))
DDP = """
    host main | M0----------M1----------M2----------
    host main | d-----------d-----------d-----------
    host main | L1L2s-------L3L4s-------L5L6s-------
    gpu0 s    |   K1          K3          K5
    gpu0 c    |     N2-----     N4-----     N6-----
"""


def test_who_uses_ddp_is_not_told_to_use_it() -> None:
    trace = draw(DDP, SORTS)
    object.__setattr__(trace, "framework", "pytorch")
    item = next(item for item in said(trace) if item.kind == "communication_bound")

    assert "bucket_cap_mb=100" in item.actions[0]
    assert any("no_sync" in action for action in item.actions)


def test_a_step_that_accumulates_reduces_in_its_last_backward_pass_alone() -> None:
    trace = draw(
        """
        host main | M0----------------------M1----------------------
        host main | aaB-------aaB-------aaaaaaB-------aaB-------aaaa
        host main |   bbG-----  bbG-----      bbG-----  bbG-----
        """,
        {"a": Sort(K.OP, "aten::mm"), "b": Sort(K.OP, "aten::mm"), "B": Sort(K.BACKWARD, "autograd: MmBackward0"),
         "G": Sort(K.COLLECTIVE_CALL, "c10d::allreduce_")},
    )  # fmt: skip
    object.__setattr__(trace, "framework", "pytorch")
    context = context_of(trace)
    (host,) = context.hosts
    wrapped = replace(context, hosts=(replace(host, strategy="ddp"),))
    assert host.work.backward_passes == 2 * host.work.steps

    (item,) = (item for item in advise(wrapped).items if item.kind == "communication_bound")
    assert "no_sync" in item.actions[0]
    # Two passes take 12 of the 24 ms of a step; one of them stays.
    assert (item.step_time_ms, item.predicted_step_time_ms) == (24.0, 18.0)


@pytest.mark.parametrize(("passes", "is_said"), [("GGG GGG GGG GGG", True), ("--- --- --- GGG", False)])
def test_what_needless_reductions_take_counts_even_if_it_is_little(passes, is_said) -> None:
    """A step of four backward passes communicates for 10 % of its time; under `no_sync` only the last one does."""
    loop = ("a" * 18 + "B" + "-" * 11) * 4
    engine = "".join(" " * 18 + "b" * 9 + sent for sent in passes.split())
    trace = draw(
        f"""
        host main | M0{"-" * 118}M1{"-" * 118}
        host main | {loop}{loop}
        host main | {engine}{engine}
        """,
        {"a": Sort(K.OP, "aten::mm"), "b": Sort(K.OP, "aten::mm"), "B": Sort(K.BACKWARD, "autograd: MmBackward0"),
         "G": Sort(K.COLLECTIVE_CALL, "c10d::allreduce_")},
    )  # fmt: skip
    object.__setattr__(trace, "framework", "pytorch")
    context = context_of(trace)
    (host,) = context.hosts

    items = advise(replace(context, hosts=(replace(host, strategy="ddp"),))).items

    assert [
        item.actions[0].startswith("if a step accumulates") for item in items if item.id == "communication.exposed"
    ] == ([True] if is_said else [])


@pytest.mark.parametrize(
    ("device", "known"),
    [
        ("Tesla V100-DGXS-32GB", False),
        ("Tesla T4", False),
        ("NVIDIA GPU (Volta, compute capability 7.0)", False),
        ("NVIDIA A100-SXM4-80GB", True),
        ("NVIDIA GeForce RTX 4090", True),
        ("AMD Instinct MI300X", True),
        ("TPU v5e", True),
        ("", True),
    ],
)
def test_a_device_is_told_only_of_the_formats_that_it_has(device: str, known: bool) -> None:
    actions = ("torch.autocast('cuda', dtype=torch.bfloat16)", "torch.autocast('cuda', dtype=torch.float16)")

    assert has_bfloat16(device) == known
    assert fit_actions(device, actions) == (actions if known else actions[1:])


def test_a_copy_that_blocks_for_long_is_no_launch() -> None:
    trace = draw(
        """
        host main | M0------------------M1------------------M2------------------
        host main | L1 m2-------------  L3 m4-------------  L5 m6-------------
        gpu0 s    |  K1             D2   K3             D4   K5             D6
        """,
        SORTS,
    )
    (item, *_) = said(trace)

    assert item.id == "device.sync"
    assert "cudaMemcpyAsync" in item.evidence


def test_collectives_of_different_sizes_are_not_compared() -> None:
    def worker(name: str, sizes: tuple[int, int], lengths: tuple[int, int]) -> HostTrace:
        sorts = {
            letter: Sort(K.COLLECTIVE, "ncclAllReduce", stats={"In msg nelems": size, "dtype": "Float"})
            for letter, size in zip("no", sizes, strict=True)
        }
        stream = "".join(letter + "-" * (length - 1) for letter, length in zip("no", lengths, strict=True))
        return draw(f"host main | M0--------M1--------\ngpu0 s    | {stream:<10}{stream:<10}", sorts, host=name)

    one, other = worker("a", (768, 81_000_000), (1, 8)), worker("b", (81_000_000, 768), (8, 1))
    report = distributed.merge([distributed.partial(host) for host in (one, other)])

    assert [row["compared"] for row in report.collectives if "compared" in row] in ([], [0, 0])
    assert report.job["slowest_rank"] is None


def test_large_conversions_are_transfers_and_tiny_ones_are_not() -> None:
    from stepscope.analysis.facts.work import work_of
    from stepscope.model import PlaneKind, TraceBuilder

    def casts(length_ps: int, count: int) -> int:
        builder = TraceBuilder("host")
        builder.framework = "pytorch"
        thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
        for step in range(2):
            thread.event("ProfilerStep", step * 10 * MS, 10 * MS, K.STEP_MARK, {"step_num": step})
            for at in range(count):
                thread.event("aten::to", step * 10 * MS + at * MS // 10, length_ps, K.OP)
        return work_of(builder.build()).casts_ps

    assert casts(MS // 100, 60) == 0
    assert casts(MS // 20, 60) > 0


@pytest.mark.parametrize(("number", "speaks"), [("7", True), ("", False)])
def test_activations_that_are_computed_again_may_be_kept(number: str, speaks: bool) -> None:
    sorts = {
        "l": Sort(K.OP, "aten::linear", "Sequence number"),
        "c": Sort(K.OP, "aten::mm", "Sequence number"),
        "B": Sort(K.BACKWARD, "autograd::engine::evaluate_function: AddmmBackward0", "Sequence number"),
    }
    step = f"l{number}--B{number}--------------".ljust(20, "-")
    again = f"      l{number}---c--- ".ljust(20)
    marks = "".join(f"M{at}{'-' * 18}" for at in range(3))
    trace = draw(f"host main | {marks}\nhost main | {step[:20] * 3}\nhost main | {again[:20] * 3}", SORTS | sorts)

    assert ("compute.recomputed" in [item.id for item in said(trace)]) == speaks


def test_a_function_around_whole_steps_makes_no_input_whatever_its_name() -> None:
    sorts = SORTS | {"r": Sort(K.PYTHON_CALL, "bench.py(86): record")}
    trace = draw(
        """
        host main | r-------------------------------
        host main |  M0--------M1--------M2--------
        host main |  aaa       aaa       aaa
        """,
        sorts,
    )

    assert "input_preprocessing" not in [item.kind for item in said(trace)]
    assert context_of(trace).cause_ms("input") == 0.0


def test_ops_in_a_python_call_that_crosses_two_marks_belong_to_the_step_in_which_they_start() -> None:
    trace = draw(
        """
        host main | M0--------M1--------M2--------
        host main |      y---------y---------
        host main |   a--  a--  a--  a--  a--  a--
        """,
        SORTS | {"y": Sort(K.PYTHON_CALL, "profiler.py(7): step")},
    )
    label = steps_of(trace).label[trace.events.kind == K.OP]

    assert label.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_function_about_what_was_saved_saves_nothing() -> None:
    sorts = SORTS | {
        "r": Sort(K.PYTHON_CALL, "train.py(8): step_on_saved_scans"),
        "v": Sort(K.PYTHON_CALL, "utils.py(3): save"),
    }
    lines = ("M0--------M1--------M2--------", " {0}------- " * 3, "  aa      " * 3)

    def kinds(letter: str) -> list[str]:
        picture = "\n".join(f"host main | {line.format(letter)}" for line in lines)
        return [item.kind for item in said(draw(picture, sorts))]

    assert "checkpoint_stall" in kinds("v")
    assert "checkpoint_stall" not in kinds("r")
