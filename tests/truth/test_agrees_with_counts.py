"""The account of every recording at hand agrees with what is counted in it, or there is no verdict.

Drawn recordings are of each framework and bottleneck, with less and less in them; real ones are taken where they are at
hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest

import stepscope
from bench.mutilation.jobs import FRAMEWORKS, KINDS, draw
from bench.mutilations import mutilate
from stepscope.analysis.account.account import account_of
from stepscope.analysis.account.account_text import judge_account
from stepscope.analysis.account.causes import Cause, causes_of_work
from stepscope.analysis.account.counted import CONTRADICTS, contradictions_of
from stepscope.analysis.account.devices import busy_by_device, work_of_device
from stepscope.analysis.steps.find_steps import is_usual, steps_of
from stepscope.analysis.trace.spans import spans_of
from stepscope.model import HostTrace
from tests.helpers.places import shared_folder

POORER = ("as-recorded", "no-waits", "no-links", "no-host-ops")
REAL = sorted(
    path
    for part in ("corpus", "strangers")
    for path in (shared_folder() / part).rglob("*")
    if path.name.endswith((".xplane.pb", ".pt.trace.json.gz", ".pt.trace.json"))
)
HOST_ONLY = (
    "input_",
    "python_overhead",
    "eager_dispatch",
    "host_sync",
    "checkpoint_stall",
)  # leave device work as it is
OFF = 0.9  # a replay that is further off predicts nothing


def check(path: Path) -> None:
    """The account adds up to its step and contradicts nothing that is counted, unless there is no verdict; and no
    change of the host leaves less than the busiest device works in the steps."""
    session = stepscope.load(str(path))
    for host in session.hosts:
        trace = session.trace(host)
        account = account_of(trace)
        if account is None:
            continue
        assert sum(row.ps for row in account.rows) == account.step_ps
        verdict = judge_account(account)
        if verdict.name != "unknown":  # what contradicts less than the limit takes is said by `trust`
            most = max(CONTRADICTS, verdict.share_percent or 0.0)
            assert [each.said for each in contradictions_of(trace) if each.percent >= most] == []
    if len(session.hosts) == 1:
        check_gains(session, trace)


def check_gains(session: stepscope.Session, trace: HostTrace) -> None:
    steps = steps_of(trace)
    if steps.source == "none" or not busy_by_device(trace):
        return
    usual = is_usual(trace)
    start, until = steps.start_ps[usual], steps.until_ps[usual]
    computes = causes_of_work(trace)[trace.events.kind] == Cause.DEVICE_COMPUTE
    works = [rows[computes[rows]] for rows in (work_of_device(trace, plane) for plane in busy_by_device(trace))]
    busiest = max(float(spans_of(trace, rows).overlap_ps(start, until).mean()) for rows in works)
    for item in session.advice().to_dict()["advice"]:
        speedup = item["predicted_speedup"]
        if speedup is not None and item["class"].startswith(HOST_ONLY):
            assert float((until - start).mean()) / speedup >= OFF * busiest, item["title"]


@pytest.mark.parametrize("kind", sorted(KINDS))
@pytest.mark.parametrize("framework", sorted(FRAMEWORKS))
def test_drawn_recordings_and_poorer_ones_agree_with_what_is_counted(framework: str, kind: str, tmp_path: Path) -> None:
    recording, _ = draw(framework, kind)
    for change in POORER:
        made = mutilate(recording, f"{framework}/{kind}", change)
        if made is not None:
            path = tmp_path / change / ("recording" + made.suffix)
            path.parent.mkdir()
            path.write_bytes(made.encode())
            check(path)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.parent.name + "/" + path.name)
def test_real_recordings_agree_with_what_is_counted(path: Path) -> None:
    check(path)
