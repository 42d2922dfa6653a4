"""`stepscope.load`: what it finds, what it keeps, what it lets go."""

from __future__ import annotations

import gc
import inspect
import json
import os
import subprocess
import sys
import weakref
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepscope
from stepscope.analysis.registry import TOOLS
from stepscope.analysis.trace.grouping import forest, restore_forest
from stepscope.engines import host_work
from stepscope.errors import UnreadableError, UsageError
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder
from stepscope.report.export import to_json
from stepscope.shelf import TraceShelf


def trace_file(path: Path, host: str = "h") -> Path:
    """One step of 10 us that computes for 6."""
    builder = TraceBuilder(host)
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("train", 0, 10_000_000, EventKind.STEP_MARK, {"step_num": 7})
    line.event("a/MatMul:MatMul", 2_000_000, 6_000_000, EventKind.OP)
    path.write_bytes(write(builder.build()))
    return path


@pytest.fixture
def session(tmp_path: Path) -> Path:
    folder = tmp_path / "plugins" / "profile" / "run1"
    folder.mkdir(parents=True)
    for host in ("a", "b"):
        trace_file(folder / f"{host}.xplane.pb", host)
    return tmp_path


def test_results_are_cached_and_nothing_is_written_next_to_the_profile(
    session: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("STEPSCOPE_CACHE_DIR", str(cache))
    before = {path: path.stat().st_mtime_ns for path in session.rglob("*")}

    profile = stepscope.load(session)
    for tool in TOOLS:
        profile.report(tool.name)

    assert {path: path.stat().st_mtime_ns for path in session.rglob("*")} == before
    assert [path for path in cache.rglob("*") if path.is_file()]


def test_a_loaded_profile_has_a_method_for_every_tool(session: Path) -> None:
    profile = stepscope.load(session)
    assert (profile.run, profile.hosts) == ("run1", ("a", "b"))
    assert {tool.method for tool in TOOLS} <= set(dir(profile))
    for tool in TOOLS:
        assert getattr(profile, tool.method)().to_dict()["tool"] == tool.name
    with pytest.raises(AttributeError, match="tools: overview, steps"):
        profile.nonsense()
    with pytest.raises(UsageError, match="tools: overview, steps"):
        profile.report("nonsense")


def test_a_damaged_file_may_have_a_name_that_is_no_text(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    folder.mkdir()
    file = trace_file(folder / "h.xplane.pb")
    file.write_bytes(file.read_bytes()[:-1])
    report = stepscope.load(folder).overview()
    [warning] = [each for each in report.warnings if "[truncated]" in each]
    assert f"{tmp_path}/caf?/h.xplane.pb" in warning
    assert json.loads(to_json(report))["warnings"] == list(report.warnings)


def test_loading_reads_nothing_until_it_is_asked(session: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.formats.base.Format.read", None)
    assert stepscope.load(session).hosts == ("a", "b")


def test_progress_is_told_for_each_host(session: Path) -> None:
    told: list[str] = []
    stepscope.load(session, progress=told.append).overview()
    assert list(dict.fromkeys(tuple(text.split()[:2]) for text in told)) == [
        ("reading", "a"), ("analysing", "a"), ("reading", "b"), ("analysing", "b"),
    ]  # fmt: skip


def test_a_session_without_a_readable_host_is_an_error_that_names_them(session: Path) -> None:
    for file in session.rglob("*.pb"):
        file.write_bytes(b"")
    with pytest.raises(UnreadableError, match=r"none of the 2 hosts can be read.*a\.xplane\.pb.*b\.xplane\.pb"):
        stepscope.load(session).overview()


def test_a_host_whose_file_is_gone_by_now_is_left_out_and_named(session: Path) -> None:
    profile = stepscope.load(session)
    next(session.rglob("b.xplane.pb")).unlink()
    report = profile.overview()

    assert (report.hosts, report.partial) == (("a",), True)
    assert any("b.xplane.pb: there is no such file" in warning for warning in report.warnings)


def test_a_tool_that_another_cannot_read_is_named_in_its_warnings(
    session: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(partials: Any) -> None:
        raise UnreadableError("its stages are torn", host="a")

    monkeypatch.setattr("stepscope.analysis.input.tf_data_tool.merge", fails)
    monkeypatch.setattr(
        "stepscope.analysis.overview.advice_tool.finish",
        lambda report, read: report if read("tf-data") is None else None,
    )
    report = stepscope.load(session).advice()

    assert report.warnings[-1] == "details from tf-data are missing here: [unreadable] host a: its stages are torn"


def test_a_host_whose_file_is_gone_stops_no_comparison(session: Path) -> None:
    profile = stepscope.load(session)
    next(session.rglob("b.xplane.pb")).unlink()

    report = stepscope.compare(profile, profile)

    assert any("b.xplane.pb: there is no such file" in warning for warning in report.warnings)


def test_derived_columns_of_large_traces_come_from_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_work, "WORTH_KEEPING", 1)
    path = trace_file(tmp_path / "h.xplane.pb")
    first = stepscope.load(path)
    first.steps()
    computed = forest(first.trace())
    monkeypatch.setattr("stepscope.kernels.nesting.parents", None)  # computing anew would fail
    restored = forest(stepscope.load(path).trace())
    np.testing.assert_array_equal(restored.parent, computed.parent)
    np.testing.assert_array_equal(restored.cause, computed.cause)
    np.testing.assert_array_equal(restored.extent_ps, computed.extent_ps)


def test_a_file_that_is_replaced_while_it_is_read_gets_no_columns_of_another(tmp_path: Path) -> None:
    trace = stepscope.load(trace_file(tmp_path / "h.xplane.pb")).trace()
    restore_forest(trace, {"parent": np.full(7, 6, np.int32), "cause": np.full(7, -1, np.int32)})
    assert forest(trace).parent.tolist() == [-1, 0]


def test_public_names_are_explicit_sorted_and_there() -> None:
    assert list(stepscope.__all__) == sorted(stepscope.__all__)
    of_frameworks = {"huggingface", "keras", "lightning"}  # each imports one, which takes seconds
    for name in set(stepscope.__all__) - of_frameworks:
        assert getattr(stepscope, name) is not None
    assert all(find_spec(f"stepscope.{name}") for name in of_frameworks)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        stepscope.nonsense  # noqa: B018


def test_who_lists_the_names_sees_those_that_are_meant_for_him() -> None:
    imported = {"huggingface": "transformers", "keras": "keras", "lightning": "lightning"}
    listed = [name for name in stepscope.__all__ if imported.get(name, "sys") in sys.modules]
    assert [name for name in dir(stepscope) if not name.startswith("__")] == listed


def test_who_looks_at_all_names_of_all_modules_of_a_program_that_is_followed_imports_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stepscope.capture.report.Saying.to_stderr", True)
    before = set(sys.modules)
    assert [getattr(stepscope, name, None) for name in dir(stepscope)]
    assert set(sys.modules) == before


@pytest.mark.parametrize("path", [[], None, b"logs", 7], ids=["empty list", "None", "bytes", "number"])
def test_what_is_no_path_is_told(path: Any) -> None:
    with pytest.raises(UsageError, match="is not a path; give one file or folder"):
        stepscope.load(path)


def test_every_tool_is_a_method_that_explains_itself(tmp_path: Path) -> None:
    profile = stepscope.load(trace_file(tmp_path / "h.xplane.pb"))
    for tool in TOOLS:
        method = getattr(profile, tool.method)
        assert method.__name__ == tool.method
        assert method.__doc__.lower().startswith(tool.summary.lower())
    assert list(inspect.signature(profile.steps).parameters) == ["host", "steps"]
    assert [row["step"] for row in profile.steps(host="h", steps="7").rows] == [7]
    with pytest.raises(AttributeError, match=r"no 'stps'; did you mean 'steps'"):
        profile.stps()


FIRST_DECODES = """
import sys, threading
sys.setswitchinterval(1e-6)
import msgspec
from stepscope.engines.host_work import decode_partial
from stepscope.analysis.registry import TOOLS
from stepscope.model import TraceBuilder
kept = {tool: msgspec.msgpack.encode(tool.partial(TraceBuilder("host").build())) for tool in TOOLS}
together = threading.Barrier(4)
def decode():
    for tool in TOOLS:
        together.wait()
        decode_partial(tool, kept[tool])
threads = [threading.Thread(target=decode) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
"""


def test_threads_that_decode_a_partial_for_the_first_time_do_not_crash() -> None:
    """Without a lock around the making of decoders, one run in four ends with a segmentation fault."""
    for _ in range(3):
        assert subprocess.run([sys.executable, "-c", FIRST_DECODES], check=False).returncode == 0


def test_a_lean_profile_says_the_same_and_reads_again_for_what_it_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STEPSCOPE_CACHE", "off")
    builder = TraceBuilder("h")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    line.event("train", 0, 10_000_000, EventKind.STEP_MARK, {"step_num": 7})
    for at, held in ((1, 512), (3, 1024)):
        stats = {
            "allocator_name": "GPU_0_bfc",
            "bytes_allocated": held,
            "requested_bytes": 512,
            "addr": at,
            "tf_op": "a",
        }
        line.event("MemoryAllocation", at * 1_000_000, 0, EventKind.ALLOCATION, stats)
    path = tmp_path / "h.xplane.pb"
    path.write_bytes(write(builder.build()))
    whole, lean, left_out = stepscope.load(path, shelf=TraceShelf()), stepscope.load(path), []
    read = host_work._read_trace
    monkeypatch.setattr(host_work, "_read_trace", lambda *of: left_out.append(bool(of[2:])) or read(*of))

    assert lean.overview().to_json() == whole.overview().to_json()
    assert left_out == [True, False]  # the second is that of the other
    assert lean.memory_profile().to_json() == whole.memory_profile().to_json()
    assert left_out == [True, False, False]


def test_what_was_computed_of_a_trace_goes_with_it_though_no_garbage_is_collected() -> None:
    shelf = TraceShelf()
    kept = weakref.ref(shelf.get("a", TraceBuilder("a").build))
    kept().derived("itself", lambda trace: [trace])  # type: ignore[union-attr]
    gc.disable()
    try:
        shelf.get("b", TraceBuilder("b").build, expected_bytes=1)
        assert kept() is None
    finally:
        gc.enable()


def _changing(monkeypatch: pytest.MonkeyPatch, change: Any, times: int = 1) -> None:
    """Changes the file right before it is read, a number of times."""
    read, left = host_work._read_trace, [times]

    def read_changed(file: Any, *more: Any) -> Any:
        if left[0]:
            left[0] -= 1
            change(Path(file.path))
        return read(file, *more)

    monkeypatch.setattr(host_work, "_read_trace", read_changed)


def _replace(path: Path) -> None:
    trace_file(path.with_name("new"), "another").replace(path)


def test_an_answer_is_of_one_file_although_it_is_replaced_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = trace_file(tmp_path / "h.xplane.pb")
    _changing(monkeypatch, _replace)
    read = []
    profile = stepscope.load(path, progress=read.append)
    assert profile.steps().to_dict()["warnings"] == []
    assert len([each for each in read if each.startswith("reading")]) == 2


def test_a_file_that_is_replaced_all_the_time_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace_file(tmp_path / "h.xplane.pb")
    _changing(monkeypatch, _replace, times=100)
    with pytest.raises(UnreadableError, match="the file was replaced while it was read"):
        stepscope.load(path).steps()


def test_a_file_that_grows_while_it_is_read_is_read_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = trace_file(tmp_path / "h.xplane.pb")
    # An empty plane follows.
    _changing(monkeypatch, lambda path: path.write_bytes(path.read_bytes() + b"\x0a\x00"), times=100)
    report = stepscope.load(path).steps().to_dict()
    assert len(report["rows"]) == 1
    assert any("was being written while it was read" in warning for warning in report["warnings"])
