"""The commands: one for each registered tool, and the others."""

from __future__ import annotations

import gc
import importlib
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stepscope.analysis.registry import GROUP, TOOLS, Tool, tool_named
from stepscope.cli.late import Register, make_group_class
from stepscope.cli.options import (
    FORMAT,
    HOST,
    MORE_PATHS_HELP,
    OUTPUT,
    PATH_HELP,
    RUN,
    SORT,
    STEPS,
    TOP,
    WHERE,
    WHY,
    OutputFormat,
    ToolRequest,
    stdout_if_dash,
)  # fmt: skip
from stepscope.cli.parameters import parameter
from stepscope.cli.plain import SUMMARY
from stepscope.cli.show import show_report, show_summary, working
from stepscope.cli.tools import check_output, load_profile, show
from stepscope.errors import CaptureError, InputError, counted
from stepscope.plugins import entry_points_of

if TYPE_CHECKING:
    from stepscope.doctor import DoctorReport

DEMO_ONCE = "DEMO_ONCE"
"""If this is set in the environment, the demo exits after its summary instead of serving the page."""


ProfilePath = Annotated[str, typer.Argument(metavar="PATH", help=PATH_HELP)]
MorePaths = Annotated[list[str] | None, typer.Argument(metavar="MORE", help=MORE_PATHS_HELP)]
RunName = Annotated[str | None, parameter(RUN)]
HostName = Annotated[str | None, parameter(HOST)]
Steps = Annotated[str | None, parameter(STEPS)]
Format = Annotated[OutputFormat, parameter(FORMAT)]
Output = Annotated[Path | None, parameter(OUTPUT, callback=stdout_if_dash)]
Sort = Annotated[str | None, parameter(SORT)]
Where = Annotated[list[str] | None, parameter(WHERE)]
Top = Annotated[int | None, parameter(TOP, min=1)]


def _print_version(wanted: bool) -> None:
    if wanted:
        from stepscope import __version__

        typer.echo(f"stepscope {__version__}")
        raise typer.Exit


def summary(
    path: ProfilePath,
    more: MorePaths = None,
    run: RunName = None,
    host: HostName = None,
    steps: Steps = None,
    form: Annotated[
        OutputFormat, typer.Option("--format", help="table: the ten lines; any other format: the whole overview.")
    ] = OutputFormat.TABLE,
    output: Output = None,
    why: Annotated[bool, parameter(WHY)] = False,
) -> None:
    """Shows ten lines: the verdict, where the step time goes, the top ops, the first advice."""
    show(_request(SUMMARY, locals()))


def _request(tool: str, words: Mapping[str, Any]) -> ToolRequest:
    """The request of a command whose parameters are named like the fields."""
    lists = {name: tuple(words.get(name) or ()) for name in ("more", "where")}
    return ToolRequest(**{**words, **lists, "tool": tool})


def _register_tool(tool: Tool, app: typer.Typer) -> None:
    def command(
        path: ProfilePath,
        more: MorePaths = None,
        run: RunName = None,
        host: HostName = None,
        steps: Steps = None,
        form: Format = OutputFormat.TABLE,
        output: Output = None,
        top: Top = None,
        sort: Sort = None,
        where: Where = None,
    ) -> None:
        show(_request(tool.name, locals()))

    app.command(tool.name, help=f"{tool.summary[0].upper()}{tool.summary[1:]}.")(command)


def doctor(
    logdir: Annotated[str | None, typer.Argument(metavar="LOGDIR", help="A folder that should hold profiles.")] = None,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
) -> None:
    """Checks a logdir and says what is wrong and what to do; without LOGDIR, checks whether this machine can record."""
    from stepscope.doctor import examine_logdir, examine_machine

    check_output(form, output)
    with working() as progress:
        report = examine_machine() if logdir is None else examine_logdir(logdir, progress)
    show_report(report, form, output, None)
    if logdir is None:
        refuse_machine(report)
    else:
        refuse_missing(logdir)


def refuse_machine(report: DoctorReport) -> None:
    """Raises CaptureError if a capture would fail on this machine."""
    problems = [check.check for check in report.checks if check.state == "problem"]
    if problems:
        raise CaptureError(
            f"{counted(len(problems), 'problem')} would make a capture fail here: {', '.join(problems)}",
            code="machine",
            hint="see the report for what to do",
        )


