"""Stepscope beside XProf on the same files: equal where XProf is right, and where it is not, held against the truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from framework_captures import FrameworkCapture, skip_unless_regular

import stepscope
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.verdict import HIGHLY_INPUT_BOUND
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.model import EventKind, HostTrace, stat_names

Body = dict[str, Any]


def overview_of(path: Path) -> Body:
    """Stepscope's overview as in JSON."""
    return stepscope.load(path).overview().to_dict()  # type: ignore[no-any-return]


def trace_of(path: Path) -> HostTrace:
    """The trace of its only host."""
    profile = stepscope.load(path)
    return profile.trace(profile.hosts[0])


def by_name(body: Body) -> dict[str, Body]:
    """The steps of an overview by their names."""
    return {row["name"]: row for row in body["steps"]}


def input_percent(body: Body, names: list[str]) -> float:
    """Input as a share of the time of some of the steps."""
    rows = [by_name(body)[name] for name in names]
    return 100 * sum(row["input"] for row in rows) / sum(row["duration_ms"] for row in rows)


def assert_parts_add_up(body: Body) -> None:
    """The parts of the mean step, and of every step."""
    assert sum(body["breakdown_ms"].values()) == pytest.approx(body["step_time_ms"]["mean"], abs=1e-5)
    for row in body["steps"]:
        assert sum(row[key] for key in CATEGORIES) == pytest.approx(row["duration_ms"], abs=1e-5)


def assert_steps_are_the_loops_own(body: Body, capture: FrameworkCapture) -> None:
    """Each between what the loop's own clock says inside the mark and around it."""
    found = [row["duration_ms"] for row in body["steps"]]
    own = zip(capture.least_ms, capture.step_ms, strict=True)

    assert len(found) == len(capture.step_ms)
    assert [
        (ms, least, most)
        for ms, (least, most) in zip(found, own, strict=True)
        if not least * 0.99 - 0.05 <= ms <= most * 1.01 + 0.05
    ] == []


def assert_steps_take_as_long_as_the_loop(body: Body, capture: FrameworkCapture) -> None:
    """But for a tenth and one step.  Inferred steps begin with a call: what the loop does before its first one, such as
    fetching a batch, is in none of them, and a busy machine may take the processor away just there."""
    total, own = sum(row["duration_ms"] for row in body["steps"]), capture.step_ms

    assert total == pytest.approx(sum(own), abs=0.1 * sum(own) + max(own)), own


# -- TensorFlow on 16 GPUs of two hosts --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def multi_worker(corpus: Path) -> Path:
    """Two hosts, 8 GPUs each of which one step used 2."""
    return corpus / "tf-gpu-multi-worker"


@pytest.fixture(scope="module")
def xprof_multi_worker(multi_worker: Path) -> oracle.XprofOverview:
    """XProf's overview of the same."""
    return oracle.overview(sorted(multi_worker.rglob("*.xplane.pb")))


def test_gpu_step_time_is_xprofs(multi_worker: Path, xprof_multi_worker: oracle.XprofOverview) -> None:
    body = overview_of(multi_worker)
    (step,) = xprof_multi_worker.steps

    assert step.step_time_ms == pytest.approx(21.310352, abs=1e-6)
    assert body["step_time_ms"]["mean"] == pytest.approx(step.step_time_ms, abs=1e-6)
    assert body["step_time_ms"]["count"] == len(xprof_multi_worker.steps)
    assert_parts_add_up(body)


def test_gpu_compute_is_xprofs_but_for_the_copies(multi_worker: Path, xprof_multi_worker: oracle.XprofOverview) -> None:
    compute = overview_of(multi_worker)["breakdown_ms"]["device_compute"]
    (step,) = xprof_multi_worker.steps
    profile = stepscope.load(multi_worker)
    trace = profile.trace(profile.hosts[0])
    grouped = is_device_work(trace) & (trace.stat_ints(stat_names.GROUP_ID) >= 0)
    copies = np.isin(trace.events.kind, [EventKind.COPY_HOST_TO_DEVICE, EventKind.COPY_DEVICE_TO_HOST])

    assert compute == pytest.approx(14.875539, rel=0.002)
    # XProf does not know the names of these copies and takes them for kernels.
    assert step.device_compute_ms == pytest.approx(covered_ms(trace, grouped), abs=1e-6)
    assert compute == pytest.approx(covered_ms(trace, grouped & ~copies), abs=1e-6)
    assert step.device_compute_ms - compute == pytest.approx(0.010176, abs=1e-6)


