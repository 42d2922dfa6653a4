"""The tool tf-data: hand-drawn iterator calls, and pipelines built in TensorFlow whose slow stage is known."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import pipeline_programs
import pytest
from calm import taking_a_turn
from draw import Sort, draw
from every_form import exercise
from pipeline_programs import SLOW
from places import folder_of_run
from warm_python import WARM

import stepscope
from stepscope.analysis.input import tf_data_tool as tf_data
from stepscope.analysis.input.iterators import iterator_calls
from stepscope.analysis.input.pipeline_advice import suggestion
from stepscope.analysis.input.tf_data_tool import TfDataReport
from stepscope.model import EventKind, HostTrace, PlaneKind, TraceBuilder
from stepscope.vocabulary.tf_data import parent_name, plain_name

K = EventKind
US = 10**6
BIG = 2**63 + 17  # as an unsigned number; the same bits as a signed one are negative
BIG_SIGNED = BIG - 2**64


def iterator(name: str, own: int, above: int | None = None, op: str = "") -> Sort:
    stats: dict[str, int | str] = {"id": own}
    if above is not None:
        stats["parent_id"] = above
    return Sort(K.ITERATOR, f"Iterator::{name}", stats=stats | ({"name": op} if op else {}))


def mark(name: str) -> Sort:
    return Sort(K.INPUT_HANDOVER, name, "element_id")


# R reads from P (a prefetch), P from B (a batch), B from M (a map), M from S (a source).
SORTS = {
    "R": iterator("Root", 1),
    "P": iterator("Root::Prefetch", 2, 1, "PrefetchDataset:4"),
    "B": iterator("Root::Prefetch::BatchV2", BIG, 2, "BatchDatasetV2:3"),
    "M": iterator("Root::Prefetch::BatchV2::Map", 4, BIG_SIGNED, "MapDataset:2"),
    "S": iterator("Root::Prefetch::BatchV2::Map::Range", 5, 4, "RangeDataset:1"),
    "p": mark("PrefetchProduce"),
    "c": mark("PrefetchConsume"),
}


def report(*traces: HostTrace) -> TfDataReport:
    return tf_data.merge([tf_data.partial(trace) for trace in traces])


def table(found: TfDataReport, *columns: str) -> list[tuple[object, ...]]:
    return [tuple(node[column] for column in columns) for node in found.graph]


# -- one thread --------------------------------------------------------------------------------------------------


def test_nested_calls_become_a_graph_with_self_times() -> None:
    found = report(
        draw(
            """
        host main | R-----------------
        host main |  P---------------
        host main |   B-------------
        host main |    M---- M----
        host main |    S     S-
        """,
            SORTS,
        )
    )
    assert table(
        found, "id", "parent", "name", "start_ms", "total_us", "self_us", "calls", "critical", "bottleneck"
    ) == [
        (0, None, "Root", 0, 18000, 2000, 1, True, False),
        (1, 0, "Prefetch", 1, 16000, 2000, 1, True, False),
        (2, 1, "BatchV2", 2, 14000, 4000, 1, True, False),
        (3, 2, "Map", 3, 10000, 7000, 2, True, True),
        (4, 3, "Range", 3, 3000, 3000, 2, True, False),
    ]
    assert found.bottleneck is not None
    assert found.bottleneck | {"suggestion": ""} == {
        "host": "host",
        "pipeline": "Host:0",
        "iterator": "Map",
        "long_name": "Iterator::Root::Prefetch::BatchV2::Map",
        "dataset_op": "MapDataset:2",
        "self_us": 7000,
        "slow_self_percent": pytest.approx(100 * 7 / 18, abs=1e-3),
        "execution_us": 18000,
        "suggestion": "",
    }
    assert "Map (MapDataset:2)" in str(found.bottleneck["suggestion"])
    assert ".map(fn, num_parallel_calls=tf.data.AUTOTUNE)" in str(found.bottleneck["suggestion"])


def test_the_batch_of_a_dataset_made_for_each_element_is_the_fault_of_what_makes_it() -> None:
    """Batching it in parallel made such a pipeline slower: each batch is small."""
    window = {
        "F": iterator("Root::Prefetch::FlatMap", 2, 1, "FlatMapDataset:4"),
        "W": iterator("Root::Prefetch::FlatMap::BatchV2", 3, 2, "BatchDatasetV2:6533"),
        "V": iterator("Root::Prefetch::FlatMap::BatchV2::Window", 4, 3, "WindowDataset:1"),
    }
    found = report(
        draw(
            """
        host main | R-----------------
        host main |  F---------------
        host main |   W-------------
        host main |    V---
        """,
            SORTS | window,
        )
    )

    assert found.bottleneck is not None and found.bottleneck["iterator"] == "BatchV2"
    assert str(found.bottleneck["suggestion"]).startswith("FlatMap (FlatMapDataset:4) makes a dataset for each element")


def test_calls_are_slow_above_50_microseconds() -> None:
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for at, length in enumerate((10 * US, 50 * US, 50 * US + 1, 90 * US)):
        line.event("Iterator::Root", at * 1000 * US, length, K.ITERATOR, {"id": 1})
    assert report(builder.build()).pipelines == (
        {
            "host": "host", "name": "Host:0", "calls": 4, "slow_calls": 2, "min_us": 10, "mean_us": 50.0, "max_us": 90,
            "total_ms": 0.2, "bottleneck": "Root", "iterators": 1,
        },
    )  # fmt: skip


def test_without_slow_calls_there_is_no_bottleneck() -> None:
    builder = TraceBuilder("host")
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event(
        "Iterator::Root", 0, 50 * US, K.ITERATOR, {"id": 1}
    )
    found = report(builder.build())
    assert found.bottleneck is None
    assert table(found, "name", "bottleneck") == [("Root", False)]
    assert found.summary[-1] == "the input is not a bottleneck: its slowest call took 50 us"


# -- several threads ---------------------------------------------------------------------------------------------


def test_a_hand_over_links_threads_and_only_what_was_waited_for_is_critical() -> None:
    # Element 8 is made while nobody waits for it: its Map is on no critical path, its Batch holds up nothing.
    found = report(
        draw(
            """
        host main | R--------         R-
        host main | P-------c7!       Pc8!
        host pool | p7----- p8-----
        host pool | B------ B-----
        host pool |  M---    M-
        """,
            SORTS,
        )
    )
    assert table(found, "name", "total_us", "self_us", "critical", "bottleneck") == [
        ("Root", 9000, 1000, True, False),
        ("Prefetch", 8000, 1000, True, False),
        ("BatchV2", 7000, 3000, True, False),
        ("Map", 4000, 4000, True, True),
    ]
    fast = found.executions[1]
    assert (fast["rank"], fast["duration_us"], fast["bottleneck"]) == (2, 2000, "Prefetch")
    assert [(node["name"], node["critical"]) for node in fast["graph"]] == [
        ("Root", True), ("Prefetch", True), ("BatchV2", False), ("Map", False),
    ]  # fmt: skip


def test_time_in_which_two_threads_work_for_a_call_counts_once() -> None:
    sorts = SORTS | {"I": iterator("Root::Interleave", 2, 1), "J": iterator("Root::Interleave[7]::Map", 70, 2)}
    found = report(
        draw(
            """
        host main | R-------------
        host main | I-----------
        host main |       c1!c2!
        host a    | p1-----
        host a    | J------
        host b    |    p2----
        host b    |    J-----
        """,
            sorts,
        )
    )
    assert table(found, "name", "total_us", "self_us", "calls") == [
        ("Root", 14000, 2000, 1), ("Interleave", 12000, 3000, 1), ("Map", 13000, 13000, 2),
    ]  # fmt: skip


def test_fetching_an_input_of_an_interleave_counts_for_the_first_element_read_from_it() -> None:
    sorts = SORTS | {
        "I": iterator("Root::ParallelInterleaveV4", 2, 1),
        "N": iterator("Root::ParallelInterleaveV4::Map", 60, 2),
        "J": iterator("Root::ParallelInterleaveV4[7]::Range", 70, 2),
        "i": Sort(K.INPUT_HANDOVER, "ParallelInterleaveInitializeInput", "input_element_id"),
        "p": Sort(K.INPUT_HANDOVER, "ParallelInterleaveProduce", "element_id", {"input_element_id": 7}),
    }
    found = report(
        draw(
            """
        host main | R------------
        host main | I----------c9!
        host a    | i7-----p9-
        host a    | N----- J-
        """,
            sorts,
        )
    )
    assert table(found, "name", "self_us", "bottleneck") == [
        ("Root", 2000, False), ("ParallelInterleaveV4", 3000, False), ("Map", 6000, True), ("Range", 2000, False),
    ]  # fmt: skip


def test_an_iterator_that_leaves_no_marks_is_linked_by_time() -> None:
    found = report(
        draw(
            """
        host main | R--------
        host main | P-------
        host pool |  B----
        """,
            SORTS,
        )
    )
    assert table(found, "name", "self_us", "critical", "bottleneck", "parallel") == [
        ("Root", 1000, True, False, False), ("Prefetch", 3000, True, False, False), ("BatchV2", 5000, True, True, True),
    ]  # fmt: skip


def test_ids_of_either_integer_type_are_one_number_and_stay_apart_from_others() -> None:
    calls = iterator_calls(draw("host main | R---\nhost main | P---\nhost main | B---\nhost main | M--", SORTS))
    assert calls.iterator.tolist() == [1, 2, BIG_SIGNED, 4]
    assert calls.parent.tolist() == [-1, 0, 1, 2]


# -- which call decides ------------------------------------------------------------------------------------------


def test_one_odd_call_does_not_decide() -> None:
    found = report(
        draw(
            """
        host main | R------- R------- R------- R----------
        host main | P------  P------  P------  P---------
        host main | B-----   B-----   B-----   B--------
        host main | M----    M----    M----    M-
        """,
            SORTS,
        )
    )
    assert found.bottleneck is not None
    assert (found.bottleneck["iterator"], found.bottleneck["execution_us"]) == ("Map", 8000)
    assert [row["bottleneck"] for row in found.executions] == ["BatchV2", "Map", "Map", "Map"]


def test_a_call_that_waited_for_work_from_before_the_capture_does_not_decide() -> None:
    found = report(
        draw(
            """
        host main | R----------    R-----
        host main | P---------c6!  P----c7!
        host pool |                p7--
        host pool |                B---
        """,
            SORTS,
        )
    )
    assert found.bottleneck is not None
    assert (found.bottleneck["iterator"], found.pipelines[0]["max_us"]) == ("BatchV2", 11000)


def test_an_outermost_call_without_an_end_leaves_what_did_end() -> None:
    found = report(draw("host pool | B--------\nhost pool |  M--- M-", SORTS))
    assert table(found, "name", "self_us") == [("BatchV2", 3000), ("Map", 6000)]
    assert "no call of an outermost iterator ended" in found.warnings[0]


# -- pipelines ---------------------------------------------------------------------------------------------------


def test_iterators_of_one_dataset_are_one_pipeline_and_other_datasets_are_others() -> None:
    sorts = {
        "a": iterator("Root", 1, op="MapDataset:2"), "b": iterator("Root", 2, op="MapDataset:2"),
        "x": iterator("Root", 3, op="MapDataset:9"),
    }  # fmt: skip
    found = report(draw("host main | a--- x- b----- a--", sorts))
    assert [(row["name"], row["calls"], row["max_us"], row["iterators"]) for row in found.pipelines] == [
        ("Host:0", 3, 6000, 2), ("Host:1", 1, 2000, 1),
    ]  # fmt: skip


def test_inputs_of_a_zip_stay_apart_and_datasets_opened_on_the_way_do_not() -> None:
    assert plain_name("Iterator::Root::Zip[1]::FlatMap[3]::Map") == "Iterator::Root::Zip[1]::FlatMap::Map"
    assert parent_name("Iterator::Root::Zip[1]::FlatMap::Map") == "Iterator::Root::Zip[1]::FlatMap"
    assert parent_name("Iterator::Root::Zip[1]::FlatMap") == "Iterator::Root::Zip"
    assert parent_name("Iterator::Root") == ""


@pytest.mark.parametrize("root", ["", "Root::"])
def test_pipelines_that_fetch_for_a_device_come_after_the_hosts_own(root: str) -> None:
    sorts = {
        "D": iterator(f"{root}Prefetch".removesuffix("Prefetch").rstrip(":") or "Prefetch", 1),
        "E": iterator("Root::Prefetch", 2, 1),
        "G": iterator(f"{root}Prefetch::Generator", 3, 2 if root else 1),
        "H": iterator("Root::Map" if root else "Map", 8),
    }
    middle = "host main | E------" if root else ""
    found = report(draw(f"host main | D--------\n{middle}\nhost main |  G-----\nhost pool | H---", sorts))
    assert [(row["name"], row["max_us"]) for row in found.pipelines] == [("Host:0", 4000), ("Device:0", 9000)]
    assert found.bottleneck is not None
    assert found.bottleneck["pipeline"] == "Host:0"


def test_the_host_with_the_slowest_call_is_the_most_input_bound() -> None:
    slow = draw("host main | R--------\nhost main | P-----", SORTS, host="b")
    fast = draw("host main | R--- R---", SORTS, host="a")
    found = report(fast, slow)
    assert found.hosts == ("a", "b")
    assert found.bottleneck is not None
    assert (found.bottleneck["host"], found.bottleneck["iterator"]) == ("b", "Prefetch")
    assert found.summary[2].startswith("Host:0 on b, the most input-bound host, is the slowest: 1 of 1 calls")


@pytest.mark.parametrize(("wait_ms", "is_said"), [(1, True), (20, False)])
def test_a_slow_stage_for_which_no_step_waits_is_no_bottleneck(wait_ms: int, is_said: bool) -> None:
    step, work = "T".ljust(40, "-"), "I".ljust(wait_ms, "-") + "a".ljust(40 - wait_ms, "-")
    lines = (step * 2, work * 2)
    picture = [*(f"host main | {line}" for line in lines), "host pool | R----", "host pool | P---"]
    found = report(draw("\n".join(picture), {**SORTS, "T": Sort(K.STEP_MARK, "train")}))

    said = "the steps hardly wait for tf.data: input is 2.5 % of the median step"
    assert found.bottleneck is not None
    assert (found.summary[0] == said) == is_said
    assert any("making it faster would gain nothing" in line for line in found.summary) == is_said
    assert any(line.startswith("what to do") for line in found.summary) != is_said


# -- nothing to say ----------------------------------------------------------------------------------------------


def test_a_profile_without_iterators_says_which_option_records_them() -> None:
    found = report(draw("host main | M--- M---"))
    assert (found.pipelines, found.bottleneck, found.graph) == ((), None, ())
    assert "ProfilerOptions(host_tracer_level=2)" in found.warnings[0]
    exercise(found)


def test_a_pytorch_profile_is_sent_to_the_input_pipeline() -> None:
    builder = TraceBuilder("host")
    builder.framework = "pytorch"
    builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main").event("aten::add", 0, 9, K.OP)
    assert "stepscope input-pipeline" in report(builder.build()).warnings[0]


@pytest.mark.parametrize(
    ("iterator_type", "call"),
    [
        ("Map", ".map(fn, num_parallel_calls"),
        ("ParallelMapV2", "slow though parallel: .cache() what stays the same"),  # it has its parallel calls
        ("MapAndBatch", ".map() before .batch()"),
        ("BatchV2", ".batch(n, num_parallel_calls"),
        ("ParallelBatch", ".batch()"),
        ("PaddedBatchV2", ".batch(n, num_parallel_calls"),
        ("TFRecord", ".interleave(open_file"),
        ("TFRecordV2", "TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE, buffer_size=8 << 20)"),
        ("TextLine", ".interleave(open_file"),
        ("TextLine", "TextLineDataset(files, num_parallel_reads"),
        ("FixedLengthRecordV2", ".interleave(open_file"),
        ("Generator", "from_generator"),
        ("Generator", "keras.utils.PyDataset (Sequence)"),
        ("Generator", "workers=4, use_multiprocessing=True, max_queue_size=10"),
        ("Interleave", ".interleave(open_input"),
        ("FlatMap", ".interleave(open_input"),
        ("ParallelInterleaveV4", "cycle_length"),
        ("Filter", ".filter()"),
        ("Shuffle", "buffer_size"),
        ("Prefetch", "no stage before it is slow"),
        ("DataServiceDatasetV4", "make fewer, larger elements"),
        ("DataService", "tf.data service"),
        ("Whatever", "make fewer, larger elements"),
    ],
)
def test_each_sort_of_bottleneck_has_a_suggestion_that_names_op_and_call(iterator_type: str, call: str) -> None:
    text = suggestion(iterator_type, "Dataset:7", on_device=False)
    assert call in text
    assert f"{iterator_type} (Dataset:7)" in text
    assert max(len(suggestion(iterator_type, "Dataset:7", False, python).split()) for python in (False, True)) <= 25


def test_the_last_stage_is_known_by_its_dataset_op() -> None:
    assert ".batch(n, num_parallel_calls" in suggestion("Root", "BatchDatasetV2:4", on_device=False)
    assert "no stage before it is slow" in suggestion("Root", "PrefetchDataset:5", on_device=False)


@pytest.mark.parametrize(
    ("map_op", "told"),
    [("MapDataset:2", ".map(fn, num_parallel_calls"), ("ParallelMapDatasetV2:2", "runs in parallel:")],
)
def test_a_map_that_is_fused_with_its_batch_is_made_parallel_only_once(map_op: str, told: str) -> None:
    text = suggestion("MapAndBatch", f"fused({map_op},BatchDatasetV2:3)", on_device=False)
    assert told in text
    assert ("num_parallel_calls" in text) == (map_op == "MapDataset:2")


def test_elements_that_take_no_longer_than_a_call_are_mapped_in_batches() -> None:
    brief, long = (
        suggestion("MapAndBatch", "fused(MapDataset:1,BatchDatasetV2:2)", on_device=False, element_us=us)
        for us in (65.0, 5000.0)
    )
    assert "65 us for an element" in brief and "num_parallel_calls" not in brief
    assert "num_parallel_calls" in long


# -- real pipelines ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def recorded_pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Profiles of the pipelines of `pipeline_programs`, recorded once a test run, as NAME/."""
    folder = folder_of_run(tmp_path_factory) / "pipelines"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "done").exists():
            record_pipelines(folder)
            (folder / "done").touch()
    return folder


