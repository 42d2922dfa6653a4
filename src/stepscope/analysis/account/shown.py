"""The account as reports show it: rows, and the sentence that says what most of a step is spent on."""

from __future__ import annotations

from collections.abc import Sequence

from stepscope.analysis.account.account import StepAccount
from stepscope.analysis.account.causes import MEANING, Cause
from stepscope.analysis.account.culprits import Culprit
from stepscope.report import Cell, Field, Role, clean, number_text, percent, round_ms, shorten_name

_LONGEST_NAME = 80

FIELDS: tuple[Field, ...] = (
    Field(
        "cause",
        "text",
        "what the step waits for; every moment of the median step has exactly one cause",
        "str",
        Role.TERM,
    ),
    Field("ms", "ms", "time of the median step, from its start to the start of the next"),
    Field("percent", "percent", "the same as a share of that step; the rows add up to 100"),
    Field("culprit", "text", "what most of that time is spent in: a function, an op or a kernel", "str", Role.NAME),
    Field("place", "text", "file and line of the function, where Python calls were recorded", "str", Role.SOURCE),
    Field("layer", "text", "the module that it runs in, where the trace says so", "str", Role.LABEL),
    Field("calls", "count", "how often it runs in the step", "int"),
    Field("culprit_ms", "ms", "the part of the cause's time that it takes"),
    Field("meaning", "text", "when a moment has that cause", "str", Role.MEANING),
)
SENTENCE_OF: dict[str, str] = {
    "unknown": "unexplained",
    "input": "input",
    "python": "Python of the loop",
    "host_compute": "computation on the host",
    "launch": "dispatching work",
    "device_compute": "computation on the device",
    "device_gap": "gaps between device work",
    "copy": "copies",
    "communication": "communication",
    "compile": "compiling",
    "sync": "waiting for a device that is done",
    "checkpoint": "saving or restoring state",
}


def account_shown(accounts: Sequence[StepAccount | None]) -> StepAccount | None:
    """The account that stands for a session: that of the host with the longest median step; None without any."""
    known = [account for account in accounts if account is not None and account.step_ps > 0]
    return max(known, key=lambda account: account.step_ps, default=None)


def account_json(account: StepAccount | None) -> list[dict[str, object]]:
    """The causes with their culprits, the longest first."""
    if account is None:
        return []
    return [
        {
            "cause": row.cause,
            "ms": round_ms(row.ps),
            "percent": percent(row.ps, account.step_ps),
            "culprit": None if row.culprit is None else _culprit_json(row.culprit),
        }
        for row in account.rows
    ]


def account_rows(account: StepAccount | None) -> tuple[dict[str, Cell], ...]:
    """The same as rows of a table; see FIELDS."""
    if account is None:
        return ()
    return tuple(
        {
            "cause": row.cause,
            "ms": round_ms(row.ps),
            "percent": percent(row.ps, account.step_ps),
            "culprit": row.culprit.name if row.culprit else None,
            "place": _place(row.culprit),
            "layer": row.culprit.layer if row.culprit else None,
            "calls": row.culprit.calls if row.culprit else None,
            "culprit_ms": round_ms(row.culprit.ps) if row.culprit else None,
            "meaning": MEANING[Cause[row.cause.upper()]],
        }
        for row in account.rows
    )


def account_sentence(account: StepAccount | None) -> str | None:
    """What most of a step is spent on, and where: one line; None without an account."""
    if account is None or not account.rows:
        return None
    row = account.rows[0]
    share = f"{100.0 * row.ps / account.step_ps:.1f} % of each step is {SENTENCE_OF[row.cause]}"
    return f"{share}{_largest_part(row.culprit, row.ps, account.step_ps)}"


def _largest_part(culprit: Culprit | None, cause_ps: int, step_ps: int) -> str:
    if culprit is None:
        return ""
    part = "most of it" if 2 * culprit.ps > cause_ps else "the largest part"
    name = shorten_name(clean(culprit.name), _LONGEST_NAME)
    where = f"{_place(culprit)} {name}" if culprit.file else name
    each = number_text(round_ms(culprit.ps / max(culprit.calls, 1)))
    calls = f"{culprit.calls} calls of {each} ms" if culprit.calls != 1 else f"1 call of {each} ms"
    inside = f", inside it `{shorten_name(clean(culprit.inside), _LONGEST_NAME)}`" if culprit.inside else ""
    return f"; {part} `{where}` ({calls}, {100.0 * culprit.ps / step_ps:.1f} % of the step){inside}"


def _place(culprit: Culprit | None) -> str | None:
    return f"{culprit.file}:{culprit.line}" if culprit and culprit.file else None


def _culprit_json(culprit: Culprit) -> dict[str, object]:
    return {
        "name": culprit.name,
        "file": culprit.file,
        "line": culprit.line,
        "op": culprit.op,
        "layer": culprit.layer,
        "calls": culprit.calls,
        "ms": round_ms(culprit.ps),
        "inside": culprit.inside,
    }
