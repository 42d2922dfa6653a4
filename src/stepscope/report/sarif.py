"""Findings as SARIF 2.1.0, which code review on GitHub and editors show at their line."""

from __future__ import annotations

import json
import posixpath
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from stepscope.report.findings import Finding

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(version: str, findings: Sequence[Finding], places: Mapping[str, str], fallback: str) -> bytes:
    """A log with one run.

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


def _rule(finding: Finding) -> dict[str, Any]:
    rule: dict[str, Any] = {
        "id": finding.rule,
        "shortDescription": {"text": finding.title},
        "defaultConfiguration": {"level": finding.level},
    }
    if finding.docs:
        rule["help"] = {"text": f"See {finding.docs} in the documentation of Stepscope."}
    return rule


def _result(finding: Finding, rule: int, places: Mapping[str, str], fallback: str) -> dict[str, Any]:
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
