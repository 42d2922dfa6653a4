"""The tool input-pipeline: hand-drawn traces, a PyTorch DataLoader, and what XProf says of the same files."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import oracle
import pytest
from draw import Sort, draw
from every_form import exercise
from framework_captures import FrameworkCapture
from reporting import table

import stepscope
from stepscope.analysis.input import input_pipeline_tool as input_pipeline
from stepscope.analysis.input import tf_data_tool
from stepscope.analysis.input.input_pipeline_tool import InputPipelineReport
from stepscope.formats.session import find_session
from stepscope.model import EventKind, HostTrace, Trait
from stepscope.vocabulary.tf_data import plain_name

K = EventKind


def iterator(name: str, own: int, above: int, traits: Trait = Trait.NONE) -> Sort:
    return Sort(K.ITERATOR, f"Iterator::{name}", stats={"id": own, "parent_id": above}, traits=traits)


SORTS = {
    "R": Sort(K.ITERATOR, "Iterator::Root", stats={"id": 1}),
    "P": iterator("Root::Prefetch", 2, 1),
    "B": iterator("Root::Prefetch::BatchV2", 3, 2),
    "Q": iterator("Root::Map", 4, 1),
    "E": iterator("Root::Map::TFRecord", 5, 4, Trait.FILE_READ),
    "Z": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"),
    "W": Sort(K.INPUT_WAIT, "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"),
}


def report(*traces: HostTrace) -> InputPipelineReport:
    return input_pipeline.merge([input_pipeline.partial(trace) for trace in traces])


# -- the verdict -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("picture", "percent", "level", "verdict"),
    [
        ("host main | M1--------M2--------\nhost main | I-        I-", 20, "highly", "input_bound"),
        ("host main | M1------------------\nhost main | Ia----------------", 5, "moderately", "input_bound"),
        ("host main | M1--------------------\nhost main | Ia--------------------", 100 / 22, "not", "not_input_bound"),
        ("host main | M1--------\nhost main | a---------", 0, "not", "not_input_bound"),
    ],
)
def test_waiting_for_input_is_judged_by_its_share_of_the_step(
    picture: str, percent: float, level: str, verdict: str
) -> None:
    found = report(draw(picture))
    figures = (found.figures["level"], found.figures["verdict"])
    assert (found.figures["input_percent"], figures) == (pytest.approx(percent, abs=1e-3), (level, verdict))
    said = {
        "highly": "the steps wait long for input",
        "moderately": "the steps wait for input",
        "not": "the steps hardly wait for input",
    }[level]
    assert found.summary[0].startswith(f"{said}: {percent:.1f} % of each step is input")


def test_a_loop_that_fetches_its_batch_before_the_step_is_input_bound_too() -> None:
    found = report(
        draw(
            """
        host main |    M1----      M2----      M3----
        host main | I--a-----I-----a-----I-----a-----
        """
        )
    )
    assert (found.figures["verdict"], found.figures["level"]) == ("input_bound", "highly")
    # From the start of a step to the start of the next, half is input.
    assert found.figures["input_percent"] == 50
    assert found.summary[0].startswith("the steps wait long for input: 50.0 % of each step is input")


def test_input_and_copying_it_in_are_said_with_the_share_that_the_account_has_of_each() -> None:
    copies = {"C": Sort(K.COPY_HOST_TO_DEVICE_CALL, "H2D Dispatch")}
    found = report(draw("host main | M0--------M1--------\nhost main | I--C-a----I--C-a----", copies))

    assert found.figures["input_percent"] == 50
    said = "the steps wait long for input: 30.0 % of each step is input and 20.0 % is copying data in"
    assert found.summary[0].startswith(said)


def test_a_profile_without_steps_is_unknown_and_says_how_to_mark_them() -> None:
    found = report(draw("host main | M1!"))
    assert (found.figures["verdict"], found.figures["level"], found.steps) == ("unknown", None, ())
    assert found.step_time_ms == {"mean": None, "std": None, "min": None, "max": None, "count": 0}
    assert "stepscope.step(i)" in found.warnings[-1]
    exercise(found)


# -- the device side ---------------------------------------------------------------------------------------------


def test_each_device_waits_while_it_does_nothing_and_the_step_has_no_batch() -> None:
    # GPU 1 copies its first batch by itself, and computes all the time in the second step.
    found = report(
        draw(
            """
        host main | M1--------M2--------
        host main | I---L1L2  I---L3L4
        gpu0 s    |     K1----  K3------
        gpu1 s    |       U2K2K4--------
        """
        )
    )
    assert [
        (row["step"], row["waiting_min_ms"], row["waiting_mean_ms"], row["waiting_max_ms"], row["waiting_most"])
        for row in found.steps
    ] == [(1, 4, 5, 6, "host GPU:1"), (2, 0, 1, 2, "host GPU:0")]
    assert found.waiting_ms == {"mean": 3, "std": pytest.approx(8**0.5, abs=1e-6), "min": 0, "max": 6, "cores": 2}


def test_step_times_have_mean_deviation_and_range() -> None:
    found = report(draw("host main | M1--M2----M3------\nhost main | a---b-----c-------"))
    assert found.step_time_ms == {"mean": 6, "std": 2, "min": 4, "max": 8, "count": 3}


def test_hosts_are_aligned_by_step_number_and_a_step_is_as_on_its_slowest_host() -> None:
    first = draw("host main | M1----M2----M3----\nhost main | I--   I-    I", host="a")
    second = draw("host main | M2------M3----M4---\nhost main | I----   I-", host="b")
    found = report(first, second)
    assert [(row["step"], row["duration_ms"], row["waiting_min_ms"], row["waiting_max_ms"]) for row in found.steps] == [
        (2, 8, 2, 5),
        (3, 6, 1, 2),
    ]
    assert found.steps[0]["waiting_most"] == "b host"
    assert any(text.startswith("2 steps are left out: not on every host") for text in found.warnings)


# -- the host side -----------------------------------------------------------------------------------------------


def test_self_time_leaves_out_what_runs_inside_and_work_what_other_threads_do_meanwhile() -> None:
    # Prefetch waits for a batch that another thread makes: its self time is long, its work is none.
    found = report(
        draw(
            """
        host main | M1------------
        host main | R------------
        host main | P-----------
        host pool | B----------
        host pool |  a---
        """,
            SORTS,
        )
    )
    assert table(found, "op", "count", "total_ms", "self_ms", "work_ms") == [
        ("Iterator::Root::Prefetch", 1, 12, 12, 1),
        ("Iterator::Root::Prefetch::BatchV2", 1, 11, 7, 11),
        ("Iterator::Root", 1, 13, 1, 1),
    ]
    assert table(found, "total_percent", "self_percent") == [(60, 60), (55, 35), (65, 5)]
    assert found.host_breakdown_ms["preprocessing"] == 13


def test_reading_is_on_demand_unless_something_before_it_reads_ahead() -> None:
    reader = Trait.FILE_READ
    sorts = SORTS | {
        "p": iterator("Root::Prefetch::TFRecord", 6, 2, reader),
        "i": iterator("Root::ParallelInterleaveV4[3]::TextLine", 7, 1, reader),
        "m": iterator("Root::MemoryReaderImpl::TFRecord", 8, 1, reader),
    }
    found = report(draw("host main | M1--------------\nhost pool | E--- p--- i--m-", sorts))
    assert table(found, "op", "category") == [
        ("Iterator::Root::Map::TFRecord", "read_on_demand"),
        ("Iterator::Root::Prefetch::TFRecord", "read_in_advance"),
        ("Iterator::Root::ParallelInterleaveV4::TextLine", "read_in_advance"),
        ("Iterator::Root::MemoryReaderImpl::TFRecord", "read_in_advance"),
    ]
    assert found.host_breakdown_ms == {
        "read_on_demand": 4, "read_in_advance": 9, "preprocessing": 0, "enqueue": 0, "other": 0,
    }  # fmt: skip


def test_calls_that_start_a_copy_to_a_device_are_enqueueing() -> None:
    found = report(
        draw(
            """
        host main | M1--------------
        host main |  L1- L2--- V3-
        gpu0 s    |    U1    K2  U3
        """
        )
    )
    assert table(found, "op", "count", "self_ms", "category") == [
        ("launch", 1, 3, "enqueue"), ("memcpyH2D", 1, 3, "enqueue"),
    ]  # fmt: skip


READING = """
    host main | M1----------
    host main | I-----
    host main |  R----
    host main |  Q---
    host main |  E--
