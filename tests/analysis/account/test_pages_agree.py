"""Every page is a reading of one account: the same cause has the same time everywhere, and the parts add up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from draw import Sort, draw, traces
from every_form import SESSIONS
from hypothesis import given, settings

import stepscope
from stepscope.analysis.account.account_text import CAUSE_FIELDS
from stepscope.analysis.registry import tool_named
from stepscope.model import EventKind as K
from stepscope.model import HostTrace

CAUSE_COLUMNS = {field.name for field in CAUSE_FIELDS}
Reports = Mapping[str, dict[str, Any]]
TOOLS = ("overview", "critical-path", "idle", "pod-viewer")
NEAR = 0.001  # of the step
_LEAST_MS = 1e-5  # what rounding of a dozen parts to nanoseconds may add up to
SYNC = {"S": Sort(K.SYNC, "cudaStreamSynchronize")}
PICTURES = {
    "a host alone": "host main | M0-----M1------M2-----\nhost main | I-a--  I-aa--  I-a---",
    "a device that waits for its input": """
        host main | M0-------- M1--------- M2--------
        host main | I---L1S----I---L2S-----I---L3S---
        gpu0 s7   |      K1--       K2--        K3--
    """,
    "two devices": """
        host main | M0------------M1------------M2------------
        host main | L1L2S---------L3L4S---------L5L6S---------
        gpu0 s7   |  K1-----       K3-----       K5-----
        gpu1 s9   |     K2------      K4------      K6------
    """,
    "a TPU without a host": "tpu0 Steps | W0------W1------\ntpu0 ops   | k--  k--k--  k--",
    "a batch that is fetched between the marks": """
        host main | M0-----     M1-----     M2-----
        host main | L1S-   I----L2S-   I----L3S-
        gpu0 s7   |  K1          K2          K3
    """,
}


def disagreements(reports: Reports) -> Iterator[str]:
    """Where two pages say different things of the same step, or where parts do not add up."""
    account, step = reports["overview"]["account"], reports["overview"]["account_step"]
    if step is None:
        return
    whole, near = step["ms"], max(NEAR * step["ms"], _LEAST_MS)
    causes = {row["cause"]: row["ms"] for row in account}
    if abs(math.fsum(causes.values()) - whole) > near:
        yield f"Summary: the causes add up to {math.fsum(causes.values())} of {whole} ms"
    if abs(math.fsum(row["percent"] for row in account) - 100) > 0.1:
        yield "Summary: the shares do not add up to 100"
    parts = {row["part"]: row["ms"] for row in reports["critical-path"]["parts"] if row["ms"]}
    yield from _differences("Critical path", parts, causes, near)
    for row in reports["critical-path"]["steps"]:
        listed = math.fsum(row[f"{part['part']}_ms"] for part in reports["critical-path"]["parts"])
        if abs(listed - row["duration_ms"]) > max(NEAR * row["duration_ms"], _LEAST_MS):
            yield f"Critical path: the parts of step {row['step']} add up to {listed} of {row['duration_ms']} ms"
    yield from _idle_differences(reports["idle"]["causes"], step["host"], causes, near)
    yield from _host_differences(reports["pod-viewer"]["workers"], step["host"], causes, near)


def _differences(page: str, parts: Mapping[str, float], causes: Mapping[str, float], near: float) -> Iterator[str]:
    for cause in {*parts, *causes}:
        if abs(parts.get(cause, 0.0) - causes.get(cause, 0.0)) > near:
            yield f"{page}: {cause} takes {parts.get(cause, 0.0)} ms, {causes.get(cause, 0.0)} in the account"


def _idle_differences(rows: list[dict[str, Any]], host: str, causes: Mapping[str, float], near: float) -> Iterator[str]:
    for device in {row["device"] for row in rows if row["host"] == host}:
        own = [row for row in rows if (row["host"], row["device"]) == (host, device)]
        yield from _differences(f"Idle, {device}", {row["cause"]: row["ms"] for row in own}, causes, near)
        if any(not 0 <= row["idle_ms"] <= row["ms"] + near for row in own):
            yield f"Idle: {device} idles longer than the cause lasts"


def _host_differences(
    workers: list[dict[str, Any]], host: str, causes: Mapping[str, float], near: float
) -> Iterator[str]:
    whole = next(row for row in workers if row["host"] == host)
    if abs(max(causes.values()) - whole["bottleneck_ms"]) > near:
        yield f"Hosts: {whole['bottleneck']} takes {whole['bottleneck_ms']} ms"
    if abs(causes[whole["bottleneck"]] - max(causes.values())) > near:
        yield f"Hosts: the bottleneck is {whole['bottleneck']}, the longest cause another"


def reports_of(*traced: HostTrace) -> Reports:
    """What the tools say of a session of these hosts."""
    tools = [tool_named(name) for name in TOOLS]
    return {tool.name: tool.merge([tool.partial(trace) for trace in traced]).to_dict() for tool in tools}


@pytest.mark.parametrize("picture", PICTURES)
def test_pages_agree_on_a_picture(picture: str) -> None:
    reports = reports_of(draw(PICTURES[picture], SYNC))

    assert reports["overview"]["account_step"] is not None
    assert list(disagreements(reports)) == []


def test_pages_agree_on_the_host_that_stands_for_several() -> None:
    picture = PICTURES["a device that waits for its input"]
    slow = draw(picture.replace("M0-", "M0--").replace("I---L1", "I----L1"), SYNC, host="slow")

    assert list(disagreements(reports_of(draw(picture, SYNC), slow))) == []


def test_what_is_fetched_between_the_marks_belongs_to_the_step() -> None:
    overview = reports_of(draw(PICTURES["a batch that is fetched between the marks"], SYNC))["overview"]
    account = {row["cause"]: row["ms"] for row in overview["account"]}

    assert (overview["account_step"]["ms"], account["input"]) == (12, 5)
    assert overview["verdict"] == "input_bound"


STEP_TOOLS = ("overview", "steps", "input-pipeline", "pod-viewer", "critical-path", "distributed")


def step_times(reports: Reports) -> dict[str, list[float]]:
    """How long each usual step takes by every tool that lists steps, on the host on which it is longest."""
    usual = [row["step"] for row in reports["overview"]["steps"] if row["usual"]]
    found = {"overview": [row["duration_ms"] for row in reports["overview"]["steps"] if row["usual"]]}
    for tool in STEP_TOOLS[1:]:
        body = reports[tool]
        rows = [
            row for row in body.get("steps") or body["rows"] if row.get("device") in (None, "all", *_one_device(body))
        ]
        if rows and "duration_ms" in rows[0]:
            found[tool] = [max(row["duration_ms"] for row in rows if row["step"] == step) for step in usual]
    return found


def _one_device(body: Mapping[str, Any]) -> set[Any]:
    """The devices of hosts that have one only, whose row is that of the host."""
    rows = body.get("rows") or []
    several = {row["host"] for row in rows if row.get("device") == "all"}
    return {row["device"] for row in rows if "device" in row and row["host"] not in several}


def means(reports: Reports) -> dict[str, float]:
    """The mean step by every tool that says one."""
    return {tool: reports[tool]["step_time_ms"]["mean"] for tool in ("overview", "input-pipeline")}


def check_step_times(reports: Reports) -> None:
    """All tools say the same step times, the mean is of these, and the causes of every step add up to it."""
    times = step_times(reports)
    step, mean = reports["overview"]["account_step"], reports["overview"]["step_time_ms"]["mean"]

    for tool, each in times.items():
        assert (tool, each) == (tool, pytest.approx(times["overview"], abs=1e-5))
    assert mean == pytest.approx(math.fsum(times["overview"]) / len(times["overview"]), abs=1e-5)
    assert len(set(means(reports).values())) == 1
    assert step["median_of"] == reports["overview"]["step_time_ms"]["count"]
    overview, pipeline = reports["overview"], reports["input-pipeline"]
    shares = {part["cause"]: part["percent"] for part in overview["account"]}
    assert overview["input_bound_percent"] == pipeline["input_percent"]
    assert pipeline["input_percent"] == pytest.approx(shares.get("input", 0) + shares.get("transfer", 0), abs=1e-3)
    assert overview["verdict"] != "input_bound" or pipeline["verdict"] == "input_bound"
    for row in reports["steps"]["rows"]:
        causes = math.fsum(value for key, value in row.items() if key in CAUSE_COLUMNS)
        assert causes == pytest.approx(row["duration_ms"], abs=1e-5)


@pytest.mark.parametrize("picture", PICTURES)
def test_all_tools_say_the_same_step_times_on_a_picture(picture: str) -> None:
    trace, tools = draw(PICTURES[picture], SYNC), [tool_named(name) for name in STEP_TOOLS]

    check_step_times({tool.name: tool.merge([tool.partial(trace)]).to_dict() for tool in tools})


@settings(max_examples=30, deadline=None)
@given(traces())
def test_pages_agree_whatever_was_recorded(trace: HostTrace) -> None:
    assert list(disagreements(reports_of(trace))) == []


@pytest.mark.parametrize("name", SESSIONS)
def test_pages_agree_on_real_profiles(corpus: Path, name: str) -> None:
    profile = stepscope.load(corpus / name)

    reports = {tool: profile.report(tool).to_dict() for tool in {*TOOLS, *STEP_TOOLS}}
    assert list(disagreements(reports)) == []
    check_step_times(reports)


@pytest.mark.parametrize("name", ["torch-v100-resnet50-workers0", "torch-h100-owlv2", "tpu-inference"])
def test_a_comparison_shows_the_mean_account_of_the_steps_of_both_sides(corpus: Path, name: str) -> None:
    profile = stepscope.load(corpus / name)
    usual = [row for row in profile.report("steps").to_dict()["rows"] if row["usual"]]
    rows = stepscope.compare(profile, profile).to_dict()["breakdown"]

    means = {row["cause"]: sum(step[f"{row['cause']}_ms"] for step in usual) / len(usual) for row in rows}
    assert {row["cause"]: row["before_ms"] for row in rows} == pytest.approx(means, abs=_LEAST_MS)
    assert {row["cause"]: row["after_ms"] for row in rows} == pytest.approx(means, abs=_LEAST_MS)
    assert sum(means.values()) == pytest.approx(sum(step["duration_ms"] for step in usual) / len(usual), rel=1e-3)


@pytest.mark.parametrize("name", ["torch-v100-resnet50-workers0", "torch-nccl", "torch-mi300-resnet"])
def test_a_change_by_the_factor_one_leaves_the_account_as_it_is(corpus: Path, name: str) -> None:
    profile = stepscope.load(corpus / name)
    account = {row["cause"]: row["ms"] for row in profile.report("overview").to_dict()["account"]}

    found = profile.whatif(scales={"launch": 1.0}).to_dict()

    assert found["removed_ms"] == 0
    assert {row["cause"]: row["ms"] for row in found["critical"]} == pytest.approx(account, abs=1e-3)
