"""The time of the loop's thread by functions and lines of the program, by recorded calls or by samples of its stack.

Ops are found by the line that calls them.  Python between them is no op: where a loop decodes its data, only the stack
says which function and line take the time.
"""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.account.functions import functions_of_loop
from stepscope.analysis.account.statements import lines_of_thread
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import Field, Role, Table
from stepscope.report.relation import Counted, Relation
from stepscope.vocabulary.python import place_of

MOST_ROWS = 500  # kept per host and table, those with most time

_OF_LOOP = "of the time of the loop's thread in which steps were observed"
FUNCTION_FIELDS: tuple[Field, ...] = (
    Field(
        "call_site",
        "text",
        "the function of the program, and the line that defines it",
        role=Role.SOURCE,
        label="Function",
    ),
    Field("total_us", "us", "time of the loop's thread in the function, with all that it calls"),
    Field("total_percent", "percent", f"share {_OF_LOOP}"),
)
LINE_FIELDS: tuple[Field, ...] = (
    Field(
        "call_site", "text", "the line of the program, and the function that it is in", role=Role.SOURCE, label="Line"
    ),
    Field(
        "self_us",
        "us",
        "time of the loop's thread in the line itself, its ops, and the libraries that it calls, but in no other line "
        "of the program; by samples of the stack",
    ),
    Field("self_percent", "percent", f"share of that {_OF_LOOP}"),
    Field("total_us", "us", "the same with the lines of the program that it calls"),
    Field("total_percent", "percent", f"share of that {_OF_LOOP}"),
)

FUNCTIONS = Relation(("call_site",), ("total_ps",), order=("-total_ps", "call_site"), most=MOST_ROWS)
LINES = Relation(("call_site",), ("self_ps", "total_ps"), order=("-self_ps", "-total_ps", "call_site"), most=MOST_ROWS)


@dataclass(frozen=True)
class ProgramTime:
    """The part of one host; `observed_ps` is the time of the loop's thread in which steps were observed."""

    functions: Counted
    lines: Counted
    observed_ps: int


def program_time(trace: HostTrace) -> ProgramTime:
    """The time of the program's functions and lines on the loop's thread; without rows where none is known."""
    loop = threads_of(trace).main
    functions = [(place_of(trace.name_of(each.frame)), each.spans.total) for each in functions_of_loop(trace)]
    lines = lines_of_thread(trace, loop) if loop >= 0 else []
    return ProgramTime(
        FUNCTIONS.keep([(f"{file}({at}): {name}", ps) for (name, file, at), ps in functions if file]),
        LINES.keep(
            [(f"{each.file}({each.line}): {each.function}", each.own.total, each.spans.total) for each in lines]
        ),
        observed_time(trace).total,
    )


def tables_of(parts: Sequence[ProgramTime]) -> tuple[Table, Table]:
    """The lines and the functions of all hosts."""
    functions = FUNCTIONS.merge([part.functions for part in parts])
    lines = LINES.merge([part.lines for part in parts])
    observed = sum(part.observed_ps for part in parts)
    shares = {f"{name}_percent": lines.share(f"{name}_ps", observed) for name in ("self", "total")}
    return lines.table(LINE_FIELDS, **shares), functions.table(
        FUNCTION_FIELDS, total_percent=functions.share("total_ps", observed)
    )
