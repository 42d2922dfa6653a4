"""A format is one folder and one line: this one is added here, and every way to a profile finds it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import stepscope
from stepscope.errors import UnreadableError
from stepscope.formats import base
from stepscope.formats.form import Companion, Format, NameParts
from stepscope.formats.session import find_sessions
from stepscope.formats.sniffing import sniff

READER = """
from stepscope.model import EventKind, PlaneKind, TraceBuilder

def read(data, source, host):
    builder = TraceBuilder(host)
    thread = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "main")
    for number, line in enumerate(bytes(data).decode().splitlines()[1:]):
        name, begin, end = line.split()
        kind = EventKind.STEP_MARK if name == "step" else EventKind.OP
        stats = {"step_num": number} if name == "step" else {}
        thread.event(name, int(begin) * 10**9, (int(end) - int(begin)) * 10**9, kind, stats)
    return builder.build()
"""
TRACE = "toy 1\nstep 0 10\nwork 2 5\nstep 10 20\n"


class ToyFormat(Format):
    """Lines of a name, a start and an end in ms."""

    def looks_like(self, content: bytes) -> bool:
        return content.startswith(b"toy 1\n")


TOY = ToyFormat(
    name="toy", noun="a toy", summary="toys (*.toy)", pattern=r"(?P<host>.*)\.toy", reader="toy_reader:read"
)


@pytest.fixture(autouse=True)
def _toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "toys"
    folder.mkdir()
    (folder / "toy_reader.py").write_text(READER)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "toy_reader", raising=False)
    monkeypatch.setattr(base, "FORMATS", (*base.FORMATS, TOY))


def logdir(tmp_path: Path, **files: str) -> Path:
    run = tmp_path / "logs" / "plugins" / "profile" / "2026_01_02_03_04_05"
    run.mkdir(parents=True)
    for name, text in files.items():
        (run / name.replace("__", ".")).write_text(text)
    return tmp_path / "logs"


def test_a_logdir_of_it_is_opened_and_analysed(tmp_path):
    profile = stepscope.load(logdir(tmp_path, one__toy=TRACE, two__toy=TRACE))

    assert profile.hosts == ("one", "two")
    assert [row["duration_ms"] for row in profile.steps().to_dict()["rows"]] == [10.0] * 4


def test_a_file_of_another_name_is_known_by_its_content(tmp_path):
    path = tmp_path / "something"
    path.write_text(TRACE)

    assert sniff(TRACE.encode()) is TOY
    assert stepscope.load(path).steps().to_dict()["steps_source"] == "markers"


def test_it_is_named_where_something_else_is_refused(tmp_path):
    path = tmp_path / "other.txt"
    path.write_text("something else")

    with pytest.raises(UnreadableError, match=r"toys \(\*\.toy\)"):
        stepscope.load(path)


def test_its_files_are_looked_into_where_its_names_may_be_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(base, "FORMATS", (replace(TOY, pattern=r"never", other_endings=(".txt",)),))

    sessions = find_sessions(logdir(tmp_path, run__txt=TRACE, notes__txt="nothing"))

    assert [(session.run.rpartition("/")[2], session.hosts) for session in sessions] == [("run.txt", ("run",))]


def test_what_is_flushed_is_left_out_beside_what_was_made_of_it(tmp_path, monkeypatch):
    flushed = replace(TOY, name="flushed", pattern=r"(?P<host>.*)\.toy\.part", unfinished_ending=".part")
    monkeypatch.setattr(base, "FORMATS", (TOY, flushed))

    (session,) = find_sessions(logdir(tmp_path, one__toy=TRACE, one__toy__part="", two__toy__part=TRACE))

    assert [(file.host, file.format.name) for file in session.files] == [("one", "toy"), ("two", "flushed")]


class Spans(ToyFormat):
    """Files with a number between host and ending; those that end in `copy` are copies."""

    def name_parts(self, basename: str) -> NameParts:
        host, number, _ = basename.split(".")
        return NameParts(host, (int(number), number))

    def classify_companion(self, basename: str, hosts: object) -> Companion:
        return Companion.COPY if "copy" in basename else Companion.EXPORT if "export" in basename else Companion.OWN


def test_spans_and_copies_are_what_the_format_says(tmp_path, monkeypatch):
    spans = Spans("spans", "spans", "spans (*.span)", r"\w+\.\d+\.span", "toy_reader:read", has_spans=True)
    monkeypatch.setattr(base, "FORMATS", (TOY, spans))
    names = ("a__1__span", "a__2__span", "b__1__span", "copy__1__span", "export__1__span", "whole__toy")

    sessions = find_sessions(logdir(tmp_path, **dict.fromkeys(names, TRACE)))

    assert [session.hosts for session in reversed(sessions)] == [("a", "b"), ("a",), ("whole",)]
    (problem,) = sessions[0].problems
    assert problem.reason == "left out: it lies next to a toy and is probably an export of it"


def test_no_other_module_of_the_room_names_a_format():
    folder = Path(base.__file__).parent
    shared = [path for path in folder.glob("*.py") if path.name != "base.py"]

    names = [f'"{each.name}"' for each in base.FORMATS]
    assert [(path.name, name) for path in shared for name in names if name in path.read_text()] == []
