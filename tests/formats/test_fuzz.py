"""The nightly search for inputs that break a reader or a tool: it goes on where it ended, and keeps what it finds."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from stepscope.formats.base import format_of

sys.path.append(str(Path(__file__).resolve().parents[2] / "fuzz"))

import injuries
import nightly
import seeds

from stepscope.analysis.registry import all_tools

SOURCES = injuries.make_seeds()


def fake_batch(first: int, count: int, corpus: Path | None) -> list[dict[str, Any]]:
    return [{"number": number, "outcome": "whole"} for number in range(first, first + count)]


def test_the_same_number_gives_the_same_damaged_file_of_both_formats() -> None:
    made = [injuries.damage(number, SOURCES) for number in range(200)]

    again = injuries.make_seeds()
    assert made == [injuries.damage(number, again) for number in range(200)]
    assert {seed.name for seed in made} == set(injuries.NAMES.values())
    assert len({seed.content for seed in made}) > 150


def test_a_run_goes_on_after_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nightly, "do_batch", fake_batch)
    for inputs in (700, 300, 500):
        nightly.run(nightly.State(tmp_path), inputs, 600, 2, None)

    state = nightly.State(tmp_path)
    assert (state.next, state.outcomes, state.kinds) == (1500, {"whole": 1500}, {})


def test_an_exception_of_a_tool_is_a_finding_that_is_kept_with_its_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(trace: object) -> None:
        raise IndexError("planted")

    tool = all_tools()[0]
    monkeypatch.setattr(type(tool), "partial", lambda self, trace: fail(trace))
    number = next(each for each in range(100) if nightly._describe(each, SOURCES)["outcome"] == "finding")
    state = nightly.State(tmp_path)
    for _ in range(nightly.KEPT_OF_A_KIND + 2):
        state.add(number, 1, [nightly._describe(number, SOURCES)], SOURCES)

    (kind,) = state.kinds
    assert kind.startswith("IndexError at ")
    assert "planted" in (tmp_path / "findings" / f"{number}.txt").read_text()
    (kept,) = [path for path in (tmp_path / "findings").iterdir() if path.suffix != ".txt"]
    assert kept.read_bytes() == injuries.damage(number, SOURCES).content


def test_a_process_that_an_input_ends_costs_that_input_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def die_at_five(first: int, count: int, corpus: Path | None) -> tuple[list[dict[str, Any]], int]:
        if first > 5:
            return fake_batch(first, count, corpus), 0
        return fake_batch(first, 5 - first, corpus), -11

    monkeypatch.setattr(nightly, "_do_in_process", die_at_five)
    results = nightly.do_batch(0, 9, None)

    assert [result["number"] for result in results] == list(range(9))
    assert [result["kind"] for result in results if result["outcome"] == "finding"] == ["ended by SIGSEGV"]


# -- the files that `make fuzz` starts from are whole ------------------------------------------------------------------


@pytest.mark.parametrize("name", seeds.MAKERS)
def test_a_seed_is_a_whole_file(name: str) -> None:
    form = format_of(injuries.NAMES[name])
    for seed in seeds.MAKERS[name]():
        trace = form.read(seed, injuries.NAMES[name], "")

        trace.check()
        assert len(trace.events) >= 2
        assert not trace.partial
