"""The magics of `%load_ext stepscope`: `%%stepscope` profiles a cell, `%stepscope summary PATH` shows a report."""

from __future__ import annotations

import argparse
import ast
import shlex
import tempfile
from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NoReturn

from stepscope.analysis.registry import TOOLS
from stepscope.errors import CaptureError, StepscopeError, UsageError
from stepscope.records import dataclass
from stepscope.report import Report, clean
from stepscope.report.html import render_screen

if TYPE_CHECKING:
    from stepscope.api import LoadedProfile

VARIABLE = "stepscope_profile"
"""The name under which a cell's profile can be used."""

_ON_SCREEN = ("verdict ", "goes to ", "filled by ", "do first ", " " * 11 + "- ")  # lines that the first screen says


@dataclass(frozen=True)
class Summary:
    """The ten lines of a report; in a notebook its first screen, and the lines that say more."""

    report: Report

    def __repr__(self) -> str:
        return "\n".join(self.report.summary_lines())

    def _repr_html_(self) -> str:
        lines = [line for line in clean_lines(repr(self)).split("\n") if not line.startswith(_ON_SCREEN)]
        screen = self.report.first_screen()
        return (
            f"{render_screen(screen) if screen else ''}"
            '<pre style="white-space:pre-wrap;line-height:1.45;font-family:monospace">'
            f"{escape(chr(10).join(lines))}</pre>"
        )


def clean_lines(text: str) -> str:
    """The text without control characters in its lines."""
    return "\n".join(map(clean, text.split("\n")))


class _Words(argparse.ArgumentParser):
    """A parser whose errors are ours: a notebook must not exit."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"%stepscope: {message}", hint=self.format_usage().strip())


def split_line(line: str) -> list[str]:
    """The words of a line, as a shell cuts it.  Raises UsageError for a quotation mark that is not closed."""
    try:
        return shlex.split(line)
    except ValueError as error:
        raise UsageError(f"%stepscope: a quotation mark is not closed in {line!r}", hint="close it") from error


def load_extension(shell: Any) -> None:
    """Adds the magics to a shell of IPython."""
    shell.register_magic_function(_line_magic, "line", "stepscope")

    def stepscope(line: str, cell: str) -> Any:
        """Profiles the cell and shows where its time went.

        --logdir FOLDER keeps the profile, -o NAME names the variable that holds it, --tool NAME shows another report.
        """
        return profile_cell(shell, line, cell)

    shell.register_magic_function(stepscope, "cell", "stepscope")


def _line_magic(line: str) -> Any:
    """Shows a report: `%stepscope summary PATH`, or any tool, `compare BEFORE AFTER`, `timeline PATH`.

    Options: --run, --host, --steps, --sort, --where, --top, as on the command line.
    """
    from IPython.core.error import UsageError as LineOfIPython

    try:
        return show_line(split_line(line))
    except StepscopeError as error:
        raise LineOfIPython(str(error)) from None  # shown as this line, without the calls that led to it


# -- %stepscope ----------------------------------------------------------------------------------------------------


def show_line(words: Sequence[str]) -> Any:
    """What a line asks for.  Raises UsageError with what can be asked."""
    if not words:
        raise UsageError("%stepscope shows a report", hint="for example %stepscope summary logs")
    name, rest = words[0], list(words[1:])
    if name == "compare":
        return _show_comparison(rest)
    shows = _SHOWS.get(name) or (_show_tool if name in [tool.name for tool in TOOLS] else None)
    if shows is None:
        from difflib import get_close_matches

        known = [*_SHOWS, "compare", *(tool.name for tool in TOOLS)]
        near = get_close_matches(name, known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
        raise UsageError(f"there is no report {name!r}", hint=hint)
    return shows(name, _read_options(name, rest))


def _read_options(name: str, words: Sequence[str]) -> argparse.Namespace:
    parser = _Words(prog=f"%stepscope {name}", add_help=False)
    parser.add_argument("path")
    for option in ("--run", "--host", "--steps", "--sort"):
        parser.add_argument(option)
    parser.add_argument("--where", action="append", default=[])
    parser.add_argument("--top", type=int)
    return parser.parse_args(words)


def _load(options: argparse.Namespace) -> LoadedProfile:
    from stepscope.api import load

    return load(options.path, run=options.run, host=options.host)


def _show_summary(_: str, options: argparse.Namespace) -> Summary:
    return Summary(_load(options).report("overview", steps=options.steps))


def _show_timeline(_: str, options: argparse.Namespace) -> Any:
    from stepscope.notebook.widget import timeline

    return timeline(_load(options), host=options.host)


def _show_tool(name: str, options: argparse.Namespace) -> Report:
    report = _load(options).report(name, steps=options.steps).arranged(options.sort, options.where)
    return report if options.top is None else report.head(options.top)


def _show_comparison(words: Sequence[str]) -> Report:
    from stepscope.api import compare

    if len(words) != 2:
        raise UsageError("compare takes two paths", hint="%stepscope compare BEFORE AFTER")
    return compare(*words)


_SHOWS: dict[str, Callable[[str, argparse.Namespace], Any]] = {"summary": _show_summary, "timeline": _show_timeline}


# -- %%stepscope ---------------------------------------------------------------------------------------------------


def profile_cell(shell: Any, line: str, cell: str) -> Any:
    """Runs a cell under the profiler; what it shows is its summary, or the report of `--tool`.

    The value of the cell's last line is shown as always.  An error of the cell ends it as always.
    """
    from stepscope.api import load
    from stepscope.capture import Profile

    options = _read_cell_options(split_line(line))
    folder = options.logdir or tempfile.mkdtemp(prefix="stepscope-cell-")
    capture = Profile(folder)
    with capture:
        value = run_source(shell, cell)
    if value is not None:
        shell.display_pub.publish(*shell.display_formatter.format(value))
    if capture.path is None:
        raise CaptureError("the cell was not recorded", hint="another capture may be running; see the log")
    profile = load(capture.path)
    shell.user_ns[options.o] = profile
    return Summary(profile.report("overview")) if options.tool is None else profile.report(options.tool)


def run_source(shell: Any, cell: str) -> Any:
    """Runs the source of a cell among the variables of the notebook; returns the value of its last line, if it has one.

    The code has the file name that the notebook gives to a cell, so that tracebacks and profiles name its lines.
    """
    source = shell.transform_cell(cell)
    name = shell.compile.cache(source)
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(shell.compile(tree, name, "exec"), shell.user_ns)
    if last is None:
        return None
    value = eval(shell.compile(ast.Expression(last.value), name, "eval"), shell.user_ns)
    return None if source.rstrip().endswith(";") else value


def _read_cell_options(words: Sequence[str]) -> argparse.Namespace:
    parser = _Words(prog="%%stepscope", add_help=False)
    parser.add_argument("--logdir")
    parser.add_argument("--tool", choices=[tool.name for tool in TOOLS])
    parser.add_argument("-o", default=VARIABLE, metavar="NAME")
    return parser.parse_args(words)
