"""Arrays that stay from step to step, as a capture counted them at its start and end."""

from __future__ import annotations

import pytest

from stepscope.analysis.overview import overview_tool
from stepscope.analysis.resources import memory_profile_tool
from stepscope.analysis.resources.counted_memory import last_memory_sentence
from stepscope.errors import Problem
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

MS = 10**9


def kept(*groups: str, steps: int = 20) -> HostTrace:
    """Steps of 10 ms, and what their capture counted."""
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for step in range(steps):
        line.event("train", 10 * step * MS, 10 * MS, EventKind.STEP_MARK, {"step_num": step})
    builder.plane("/stepscope:capture", stats={f"kept:{at}": text for at, text in enumerate(groups)})
    return builder.build()


def test_what_is_kept_has_its_holder_line_and_kind():
    seen = "20\t8000000\tfloat32\t[100, 1000]\tseen\ttrain.py:9\tarrays"
    losses = "20\t80\tfloat32\t[]\tlosses\t\tarrays with their graph"
    report = memory_profile_tool.merge([memory_profile_tool.partial(kept(seen, losses))])

    (growth,) = report.growth
    assert (growth["grows"], growth["bytes_per_step"], growth["first_bytes"]) == (True, 400_004, None)
    columns = ("op", "place", "region", "allocations", "bytes_per_step", "shape")
    assert [tuple(row[name] for name in columns) for row in report.staying] == [
        ("seen", "train.py:9", "arrays", 20, 400_000, "[100, 1000]"),
        ("losses", None, "arrays with their graph", 20, 4, "[]"),
    ]
    assert report.summary_lines()[0] == (
        "memory of kept arrays grows by 390.6 KiB per step over 20 steps: 390.6 KiB per step stays in `seen` in"
        " train.py:9"
    )


@pytest.mark.parametrize(
    ("group", "steps", "said"),
    [
        (
            "20\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays",
            20,
            "Keep less in seen (train.py:9): memory grows by 390.6 KiB a step",
        ),
        (
            "20\t80\tfloat32\t[]\tlosses\t\tarrays with their graph",
            20,
            "Keep less in losses: memory grows by 4 B a step",
        ),
        ("20\t80\tfloat32\t[]\tlosses\t\tarrays", 20, ""),
        ("8\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays", 20, ""),
        ("8\t8000000\tfloat32\t[9]\tseen\ttrain.py:9\tarrays", 4, ""),
        ("8\t-1\tfloat32", 20, ""),
    ],
    ids=["much", "a graph", "little", "not in most steps", "few steps", "damaged"],
)
def test_the_summary_tells_of_what_fills_a_memory_or_keeps_a_graph(group, steps, said):
    report = overview_tool.merge([overview_tool.partial(kept(group, steps=steps))])

    assert [item.title for item in report.advice if item.id == "memory.growth"] == ([said] if said else [])


def test_a_killed_recording_says_how_full_the_memory_was():
    builder = TraceBuilder("host")
    plane = builder.plane("/host:CPU", PlaneKind.HOST)
    builder.line(plane, "main").event("train", 0, 10 * MS, EventKind.STEP_MARK, {"step_num": 0})
    for name, value in (("Memory process GB", 11.5), ("Memory available GB", 0.25)):
        line = builder.line(plane, "_counters_", kind=LineKind.COUNTERS)
        line.event(name, 5 * MS, 0, EventKind.COUNTER, {"value": value})
    builder.problems.append(Problem("unfinished", "the job was killed", path="a.partial"))

    assert last_memory_sentence(builder.build()) == (
        "when the recording stops, the process uses 11.50 GB of memory, and the machine has 0.25 GB left;"
        " when it runs out, the system kills the job without warning"
    )
