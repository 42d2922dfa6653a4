"""The commands: one for each registered tool, and the others.  A command's module is imported when it is called."""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from stepscope.analysis.registry import GROUP, GUIDE_NAMES, TOOLS, Tool, tool_named
from stepscope.cli import defaults, process
from stepscope.cli.options import option
from stepscope.cli.words import Parameter, parameters_of, read_words, wants_given
from stepscope.errors import UsageError
from stepscope.plugins import entry_points_of
from stepscope.records import dataclass

VERSION = option("--version", "-V", help="Show the version and exit.")
HELP = option("--help", "-h", help="Show this message and exit.")
ENGINE = option(
    "--engine",
    value="ENGINE",
    help="Where to analyse the hosts: local, ray or dask, with =ADDRESS for a cluster (default: this machine).",
)
MEMORY = option("--memory", value="SIZE", help="The memory to use, such as 4GB (default: half of what is free).")


def _declare_resources(
    engine: Annotated[list[str] | None, ENGINE] = None, memory: Annotated[str | None, MEMORY] = None
) -> None:
    """Declares what every command takes that reads profiles; it is never called."""


@dataclass
class Command:
    """A command.

    Attributes:
        name: as written on the command line.
        place: the function, in a module of this folder: `sql:sql`.
        tool: the tool that it shows; empty for another command.
        about: its help; the function's docstring if empty.
        reads: whether it reads profiles, and so takes `--engine` and `--memory`.
        passes_on: whether the words behind its first argument are for somebody else.
        examples: lines below its help.
    """

    name: str
    place: str
    tool: str = ""
    about: str = ""
    reads: bool = True
    passes_on: bool = False
    examples: tuple[str, ...] = ()

    @cached_property
    def function(self) -> Callable[..., object]:
        """The function; its module is imported now."""
        module, _, name = self.place.partition(":")
        return getattr(importlib.import_module(f"stepscope.cli.{module}"), name)  # type: ignore[no-any-return]

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the function, and the resources, unless it has an option of that name itself."""
        own = parameters_of(self.function)
        shared = parameters_of(_declare_resources) if self.reads else ()
        return (*own, *(each for each in shared if each.field not in {known.field for known in own}))

    @property
    def help(self) -> str:
        """What it does, in paragraphs."""
        return self.about or inspect.getdoc(self.function) or ""

    @property
    def shows_tool(self) -> bool:
        """Whether it shows a tool or the summary, and so starts no thread and no process that outlives it."""
        return self.place.startswith("tools:")

    def run(self, words: Sequence[str]) -> object:
        """Reads the words behind the command's name, and calls the function.  Raises UsageError, HelpWanted."""
        known = defaults.read().get(self.name, {})
        options = [name[2:] for each in self.parameters for name in each.option.names if name.startswith("--")]
        try:
            values, given = read_words(words, self.parameters, known, self.passes_on)
        except UsageError as error:
            hint = error.problem.hint or f"see stepscope {self.name} --help"
            raise UsageError(error.problem.reason, hint=hint) from error
        defaults.check_names(self.name, options)
        if self.reads:
            _use_resources(self, values, given.fields | known.keys())
        if self.tool:
            values["tool"] = self.tool
        name = wants_given(self.function)
        return self.function(**values, **({name: given} if name else {}))


def _use_resources(command: Command, values: dict[str, Any], given: set[str] | frozenset[str]) -> None:
    """Has this process use the engine and keep to the memory that were given.  Their values become variables of the
    environment, which is where `stepscope.load` looks when it is called without them.  Raises UsageError."""
    own = {each.field for each in parameters_of(command.function)}
    engine, memory = values.get("engine"), values.get("memory")
    for field in {"engine", "memory"} - own:
        values.pop(field)
    if engine and "engine" not in own:
        from stepscope.engines import choice

        if len(engine) > 1:
            raise UsageError(f"--engine is given {len(engine)} times", hint="a command uses one engine")
        os.environ[choice.VARIABLE] = str(choice.parse_engine(engine[0]))
    if memory is not None and "memory" in given:
        from stepscope.engines import budget, spilling

        budget.parse_size(memory)
        os.environ[budget.VARIABLE] = memory
        if process.words is not None:
            spilling.allow()