"""


@pytest.mark.parametrize(
    ("picture", "stage", "text"),
    [
        (READING, "TFRecord", "reading files is slow in TFRecord"),
        (READING.replace("E--", "   "), "Map", "the .map() in Map runs on one element at a time"),
    ],
    ids=["reading", "mapping"],
)
def test_the_tf_data_page_and_the_input_page_of_one_file_name_one_stage(picture: str, stage: str, text: str) -> None:
    trace = draw(picture, SORTS)
    page = tf_data_tool.merge([tf_data_tool.partial(trace)])

    assert page.bottleneck is not None
    assert page.bottleneck["iterator"] == stage
    assert str(page.bottleneck["suggestion"]).startswith(text)
    assert report(trace).summary[2] == f"what to do: {page.bottleneck['suggestion']}"


def test_a_loader_in_the_main_process_shows_what_runs_inside_it() -> None:
    found = report(
        draw(
            """
        host main | M1----------------
        host main | Z----------- c---
        host main |  b--- b--
        """,
            SORTS,
        )
    )
    assert table(found, "op", "count", "total_ms", "self_ms", "category") == [
        ("b", 2, 7, 7, "preprocessing"), (SORTS["Z"].name, 1, 12, 5, "preprocessing"),
    ]  # fmt: skip
    assert (found.figures["largest"], found.figures["input_time_ms"]) == ("preprocessing", 12)


def test_the_capture_of_a_host_without_steps_is_no_step_time_of_a_loader() -> None:
    worker = draw("host main | M1--------M2--------\nhost main | Z-        Z-", SORTS)
    beside = draw("host main | Z-   a--------------------------------------------------------", SORTS, host="beside")

    [alone], [both] = report(worker).loaders, report(worker, beside).loaders
    assert (alone["calls"], alone["step_percent"]) == (2, 20.0)
    assert (both["calls"], both["step_percent"]) == (3, 20.0)


def test_a_wait_for_worker_processes_is_work_of_unknown_kind() -> None:
    found = report(draw("host main | M1--------\nhost main | W---- a--", SORTS))
    assert table(found, "op", "self_ms", "category") == [(SORTS["W"].name, 5, "other")]


def test_stages_of_an_instrumented_pipeline_are_input_ops_of_the_category_that_they_name() -> None:
    stage = {kind: Sort(K.OTHER, "x", stats={"_ipl_stage_name": f"my {kind}", "_ipl_stage_cat": kind})
             for kind in ("Read", "preprocessing", "enqueue", "daydream")}  # fmt: skip
    sorts = dict(zip("abcd", stage.values(), strict=True))
    found = report(draw("host main | M1---------------\nhost pool | a----b---c--d-", sorts))
    assert table(found, "op", "self_ms", "category") == [
        ("my Read", 5, "read_on_demand"),
        ("my preprocessing", 4, "preprocessing"),
        ("my enqueue", 3, "enqueue"),
        ("my daydream", 2, "other"),
    ]


def test_equal_ops_of_several_hosts_are_one_row() -> None:
    picture = "host main | M1----M2----\nhost main | R--   R----"
    found = report(draw(picture, SORTS, host="a"), draw(picture, SORTS, host="b"))
    assert table(found, "op", "count", "total_ms") == [("Iterator::Root", 4, 16)]


def test_a_profile_without_input_ops_says_which_option_records_them() -> None:
    found = report(draw("host main | M1----\nhost main | a----"))
    assert (found.rows, found.figures["largest"], sum(found.host_breakdown_ms.values())) == ((), None, 0)
    assert "ProfilerOptions(host_tracer_level=2)" in found.warnings[0]
    assert found.figures["level"] == "not"
    exercise(found)


# -- XProf -------------------------------------------------------------------------------------------------------

CATEGORY_OF_XPROF = {
    "Preprocessing": "preprocessing",
    "Advanced file read": "read_in_advance",
    "Demanded file read": "read_on_demand",
    "Enqueue": "enqueue",
}


def xprof_rows(rows: Iterable[oracle.Row]) -> dict[str, dict[str, object]]:
    """XProf's host ops with datasets opened on the way taken together, as our rows."""
    merged: dict[str, dict[str, object]] = {}
    for row in rows:
        entry = merged.setdefault(plain_name(row["opName"]), {"category": CATEGORY_OF_XPROF[row["category"]]})
        for ours, theirs, scale in (
            ("count", "count", 1), ("total_ms", "timeInMs", 1), ("total_percent", "timeInPercent", 100),
            ("self_ms", "selfTimeInMs", 1), ("self_percent", "selfTimeInPercent", 100),
        ):  # fmt: skip
            entry[ours] = entry.get(ours, 0.0) + scale * row[theirs]  # type: ignore[operator]
    return merged


