"""The routes of XLA programs: the expensive path, what is around an instruction, search, text, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from browsing import store_profile
from draw import draw
from werkzeug.test import Client
from xla_sessions import xla_trace

from stepscope.model import HostTrace
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions


class Programs:
    """One session's routes."""

    def __init__(self, folder: Path, trace: HostTrace) -> None:
        store_profile(folder, "r", trace)
        self.client = Client(App(Site(SiteOptions([Root(str(folder))]))))
        (session,) = self.client.get("/api/sessions").json["sessions"]
        self.root = f"/api/sessions/{session['id']}/hlo"

    def get(self, path: str, **query: object) -> Any:
        return self.client.get(f"{self.root}/{path}", query_string=query)

    def graph(self, **query: object) -> dict[str, Any]:
        answer = self.get("graph", **query)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json
        return found


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path, xla_trace())


def names(part: dict[str, Any]) -> list[str]:
    return [node["name"] for node in part["nodes"]]


def edges(part: dict[str, Any]) -> set[tuple[str, str]]:
    name = {node["id"]: node["name"] for node in part["nodes"]}
    return {(name[one], name[other]) for one, other, _, _ in part["edges"]}


def test_all_programs_are_listed_those_that_ran_first(programs: Programs) -> None:
    listed = programs.get("programs").json

    assert [(each["program"], each["self_us"]) for each in listed] == [("jit_step(7)", 150.0), ("jit_eval(9)", 0.0)]


def test_the_expensive_path_holds_what_takes_time(programs: Programs) -> None:
    found = programs.graph(view="path")

    assert names(found) == ["dot.1", "add_fusion", "out"]
    assert edges(found) == {("dot.1", "add_fusion"), ("add_fusion", "out")}
    assert (found["self_us"], found["path_us"], found["centre"], found["instructions"]) == (150.0, 140.0, -1, 8)
    assert [node["on_path"] for node in found["nodes"]] == [True, True, True]


def test_what_is_around_an_instruction(programs: Programs) -> None:
    found = programs.graph(node="add_fusion", hops=1)
    by_name = {node["name"]: node for node in found["nodes"]}

    assert sorted(by_name) == ["add_fusion", "dot.1", "out"]
    assert edges(found) == {("dot.1", "add_fusion"), ("add_fusion", "out")}
    assert by_name["add_fusion"] | {"id": 0} == {
        "id": 0, "name": "add_fusion", "category": "loop fusion", "shape": "f32[64,64]{1,0}", "hops": 0,
        "occurrences": 2, "self_us": 40.0, "on_path": True, "opens": "fused", "framework_op": "jit(step)/layer/add",
        "source": "model.py:13", "flops": 0.0, "bytes": 2.0 * 64 * 64 * 4,
    }  # fmt: skip
    assert found["centre"] == by_name["add_fusion"]["id"]
    assert names(programs.graph(hops=0)) == ["dot.1"]  # the slowest, if none is named
    assert len(names(programs.graph(node="x", hops=3))) == 6


def test_a_fusion_opens(programs: Programs) -> None:
    fusion = next(node["id"] for node in programs.graph(view="path")["nodes"] if node["opens"])
    other = next(node["id"] for node in programs.graph(view="path")["nodes"] if not node["opens"])

    inside = programs.graph(view="path", open=f"{fusion},{other},999999")["inside"]

    assert list(inside) == [str(fusion)]
    assert names(inside[str(fusion)]) == ["p0", "deep"]
    assert edges(inside[str(fusion)]) == {("p0", "deep")}


def test_a_program_that_did_not_run_is_drawn_around_its_result(programs: Programs) -> None:
    assert names(programs.graph(program="jit_eval(9)", view="path")) == []
    assert sorted(names(programs.graph(program="jit_eval(9)"))) == ["neg", "y"]


def test_search(programs: Programs) -> None:
    assert names(programs.get("search", find="LAYER/").json) == ["dot.1", "add_fusion"]
    assert names(programs.get("search", find="tanh").json) == ["deep"]
    assert names(programs.get("search", find="nowhere").json) == []


def test_a_program_as_text_and_for_graphviz(programs: Programs) -> None:
    text, dot = programs.get("text"), programs.get("dot", node="out", hops=1)

    assert "ENTRY %main {" in text.text
    assert "%add_fusion = f32[64,64]{1,0} fusion(f32[64,64]{1,0} %dot.1), kind=kLoop, calls=%fused" in text.text
    assert text.headers["Content-Disposition"] == 'attachment; filename="jit_step_7_.hlo.txt"'
    assert dot.text.startswith('digraph "jit_step(7)" {')
    assert dot.text.count("->") == 2


@pytest.mark.parametrize(
    ("path", "query", "status", "part"),
    [
        ("graph", {"program": "jit_none"}, 400, "jit_none"),
        ("graph", {"node": "nowhere"}, 400, "nowhere"),
        ("graph", {"hops": 99}, 400, "hops"),
        ("graph", {"open": "1,x"}, 400, "open"),
        ("graph", {"open": ",".join(["1"] * 40)}, 400, "open"),
        ("graph", {"host": "elsewhere"}, 404, "elsewhere"),
        ("search", {"find": "  "}, 400, "find"),
        ("text", {"program": "jit_none"}, 400, "jit_none"),
    ],
)
def test_what_cannot_be_answered_is_refused_with_a_reason(
    programs: Programs, path: str, query: dict[str, object], status: int, part: str
) -> None:
    answer = programs.get(path, **query)

    assert answer.status_code == status
    assert part in answer.json["error"] + answer.json["hint"]


def test_a_session_without_programs_says_what_records_them(tmp_path: Path) -> None:
    answer = Programs(tmp_path, draw("gpu0 s | K1-")).get("graph")

    assert answer.status_code == 400
    assert "jax.profiler.trace" in answer.json["error"]
