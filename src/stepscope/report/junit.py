"""Checks as JUnit XML, which the test reports of GitLab, Jenkins, Azure and others read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as ET

from stepscope.report.findings import Case

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(suite: str, cases: Sequence[Case]) -> bytes:
    """A file with one suite.  A warning of a case that passed is its output."""
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