def check_parity(paths: tuple[Path, ...], profile: stepscope.Profile) -> InputPipelineReport:
    found, marked_ms = profile.input_pipeline(), oracle.marked_ms(profile.trace(profile.hosts[0]))
    _, steps, host, _, _ = oracle.input_pipeline(paths)
    ours = {str(row["op"]): row for row in found.rows}
    theirs = xprof_rows(host.rows)
    assert ours.keys() == theirs.keys()
    for op, row in theirs.items():
        for column, value in row.items():
            near = pytest.approx(value, rel=0.01, abs=1e-3) if isinstance(value, float) else value
            assert (op, column, ours[op][column]) == (op, column, near)
    of_step = {str(row["name"]): row for row in found.steps}
    assert steps.rows
    for step in steps.rows:
        row = of_step[step["stepnum"]]
        assert marked_ms[step["stepnum"]] == pytest.approx(step["stepTimeMs"], rel=0.01, abs=1e-3)
        assert row["duration_ms"] >= round(marked_ms[step["stepnum"]], 6)
    return found


@pytest.mark.parametrize(
    "capture",
    ["tf_serial_decode/slow", "tf_file_per_record/slow", "tf_file_per_record/fixed", "tf_micro_batches/fixed"],
)
def test_ops_and_steps_equal_those_of_xprof(capture: str, bottleneck_captures: Path) -> None:
    session = find_session(bottleneck_captures / capture)
    paths = tuple(Path(file.path) for file in session.files)
    check_parity(paths, stepscope.load(bottleneck_captures / capture))


