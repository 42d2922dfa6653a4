"""What a change gains: the cost of recording, competition, other workers, what-if with a device, and the real gains."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from draw import MS, Sort, draw
from reporting import context_of

import stepscope
from stepscope.analysis.account.own_times import OwnTimes
from stepscope.analysis.account.predict import grows, range_after, rates_of
from stepscope.analysis.account.saves import saves_of
from stepscope.analysis.advice import Context, advise
from stepscope.analysis.facts.feeding import feed_of
from stepscope.analysis.facts.loop import LoopFacts, loop_of
from stepscope.analysis.facts.work import work_of
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder

K = EventKind


def loop_facts(trace: HostTrace) -> LoopFacts:
    """The facts of a loop that is there."""
    loop = loop_of(trace)
    assert loop is not None
    return loop


@pytest.fixture
def healthy() -> Context:
    """One step of 10 ms."""
    return context_of(draw("host main | M0--------\nhost main | a---------"))


# -- the cost of recording -----------------------------------------------------------------------------------------


def test_what_events_cost_is_taken_off_where_they_are() -> None:
    """Of two halves of a step one has 10 us in 4 events, which cost at most three quarters, the other none."""
    times = OwnTimes.gather(1, [(np.array([0]), 1, np.array([10])), (np.array([0]), 2, np.array([10]))])
    cost = OwnTimes.gather(1, [(np.array([0]), 1, np.array([8]))])

    left = times.subtract_some(cost, 0.75)

    assert (left.column(1).tolist(), left.column(2).tolist()) == ([2.5], [10.0])


def test_times_of_a_way_are_weighted_by_how_much_of_a_node_it_takes() -> None:
    times = OwnTimes.gather(2, [(np.array([0, 1]), 1, np.array([10, 4])), (np.array([1]), 2, np.array([8]))])
    half_of_the_second = np.array([0.0, 0.5])

    found = times.sum_weighted(half_of_the_second)

    assert found.tolist() == (half_of_the_second @ times.take(np.array([0, 1]))).tolist()
    assert found[[1, 2]].tolist() == [2.0, 4.0]


@pytest.mark.parametrize(("left_ms", "least_ms"), [(6.0, 4.36), (2.0, 0.0)])
def test_a_range_ends_where_its_upper_end_would_say_nothing(left_ms: float, least_ms: float) -> None:
    """Without most of a step the rest is small, and how small nothing recorded says: the gain is "or more"."""
    before, then = np.array([10 * MS]), np.array([round(left_ms * MS)])

    usual, least, _ = range_after(10 * MS, 0.0, False, before, then, then, then)

    assert (usual / MS, least / MS) == pytest.approx((left_ms, least_ms))


@pytest.mark.parametrize(
    ("saved", "rarely", "often"),
    [
        ([5, 5, 5, 5, 5, 5], 1.0, 1.0),
        ([0, 0, 5, 0, 0, 0], 0.1, 3.87),
        ([0, 5, 0, 5, 0, 0], 0.32, 2.40),
    ],
    ids=["all", "one", "two"],
)
def test_what_few_steps_have_may_come_more_or_less_often(saved: list[int], rarely: float, often: float) -> None:
    """The limits of a Poisson rate that hold it in 80 of 100 cases: for one event 0.105 and 3.89."""
    assert rates_of(np.array(saved) * MS) == pytest.approx((rarely, often), abs=0.01)


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ([1, 1, 2, 2, 3, 3, 4, 4], True),
        ([4, 4, 3, 3, 2, 2, 1, 1], False),
        ([2, 2, 2, 2, 2, 2, 2, 2], False),
        ([0, 0, 9, 0, 0, 0, 9, 0], False),
        ([1, 2, 3], False),
    ],
    ids=["more and more", "less and less", "alike", "now and then", "three steps"],
)
def test_what_is_saved_may_grow_from_step_to_step(saved: list[int], expected: bool) -> None:
    assert grows(np.array(saved) * MS) is expected


# -- competition, other workers ------------------------------------------------------------------------------------


def test_a_step_is_not_shorter_than_the_computation_that_a_save_hides() -> None:
    sorts = {
        "F": Sort(K.TRACED_FUNCTION, "PjitFunction(train)"),
        "r": Sort(K.OP, "dot", "run_id", {"hlo_module": "jit_train"}),
        "s": Sort(K.PYTHON_CALL, "$utils.py:3 save_weights"),
    }
    picture = """
        host main | M0--------M1--------
        host main | Fs--------Fs--------
        host xla  |  r1--      r2--
    """
    context = context_of(draw(picture, sorts))

    first = advise(context).items[0]

    # 1 ms is left on the loop's thread, while the program takes 4 in any case; without the cost of recording Python,
    # a third of its 9 ms, a step takes 7 ms now.
    assert (first.kind, first.predicted_step_time_ms) == ("checkpoint_stall", pytest.approx(10 * 4 / 7, abs=0.001))


def test_a_worker_that_runs_more_python_than_the_others_is_a_straggler() -> None:
    slow = draw("host main | M0--------M1--------\nhost main | a---YYYYYGa---YYYYYG", host="a")
    fast = draw("host main | M0--------M1--------\nhost main | a---G-----a---G-----", host="b")

    first = advise(context_of(slow, fast)).items[0]

    assert (first.kind, first.predicted_speedup) == ("straggler", 2.0)
    assert "its extra work is not an op" in first.evidence


# -- starting work -------------------------------------------------------------------------------------------------


def test_repetitions_pay_what_the_ops_of_a_program_take_to_start_too() -> None:
    # Eight calls of one program in each step, whose ops compute, or take as long as it takes to start them.
    calls = f"M0{'-' * 14}"
    context = context_of(draw(f"host main | {calls * 2}\nhost main | {'F-' * 16}\nhost main | {'ab' * 16}"))
    assert context.work is not None
    starts = replace(context.work, start_in_programs_ps=2 * 8 * MS, brief_ps=2 * 8 * MS)
    small = replace(context, hosts=[replace(host, work=starts) for host in context.hosts])

    assert [item.kind for item in advise(context).items] == ["none"]
    assert advise(small).items[0].kind == "small_batch"


def test_samples_one_after_the_other_are_small_batches() -> None:
    sizes = {"Input Dims": "[[1,3,32,32],[16,3,3,3],[16]]"}
    context = context_of(
        draw(f"host main | M0{'-' * 14}\nhost main | {'c-' * 8}", {"c": Sort(K.OP, "aten::conv2d", stats=sizes)})
    )
    assert context.work is not None
    assert (context.work.rows, context.work.alike) == (1, 8)

    def advice(brief_ms: int) -> str:
        work = replace(context.work, brief_ps=brief_ms * MS)
        slow = replace(context, framework="pytorch", hosts=[replace(host, work=work) for host in context.hosts])
        first = advise(slow).items[0]
        assert first.predicted_speedup is None  # a model that generates needs each row for the next one
        return first.kind

    assert advice(brief_ms=2) == "none"  # of 16 ms of convolutions most is work
    assert advice(brief_ms=10) == "small_batch"


def test_what_generates_is_only_perhaps_a_small_batch_and_its_rounds_cannot_be_one() -> None:
    """A service that answers one request after the other: each position needs the one before."""
    conv = Sort(K.OP, "aten::linear", stats={"Input Dims": "[[1,1,8],[16,8]]"})
    joins = {
        letter: Sort(K.OP, "aten::cat", stats={"Input Dims": f"[[[1,{length}],[1,1]],[]]"})
        for length, letter in enumerate("hijklmno", start=4)
    }
    context = context_of(draw(f"host main | M0{'-' * 14}\nhost main | chcicjckclcmcnco", joins | {"c": conv}))
    assert context.work is not None and context.work.generates
    work = replace(context.work, brief_ps=15 * MS, alike=8, rows=1)
    slow = replace(context, framework="pytorch", hosts=[replace(host, work=work) for host in context.hosts])
    alone = replace(slow, hosts=[replace(host, work=replace(work, generates=False)) for host in context.hosts])

    said = [[item.kind for item in advise(each).items] for each in (slow, alone)]
    assert said == [["memory_churn", "small_batch"], ["small_batch", "memory_churn"]]
    assert [each for each in advise(slow).items[1].actions if "all rounds" in each] == []


def test_ops_cost_their_start_at_most_half_a_short_op_each() -> None:
    work = work_of(draw("host main | M0--------\nhost main | a---b-----"))

    assert work.start_ps == 2 * 15_000_000


def test_an_einsum_whose_first_argument_is_no_tensor_has_the_size_of_its_first_operand() -> None:
    einsum = Sort(K.OP, "aten::einsum", stats={"Input Dims": "[[],[[8,4],[4,2]],[]]"})

    work = work_of(draw("host main | M0----\nhost main | e---", {"e": einsum}))

    assert (work.operands, work.rows) == (32, 8)


def _line_of(events: list[tuple[str, int, int, EventKind]]) -> HostTrace:
    """A trace of one thread: name, begin and duration in us."""
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for name, start, duration, kind in events:
        line.event(name, start * 10**6, duration * 10**6, kind, {"step_num": 0} if kind == K.STEP_MARK else {})
    return builder.build()


def test_fetched_values_that_follow_one_another_are_a_burst() -> None:
    fetch = "aten::item"
    trace = _line_of([
        ("train", 0, 10_000, K.STEP_MARK), ("aten::mm", 0, 2000, K.OP),
        (fetch, 3000, 100, K.OP), ("aten::norm", 3200, 100, K.OP), (fetch, 3400, 100, K.OP),
        ("aten::mm", 4000, 3000, K.OP), (fetch, 8000, 100, K.OP),
    ])  # fmt: skip
    loop = loop_facts(trace)

    assert loop.fetches_ps == (500 + 100) * 10**6  # from 3.0 to 3.5 ms, and the last one alone


@pytest.mark.parametrize(
    ("places", "python"), [((2, 5, 8, 11, 14), 0.0), ((8, 8, 8, 8, 8), 5.0), ((2, 8, 5, 8, 11), 2.0)]
)
def test_gaps_in_a_place_of_their_own_are_not_the_programs(places: tuple[int, ...], python: float) -> None:
    events = []
    for step, gap in enumerate(places):
        begin = 30_000 * step
        events.append(("train", begin, 29_000, K.STEP_MARK))
        events.append(("$train.py:1 loop", begin, 29_000, K.PYTHON_CALL))
        for op in range(20):
            events.append(("aten::mm", begin + 1300 * op + (1000 if op > gap else 0), 1300, K.OP))
    trace = _line_of(events)
    ends = sum(29_000 - 27_000 for _ in places) / 1000  # after the last op of each step

    assert loop_facts(trace).python_ps / MS == python + ends


COPIED = {
    "d": Sort(K.OP, "aten::detach"),
    "o": Sort(K.OP, "aten::to"),
    "A": Sort(K.OP, "torch::autograd::AccumulateGrad"),
}


@pytest.mark.parametrize(("gradients", "saves"), [("AAAA", True), ("AAAAA", False)])
def test_as_many_detached_and_copied_tensors_as_parameters_are_a_save(gradients: str, saves: bool) -> None:
    found = saves_of(draw(f"host main | M0{'-' * 18}\nhost main | {gradients}dodododo", COPIED))

    assert (found.total > 0) == saves


def test_threads_of_the_input_work_in_turns() -> None:
    feed = feed_of(draw("host main | M0--M1--\nhost tf_data_pool | q-q-\nhost tf_data_next | J---"))

    assert feed.events == 3


# -- the real gains ------------------------------------------------------------------------------------------------

SAYS_THE_SAME = {
    "input_preprocessing": "input_bound", "input_file_read": "input_bound", "input_no_prefetch": "input_bound",
    "input_python": "input_bound", "input_transfer": "input_bound", "small_batch": "launch_bound",
    "eager_dispatch": "launch_bound", "recompilation": "compile_bound", "host_sync": "host_bound",
    "python_overhead": "host_bound", "checkpoint_stall": "host_bound", "redundant_compute": "compute_bound",
    "memory_churn": "compute_bound", "straggler": "communication_bound", "communication_bound": "communication_bound",
}  # fmt: skip
NOT_PREDICTABLE = ("host_sync", "eager_dispatch", "small_batch")  # a compiler's merging is in no recording
# docs/advice-truth.md tells why; all others have to be within 25 %.
FAR_OFF = {
    "tf_save_every_step", "jax_table_argument", "torch_rank_zero_report", "torch_reduce_each_tensor",
    "tf_fit_augment",  # 1.14 instead of 2.16: in one step of ten the program's own wait stays
}  # fmt: skip


# What the account does not see as the limit yet; see the overview's tests.
NOT_SEEN = {"tf_save_every_step", "torch_reduce_each_tensor", "torch_rank_zero_report", "jax_unjitted_step"}


def test_gains_are_near_the_real_ones_and_no_verdict_contradicts(
    bottleneck_captures: Path, bottleneck_cases: list[dict[str, Any]]
) -> None:
    off: dict[str, float] = {}
    for case in (case for case in bottleneck_cases if case["expected"] != "none"):
        found = stepscope.load(bottleneck_captures / case["id"] / "slow").overview().to_dict()
        first = found["advice"][0]
        assert case["id"] in NOT_SEEN or SAYS_THE_SAME[first["class"]] == found["verdict"], case["id"]
        if first["class"] in NOT_PREDICTABLE and not first["id"].startswith("line."):
            least = first["predicted_speedup"]  # what starting work once gives at least
            assert least is None or (least < case["measured_ratio"] and first["predicted_speedup_most"] is None)
            assert least or first["reasoning"].startswith("not predictable from this recording, because")
        else:
            off[case["id"]] = abs(math.log(first["predicted_speedup"] / case["measured_ratio"]))

    assert {name for name, error in off.items() if error > math.log(1.25)} <= FAR_OFF
    assert sum(off.values()) < 3.5