def covered_ms(trace: HostTrace, chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> float:
    """Time of the longest step of the file during which at least one of the events runs."""
    begin, end = trace.events.start_ps, trace.events.start_ps + trace.events.duration_ps
    steps = np.flatnonzero(trace.events.kind == EventKind.DEVICE_STEP)
    step = steps[trace.events.duration_ps[steps].argmax()]
    covered, reached = 0, int(begin[step])
    for row in np.flatnonzero(chosen)[np.argsort(begin[chosen])].tolist():
        stop = min(int(end[row]), int(end[step]))
        covered += max(0, stop - max(int(begin[row]), reached))
        reached = max(reached, stop)
    return covered / 1e9


def test_gpu_precision_is_xprofs(multi_worker: Path, xprof_multi_worker: oracle.XprofOverview) -> None:
    ours = overview_of(multi_worker)["device_compute_precision_percent"]

    assert (xprof_multi_worker.precision_16bit_percent, xprof_multi_worker.precision_32bit_percent) == (30.5, 69.5)
    assert (round(ours["16bit"], 1), round(ours["32bit"], 1)) == (30.5, 69.5)


def test_gpu_where_xprof_is_wrong(multi_worker: Path, xprof_multi_worker: oracle.XprofOverview) -> None:
    body = overview_of(multi_worker)

    assert xprof_multi_worker.host_count == 1
    assert body["environment"]["host_count"] == 2

    assert not [op for op in xprof_multi_worker.top_ops if op.get("operation") not in (None, "IDLE")]
    assert len(body["top_ops"]) == 10
    assert all(op["self_time_ms"] > 0.1 and op["calls"] for op in body["top_ops"])
    assert sum("bert_span_labeler" in op["name"] for op in body["top_ops"]) == 9

    one = oracle.overview(sorted(multi_worker.rglob("*.xplane.pb"))[:1])
    assert one.step_time.std in (None, 0.0)  # of one step: not a number, or nothing
    assert body["step_time_ms"]["std"] is None

    (step,) = xprof_multi_worker.steps
    assert (step.input_ms, step.kernel_launch_ms, step.host_compute_ms) == (0.0, 0.0, 0.0)
    assert body["breakdown_ms"]["kernel_launch"] > 3
    assert body["breakdown_ms"]["input"] > 2
    assert body["breakdown_ms"]["other"] < step.other_ms


# -- JAX on devices ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("session", ["jax-mi300x-attention", "tpu-inference"])
def test_top_ops_are_xprofs(session: str, corpus: Path) -> None:
    top = overview_of(corpus / session)["top_ops"]
    xprof = oracle.overview(sorted((corpus / session).rglob("*.xplane.pb")))

    assert len(top) == len(xprof.top_ops) == 10
    for ours, theirs in zip(top, xprof.top_ops, strict=True):
        assert ours["name"] == theirs["operation"]
        assert ours["self_percent"] == pytest.approx(100 * theirs["selfTimePercent"], abs=1e-4)
        assert ours["cumulative_percent"] == pytest.approx(100 * theirs["cumulativeTimePercent"], abs=1e-4)


# -- TensorFlow on the CPU ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("fixture", ["tf_slow_map_capture", "tf_healthy_capture"])
def test_tensorflow_steps_are_xprofs(fixture: str, request: pytest.FixtureRequest) -> None:
    capture: FrameworkCapture = request.getfixturevalue(fixture)
    body, xprof = overview_of(capture.logdir), oracle.overview(capture.paths)
    marked_ms = oracle.marked_ms(trace_of(capture.logdir))
    names = [step.step for step in xprof.steps]

    assert body["steps_source"] == "markers"
    assert [row["name"] for row in body["steps"]] == [f"train {number}" for number in range(10)]
    assert names == [f"train {number}" for number in range(1, 9)]  # XProf drops the first and the last
    for step in xprof.steps:
        row = by_name(body)[step.step]
        assert marked_ms[step.step] == pytest.approx(step.step_time_ms, rel=0.01)
        assert row["duration_ms"] >= round(marked_ms[step.step], 6)
        assert row["input"] == pytest.approx(step.input_ms, rel=0.01, abs=0.002)
    assert input_percent(body, names) == pytest.approx(xprof.input_percent, abs=1.0)
    assert_parts_add_up(body)


def test_tensorflow_steps_are_the_loops_own(tf_slow_map_capture: FrameworkCapture) -> None:
    assert_steps_are_the_loops_own(overview_of(tf_slow_map_capture.logdir), tf_slow_map_capture)


def test_a_slow_map_is_input_bound(tf_slow_map_capture: FrameworkCapture) -> None:
    body, xprof = overview_of(tf_slow_map_capture.logdir), oracle.overview(tf_slow_map_capture.paths)

    assert body["verdict"] == "input_bound"
    assert "HIGHLY input-bound" in xprof.input_conclusion
    assert body["input_bound_percent"] > HIGHLY_INPUT_BOUND
    assert body["advice"][0]["class"].startswith("input_")


def test_a_healthy_pipeline_is_not(tf_healthy_capture: FrameworkCapture) -> None:
    skip_unless_regular(tf_healthy_capture)
    body = overview_of(tf_healthy_capture.logdir)

    assert body["verdict"] == "compute_bound"
    assert body["input_bound_percent"] < 5
    assert body["environment"]["device_type"] == "CPU"
    assert body["top_ops"]  # XProf has none without a device


def test_steps_of_keras_that_xprof_misses(tf_keras_fit_capture: FrameworkCapture) -> None:
    body, xprof = overview_of(tf_keras_fit_capture.logdir), oracle.overview(tf_keras_fit_capture.paths)

    assert xprof.steps == ()
    assert body["steps_source"] == "markers"
    assert [row["name"] for row in body["steps"]] == [f"Profiled batch {number}" for number in range(4, 14)]
    assert_steps_are_the_loops_own(body, tf_keras_fit_capture)
    assert_parts_add_up(body)


def test_steps_of_a_loop_without_marks(tf_unmarked_capture: FrameworkCapture) -> None:
    skip_unless_regular(tf_unmarked_capture)
    body, xprof = overview_of(tf_unmarked_capture.logdir), oracle.overview(tf_unmarked_capture.paths)

    assert xprof.steps == ()
    assert body["steps_source"] == "inferred"
    assert len(body["steps"]) == 10
    assert 0.6 <= body["steps_confidence"] <= 1.0
    assert ("confidence" in body["warnings"][0]) == (body["steps_confidence"] < 0.995)  # a sure one is not said
    assert_steps_take_as_long_as_the_loop(body, tf_unmarked_capture)


# -- JAX on the CPU ----------------------------------------------------------------------------------------------


def test_jax_steps_are_xprofs_and_the_loops_own(jax_marked_capture: FrameworkCapture) -> None:
    body, xprof = overview_of(jax_marked_capture.logdir), oracle.overview(jax_marked_capture.paths)

    assert (body["steps_source"], body["environment"]["framework"]) == ("markers", "jax")
    assert [row["name"] for row in body["steps"]] == [f"train {number}" for number in range(10)]
    # XProf's step ends with its mark, ours where the next one starts: a busy machine may stop the loop between the two.
    between = map(float.__sub__, jax_marked_capture.step_ms, jax_marked_capture.least_ms)
    most = {f"train {number}": 0.05 + pause for number, pause in enumerate(between)}
    for step in xprof.steps:
        longer = by_name(body)[step.step]["duration_ms"] - step.step_time_ms
        assert 0 <= longer <= 0.01 * step.step_time_ms + most[step.step]
    assert_steps_are_the_loops_own(body, jax_marked_capture)
    assert body["verdict"] == "compute_bound"
    assert_parts_add_up(body)


def test_jax_steps_without_marks(jax_unmarked_capture: FrameworkCapture) -> None:
    skip_unless_regular(jax_unmarked_capture)
    body, xprof = overview_of(jax_unmarked_capture.logdir), oracle.overview(jax_unmarked_capture.paths)

    assert xprof.steps == ()
    assert body["steps_source"] == "inferred"
    assert len(body["steps"]) == 10
    assert 0.6 <= body["steps_confidence"] <= 1.0
    assert_steps_take_as_long_as_the_loop(body, jax_unmarked_capture)


def test_gpu_environment(multi_worker: Path, xprof_multi_worker: oracle.XprofOverview) -> None:
    environment = overview_of(multi_worker)["environment"]

    assert environment["device_count"] == xprof_multi_worker.device_core_count == 16
    assert environment["devices_used"] == 4
    assert environment["framework"] == "tensorflow"
    assert environment["device_type"] == "NVIDIA GPU (Volta, compute capability 7.0)"
    assert xprof_multi_worker.device_type == "GPU"  # it does not say which


def test_ops_are_placed_by_how_often_they_run(corpus: Path) -> None:
    """As XProf counts them, but for what docs/differences.md says of occurrences."""
    session = corpus / "jax-mi300x-attention"
    runs = {"host": 0, "device": 0}
    for row in stepscope.load(session).op_stats().rows:
        runs[row["side"]] += row["occurrences"]

    # XProf counts the call of a compiled function twice, as JAX records it in Python and again in C++.
    assert runs == {"host": 5, "device": 60}
    assert overview_of(session)["op_placement"]["host_op_percent"] == pytest.approx(100 * 5 / 65, abs=1e-4)