def test_a_fresh_capture_of_tensorflow_equals_xprof(tf_slow_map_capture: FrameworkCapture) -> None:
    found = check_parity(tf_slow_map_capture.paths, stepscope.load(tf_slow_map_capture.logdir))
    assert (found.figures["level"], found.figures["largest"]) == ("highly", "preprocessing")
    exercise(found)


@pytest.mark.parametrize("name", ["jax_marked_capture", "torch_marked_capture"])
def test_frameworks_without_input_ops_get_an_explained_empty_result(name: str, request: pytest.FixtureRequest) -> None:
    capture: FrameworkCapture = request.getfixturevalue(name)
    found = stepscope.load(capture.logdir).input_pipeline()
    assert (found.rows, found.figures["input_percent"]) == ((), 0)
    assert found.step_time_ms["count"] in (9, 10)  # a first step that a busy machine makes long is warm-up
    assert any(text.startswith("no input ops in this capture") for text in found.warnings)


def test_where_xprof_counts_waiting_as_preprocessing_we_count_work(bottleneck_captures: Path) -> None:
    capture = bottleneck_captures / "tf_file_per_record/slow"
    found = stepscope.load(capture).input_pipeline()
    _, _, host, _, _ = oracle.input_pipeline([Path(file.path) for file in find_session(capture).files])
    theirs = float(host.properties["preprocessing_us"]) / 1e3
    ours = found.host_breakdown_ms["preprocessing"]
    assert sum(row["self_ms"] for row in found.rows if row["category"] == "preprocessing") == pytest.approx(theirs)  # type: ignore[misc]
    # Prefetch and ParallelMapV2 wait for batches that other threads make: what is more in XProf is their waiting.
    waiting = {str(row["op"]): row["self_ms"] - row["work_ms"] for row in found.rows}  # type: ignore[operator]
    chief = sum(waiting[f"Iterator::Root::Prefetch{stage}"] for stage in ("", "::ParallelMapV2"))
    assert theirs - ours == pytest.approx(chief, rel=0.01)
    assert chief > 2 * ours
    assert float(host.properties["advanced_file_read_us"]) / 1e3 == pytest.approx(
        found.host_breakdown_ms["read_in_advance"]
    )


def test_where_xprof_shows_no_copies_of_newer_cuda_we_count_them_as_enqueueing(corpus: Path) -> None:
    found = stepscope.load(corpus / "tf-gpu-multi-worker").input_pipeline()
    paths = sorted((corpus / "tf-gpu-multi-worker").rglob("*.xplane.pb"))
    _, _, host, _, _ = oracle.input_pipeline(paths)
    ours, theirs = {str(row["op"]): row for row in found.rows}, xprof_rows(host.rows)
    assert ours.keys() - theirs.keys() == {"MemcpyH2D"}
    for op, row in theirs.items():
        assert ours[op]["total_ms"] == pytest.approx(row["total_ms"])
        assert ours[op]["self_ms"] == pytest.approx(row["self_ms"])


def test_dataloader_of_real_profiles_with_and_without_workers(corpus: Path) -> None:
    alone = stepscope.load(corpus / "torch-v100-resnet50-workers0").input_pipeline()
    helped = stepscope.load(corpus / "torch-v100-resnet50-workers4").input_pipeline()
    assert (alone.figures["level"], helped.figures["level"]) == ("highly", "not")
    assert alone.figures["input_percent"] == pytest.approx(40.1, abs=0.1)  # of its mark: 70.8 of 176.5 ms
    assert alone.host_breakdown_ms["preprocessing"] == pytest.approx(415.8, abs=0.1)
    assert helped.host_breakdown_ms["other"] == pytest.approx(7.5, abs=0.1)
    assert "num_workers" in alone.summary[2]
