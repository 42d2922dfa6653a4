"""How busy the machine was: drawn counters, and a capture's own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import pytest
from program_runs import read_profile
from reporting import reporter

import stepscope
from stepscope.analysis.resources import system_tool as system
from stepscope.model import EventKind, HostTrace, LineKind, TraceBuilder

MS = 10**9


def host(name: str, counters: Mapping[str, Sequence[float]]) -> HostTrace:
    """A host whose counters were sampled once a millisecond."""
    builder = TraceBuilder(name)
    line = builder.line(builder.plane("System"), "_counters_", kind=LineKind.COUNTERS)
    for counter, values in counters.items():
        for at, value in enumerate(values):
            line.event(counter, at * MS, 0, EventKind.COUNTER, {"counter_value": value})
    return builder.build()


report = reporter(system)


def test_each_counter_of_each_host_is_a_row():
    found = report(
        host("a", {"CPU machine %": [10.0, 20.0, 60.0], "queue": [2.0]}), host("b", {"GPU 0 power W": [300.0, 100.0]})
    )

    names = ("host", "place", "counter", "unit", "samples", "mean", "min", "max", "p95")
    assert [tuple(row[name] for name in names) for row in found.rows] == [
        ("a", "System", "CPU machine %", "%", 3, 30, 10, 60, None),
        ("a", "System", "queue", None, 1, 2, 2, 2, None),
        ("b", "System", "GPU 0 power W", "W", 2, 200, 100, 300, None),
    ]
    assert found.findings == ()


def test_the_95th_percentile_leaves_out_the_highest_of_twenty():
    (row,) = report(host("a", {"CPU machine %": [float(value) for value in range(20, 0, -1)]})).rows

    assert (row["p95"], row["max"]) == (19, 20)


@pytest.mark.parametrize(
    ("counters", "sentence"),
    [
        pytest.param({"CPU machine %": [95.0, 99.0, 97.0]}, "a: its cores are 97 % busy", id="all cores"),
        pytest.param({"CPU process %": [99.0, 101.0, 98.0]}, "a: the process keeps one core busy", id="one core"),
        pytest.param(
            {"Memory available GB": [9.0, 0.25, 8.0]}, "a: only 0.25 GB of memory were available", id="memory"
        ),
        pytest.param({"CPU machine %": [50.0, 40.0, 60.0]}, None, id="nothing"),
        pytest.param({"CPU machine %": [99.0]}, None, id="too few samples"),
        pytest.param({"CPU process %": [399.0, 401.0, 398.0]}, None, id="many cores"),
    ],
)
def test_what_stands_out_is_said(counters, sentence):
    findings = report(host("a", counters)).findings

    assert [finding.startswith(sentence or "?") for finding in findings] == ([True] if sentence else [])


def test_a_profile_without_counters_says_what_to_do():
    found = report(host("a", {}))

    assert found.rows == ()
    assert "system_interval_ms" in found.main_table().empty


def test_a_capture_samples_the_machine(tmp_path):
    with stepscope.Profile(tmp_path, stepscope.ProfilerOptions(system_interval_ms=20)) as profile:
        time.sleep(0.2)
    assert profile.path is not None
    rows = report(read_profile(profile.path)).rows

    found = {row["counter"]: row for row in rows}
    assert {"CPU process %"} <= set(found)
    assert all(row["min"] <= row["mean"] <= row["max"] for row in rows)
