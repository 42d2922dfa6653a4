"""Ranges that a program and its libraries named, on drawn traces."""

from __future__ import annotations

from draw import Sort, draw
from reporting import reporter, table

from stepscope.analysis.ops import annotations_tool
from stepscope.model import EventKind

SORTS = {"Z": Sort(EventKind.ANNOTATION, "Optimizer.step#SGD.step"), "A": Sort(EventKind.ANNOTATION, "forward")}

report = reporter(annotations_tool)


def test_ranges_of_the_program_and_of_its_libraries():
    found = report(
        draw("""
            host main | M0--------M1--------
            host main | A----Z--  A----Z--
        """, SORTS)
    )  # fmt: skip
    assert table(found.rows, "name", "is_step", "is_library", "occurrences", "total_ms", "step_percent") == [
        ("train", True, False, 2, 20.0, 100.0),
        ("forward", False, False, 2, 10.0, 50.0),
        ("Optimizer.step#SGD.step", False, True, 2, 6.0, 30.0),
    ]


def test_the_blocks_of_a_model_are_one_range_and_a_block_alone_keeps_its_number():
    blocks = {letter: Sort(EventKind.ANNOTATION, f"blocks.{at}.mlp.0") for at, letter in enumerate("BCD")}
    alone = {"E": Sort(EventKind.ANNOTATION, "head.1")}

    found = report(draw("host main | M0----------\nhost main | B--C--D--E--", blocks | alone))

    assert table(found.rows, "name", "occurrences", "total_ms")[1:] == [("blocks.*.mlp.0", 3, 9.0), ("head.1", 1, 3.0)]


def test_steps_alone_are_no_page():
    assert report(draw("host main | M0---M1---")).why_hidden() == "the program names its steps, and nothing inside them"
