"""Writes the pages of the documentation that are made from declarations in the code.

With `--check` it writes nothing, lists the pages that are out of date, and fails if there is one.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from enum import Enum
from pathlib import Path

import stepscope
from stepscope.analysis.registry import TOOLS, Tool
from stepscope.model import (
    TABLES,
    EventKind,
    HostTrace,
    LineKind,
    PlaneKind,
    StatTag,
    Table,
    TraceBuilder,
    Trait,
)
from stepscope.report import Comparable, Prose, Section
from stepscope.sql.all_views import VIEWS
from stepscope.sql.macros import MACROS
from stepscope.sql.stats_view import DOC as STATS_DOC
from stepscope.sql.stats_view import NAME as STATS
from stepscope.sql.tool_tables import declared_tables

DOCS = Path(__file__).resolve().parent.parent / "docs"
NOTICE = "<!-- Made by scripts/gen_docs.py; change the declarations and run `make docs`. -->"
NAVIGATION = "mkdocs.yml"
KINDS: tuple[type[Enum], ...] = (PlaneKind, LineKind, EventKind, Trait, StatTag)

CALLBACKS = ("keras", "lightning", "huggingface")  # their modules import the framework
REFERENCE = {
    "Recording": (
        *("Profile", "Trace", "ProfilerOptions", "start", "stop", "step", "annotate", "schedule", "Profiler", "warmup"),
        "last_error",
    ),
    "Callbacks": tuple(f"{framework}.ProfilerCallback" for framework in CALLBACKS),
    "Watching all the time": ("watch", "observe", "trigger"),
    "Proving": ("prove",),
    "Reading": ("load", "compare", "timeline"),
    "Budgets": ("budget", "gate", "BudgetWarning"),
    "Servers and clients": (
        *("server.start", "server.stop", "client.trace", "client.monitor", "client.ContinuousProfiling"),
        *("client.capture_workers", "client.check", "client.CaptureRequest", "client.CaptureOutcome"),
        *("client.WorkerStatus", "client.Phase", "client.Failure", "client.Cause"),
    ),
    "Errors": ("StepscopeError",),
}
"""The public names below `stepscope`, by heading of the reference."""

Pages = dict[str, str]  # path below docs/ -> text


def table_pages() -> Pages:
    """`tables.md`, from the declarations in `stepscope.model.tables` and `stepscope.model.kinds`."""
    lines = [
        NOTICE,
        "# Tables of a trace",
        "",
        "A `HostTrace` is these tables. Each is a set of equally long numpy arrays, its columns. Rows are linked by",
        "row number, text by its row in the string table. Row 0 of the string table is the empty string; -1 means",
        "“none”. Times are picoseconds from the start of the session.",
    ]
    for table in TABLES:
        lines += ["", *_table(table)]
    lines += ["", "# Kinds", "", "Decided once, by the reader, so that no tool has to look at a name again."]
    for kind in KINDS:
        lines += ["", *_kind(kind)]
    return {"tables.md": "\n".join(lines) + "\n"}


def tool_pages() -> Pages:
    """`tools/NAME.md` for every tool of the registry: its module's docstring, and the fields of its report."""
    trace = small_trace()
    return {f"tools/{tool.name}.md": "\n".join(_tool(tool, trace)) + "\n" for tool in TOOLS}


def sql_pages() -> Pages:
    """`sql-tables.md`, from the declarations in `stepscope.sql` and the reports of the tools."""
    lines = [
        NOTICE,
        "# Tables for SQL",
        "",
        "What [`stepscope sql`](sql.md) can ask for. Times are picoseconds from the start of the session; `us()`,",
        "`ms()` and `seconds()` convert them. `row` numbers are unique in a session.",
    ]
    for view in VIEWS:
        rows = [(f"`{column.name}`", column.type_name, column.unit, column.doc) for column in view.columns]
        table = markdown_table(("column", "type", "unit", "meaning"), rows)
        lines += ["", f"## `{view.name}`", "", view.doc, "", *table]
    lines += ["", f"## `{STATS}`", "", STATS_DOC]
    calls = [(f"`{macro.call}`", "table" if macro.is_table else "value", macro.doc) for macro in MACROS]
    lines += ["", "## Functions", "", *markdown_table(("call", "gives", "meaning"), calls)]
    lines += ["", "## Tables of tools", "", "Their columns are described on the pages of the tools.", ""]
    tables = [
        (", ".join(f"`{name}`" for name in table.names), f"[{table.tool}](tools/{table.tool}.md)", table.title)
        for table in declared_tables()
    ]
    lines += markdown_table(("table", "tool", "what it holds"), tables)
    return {"sql-tables.md": "\n".join(lines) + "\n"}


def reference_page() -> Pages:
    """`reference.md`: where the docstring of each public name is; mkdocstrings puts it there when the site is built."""
    lines = [
        NOTICE,
        "# Python reference",
        "",
        "The public names of `import stepscope`, from their docstrings. Each is looked up on first use, so that the",
        "import costs a training job almost nothing.",
    ]
    for heading, names in REFERENCE.items():
        lines += ["", f"## {heading}"]
        for name in names:
            lines += ["", f"### stepscope.{name}", "", f"::: {home_of(name)}"]
    home = "stepscope.api.LoadedProfile"
    lines += ["", "## What `load` returns", "", f"::: {home}"]
    return {"reference.md": "\n".join(lines) + "\n"}