def record_pipelines(folder: Path, *names: str) -> None:
    """Records the pipelines of these names, all if there is none."""
    words = [str(pipeline_programs.__file__), str(folder), *names]
    with taking_a_turn():
        done = WARM.run("tensorflow", words, os.environ, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"the pipelines could not be recorded:\n{done.stderr[-3000:]}")


def names_slow_stage(found: TfDataReport, name: str) -> bool:
    iterator_type, op = SLOW[name]
    at = found.bottleneck
    return at is not None and at["iterator"] == iterator_type and op in str(at["dataset_op"])


@pytest.mark.parametrize("name", SLOW)
def test_the_slow_stage_of_a_real_pipeline_is_named(name: str, recorded_pipelines: Path) -> None:
    found = stepscope.load(recorded_pipelines / name).tf_data()
    for again in ("again", "once more"):
        # The tool looks at the slowest call.  Something else on the machine may have held up one of a fast stage, which
        # is then the slowest in truth; it hardly happens to the same pipeline again and again.
        if not names_slow_stage(found, name):
            record_pipelines(recorded_pipelines / again, name)
            found = stepscope.load(recorded_pipelines / again / name).tf_data()
    assert names_slow_stage(found, name), (found.bottleneck, found.graph)
    assert [row["name"] for row in found.pipelines] == ["Host:0"]
    assert_is_whole(found)
    exercise(found)


