"""`stepscope compare`: compares two sessions or more; `--fail-above` makes it a check for continuous integration."""

from __future__ import annotations

from typing import Annotated, Any

from stepscope.cli.options import Format, Output, OutputFormat, Sort, Steps, Top, Where, argument, option
from stepscope.cli.show import show_report, working
from stepscope.cli.tools import check_output, load_profile
from stepscope.errors import RegressionError, UsageError

_PATH = "a profile file, a session folder, a logdir, or a parent of these."
_Before = Annotated[str, argument(value="BEFORE", help=f"The profile before the change: {_PATH}")]
_After = Annotated[
    list[str], argument(value="AFTER", help=f"The profile after it: {_PATH} Several are each compared with BEFORE.")
]
_RunBefore = Annotated[
    str | None, option("--run-before", value="NAME", help="The session in BEFORE (default: the newest).")
]
_RunAfter = Annotated[
    str | None, option("--run-after", value="NAME", help="The session in AFTER (default: the newest).")
]
_Host = Annotated[
    str | None, option("--host", value="NAME", help="The host to compare on both sides (default: all hosts).")
]
_FailAbove = Annotated[
    float | None,
    option(
        "--fail-above",
        value="PERCENT",
        least=0.0,
        help="Exit with status 1 if the mean step is slower by more than this and by more than the noise.",
    ),
]
_Tools = Annotated[
    list[str] | None,
    option(
        "--tool",
        value="NAME",
        help="Compare the report of this tool; repeatable (default: breakdown, ops, kernels, memories and step times).",
    ),
]
_EveryTool = Annotated[bool, option("--all", help="Compare the reports of all tools.")]


def compare(
    before: _Before,
    after: _After,
    run_before: _RunBefore = None,
    run_after: _RunAfter = None,
    host: _Host = None,
    steps: Steps = None,
    fail_above: _FailAbove = None,
    tool: _Tools = None,
    every_tool: _EveryTool = False,
    form: Format = OutputFormat.TABLE,
    output: Output = None,
    top: Top = None,
    sort: Sort = None,
    where: Where = None,
) -> None:
    """Says whether a change helped, and by more than the noise."""
    from stepscope.analysis.compare.verdict import slower_percent
    from stepscope.api import compare as compare_profiles
    from stepscope.report import amount
    from stepscope.runs import compare_runs

    check_output(form, output)
    tools = _choose_tools(tool, every_tool)
    if len(after) > 1 and (tools or run_after):
        raise UsageError("--tool, --all and --run-after are for two profiles", hint="compare two of them")
    with working() as progress:
        one = load_profile(before, run_before, host, progress)
        others = [load_profile(path, run_after, host, progress, beside=one) for path in after]
        if len(others) == 1:
            report: Any = compare_profiles(one, others[0], steps=steps, tools=tools)
            changes = [(report.difference.slower_percent, report.verdict_text)]
        else:
            report = compare_runs([one, *others], steps=steps)
            changes = [
                (slower_percent(str(row["change"]), amount(row["change_percent"])), f"{row['run']}: {row['because']}")
                for row in report.rows[1:]
            ]
    show_report(report.arranged(sort, where or ()), form, output, top)
    if fail_above is not None:
        for slower, text in changes:
            check_gate(slower, text, fail_above)


def _choose_tools(named: list[str] | None, every_tool: bool) -> list[str] | None:
    """The tools to compare; None for the default ones.  Raises UsageError if both options are given."""
    from stepscope.analysis.compare.compare import comparable_tools

    if every_tool and named:
        raise UsageError("--tool and --all cannot be combined", hint="give one of them")
    return [each.name for each in comparable_tools()] if every_tool else named or None


def check_gate(slower: float | None, text: str, allowed_percent: float) -> None:
    """Raises RegressionError if the step got slower by more than the limit, or if the noise is unknown.

    Args:
        slower: percent by which the step got slower beyond the noise; None if the noise is unknown.
        text: the difference in a sentence.
    """
    if slower is None:
        reason = f"cannot decide whether the step got slower: {text}"
        raise RegressionError(reason, hint="record at least two steps on both sides")
    if not slower <= allowed_percent:  # NaN fails too
        raise RegressionError(f"more than the {allowed_percent:g} % of --fail-above: {text}")
