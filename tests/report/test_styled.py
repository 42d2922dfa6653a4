"""Lines of text with styles, for terminals, pipes and files."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from stepscope.report.styled import (
    bar_of,
    cell_width,
    has_colours,
    join_lines,
    line_of,
    print_lines,
    wrap_below,
    wrap_text,
)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "cells"), [("abc", 3), ("\u00e9t\u00e9", 3), ("\u6642\u9593", 4), ("e\u0301", 1), ("a\u200bb", 2), ("", 0)]
)
def test_letters_take_as_many_cells_as_a_terminal_gives_them(text, cells):
    assert cell_width(text) == cells


@pytest.mark.parametrize(
    ("text", "width", "lines"),
    [
        ("one two three", 20, ["one two three"]),
        ("one two three", 8, ["one two", "three"]),
        ("one two three", 7, ["one two", "three"]),
        ("top ops     42.8 %  aten::mm", 20, ["top ops     42.8 %", "aten::mm"]),  # gaps inside a line stay
        ("abcdefghij k", 4, ["abcd", "efgh", "ij k"]),  # a long word goes on below
        ("\u6642\u9593\u6642\u9593", 5, ["\u6642\u9593", "\u6642\u9593"]),  # two cells each
        ("", 5, [""]),
    ],
)
def test_a_text_wraps_between_words(text, width, lines):
    assert wrap_text(text, width) == lines


def test_a_text_wraps_below_itself_and_not_below_its_label():
    assert join_lines(wrap_below("do first   ", "use two workers", 20)) == "do first   use two\n           workers\n"


def test_styles_are_colours_on_a_terminal_and_nothing_in_a_pipe(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    terminal, pipe = Terminal(), io.StringIO()
    for stream in (terminal, pipe):
        print_lines([line_of("Ops", "bold"), (("12", ""), (" ms", "dim"))], stream)

    assert terminal.getvalue() == "\x1b[1mOps\x1b[0m\n12\x1b[2m ms\x1b[0m\n"
    assert pipe.getvalue() == "Ops\n12 ms\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_a_user_may_want_no_colours(monkeypatch, name, value):
    monkeypatch.setenv(name, value)

    assert not has_colours(Terminal())


def test_a_table_is_written_without_the_library_that_draws_progress():
    code = (
        "import sys; from stepscope.cli.main import run; run(['op-stats', '--help']); "
        "import stepscope.report.terminal; print([name for name in sys.modules if name.startswith('rich')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines()[-1] == "[]"


RED, BLUE, GREY = "#ff0000", "#0000ff", "#808080"


@pytest.mark.parametrize(
    ("parts", "pieces"),
    [
        ([(1, RED), (1, BLUE)], [("██", RED), ("██", BLUE)]),
        ([(3, RED), (5, BLUE)], [("█", RED), ("▌", f"{RED} on {BLUE}"), ("██", BLUE)]),
        ([(31, RED), (1, BLUE)], [("███", RED), ("▉", f"{RED} on {BLUE}")]),
        ([(1, RED)], [("████", RED)]),
        ([(0, RED), (4, BLUE)], [("████", BLUE)]),
        ([(0, RED)], []),
    ],
)
def test_a_bar_is_exact_to_an_eighth_of_a_cell(parts, pieces):
    assert list(bar_of(parts, 4)) == pieces


def test_three_parts_within_one_cell_keep_the_bars_length():
    for parts in ([(1, RED), (1, GREY), (30, BLUE)], [(13, RED), (2, GREY), (17, BLUE)], [(1, RED)] * 32):
        assert sum(len(text) for text, _ in bar_of(parts, 4)) == 4


def test_a_colour_is_written_with_its_three_parts(monkeypatch):
    assert join_lines([(("▌", f"{RED} on {BLUE}"),)], colours=True) == "\x1b[38;2;255;0;0;48;2;0;0;255m▌\x1b[0m\n"