def assert_is_whole(found: TfDataReport) -> None:
    """Every graph is one tree, self times are a part of totals, and the bottleneck is where it says."""
    for execution in found.executions:
        nodes: Sequence[Mapping[str, object]] = execution["graph"]
        assert [node["parent"] is None for node in nodes] == [True] + [False] * (len(nodes) - 1)
        assert nodes[0]["total_us"] == execution["duration_us"]
        for node in nodes:
            assert 0 <= node["self_us"] <= node["total_us"]  # type: ignore[operator]
    marked = [node for node in found.graph if node["bottleneck"]]
    assert found.bottleneck is not None
    assert [node["long_name"] for node in marked] == [found.bottleneck["long_name"]]
    assert all(node["critical"] for node in marked)


def test_steps_and_pipeline_of_a_real_capture_agree_on_the_waiting_time(recorded_pipelines: Path) -> None:
    profile = stepscope.load(recorded_pipelines / "map")
    calls = profile.tf_data().pipelines[0]
    waits = profile.input_pipeline().waiting_ms
    assert calls["calls"] == profile.input_pipeline().step_time_ms["count"]
    # The wait is around the call, but one that is asked for before its step's mark lies only partly in it; and of what
    # a busy machine takes away in between, the wait has nothing.
    assert 0.5 < waits["mean"] / (calls["mean_us"] / 1e3) < 1.25
