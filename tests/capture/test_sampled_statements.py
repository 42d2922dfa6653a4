"""Where in a function a sampled thread was: its line, and what it calls there."""

from __future__ import annotations

import dis
import threading
from types import CodeType

import pytest

from stepscope.capture.tracers import stack_samples
from stepscope.capture.tracers.statements import Statements, statement_name
from stepscope.formats.spool.layout import STATEMENTS_PLANE

SOURCE = """
def get(self, query, i):
    label = self.db.execute(query, (self.names[i],)).fetchone()
    rows = np.stack([self.rows[k] for k in label])
    return rows[0] + 1
"""


@pytest.fixture(scope="module")
def code() -> CodeType:
    names: dict[str, object] = {}
    exec(compile(SOURCE, "train.py", "exec"), names)
    return names["get"].__code__


def calls(code: CodeType) -> list[str]:
    places = [each.offset for each in dis.get_instructions(code) if each.opname.startswith("CALL")]
    return [statement_name("get", code, place).partition(" to=")[0] for place in places]


def test_a_call_is_named_as_the_program_names_it(code: CodeType) -> None:
    named = [name for name in calls(code) if not name.endswith(" ")]
    assert named == ["get @3 self.db.execute", "get @3 fetchone", "get @4 np.stack"]


def test_what_is_no_call_has_its_line_alone(code: CodeType) -> None:
    (place,) = (each.offset for each in dis.get_instructions(code) if each.opname == "BINARY_OP")
    assert statement_name("get", code, place) == "get @5  to=return"


def test_a_place_that_code_does_not_have_is_that_where_it_is_defined(code: CodeType) -> None:
    assert statement_name("get", code, -1) == "get @2 "
    assert statement_name("get", code, 10_000) == "get @2 "


def test_statements_that_samples_after_each_other_show_are_joined() -> None:
    #   1---1---1---|
    #   2---3---3---|
    shown = Statements()
    shown.note([1, 2], 0, 10)
    shown.note([1, 3], 10, 20)
    shown.note([1, 3], 20, 30)
    shown.end(40)
    assert shown.take().tolist() == [2, 10, 15, 1, 10, 40, 3, 15, 40]
    assert shown.take().tolist() == []


def test_statements_that_are_cut_begin_again() -> None:
    shown = Statements()
    shown.note([1], 0, 10)
    shown.cut(20)
    shown.end(30)
    assert shown.take().tolist() == [1, 10, 20, 1, 20, 30]


def test_a_sample_has_the_statements_of_the_program_and_none_of_libraries() -> None:
    sampler, running, over = stack_samples.StackSampler(), threading.Event(), threading.Event()

    def waits() -> None:
        running.set()
        over.wait()

    thread = threading.Thread(target=waits, daemon=True)
    thread.start()
    running.wait()
    sampler._make_sampling(0.01).sample()
    over.set()
    thread.join()
    sampler.stop()

    chunks = [chunk for chunk in sampler.drain() if chunk.plane == STATEMENTS_PLANE and chunk.line == thread.name]
    (chunk,) = chunks
    line = waits.__code__.co_firstlineno
    said = f"{line} {_called(waits)} @{line + 2} over.wait to=kept"
    assert [name.partition(":")[2] for name in chunk.names] == [said]


def _called(function: object) -> str:
    return stack_samples.frame_name(function.__code__, 1).partition(" ")[2]
