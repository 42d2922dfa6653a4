"""The JSON of the tools is a contract: `stepscope schema`, and what breaks it."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from sql_sessions import rich_training

import gen_types
from schemas import broken_promises
from stepscope.analysis.registry import TOOLS, tool_named
from stepscope.cli.main import run
from stepscope.report.schemas import FOLDER, NO_TOOLS


def published(tool: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / f"{tool}.json").read_text())
    return found


def test_what_is_published_is_what_the_tools_declare() -> None:
    wanted = gen_types.wanted_files()
    late = [path.name for path, text in wanted.items() if not path.is_file() or path.read_text() != text]
    assert late == [], "run `make format` and commit what it wrote"
    assert {path.stem for path in FOLDER.glob("*.json")} == {tool.name for tool in TOOLS} | NO_TOOLS


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_a_result_has_the_form_that_is_published(tool) -> None:
    report = tool.merge([tool.partial(rich_training())])

    Draft202012Validator(published(tool.name)).validate(json.loads(report.to_json()))


def test_findings_have_the_form_that_is_published() -> None:
    tool = tool_named("overview")
    found = json.loads(tool.merge([tool.partial(rich_training())]).to_json())["findings"]

    assert {each["kind"] for each in found} >= {"verdict", "advice", "cause"}
    Draft202012Validator(published("findings")).validate(found)


def test_the_command_prints_the_schema_of_findings(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "findings"]) == 0
    finding = json.loads(capsys.readouterr().out)["items"]["properties"]
    assert finding["culprit"]["properties"]["line"]["type"] == ["integer", "null"]


def test_the_command_prints_the_schema(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schema", "steps"]) == 0
    duration = json.loads(capsys.readouterr().out)["properties"]["rows"]["items"]["properties"]["duration_ms"]
    assert (duration["type"], duration["x-unit"]) == (["number", "null"], "ms")
    assert run(["schema", "step"]) == 2


def change(path: str, value: object) -> dict[str, Any]:
    """The schema of `steps` with another value at a place; None takes the place away."""
    changed = copy.deepcopy(published("steps"))
    *above, last = path.split("/")
    place = changed
    for part in above:
        place = place[part]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return changed


DURATION = "properties/rows/items/properties/duration_ms"


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (DURATION, None, ["rows[].duration_ms has vanished"]),
        (f"{DURATION}/x-unit", "us", ["rows[].duration_ms was number or null ms, and is number or null us"]),
        (f"{DURATION}/type", ["string"], ["rows[].duration_ms was number or null ms, and is string ms"]),
        ("properties/rows", None, ["rows has vanished", "rows[].step has vanished"]),
        (f"{DURATION}/description", "in other words", []),
        ("properties/more", {"type": ["number", "null"]}, []),
    ],
)
def test_a_field_does_not_vanish_or_change_without_a_new_version(path: str, value: object, said: list[str]) -> None:
    after = change(path, value)

    assert broken_promises(published("steps"), after)[: len(said) or None][:2] == said
    after["properties"]["schema_version"] = {"const": 99}
    assert broken_promises(published("steps"), after) == []
