"""`stepscope runs`: a row for each session of a logdir."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from browsing import store_profile
from draw import draw

import stepscope
import stepscope.runs
from stepscope.cli.main import run
from stepscope.formats.xspace.writer import write
from stepscope.web.catalogue import Catalogue, Root
from stepscope.web.notes.note_store import default_store

SHORT = "host main | M0--a-M1--a-M2--a-M3--a-"
LONG = "host main | M0--aaaaaa-M1--aaaaaa-M2--aaaaaa-M3--aaaaaa-"


@pytest.fixture
def logdir(tmp_path: Path) -> Path:
    store_profile(tmp_path, "2026_01_01_00_00_00", draw(SHORT))
    store_profile(tmp_path, "2026_01_02_00_00_00", draw(LONG), draw(LONG, host="other"))
    broken = tmp_path / "plugins" / "profile" / "2026_01_03_00_00_00" / "host.xplane.pb"
    broken.parent.mkdir()
    broken.write_bytes(b"\xff" * 100)
    return tmp_path


def test_each_session_has_a_row_and_a_broken_one_says_why(logdir: Path, capsys) -> None:
    assert run(["runs", str(logdir), "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]

    assert [(row["run"][:10], row["host_count"]) for row in rows] == [
        ("2026_01_01", 1),
        ("2026_01_02", 2),
        ("2026_01_03", 1),
    ]
    alone = stepscope.load(logdir, run=rows[1]["run"]).report("overview").to_dict()
    assert rows[1]["step_ms"] == alone["step_time_ms"]["mean"]
    assert rows[2]["step_ms"] is None
    assert [row["problem"] is None for row in rows] == [True, True, False]
    assert rows[1]["verdict"] == alone["verdict"]


def test_what_the_search_joined_and_left_out_is_said(tmp_path: Path, capsys) -> None:
    for rank in range(2):
        (tmp_path / "logs" / f"rank_{rank}").mkdir(parents=True)
        (tmp_path / "logs" / f"rank_{rank}" / "a.xplane.pb").write_bytes(write(draw(SHORT)))
    (tmp_path / "s.pickle").write_bytes(b"\x80\x04\x95}\x94(\x8c\x08segments\x94]\x94")

    assert run(["runs", str(tmp_path), "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)

    assert [(row["run"], row["host_count"]) for row in found["rows"]] == [("logs", 2)]
    assert [line.split("]")[0] for line in found["warnings"]] == ["[beside", "[joined"]
    assert run(["summary", str(tmp_path)]) == 0
    said = capsys.readouterr()
    assert "[joined]" in said.out + said.err
    assert "[beside]" not in said.out + said.err
    problems = Catalogue([Root(str(tmp_path))]).scan().problems
    assert [problem.code for problem in problems] == ["beside", "joined"]


def test_any_figure_is_a_column(logdir: Path, capsys) -> None:
    figure = "op-stats.rows.occurrences"
    words = ["--last", "2", "--figure", figure, "--where", "host_count=2", "--format", "json"]
    assert run(["runs", str(logdir), *words]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]

    assert row[figure] == 2 * len("aaaaaa")  # in a step, of two hosts


def test_a_figure_that_there_is_not_is_refused_before_anything_is_read(logdir: Path, capsys) -> None:
    assert run(["runs", str(logdir), "--figure", "op-stat.rows.occurrences"]) == 2
    assert "op-stats" in capsys.readouterr().err


def test_a_column_that_no_session_has_is_refused(logdir: Path, capsys) -> None:
    assert run(["runs", str(logdir), "--figure", "op-stats.rows.nonsense"]) == 2
    assert "there is no figure op-stats.rows.nonsense" in capsys.readouterr().err


def test_a_figure_without_a_value_anywhere_says_why(logdir: Path, capsys) -> None:
    assert run(["runs", str(logdir), "--figure", "idle.devices.idle_percent"]) == 0
    assert "! no session has idle.devices.idle_percent: " in capsys.readouterr().out


def test_labels_of_the_page_are_a_column_by_whichever_path_the_logdir_is_named(
    logdir: Path, monkeypatch, capsys
) -> None:
    monkeypatch.setenv("STEPSCOPE_STORE", str(logdir / "words.db"))
    listed = Catalogue([Root(str(logdir))]).sessions()[1]
    default_store().change(listed.id, 0, {"labels": ("baseline", "lr=3")}, "Ana")
    monkeypatch.chdir(logdir)

    assert run(["runs", ".", "--where", "labels=BASE", "--format", "json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]

    assert (row["run"], row["labels"]) == (listed.session.run, "baseline, lr=3")


def test_a_capture_without_steps_has_no_step_time(tmp_path: Path) -> None:
    store_profile(tmp_path, "2026_01_01_00_00_00", draw("host main | aaaa-bb-"))
    (row,) = stepscope.runs.list_runs(tmp_path).rows

    assert (row["steps"], row["step_ms"]) == (0, None)


def test_one_question_is_asked_of_every_session(logdir: Path, capsys) -> None:
    query = "SELECT count(*) AS steps FROM steps"
    assert run(["runs", str(logdir), "--query", query, "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)

    assert answer["rows"] == [{"run": "2026_01_01_00_00_00", "steps": 4}, {"run": "2026_01_02_00_00_00", "steps": 8}]
    assert (answer["partial"], answer["query"], len(answer["warnings"])) == (True, query, 1)  # one cannot be read


def test_a_saved_question_is_asked_by_its_name(logdir: Path, tmp_path: Path, monkeypatch, capsys) -> None:
    recipes = tmp_path / "recipes"
    recipes.mkdir()
    (recipes / "ops.sql").write_text("-- how many ops ran\nSELECT count(*) AS n FROM ops")
    monkeypatch.setenv("STEPSCOPE_RECIPES", str(recipes))

    for name in ("ops", str(recipes / "ops.sql")):
        assert run(["runs", str(logdir), "--recipe", name, "--last", "2", "--format", "csv"]) == 0
        assert capsys.readouterr().out == "run,n\n2026_01_02_00_00_00,48\n"
    assert run(["runs", str(logdir), "--recipe", "op"]) == 2
    assert "there are: ops (how many ops ran)" in capsys.readouterr().err


def test_the_cause_of_a_session_is_that_of_its_verdict(logdir: Path) -> None:
    (row, *_) = stepscope.runs.list_runs(logdir).rows
    overview = stepscope.load(logdir, run=str(row["run"])).overview().to_dict()

    assert (row["cause"], row["cause_percent"]) == (overview["verdict_cause"], overview["verdict_percent"])


THREE = {"base": SHORT, "slow": LONG, "same": SHORT}


@pytest.fixture
def three(tmp_path: Path) -> list[str]:
    for name, drawn in THREE.items():
        store_profile(tmp_path / name, "2026_01_01_00_00_00", draw(drawn))
    return [str(tmp_path / name) for name in THREE]


def test_several_sessions_are_each_compared_with_the_first(three: list[str], capsys) -> None:
    assert run(["compare", *three, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]

    assert [row["change"] for row in rows] == ["base", "slower", "within_noise"]
    assert [Path(row["run"]).relative_to(Path(three[0]).parent).parts[0] for row in rows] == [*THREE]
    alone = stepscope.compare(three[0], three[1])
    assert (rows[1]["change_percent"], rows[1]["because"]) == (alone.difference.change_percent, alone.verdict_text)


def test_a_slow_one_among_several_fails_the_gate(three: list[str], capsys) -> None:
    assert run(["compare", *three, "--fail-above", "10"]) == 1
    assert "of --fail-above: " in capsys.readouterr().err
    assert run(["compare", three[0], three[2], three[2], "--fail-above", "10"]) == 0


def test_the_tools_of_several_sessions_are_not_compared(three: list[str], capsys) -> None:
    assert run(["compare", *three, "--tool", "op-stats"]) == 2
    assert "for two profiles" in capsys.readouterr().err
