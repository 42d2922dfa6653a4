"""The routes of watched runs: which there are, and the report on one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, store_profile
from draw import draw
from werkzeug.test import Client

from stepscope.formats import series
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions


def write_series(logdir: Path, run: str, step_ms: float = 20.0) -> None:
    """Two hours of a watched run, with a trigger in the middle."""
    folder = series.series_folder(logdir, run)
    folder.mkdir(parents=True)
    rows = [{"unix_s": 1.7e9 + 30 * at, "steps": 10, "step_ms_median": step_ms} for at in range(240)]
    (folder / "host.tail.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def asked(path: str, *roots: Root) -> Any:
    answer = Client(App(Site(SiteOptions(roots)))).get(path)
    return answer.status_code, answer.json


def test_a_logdir_without_a_watched_run_has_none(tmp_path):
    store_profile(tmp_path, "r", draw(DRAWN))

    assert asked("/api/overtime", Root(str(tmp_path))) == (200, {"runs": []})
    status, answer = asked("/api/overtime/report", Root(str(tmp_path)))
    assert (status, "no time series" in answer["error"]) == (404, True)


def test_the_newest_run_is_the_one_that_is_shown_unless_another_is_named(tmp_path):
    write_series(tmp_path, "2026_01_01", step_ms=30.0)
    write_series(tmp_path, "2026_02_01")
    root = Root(str(tmp_path))

    assert asked("/api/overtime", root)[1]["runs"] == ["2026_02_01", "2026_01_01"]
    status, answer = asked("/api/overtime/report", root)
    assert (status, answer["report"]["figures"]["run"]) == (200, "2026_02_01")
    assert {section["id"] for section in answer["sections"]} >= {"findings", "figures", "marks", "captures", "rows"}
    named = asked("/api/overtime/report?run=2026_01_01", root)[1]
    assert named["report"]["figures"]["step_ms_median"] == 30.0


def test_runs_of_several_logdirs_have_their_names_in_front(tmp_path):
    for name in ("a", "b"):
        write_series(tmp_path / name, "run", step_ms=10.0 if name == "a" else 40.0)
    roots = [Root(str(tmp_path / name), name) for name in ("a", "b")]

    assert asked("/api/overtime", *roots)[1]["runs"] == ["a/run", "b/run"]
    answer = asked("/api/overtime/report?run=b/run", *roots)[1]
    assert answer["report"]["figures"]["step_ms_median"] == 40.0


@pytest.mark.parametrize("name", ["../run", "nothing", "/etc"])
def test_a_name_leads_nowhere_but_to_a_listed_run(tmp_path, name):
    write_series(tmp_path, "run")

    status, answer = asked(f"/api/overtime/report?run={name}", Root(str(tmp_path)))
    assert (status, answer["choices"]) == (404, ["run"])
