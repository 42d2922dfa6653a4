"""The routes of watched runs: which there are, the report of one, and where its captures are."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import DRAWN, store_profile
from draw import draw
from werkzeug.test import Client

from stepscope.formats.series import marks_path, series_folder, tail_path
from stepscope.web.app import App
from stepscope.web.catalogue import Root
from stepscope.web.site import Site, SiteOptions


def write_run(logdir: Path, run: str, capture: str = "") -> None:
    folder = series_folder(logdir, run)
    folder.mkdir(parents=True)
    rows = [{"unix_s": 1.7e9 + 10 * row, "steps": 5, "step_ms_median": 20.0, "last_step": 5 * row} for row in range(30)]
    tail_path(folder, "worker").write_text("".join(json.dumps(row) + "\n" for row in rows))
    mark = {"unix_s": 1.7e9 + 95, "trigger": "slow step", "sentence": "it was slow", "step": 47, "run": capture}
    marks_path(folder, "worker").write_text(json.dumps(mark) + "\n")


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    store_profile(tmp_path / "logs", "kept", draw(DRAWN))
    write_run(tmp_path / "logs", "2026_11_20_10_00_00", "kept")
    write_run(tmp_path / "logs", "2026_11_21_10_00_00", "removed")
    write_run(tmp_path / "other", "2026_11_22_10_00_00")
    made = Site(SiteOptions([Root(str(tmp_path / "logs"), "a"), Root(str(tmp_path / "other"), "b")], is_shared=True))
    yield made
    made.close()


def ask(site: Site, path: str, status: int = 200) -> Any:
    answer = Client(App(site)).get(path)
    assert answer.status_code == status, answer.text
    return answer.json


def test_watched_runs_of_all_logdirs_are_listed_newest_first(site: Site) -> None:
    runs = ask(site, "/api/over-time")["runs"]

    assert [run["run"] for run in runs] == ["b/2026_11_22_10_00_00", "a/2026_11_21_10_00_00", "a/2026_11_20_10_00_00"]
    assert runs[0]["hosts"] == ["worker"]
    assert runs[0]["logdir"] == "b"  # a shared server names no folder of its machine


def test_a_run_comes_as_a_report_with_links_to_the_captures_that_still_exist(site: Site) -> None:
    kept = next(run for run in ask(site, "/api/over-time")["runs"] if run["run"].startswith("a/2026_11_20"))
    (session,) = [one["id"] for one in ask(site, "/api/sessions")["sessions"]]

    found = ask(site, f"/api/over-time/{kept['id']}?captures=1")

    assert found["run"] == kept
    assert found["sessions"] == {"kept": session}
    by_id = {section["id"]: section for section in found["sections"]}
    assert by_id["rows"]["row_count"] == 30
    assert by_id["marks"]["columns"]["sentence"] == ["it was slow"]
    assert by_id["captures"]["columns"]["run"] == ["kept"]
    assert found["report"]["figures"]["steps"] == 150


def test_a_capture_that_was_removed_has_no_link(site: Site) -> None:
    gone = next(run for run in ask(site, "/api/over-time")["runs"] if run["run"].startswith("a/2026_11_21"))

    found = ask(site, f"/api/over-time/{gone['id']}?captures=12")

    assert found["sessions"] == {}
    assert found["report"]["captures"] == []


def test_unknown_runs_tables_and_numbers_are_refused_with_what_there_is(site: Site) -> None:
    runs = ask(site, "/api/over-time")["runs"]

    refused = ask(site, "/api/over-time/nonsense", 404)
    assert {run["id"] for run in runs} == set(refused["choices"])
    assert "marks" in ask(site, f"/api/over-time/{runs[0]['id']}/tables/nonsense.arrow", 404)["choices"]
    ask(site, f"/api/over-time/{runs[0]['id']}?captures=13", 400)
    assert Client(App(site)).get(f"/api/over-time/{runs[0]['id']}/tables/rows.arrow").status_code == 200
