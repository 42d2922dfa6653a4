"""Every corpus file, and every fresh capture, through every tool and every form of result."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_form import SESSIONS, exercise
from framework_captures import FRESH, FrameworkCapture

import stepscope
from stepscope.analysis.registry import TOOLS
from stepscope.analysis.steps.breakdown import CATEGORIES


@pytest.mark.parametrize("session", SESSIONS)
def test_every_corpus_session_goes_through_every_tool_and_form(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)
    for tool in TOOLS:
        report = profile.report(tool.name)
        exercise(report)
        assert report.hosts, tool.name


@pytest.mark.parametrize("name", FRESH)
def test_every_fresh_capture_goes_through_every_tool_and_form(name: str, request: pytest.FixtureRequest) -> None:
    profile = stepscope.load(request.getfixturevalue(name).logdir)
    for tool in TOOLS:
        report = profile.report(tool.name)
        exercise(report)
        assert report.hosts, tool.name


@pytest.mark.parametrize("name", FRESH)
def test_a_fresh_capture_has_the_steps_of_its_program_and_their_parts_add_up(
    name: str, request: pytest.FixtureRequest
) -> None:
    capture: FrameworkCapture = request.getfixturevalue(name)
    profile = stepscope.load(capture.logdir)

    assert profile.overview().steps_source == "markers"
    rows = profile.steps().rows
    assert len(rows) == len(capture.step_ms)
    for row in rows:
        assert sum(row[category] for category in CATEGORIES) == pytest.approx(row["duration_ms"], abs=1e-5)
        assert all(row[category] >= 0 for category in CATEGORIES)


@pytest.mark.parametrize("session", SESSIONS)
def test_the_parts_of_a_step_add_up_to_the_step(session: str, corpus: Path) -> None:
    rows = stepscope.load(corpus / session).steps().rows
    assert rows
    for row in rows:
        assert sum(row[category] for category in CATEGORIES) == pytest.approx(row["duration_ms"], abs=1e-5)
        assert all(row[category] >= 0 for category in CATEGORIES)
