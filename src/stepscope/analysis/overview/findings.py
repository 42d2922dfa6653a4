"""The findings of an overview, each with an id that is the same in every session: for agents and scripts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from stepscope.analysis.account.account import StepAccount
from stepscope.analysis.account.account_text import account_json
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.steps.verdict import Verdict
from stepscope.analysis.trace.environment import Missing
from stepscope.report import Field, Role

VERDICT, RECORD, CAUSE, ADVICE, MISSING = "verdict", "record", "cause", "advice", "missing"
FINDING_FIELDS = (
    Field("id", "", "the same in every session: kind and name", "str", Role.LABEL),
    Field("kind", "", "verdict, record, advice, cause or missing", "str", Role.TERM),
    Field("title", "", "the finding in words", "str", Role.TEXT),
    Field("evidence", "", "what it rests on", "str", Role.TEXT),
    Field("ms", "ms", "time of the median step that it is about"),
    Field("percent", "percent", "share of the step that it is about; of advice, the share that it saves"),
    Field("predicted_speedup", "ratio", "how many times as fast steps would be after the advice"),
    Field("tool", "", "the tool that shows more", "str", Role.LABEL),
)
"""What each finding has beside `culprit` and `actions`."""

CULPRIT_FIELDS = (
    Field("name", "", "the function, op, kernel or stage", "str", Role.NAME),
    Field("file", "", "its file", "str", Role.SOURCE),
    Field("line", "number", "its line", "int", Role.ORDINAL),
    Field("op", "", "the op that takes most of that time", "str", Role.NAME),
    Field("layer", "", "the module of the model that it runs in", "str", Role.LABEL),
    Field("calls", "count", "how often it runs in the step", "int"),
    Field("ms", "ms", "time of the median step in it"),
    Field("inside", "", "the function in it that takes most of that time", "str", Role.NAME),
)

RECORD_AGAIN = "Record again, as figures are wrong or missing"


def list_findings(
    verdict: Verdict,
    account: StepAccount | None,
    advice: Sequence[Advice],
    missing: Sequence[Missing],
    record_first: str,
) -> list[dict[str, Any]]:
    """The verdict, how to record again if figures are wrong, the advice, what a step waits for, and what was not
    recorded: the most important first.

    Each has FINDING_FIELDS, `culprit` (CULPRIT_FIELDS) and `actions`; what it does not have is None or empty.
    """
    return [
        _finding(
            VERDICT,
            verdict.name,
            verdict.sentence,
            evidence="; ".join(verdict.evidence) or None,
            percent=verdict.share_percent,
            tool="overview",
        ),
        *([_finding(RECORD, "again", RECORD_AGAIN, actions=[record_first], tool="trust")] if record_first else []),
        *_advice_findings(advice),
        *_cause_findings(account),
        *_missing_findings(missing),
    ]


def _finding(kind: str, name: str, title: str, **known: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {
        "evidence": None, "ms": None, "percent": None, "culprit": None, "predicted_speedup": None, "actions": [],
    }  # fmt: skip
    return {"id": f"{kind}/{name}", "kind": kind, "title": title, **empty, **known}


def _advice_findings(advice: Sequence[Advice]) -> Iterator[dict[str, Any]]:
    for item in advice:
        found = item.to_dict()
        names = ("evidence", "culprit", "predicted_speedup", "actions", "tool")
        gain = None if item.gain_percent is None else round(item.gain_percent, 4)
        yield _finding(ADVICE, item.id, item.title, **{name: found[name] for name in names}, percent=gain)


def _cause_findings(account: StepAccount | None) -> Iterator[dict[str, Any]]:
    for row in account_json(account):
        title = str(row["cause"]).replace("_", " ")
        names = ("ms", "percent", "culprit")
        yield _finding(CAUSE, str(row["cause"]), title, **{name: row[name] for name in names}, tool="critical-path")


def _missing_findings(missing: Sequence[Missing]) -> Iterator[dict[str, Any]]:
    for item in missing:
        yield _finding(MISSING, _words_to_id(item.what), item.what, actions=[item.remedy], tool="doctor")


def _words_to_id(text: str) -> str:
    """`Python calls` as `python-calls`."""
    return "-".join("".join(c if c.isalnum() else " " for c in text.lower()).split())
