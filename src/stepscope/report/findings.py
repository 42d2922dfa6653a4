"""What a report has found, in the two shapes that other programs read: test cases for CI as JUnit XML, which GitLab,
Jenkins, Azure and others show, and findings with a place as SARIF 2.1.0, for code review on GitHub and in editors."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal
from urllib.parse import quote
from xml.etree import ElementTree as ET

from stepscope.records import dataclass

Level = Literal["error", "warning", "note"]

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True, kw_only=True)
class PlacedFinding:
    """One thing that was found, for reviewers of code.

    Attributes:
        rule: the id of its kind, the same in every session: `budget/step_ms`, `advice/host_sync`.
        level: how bad it is.
        title: the kind in a few words.
        message: what was found, in a sentence or two.
        file, line: where in the program; None if nothing recorded names a line.
        docs: the page of the documentation about it, below `docs/`; empty if there is none.
    """

    rule: str
    level: Level
    title: str
    message: str
    file: str | None = None
    line: int | None = None
    docs: str = ""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One check, as a test case.

    Attributes:
        group: what it is about: the tool.
        name: what is checked.
        state: `passed`, `failed`, or `error` if it could not be checked.
        message: why it failed, or a warning if it passed.
        text: everything known of it.
    """

    group: str
    name: str
    state: Literal["passed", "failed", "error"]
    message: str
    text: str


def render_junit(suite: str, cases: Sequence[Case]) -> bytes:
    """A file of JUnit XML with one suite.  A warning of a case that passed is its output."""
    counts = {
        "tests": len(cases),
        "failures": sum(case.state == "failed" for case in cases),
        "errors": sum(case.state == "error" for case in cases),
        "skipped": 0,
    }
    numbers = {name: str(count) for name, count in counts.items()}
    root = ET.Element("testsuites", numbers)
    element = ET.SubElement(root, "testsuite", {"name": _plain(suite), "time": "0", **numbers})
    for case in cases:
        _add_case(element, case)
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _add_case(suite: ET.Element, case: Case) -> None:
    names = {"classname": f"stepscope.{case.group}", "name": case.name, "time": "0"}
    element = ET.SubElement(suite, "testcase", {key: _plain(text) for key, text in names.items()})
    if case.state == "passed":
        if case.message:
            ET.SubElement(element, "system-out").text = _plain(f"warning: {case.message}\n{case.text}")
        return
    kind = "failure" if case.state == "failed" else "error"
    ET.SubElement(element, kind, message=_plain(case.message), type=kind).text = _plain(case.text)


def _plain(text: str) -> str:
    """The text without the characters that XML cannot hold."""
    return _NOT_XML.sub("\N{MIDDLE DOT}", text)


def render_sarif(version: str, findings: Sequence[PlacedFinding], places: Mapping[str, str], fallback: str) -> bytes:
    """A log of SARIF with one run.

    Args:
        version: that of Stepscope.
        findings: what was found.
        places: the file of a finding -> its path in the repository; a file that is not in it keeps its own name.
        fallback: the path of a finding that names no file.
    """
    rules = {finding.rule: finding for finding in findings}
    driver = {"name": "Stepscope", "version": version, "rules": [_rule(finding) for finding in rules.values()]}
    order = {rule: at for at, rule in enumerate(rules)}
    results = [_result(finding, order[finding.rule], places, fallback) for finding in findings]
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return (json.dumps(log, indent=2, ensure_ascii=True) + "\n").encode()


def _rule(finding: PlacedFinding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.rule,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": finding.level},
    }
    if finding.docs:
        rule["help"] = {"text": f"See {finding.docs} in the documentation of Stepscope."}
    return rule


def _result(finding: PlacedFinding, rule: int, places: Mapping[str, str], fallback: str) -> dict[str, Any]:
    path = fallback if finding.file is None else places.get(finding.file, finding.file)
    region = {"region": {"startLine": max(finding.line or 1, 1)}}
    place = {"artifactLocation": {"uri": _uri(path)}, **region}
    return {
        "ruleId": finding.rule,
        "ruleIndex": rule,
        "level": finding.level,
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(path: str) -> str:
    """A path as a reference that stays below the repository's root: no drive, no leading slash."""
    return quote(posixpath.normpath(path.replace("\\", "/")).lstrip("/"), safe="/._-~")