def home_of(name: str) -> str:
    """Where a public name is defined: `stepscope.capture.tracers.ranges.step` for `step`."""
    module, _, attribute = name.rpartition(".")
    if module in CALLBACKS:
        return f"stepscope.capture.callbacks.{name}"
    thing = getattr(getattr(stepscope, module) if module else stepscope, attribute)
    return f"{thing.__module__}.{thing.__qualname__}"


def navigation() -> Pages:
    """`mkdocs.yml` with the pages of the tools in the order of the registry."""
    text = (DOCS.parent / NAVIGATION).read_text("utf-8")
    listed = "".join(f"      - {tool.name}: tools/{tool.name}.md\n" for tool in TOOLS)
    return {f"../{NAVIGATION}": re.sub(r"(?m)(?<=^  - Tools:\n)(?:      - .*\n)+", lambda _: listed, text)}


MAKERS: tuple[Callable[[], Pages], ...] = (table_pages, tool_pages, sql_pages, reference_page, navigation)


def pages() -> Pages:
    """All generated pages."""
    return {name: text for make in MAKERS for name, text in make().items()}


def markdown_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """The lines of a Markdown table; a `|` in a cell stays text."""
    cells = [[str(cell).replace("|", "\\|") for cell in row] for row in rows]
    return ["| " + " | ".join(row) + " |" for row in [list(head), ["---"] * len(head), *cells]]


def small_trace() -> HostTrace:
    """Two steps with one kernel each: a report describes its fields by itself, so that any trace will do."""
    builder = TraceBuilder("host")
    python = builder.line(builder.plane("/host:CPU", PlaneKind.HOST), "python")
    stream = builder.line(builder.plane("/device:GPU:0", PlaneKind.GPU, 0), "stream 1", kind=LineKind.STREAM)
    for step, start in enumerate((0, 2_000_000)):
        python.event("train", start, 1_000_000, EventKind.STEP_MARK, {"step_num": step})
        python.event("launch", start, 1_000, EventKind.RUNTIME_CALL, {"correlation_id": step + 1})
        stream.event("kernel", start + 2_000, 500_000, EventKind.KERNEL, {"correlation_id": step + 1})
    return builder.build()


def _tool(tool: Tool, trace: HostTrace) -> list[str]:
    report = tool.merge([tool.partial(trace)])
    module = importlib.import_module(tool.module)
    tables = [section for section in report.sections() if not isinstance(section, Prose)] or [report.main_table()]
    sections = [line for section in tables for line in _section(section)]
    return [
        NOTICE,
        f"# {tool.name}",
        "",
        f"Shows {tool.summary}.",
        "",
        f"    stepscope {tool.name} PATH",
        f"    stepscope.load(PATH).{tool.method}()        # in Python",
        "",
        inspect.cleandoc(module.__doc__ or ""),
        *sections,
        *_comparables(tool),
        "",
        "In JSON, `hosts`, `warnings` and `partial` stand beside these; see [Concepts](../concepts.md).",
    ]


def _comparables(tool: Tool) -> list[str]:
    """What `stepscope compare` compares of the tool."""
    if not tool.comparables:
        return []
    command = f"`stepscope compare BEFORE AFTER --tool {tool.name}` compares, with rows matched by their keys:"
    rows = [
        (f"`{each.id}`", ", ".join(f"`{key.name}`" for key in each.keys), _measure(each)) for each in tool.comparables
    ]
    return [
        "",
        "## Compared between two sessions",
        "",
        command,
        "",
        *markdown_table(("table", "keys", "compared"), rows),
    ]


def _measure(comparable: Comparable) -> str:
    return f"{comparable.measure.doc}{', per step' if comparable.is_total else ''}"


def _section(section: Section) -> list[str]:
    if isinstance(section, Prose):
        return []
    rows = [(f"`{field.name}`", field.unit, field.doc) for field in section.fields]
    table = markdown_table(("field", "unit", "meaning"), rows)
    return ["", f"## {section.title}", "", f"Section `{section.id}`.", "", *table]


def _table(table: type[Table]) -> list[str]:
    columns = markdown_table(
        ("column", "type", "unit", "meaning"),
        [(f"`{column.name}`", column.dtype, column.unit, column.doc) for column in table.columns()],
    )
    # `Stats.offsets` has one entry more than there are rows, so it is no column.
    others = [f for f in fields(table) if "dtype" not in f.metadata]
    notes = [f"\n`{other.name}`: {other.metadata['doc']}." for other in others]
    return [f"## {_title(table)}", "", _doc(table), "", *columns, *notes]


def _kind(kind: type[Enum]) -> list[str]:
    members = ", ".join(f"`{member.name}` {member.value}" for member in kind)
    return [f"## {kind.__name__}", "", _doc(kind), "", members]


def _title(table: type[Table]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", table.__name__).capitalize()


def _doc(thing: type) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def stale(wanted: Pages, docs: Path = DOCS) -> list[str]:
    """Names of the pages whose committed text is not what the declarations say."""
    return [
        name for name, text in wanted.items() if not (docs / name).is_file() or (docs / name).read_text("utf-8") != text
    ]


def main() -> int:
    """Writes or checks the pages."""
    parser = argparse.ArgumentParser(description="Writes the generated pages of the documentation.")
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a page is out of date")
    wanted = pages()
    outdated = stale(wanted)
    if parser.parse_args().check:
        for name in outdated:
            print(f"docs/{name} is out of date; run `make docs`", file=sys.stderr)
        return 1 if outdated else 0
    for name in outdated:
        (DOCS / name).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / name).write_text(wanted[name], encoding="utf-8")
        print(f"wrote {(DOCS / name).resolve().relative_to(DOCS.parent)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
