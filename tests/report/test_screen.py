"""Lines of text with styles, for terminals, pipes and files."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest

from stepscope.report.screen import (
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
