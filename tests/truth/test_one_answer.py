"""Every face of a corpus session says the same: step time, limit and share."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from every_form import SESSIONS

import stepscope

pytestmark = pytest.mark.parametrize("session", SESSIONS)


def test_every_tool_says_the_same_step_time(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    overview = profile.overview().to_dict()
    account = overview["account_step"]["ms"]

    assert profile.input_pipeline().to_dict()["step_time_ms"]["mean"] == overview["step_time_ms"]["mean"]
    assert sum(part["ms"] for part in overview["account"]) == pytest.approx(account, abs=1e-5)
    for advice in profile.advice().to_dict()["advice"]:
        assert advice["step_time_ms"] is None or advice["step_time_ms"] == pytest.approx(account, abs=1e-3)
    for table in (profile.critical_path().to_dict()["steps"], profile.steps().to_dict()["rows"]):
        lengths = [row["duration_ms"] for row in table if row["step"] == overview["account_step"]["step"]]
        assert any(length == pytest.approx(account, abs=1e-5) for length in lengths)


def test_headline_bar_and_first_advice_name_one_limit_and_share(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    overview, advice = profile.overview().to_dict(), profile.advice().to_dict()
    share = next(part["percent"] for part in overview["account"] if part["cause"] == overview["verdict_cause"])

    assert share == pytest.approx(overview["verdict_percent"], abs=1e-3)
    assert re.findall(r"[\d.]+(?= %)", overview["verdict_text"]) == [f"{share:.1f}"]
    assert advice["verdict_text"] == overview["verdict_text"]
    assert advice["advice"][:1] == overview["advice"][:1] or not overview["advice"]
    assert overview["findings"][0]["title"] == overview["verdict_text"]


def test_the_input_pipeline_judges_the_same_share_of_input(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    overview, found = profile.overview().to_dict(), profile.input_pipeline().to_dict()
    parts = {part["cause"]: part["percent"] for part in overview["account"]}

    assert found["input_percent"] == overview["input_bound_percent"]
    assert found["input_percent"] == pytest.approx(parts.get("input", 0) + parts.get("transfer", 0), abs=1e-3)
    assert overview["verdict"] != "input_bound" or found["verdict"] == "input_bound"