def refuse_missing(logdir: str) -> None:
    """Raises InputError if there is nothing at a path: a script that checks a logdir should notice a wrong one."""
    from stepscope.formats.store import is_remote

    if not is_remote(logdir) and not Path(logdir).exists():
        raise InputError("there is no such file or folder", path=logdir, hint="check the path")


def demo(
    logdir: Annotated[
        Path | None, typer.Option("--logdir", help="The folder for the profile (default: a temporary one).")
    ] = None,
    framework: Annotated[str | None, typer.Option("--framework", help="jax, torch, tensorflow or numpy.")] = None,
) -> None:
    """Trains a small model under the profiler, shows where its time went and, in a terminal, opens the page."""
    from stepscope.cli.serve import serve
    from stepscope.demo import check_framework, train

    check_framework(framework)
    gc.enable()  # training makes garbage; see `stepscope.cli.main.main`
    folder = logdir or Path(tempfile.mkdtemp(prefix="stepscope-demo-"))
    typer.echo(f"training a small model under the profiler, into {folder}", err=True)
    path = train(folder, framework)
    with working() as progress:
        report = load_profile(str(path), None, None, progress).overview()
    show_summary(report)
    typer.echo(f"\nthe profile is {path}\nmore: stepscope open {folder}; stepscope overview {folder}")
    if sys.stdout.isatty() and not os.environ.get(DEMO_ONCE):
        typer.echo()
        serve(str(folder))


def _own(command: Callable[..., None]) -> Register:
    return lambda app: app.command(command.__name__)(command)


def _late(place: str, name: str = "") -> Register:
    """Adds a function of a module of this folder as a command: `sql:sql`.  `SETTINGS` of the module are the library's.

    Args:
        name: of the command, if it is not the function's.
    """
    module_name, _, function = place.partition(":")

    def register(app: typer.Typer) -> None:
        module = importlib.import_module(f"stepscope.cli.{module_name}")
        app.command(name or function.replace("_", "-"), **getattr(module, "SETTINGS", {}))(getattr(module, function))

    return register


def _register_added(name: str, app: typer.Typer) -> None:
    """Adds the command of a tool of another package, which is imported now."""
    _register_tool(tool_named(name), app)


_TOOLS: dict[str, Register] = {
    **{point.name: partial(_register_added, point.name) for point in entry_points_of(GROUP)},
    **{tool.name: partial(_register_tool, tool) for tool in TOOLS},
}

PANELS: dict[str, dict[str, Register]] = {
    "Start here": {
        "summary": _own(summary),
        "advice": _TOOLS.pop("advice"),
        "whatif": _late("whatif:whatif"),
        "compare": _late("compare:compare"),
        "runs": _late("runs:runs"),
        "open": _late("open:open_command", "open"),
        "serve": _late("team:serve_team", "serve"),
        "tokens": _late("tokens:list_tokens", "tokens"),
        "doctor": _own(doctor),
        "demo": _own(demo),
    },
    "Record a profile": {
        "run": _late("run:run"),
        "prove": _late("prove:prove"),
        "capture": _late("capture:capture"),
        "trigger": _late("over_time:trigger"),
        "over-time": _late("over_time:over_time"),
    },
    "Look closer": {**_TOOLS, "sql": _late("sql:sql")},
    "Take it elsewhere": {
        "report": _late("report:report"),
        "gate": _late("gate:gate"),
        "mcp": _late("mcp:serve", "mcp"),
        "skill": _late("skill:skill"),
        "trace": _late("trace:trace"),
        "hlo-graph": _late("hlo_graph:hlo_graph"),
        "schema": _late("schema:print_schema", "schema"),
        "man": _late("man:man"),
    },
}
"""What registers each command, in the order of the help.  The module of a command is imported when it is called."""

_COMMANDS = {name: register for panel in PANELS.values() for name, register in panel.items()}
_PANEL_OF = {name: title for title, panel in PANELS.items() for name in panel}

_EXAMPLES = """
Examples:\n
stepscope run train.py\n
stepscope summary logs\n
stepscope op-stats logs --sort=-avg_us --where type=mm\n
stepscope steps logs --format csv --output steps.csv
"""

app = typer.Typer(
    name="stepscope",
    cls=make_group_class(_COMMANDS, _PANEL_OF),
    epilog=_EXAMPLES,
    help="Shows where the step time of a training job goes and what to change first.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", "-V", help="Show the version and exit.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Takes the options before the command."""
