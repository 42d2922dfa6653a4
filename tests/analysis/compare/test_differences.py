"""Rows of two reports side by side.  Rows are written out; every expectation is counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from reporting import table

from stepscope.analysis.compare.compare import comparable_tools
from stepscope.analysis.compare.differences import DifferenceTable, find_differences
from stepscope.analysis.compare.step_times import STEP_TABLES
from stepscope.analysis.registry import TOOLS, Tool, tool_named
from stepscope.report import Comparable, Field, Role

LAYER = Field("layer", "text", "the layer", "str", role=Role.LABEL)
TIME = Field("time_us", "us", "time of the layer")
LAYERS = Comparable(id="layers", title="Layers", keys=(LAYER,), measure=TIME, count="calls", is_total=True)
MEANS = Comparable(id="means", title="Means", keys=(LAYER,), measure=TIME, samples="samples")
COUNTERS = Comparable(
    id="counters", title="Counters", keys=(LAYER,), measure=Field("mean", "", "mean of the samples"),
    is_ordered=True, is_neutral=True, joined="mean", weight="samples",
)  # fmt: skip


def report(*rows: dict[str, Any]) -> Any:
    return SimpleNamespace(rows=rows)


def layer(name: str, time_us: float | None, calls: int = 1) -> dict[str, Any]:
    return {"layer": name, "time_us": time_us, "calls": calls}


VALUES = ("layer", "status", "before_ms", "after_ms", "difference_ms", "change_percent")


# -- matching rows -------------------------------------------------------------------------------------------------


def test_rows_with_equal_keys_add_up_and_totals_are_per_step() -> None:
    before = report(layer("gemm", 24_000, 4), layer("copy", 100_000, 8))
    after = report(layer("gemm", 30_000, 4), layer("gemm", 10_000, 4), layer("copy", 6_000, 2))

    found = find_differences("modules", LAYERS, before, after, (4, 2))
    assert table(found, *VALUES, "before_calls", "after_calls", "verdict") == [
        ("copy", "both", 25.0, 3.0, -22.0, -88.0, 2.0, 1.0, "better"),
        ("gemm", "both", 6.0, 20.0, 14.0, 233.3333, 1.0, 4.0, "worse"),
    ]
    assert found.steps == (4, 2)
    assert [field.unit for field in found.fields if field.name.endswith("_ms")] == ["ms"] * 3


def test_without_steps_totals_are_those_of_the_captures() -> None:
    found = find_differences("modules", LAYERS, report(layer("a", 4_000, 6)), report(layer("a", 5_000, 8)), None)

    assert table(found, *VALUES, "before_calls", "after_calls") == [("a", "both", 4.0, 5.0, 1.0, 25.0, 6.0, 8.0)]
    assert found.steps is None


def test_a_row_of_one_side_is_unknown_on_the_other_and_counts_as_nothing() -> None:
    found = find_differences("modules", LAYERS, report(layer("old", 4_000)), report(layer("new", 5_000)), None)

    assert table(found, *VALUES, "before_calls", "after_calls") == [
        ("new", "added", None, 5.0, 5.0, None, None, 1.0),
        ("old", "removed", 4.0, None, -4.0, None, 1.0, None),
    ]


def test_rows_that_measure_nothing_or_nothing_known_are_left_out() -> None:
    before, after = report(layer("zero", 0), layer("unknown", None)), report(layer("zero", 0))

    found = find_differences("modules", LAYERS, before, after, None)
    assert (found.rows, found.empty, found.sentences) == ((), "neither side has anything to compare", ())


def test_a_side_without_any_row_is_named() -> None:
    assert find_differences("modules", LAYERS, report(), report(layer("a", 1)), None).sentences == (
        "the session before has nothing here",
    )


def test_ordered_rows_keep_their_order_and_have_no_status() -> None:
    """Two hosts with 30 and 10 samples: (30 * 40 + 10 * 80) / 40 = 50."""
    before = report({"layer": "cpu", "mean": 100.0, "samples": 5})
    after = report(
        {"layer": "cpu", "mean": 40.0, "samples": 30},
        {"layer": "power", "mean": 250.0, "samples": 10},
        {"layer": "cpu", "mean": 80.0, "samples": 10},
    )

    found = find_differences("system", COUNTERS, before, after, (2, 2))
    assert table(found, "layer", "before", "after", "difference", "change_percent") == [
        ("cpu", 100.0, 50.0, -50.0, -50.0),
        ("power", None, 250.0, 250.0, None),
    ]
    assert not {"status", "verdict"} & {field.name for field in found.fields}


# -- what is more than noise -----------------------------------------------------------------------------------------


def means(name: str, *samples: float) -> dict[str, Any]:
    return {"layer": name, "time_us": sum(samples) / len(samples), "samples": list(samples)}


def test_with_samples_a_difference_within_the_noise_is_marked() -> None:
    """Samples 1 to 5 and 2, 4, ... 10 us: 3 us apart with an interval of 3.887742 us, as in the test of Welch."""
    before = report(means("noisy", 1_000, 2_000, 3_000, 4_000, 5_000), means("clear", 1_000, 1_000))
    after = report(means("noisy", 2_000, 4_000, 6_000, 8_000, 10_000), means("clear", 2_000, 2_000))

    found = find_differences("pod-viewer", MEANS, before, after, None)
    assert table(found, "layer", "difference_ms", "uncertainty_ms", "verdict") == [
        ("noisy", 3.0, 3.887742, "within_noise"),
        ("clear", 1.0, 0.0, "worse"),
    ]


def test_what_no_step_had_before_and_each_has_now_is_no_noise() -> None:
    """Its mean of 3 ms is within an interval of 5.3 ms; three of nine steps are the same three by chance in 1 of 84."""
    none = means("new", 0, 0, 0, 0, 0, 0), means("perhaps", 0, 0, 0, 0, 0, 0)
    some = means("new", 1_000, 3_000, 5_000), means("perhaps", 0, 4_000, 5_000)

    found = find_differences("pod-viewer", MEANS, report(*none), report(*some), None)
    assert table(found, "layer", "difference_ms", "verdict") == [
        ("new", 3.0, "worse"),
        ("perhaps", 3.0, "within_noise"),
    ]


def test_one_sample_tells_no_noise() -> None:
    found = find_differences("pod-viewer", MEANS, report(means("a", 1_000)), report(means("a", 3_000, 3_000)), None)

    assert table(found, "uncertainty_ms", "verdict") == [(None, "worse")]


def test_a_difference_of_hardly_anything_is_negligible() -> None:
    """0.2 % of the 100 ms before is 0.2 ms."""
    before = report(layer("a", 10_000), layer("b", 20_000), layer("c", 70_000), layer("d", 0))
    after = report(layer("a", 20_000), layer("b", 10_000), layer("c", 70_200), layer("d", 201))

    found = find_differences("modules", LAYERS, before, after, None)
    assert table(found, "layer", "verdict") == [
        ("a", "worse"), ("b", "better"), ("d", "worse"), ("c", "negligible"),
    ]  # fmt: skip


def test_totals_are_in_doubt_while_the_step_time_stays_within_its_noise() -> None:
    sides = report(layer("a", 1_000)), report(layer("a", 2_000))

    assert table(find_differences("modules", LAYERS, *sides, (1, 1), within_noise=True), "verdict") == [("unknown",)]
    of_memory = Comparable(id="m", title="M", keys=(LAYER,), measure=TIME)
    assert table(find_differences("modules", of_memory, *sides, (1, 1), within_noise=True), "verdict") == [("worse",)]


# -- what the tools declare ------------------------------------------------------------------------------------------


def declared(tool: str, *, at: int = 0) -> Comparable:
    return tool_named(tool).comparables[at]


def sides_of(tool: str, before: Any, after: Any, *, at: int = 0) -> DifferenceTable:
    return find_differences(tool, declared(tool, at=at), before, after, (10, 5))


def test_idle_time_is_compared_for_each_cause() -> None:
    row = {"device": "GPU:0", "stream": "s", "host_wait_ms": 30.0, "kernel_wait_ms": 20.0, "other_ms": 0.0}

    assert table(sides_of("idle", report(), report(row)), "device", "stream", "cause", "after_ms") == [
        ("GPU:0", "s", "host wait", 6.0),
        ("GPU:0", "s", "kernel wait", 4.0),
    ]


def test_collectives_match_whatever_their_group_is_called() -> None:
    def collectives(*rows: tuple[str, float]) -> Any:
        columns = {"operation": "all_reduce", "ranks": 2, "bytes": 1024, "count": 10}
        return SimpleNamespace(collectives=[{**columns, "group": group, "total_us": us} for group, us in rows])

    found = sides_of("distributed", collectives(("7", 20_000)), collectives(("0", 30_000), ("1", 10_000)))
    assert table(found, "operation", "ranks", "bytes", "before_ms", "after_ms", "before_calls", "after_calls") == [
        ("all_reduce", 2, 1024, 2.0, 8.0, 1.0, 4.0)
    ]
    assert [field.unit for field in found.fields[:3]] == ["text", "count", "bytes"]


def test_advice_is_compared_by_the_largest_gain_of_each_class() -> None:
    def advice(kind: str, now: float | None, then: float | None) -> dict[str, Any]:
        return {"class": kind, "step_time_ms": now, "predicted_step_time_ms": then}

    before = report(advice("host_sync", 20.0, 17.0), advice("none", None, None))
    after = report(
        advice("input_python", 40.0, 30.0), advice("input_python", 40.0, 25.0), advice("host_sync", 40.0, 38.0),
        advice("low_precision", None, None),
    )  # fmt: skip

    found = sides_of("advice", before, after)
    assert table(found, "class", "status", "before_ms", "after_ms") == [
        ("input_python", "added", None, 15.0),
        ("host_sync", "both", 3.0, 2.0),
    ]
    assert found.sentences == (
        "advised only after: input python, low precision",
        "advised on both sides: host sync",
    )
    assert sides_of("advice", report(), before).sentences[0] == "advised only after: host sync"


def test_tf_data_is_compared_by_the_iterators_of_the_slow_call_and_by_pipelines() -> None:
    def of_pipelines(self_us: float, total_ms: float, *, is_slow: bool = True) -> Any:
        nodes = (("Map", self_us), ("BatchV2", 5_000.0), ("Map", 1_000.0))
        return SimpleNamespace(
            graph=[{"name": name, "self_us": us} for name, us in nodes],
            pipelines=[{"host": host, "name": "Host:0", "total_ms": total_ms, "calls": 10} for host in "ab"],
            bottleneck={"iterator": "Map", "self_us": self_us} if is_slow else None,
        )

    before, after = of_pipelines(9_000.0, 10.0, is_slow=False), of_pipelines(99_000.0, 30.0)
    iterators, pipelines = (sides_of("tf-data", before, after, at=at) for at in (0, 1))
    assert table(iterators, "iterator", "before_ms", "after_ms") == [("Map", 10.0, 100.0), ("BatchV2", 5.0, 5.0)]
    assert iterators.sentences == (
        "bottleneck before: none (no call was slow)",
        "bottleneck after: Map, 99.00 ms self time",
    )
    assert table(pipelines, "pipeline", "before_ms", "after_ms", "before_calls", "after_calls") == [
        ("Host:0", 2.0, 12.0, 2.0, 4.0)
    ]


def test_shapes_are_compared_on_host_and_device() -> None:
    row = {"name": "mm", "input_shapes": "[2, 2]", "calls": 10, "device_self_us": 40_000.0, "host_self_us": 10_000.0}

    found = sides_of("op-shapes", report(row), report(row))
    assert table(found, "side", "name", "before_ms", "after_ms", "before_calls", "after_calls") == [
        ("device", "mm", 4.0, 8.0, 1.0, 2.0),
        ("host", "mm", 1.0, 2.0, 1.0, 2.0),
    ]


def test_workers_have_the_steps_as_samples() -> None:
    def pods(*durations: float) -> Any:
        mean = sum(durations) / len(durations)
        steps = [{"host": "a", "device": "GPU", "duration_ms": each, "complete": True} for each in durations]
        cut = {"host": "a", "device": "GPU", "duration_ms": 1.0, "complete": False}
        return SimpleNamespace(rows=[*steps, cut], workers=[{"host": "a", "device": "GPU", "mean_ms": mean}])

    found = sides_of("pod-viewer", pods(10, 10, 10), pods(9, 12, 10))
    assert table(found, "before_ms", "difference_ms", "verdict") == [(10.0, 0.333333, "within_noise")]


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_every_tool_declares_what_is_comparable_or_why_nothing_is(tool: Tool) -> None:
    assert [bool(tool.comparables), bool(tool.not_comparable), tool.name in STEP_TABLES].count(True) == 1
    assert (tool in comparable_tools()) is not bool(tool.not_comparable)


def test_tables_have_ids_of_their_own() -> None:
    every: Sequence[Comparable] = [each for tool in TOOLS for each in tool.comparables]

    assert len({each.id for each in every} | {"breakdown", "spread"}) == len(every) + 2
