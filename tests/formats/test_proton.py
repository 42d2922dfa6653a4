"""Profiles of Triton's Proton: a tree of scopes with sums, and what may be said of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats.proton import reader
from stepscope.formats.proton.reader import read
from stepscope.formats.session import find_sessions


def node(name: str, *children: dict[str, Any], ns: int = 0, count: int = 0, device: int = 0) -> dict[str, Any]:
    metrics = {"time (ns)": ns, "count": count, "device_id": str(device), "device_type": "CUDA"} if ns else {}
    return {"frame": {"name": name, "type": "function"}, "metrics": metrics, "children": list(children)}


PROFILE = [
    node("ROOT", node("forward", node("gemm", ns=4000, count=4), node("relu", ns=600, count=2)),
         node("backward", node("gemm", ns=9000, count=3, device=1))),
    {"CUDA": {"0": {"arch": "90", "num_sms": 132}, "1": {"num_sms": 132}}},
]  # fmt: skip


def written(path: Path, profile: object = PROFILE) -> Path:
    path.write_text(json.dumps(profile))
    return path


@pytest.mark.parametrize("name", ["p.hatchet", "p.json"])
def test_kernels_have_their_time_calls_and_scope(name: str, tmp_path: Path) -> None:
    rows = stepscope.load(written(tmp_path / name)).kernel_stats().to_dict()["rows"]
    found = [(row["kernel"], row["op"], row["occurrences"], row["total_us"]) for row in rows]
    assert found == [("gemm", "backward", 3, 9.0), ("gemm", "forward", 4, 4.0), ("relu", "forward", 2, 0.6)]


def test_a_folder_with_one_is_a_session(tmp_path: Path) -> None:
    written(tmp_path / "p.json")
    (session,) = find_sessions(tmp_path)
    assert session.files[0].format.name == "proton"


def test_nothing_is_said_of_steps_and_of_what_limits_them(tmp_path: Path) -> None:
    repeated = [node("ROOT", *(node("step", node("a", ns=10, count=1), node("b", ns=5, count=1)) for _ in range(20)))]
    found = stepscope.load(written(tmp_path / "p.hatchet", repeated)).overview().to_dict()
    assert (found["verdict"], found["account"], found["steps_source"]) == ("unknown", [], "none")
    assert any("when each of them ran was not recorded" in warning for warning in found["warnings"])


def test_kernels_beyond_the_bound_are_one_event_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_MOST_EVENTS", 5)
    trace = read(json.dumps(PROFILE).encode(), "p", "h")
    assert (len(trace.events), int(trace.events.duration_ps.sum())) == (3, 13_600_000)


@pytest.mark.parametrize("content", [b"[]", b"[1, {}]", b"[{", b'[{"frame": {"name": "x"}, "children": 3}]'])
def test_what_holds_no_kernel_is_refused(content: bytes) -> None:
    with pytest.raises(UnreadableError):
        read(content, "p", "h")
