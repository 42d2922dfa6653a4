"""Every face of a session says the same step time, limit and share: of drawn sessions, and of those of the corpus."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from draw import Sort, draw
from every_form import SESSIONS

import stepscope
from stepscope.api import LoadedProfile
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind as K

DRAWN = {
    "waits for input": ("host main | M0--------M1--------M2--------", "host main | I----a----I----a----I----a----"),
    "copies in": ("host main | M0--------M1--------M2--------", "host main | C----a----C----a----C----a----"),
    "waits a little": ("host main | M0--------M1--------M2--------", "host main | Iaaaaaaaa-Iaaaaaaaa-Iaaaaaaaa-"),
}


def same_step_time(profile: LoadedProfile) -> None:
    overview = profile.overview().to_dict()
    account = overview["account_step"]["ms"]

    assert profile.input_pipeline().to_dict()["step_time_ms"]["mean"] == overview["step_time_ms"]["mean"]
    assert sum(part["ms"] for part in overview["account"]) == pytest.approx(account, abs=1e-5)
    for advice in profile.advice().to_dict()["advice"]:
        assert advice["step_time_ms"] is None or advice["step_time_ms"] == pytest.approx(account, abs=1e-3)
    for table in (profile.critical_path().to_dict()["steps"], profile.steps().to_dict()["rows"]):
        lengths = [row["duration_ms"] for row in table if row["step"] == overview["account_step"]["step"]]
        assert any(length == pytest.approx(account, abs=1e-5) for length in lengths)


def same_limit(profile: LoadedProfile) -> None:
    overview, advice = profile.overview().to_dict(), profile.advice().to_dict()
    share = next(part["percent"] for part in overview["account"] if part["cause"] == overview["verdict_cause"])

    assert share == pytest.approx(overview["verdict_percent"], abs=1e-3)
    assert re.findall(r"[\d.]+(?= %)", overview["verdict_text"]) == [f"{share:.1f}"]
    assert advice["verdict_text"] == overview["findings"][0]["title"] == overview["verdict_text"]
    for first, listed in zip(overview["advice"][:1], advice["advice"], strict=False):
        assert all(listed[key] == first[key] for key in ("id", "predicted_speedup", "step_time_ms"))
        assert listed["evidence"].startswith(first["evidence"])  # the page of advice adds what other tools know


def same_input(profile: LoadedProfile) -> None:
    overview, found = profile.overview().to_dict(), profile.input_pipeline().to_dict()
    parts = {part["cause"]: part["percent"] for part in overview["account"]}

    assert found["input_percent"] == overview["input_bound_percent"]
    assert found["input_percent"] == pytest.approx(parts.get("input", 0) + parts.get("transfer", 0), abs=1e-3)
    assert overview["verdict"] != "input_bound" or found["verdict"] == "input_bound"


@pytest.mark.parametrize("lines", DRAWN.values(), ids=DRAWN.keys())
def test_every_face_of_a_drawn_session_says_the_same(lines: tuple[str, ...], tmp_path: Path) -> None:
    sorts = {"C": Sort(K.COPY_HOST_TO_DEVICE_CALL, "H2D Dispatch")}
    (tmp_path / "host.xplane.pb").write_bytes(write(draw("\n".join(lines), sorts)))
    profile = stepscope.load(tmp_path / "host.xplane.pb")

    same_step_time(profile)
    same_limit(profile)
    same_input(profile)


@pytest.mark.parametrize("session", SESSIONS)
def test_every_face_of_a_corpus_session_says_the_same(session: str, corpus: Path) -> None:
    profile = stepscope.load(corpus / session)

    same_step_time(profile)
    same_limit(profile)
    same_input(profile)
