"""Hosts whose clocks are wrong stand beside each other in one file as they were."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import stepscope
from stepscope.cli.main import run
from stepscope.export import pieces
from stepscope.model import HostTrace

sessions = pytest.importorskip("bench.sessions", reason="the bench is in the checkout alone")

HOSTS = 4


@pytest.fixture(scope="module")
def logdir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hosts of six steps; their clocks are wrong by up to 50 ms."""
    folder = tmp_path_factory.mktemp("session")
    sessions.make_session(folder, sessions.Scenario(hosts=HOSTS, steps=6, skew_ms=50))
    return Path(folder)


def last_ends_ms(traces: list[HostTrace]) -> list[float]:
    """The end of each host's last collective in a file for Chrome."""
    events = json.loads(b"".join(pieces(traces, "chrome", len(traces))))["traceEvents"]
    ends: dict[int, float] = {}
    for event in events:
        if event["ph"] == "X" and event["name"].startswith("ncclDevKernel"):
            ends[event["pid"]] = max(ends.get(event["pid"], 0.0), (event["ts"] + event["dur"]) / 1000)
    return list(ends.values())


def test_collectives_end_together_once_clocks_are_set(logdir: Path) -> None:
    profile = stepscope.load(logdir)
    recorded = [profile.trace(name) for name in profile.hosts]
    wrong, right = last_ends_ms(recorded), last_ends_ms([profile.correct_clock(trace) for trace in recorded])

    assert len(wrong) == len(right) == HOSTS
    assert max(wrong) - min(wrong) > 5
    assert max(right) - min(right) < 0.1


def test_the_correction_is_that_of_the_truth(logdir: Path) -> None:
    skew = json.loads((logdir / "truth.json").read_text())["skew_ns"]
    profile = stepscope.load(logdir)
    for at, row in enumerate(profile.clocks()):
        trace = profile.trace(row["host"])
        moved = (profile.correct_clock(trace).start_unix_ns or 0) - (trace.start_unix_ns or 0)
        middle = sorted(skew)[HOSTS // 2 - 1 : HOSTS // 2 + 1]
        assert -moved == pytest.approx(skew[at] - sum(middle) / 2, abs=100_000)


def test_one_host_keeps_its_clock(logdir: Path) -> None:
    profile = stepscope.load(logdir, host="host0001")
    trace = profile.trace()
    assert profile.clocks() == ()
    assert profile.correct_clock(trace) is trace


def test_the_command_shows_the_correction_and_how_sure_it_is(
    logdir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(logdir), "-o", str(tmp_path / "all.json"), "--format", "chrome"]) == 0
    shown = capsys.readouterr().err
    assert f"of {HOSTS} clocks set right, by up to " in shown
    assert " ms (± 0.0" in shown