def _tool_command(tool: Tool) -> Command:
    about = f"{tool.summary[0].upper()}{tool.summary[1:]}."
    return Command(tool.name, "tools:show_tool", tool.name, about)


_SQL_EXAMPLES = (
    'stepscope sql logs "SELECT name, ms(sum(self_ps)) AS ms FROM ops GROUP BY name ORDER BY ms DESC LIMIT 10"',
    'stepscope sql before=logs/1 after=logs/2 "SELECT max(b.step), max(a.step) FROM before.steps b, after.steps a"',
    "stepscope sql logs shows the tables and their columns.",
)
_OWN_TOOLS = {tool.name: _tool_command(tool) for tool in TOOLS}

PANELS: dict[str, tuple[Command, ...]] = {
    "Start here": (
        Command("run", "run:run", reads=False, passes_on=True),
        Command("summary", "tools:show_summary"),
        _OWN_TOOLS.pop("advice"),
        Command("whatif", "whatif:whatif"),
        Command("compare", "compare:compare"),
        Command("runs", "runs:runs"),
        Command("open", "serve:open_page"),
        Command("doctor", "first_look:doctor"),
    ),
    "Record and measure": (
        Command("demo", "first_look:demo", reads=False),
        Command("prove", "prove:prove", passes_on=True),
        Command("capture", "capture:capture", reads=False),
        Command("trigger", "over_time:trigger", reads=False),
        Command("over-time", "over_time:over_time"),
    ),
    "Look closer": (*_OWN_TOOLS.values(), Command("sql", "sql:sql", examples=_SQL_EXAMPLES)),
    "Share and automate": (
        Command("report", "report:report"),
        Command("trace", "trace:trace"),
        Command("hlo-graph", "hlo_graph:hlo_graph"),
        Command("serve", "team:serve_team"),
        Command("tokens", "tokens:list_tokens", reads=False),
        Command("gate", "gate:gate"),
        Command("mcp", "mcp:serve"),
        Command("skill", "skill:skill", reads=False),
        Command("schema", "schema:print_schema", reads=False),
        Command("man", "man:man", reads=False),
    ),
}
"""The commands of this package, in the order of the help."""

_OWN = {command.name: command for panel in PANELS.values() for command in panel}


def all_panels() -> dict[str, tuple[Command, ...]]:
    """The commands by the headings of the help, with those of the tools of other packages."""
    added = tuple(_tool_command(tool_named(name)) for name in _added_names())
    return {**PANELS, "Look closer": (*added, *PANELS["Look closer"])}


def all_names() -> list[str]:
    """The names of all commands."""
    return [*_added_names(), *_OWN]


def _added_names() -> list[str]:
    return [point.name for point in entry_points_of(GROUP) if point.name not in _OWN]


def find_command(word: str) -> Command:
    """The command of a name, also in the style of Python or of the TensorFlow Profiler's guide.  Raises UsageError."""
    for name in (word, {"trace_viewer": "open", **GUIDE_NAMES}.get(word, word.replace("_", "-"))):
        if name in _OWN:
            return _OWN[name]
        if name in _added_names():
            return _tool_command(tool_named(name))
    if not word.startswith("-") and ("/" in word or os.sep in word or Path(word).exists()):
        raise UsageError(f"{word!r} is not a command. To read the profile: stepscope summary {word}", hint=_SEE_HELP)
    import difflib

    near = difflib.get_close_matches(word, all_names(), n=1)
    meant = f"; did you mean {near[0]!r}?" if near else ""
    what = "option:" if word.startswith("-") else "command"
    raise UsageError(f"no such {what} {word if word.startswith('-') else repr(word)}{meant}", hint=_SEE_HELP)


_SEE_HELP = "see stepscope --help"
