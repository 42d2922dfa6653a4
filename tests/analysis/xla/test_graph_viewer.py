"""The tool `graph-viewer` and the command `hlo-graph`: neighbours, search, the longest path, and exports."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hlo_build import computation, f32, fusion, metadata, op, parameter, program
from test_hlo_stats import carried
from xla_traces import Ran, trace_of

from stepscope.analysis.hlo.module import Module, read_module
from stepscope.analysis.xla import graph_viewer_tool
from stepscope.analysis.xla.graph import edges_among, expensive_path, neighbourhood, search
from stepscope.analysis.xla.graph_export import dot, program_text
from stepscope.analysis.xla.graph_viewer_tool import GraphsOfHost, GraphViewerReport, graph_around
from stepscope.cli.main import run
from stepscope.errors import UsageError
from stepscope.formats.xspace.writer import write
from stepscope.model import HostTrace

BODY = computation("body", parameter("p", f32(8)), op("deep", "tanh", f32(8), "p"))
#   x -> a -> b -> d      c is longer than b
#        a -> c -> d -> e
MAIN = computation(
    "main",
    parameter("x", f32(8)),
    op("a", "add", f32(8), "x", "x"),
    fusion("b", f32(8), "a", calls="body"),
    op("c", "sine", f32(8), "a", extra=metadata("jit(f)/layer/sin")),
    op("d", "multiply", f32(8), "b", "c"),
    op("e", "negate", f32(8), "d"),
)
PROGRAM = program(BODY, MAIN)
TIMES = {"a": 1, "b": 5, "c": 7, "d": 2, "e": 1}


def module() -> Module:
    return read_module(np.frombuffer(PROGRAM, np.uint8))


def names(rows: list[int]) -> list[str]:
    return [module().instruction_name(row) for row in rows]


def row(name: str) -> int:
    return module().row_of(name)


def drawn() -> HostTrace:
    events, at = [], 0
    for name, us in TIMES.items():
        events.append(Ran("Stream #1(Kernel)", f"k_{name}", at, us, carried(name)))
        at += us
    return trace_of({"jit_f(1)": PROGRAM}, events)


def report(*parts: GraphsOfHost) -> GraphViewerReport:
    kept = [msgspec.msgpack.decode(msgspec.msgpack.encode(part), type=GraphsOfHost) for part in parts]
    return graph_viewer_tool.merge(kept)


def test_neighbours_by_hops() -> None:
    found = neighbourhood(module(), [row("d")], hops=1)
    assert (names(found.rows), found.hops, found.cut) == (["d", "b", "c", "e"], [0, 1, 1, 1], False)
    assert sorted(names(neighbourhood(module(), [row("d")], hops=2).rows)) == ["a", "b", "c", "d", "e"]
    assert names(neighbourhood(module(), [row("d")], hops=0).rows) == ["d"]


def test_a_picture_holds_no_more_nodes_than_it_can() -> None:
    found = neighbourhood(module(), [row("d")], hops=5, most=3)
    assert (len(found.rows), found.cut) == (3, True)


def test_edges_lead_from_producer_to_user_once() -> None:
    rows = [row(name) for name in "xabd"]
    assert edges_among(module(), rows) == [(row("x"), row("a")), (row("a"), row("b")), (row("b"), row("d"))]


def test_search_by_name_opcode_and_framework_op() -> None:
    assert names(search(module(), "DEEP")) == ["deep"]
    assert names(search(module(), "mult")) == ["d"]
    assert names(search(module(), "layer/")) == ["c"]
    assert search(module(), "nowhere") == []


def test_the_longest_path_goes_by_time() -> None:
    times = np.zeros(len(module()), np.int64)
    times[[row(name) for name in TIMES]] = list(TIMES.values())

    assert names(expensive_path(module(), times))[-4:] == ["a", "c", "d", "e"]
    assert expensive_path(module(), np.zeros_like(times)) == []


def test_a_circle_of_operands_ends() -> None:
    circle = computation("main", op("a", "add", f32(8), "b"), op("b", "add", f32(8), "a"))
    found = read_module(np.frombuffer(program(circle), np.uint8))

    assert expensive_path(found, np.array([1, 2])) == [0, 1]
    assert sorted(neighbourhood(found, [0], hops=9).rows) == [0, 1]


def test_the_report_shows_the_slowest_instruction_and_the_path() -> None:
    found = report(graph_viewer_tool.partial(drawn()))

    assert [(each["name"], each["hops"], each["self_us"], each["on_path"]) for each in found.rows[:2]] == [
        ("c", 0, 7.0, True),
        ("a", 1, 1.0, True),
    ]
    assert [(each["name"], each["self_us"]) for each in found.path][-4:] == [("a", 1), ("c", 7), ("d", 2), ("e", 1)]
    (graph,) = found.programs
    assert (graph["instructions"], graph["self_us"], graph["path_us"], graph["path_percent"]) == (8, 16, 11, 68.75)
    assert next(each["opens"] for each in found.rows if each["name"] == "b") == "body"


def test_the_surroundings_of_any_instruction() -> None:
    found = report(graph_around(drawn(), "jit_f", "e", hops=1))
    assert [each["name"] for each in found.rows] == ["e", "d"]
    assert [each["name"] for each in report(graph_around(drawn(), find="tanh")).rows] == ["deep"]
    with pytest.raises(UsageError, match="no instruction 'zz'"):
        graph_around(drawn(), node="zz")
    with pytest.raises(UsageError, match="no program 'jit_g'"):
        graph_around(drawn(), "jit_g")
    with pytest.raises(UsageError, match="holds 'zz'"):
        graph_around(drawn(), find="zz")
    with pytest.raises(UsageError, match="enable_hlo_proto"):
        graph_around(trace_of({}, []))


def test_dot_and_text() -> None:
    text = dot(graph_around(drawn(), node="e", hops=1).graphs[0])
    assert text.startswith('digraph "jit_f(1)" {')
    assert f"n{row('d')} -> n{row('e')} [penwidth=2];" in text
    assert "negate\\nf32[8]{0}\\n1.0 us" in text
    whole = "".join(program_text(module()))
    assert "ENTRY %main {\n  %x = f32[8]{0} parameter(0)\n" in whole
    assert "  ROOT %e = f32[8]{0} negate(f32[8]{0} %d)\n}\n" in whole
    assert "%b = f32[8]{0} fusion(f32[8]{0} %a), kind=kLoop, calls=%body" in whole


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(write(drawn()))

    assert run(["hlo-graph", str(path), "--node", "e", "--hops", "1", "--format", "json"]) == 0
    assert [each["name"] for each in json.loads(capsys.readouterr().out)["rows"]] == ["e", "d"]
    assert run(["hlo-graph", str(path), "--format", "dot", "--output", str(tmp_path / "g.dot")]) == 0
    assert (tmp_path / "g.dot").read_text().startswith("digraph")
    assert run(["hlo-graph", str(path), "--format", "text"]) == 0
    assert capsys.readouterr().out.startswith("HloModule jit_f\n")
    assert run(["hlo-graph", str(path), "--node", "zz"]) == 2
