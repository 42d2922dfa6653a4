"""The report to send: one file that needs nothing else, with what the session has."""

from __future__ import annotations

import datetime
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from draw import draw
from planted_programs import PROGRAMS, write_programs

import stepscope
from stepscope.cli.main import run
from stepscope.formats.xspace.writer import write
from stepscope.model import EventKind, PlaneKind, TraceBuilder
from stepscope.sheets.session_sheet import render_sheet

NOW = datetime.datetime(2026, 1, 2, 3, 4, tzinfo=datetime.UTC)


class Page(HTMLParser):
    """What a file shows without scripts, what it loads from elsewhere, and the data of its page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.pictures: list[str] = []
        self.data: dict[str, Any] = {}
        self.loads: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loads += [f"{tag} {value}" for name, value in attrs if name in ("src", "href")]
        self.pictures += [str(value) for name, value in attrs if name == "data-picture"]
        if tag not in ("meta", "wbr"):
            self.open.append("report" if ("id", "report") in attrs else tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() in (tag, "report")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("h1", "h2", "h3"):
            self.headings.append(data)
        if self.open and self.open[-1] == "report":
            self.data = json.loads(data)


def sheet(path: Path, run_name: str | None = None) -> str:
    return render_sheet(stepscope.load(path, run=run_name), "1.2", NOW, str(path))


def session(folder: Path, picture: str) -> Path:
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(write(draw(picture)))
    return folder


def test_a_sheet_has_what_the_session_has(tmp_path: Path) -> None:
    list(write_programs(tmp_path))
    text = sheet(tmp_path, "slow_metrics")
    page = Page(text)
    overview = stepscope.load(tmp_path, run="slow_metrics").overview().to_dict()

    assert page.headings[:2] == ["slow_metrics", overview["verdict_text"]]
    assert page.headings[2].startswith(overview["advice"][0]["title"])
    assert page.pictures == [overview["advice"][0]["id"], "Steps in the timeline"]
    assert page.data["overview"]["report"] == overview
    assert page.open == []
    assert "Made by Stepscope 1.2 on 2026-01-02 03:04" in text


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_sheet_loads_nothing_and_its_pictures_are_whole(tmp_path: Path, name: str) -> None:
    list(write_programs(tmp_path))
    text = sheet(tmp_path, name)

    assert Page(text).loads == []
    for picture in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        root = ET.fromstring(picture)
        assert root.find("{http://www.w3.org/2000/svg}title") is not None
        assert "nan" not in picture.lower()


def test_names_of_a_profile_cannot_add_markup(tmp_path: Path) -> None:
    builder = TraceBuilder("<b>host</b>")
    line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "<script>alert(1)</script>")
    for step in range(3):
        line.event("train", step * 10**10, 10**10, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
        line.event('"><img src=x>\x1b[31m', step * 10**10, 9 * 10**9, EventKind.OP)
    path = tmp_path / "<i>run"
    path.mkdir()
    (path / "a.xplane.pb").write_bytes(write(builder.build()))
    text = sheet(path)

    assert "<script>alert" not in text and "<img" not in text and "\x1b" not in text and "<i>run" not in text
    assert Page(text).open == []


def test_a_session_without_steps_has_a_sheet(tmp_path: Path) -> None:
    page = Page(sheet(session(tmp_path / "s", "host main | a----b----")))

    assert page.headings[:1] == ["s"]
    assert page.data["overview"]["report"]["steps_source"] == "none"


def test_memory_and_workers_of_a_drawn_session_are_shown(tmp_path: Path) -> None:
    """Two hosts that allocate 10 bytes and free them in each step."""
    for host in ("a", "b"):
        builder = TraceBuilder(host)
        line = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
        for step in range(3):
            line.event("train", step * 10**10, 10**10, EventKind.STEP_MARK, {"step_num": step, "_r": 1})
            for at, kind, in_use in ((2, EventKind.ALLOCATION, 10), (8, EventKind.DEALLOCATION, 0)):
                state = {"allocator_name": "GPU_0_bfc", "allocation_bytes": 10, "requested_bytes": 10, "addr": 1}
                sizes = {"bytes_reserved": 0, "bytes_allocated": in_use, "bytes_available": 90 - in_use}
                more = {"fragmentation": 0, "peak_bytes_in_use": 10}
                name = "MemoryAllocation" if in_use else "MemoryDeallocation"
                line.event(name, step * 10**10 + at * 10**9, 0, kind, {**state, **sizes, **more})
        (tmp_path / f"{host}.xplane.pb").write_bytes(write(builder.build()))

    page = Page(sheet(tmp_path))
    assert page.pictures[-2:] == ["Memory in use: GPU_0_bfc on a", "Memory in use: GPU_0_bfc on b"]
    assert [table["heading"] for table in page.data["tables"]] == ["Workers"]


def test_the_command_writes_the_file_whole(tmp_path: Path, capsys) -> None:
    list(write_programs(tmp_path / "logs"))
    out = tmp_path / "report.html"

    assert run(["report", str(tmp_path / "logs"), "--output", str(out)]) == 0
    assert out.read_text().endswith("</html>\n")
    assert capsys.readouterr().err.startswith(f"wrote {out} (")
    assert run(["report", str(tmp_path / "logs"), "--output", "-"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert run(["report", str(tmp_path / "logs"), "--output", str(tmp_path / "none" / "r.html")]) == 1
    assert run(["report", str(tmp_path / "none")]) == 1
