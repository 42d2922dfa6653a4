"""Whether a recording can be trusted: what in it cannot be, what is missing, and what recording changed.

Every check is made on every trace. The worst finding is a line on every page and comes before any advice, since advice
on wrong figures is wrong.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stepscope.analysis.account.model import model_of
from stepscope.analysis.account.stretches import stretches_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.attribution import attribute
from stepscope.analysis.trace.environment import Missing, list_missing
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.analysis.trace.user_ranges import user_ranges
from stepscope.analysis.trust.checks import CHECKS, Doubt, doubts_of, untold_rules
from stepscope.errors import counted
from stepscope.model import HostTrace, Repair
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Field,
    Prose,
    Report,
    Role,
    Section,
    Table,
    as_table,
    make_rows,
    not_in_json,
    round_ms,
)

NOT_COMPARABLE = "its checks concern each recording, not what changed between them"

_SMALL = "What was found changes no answer."
_HAVE = ("was", "were")
_UNTOLD = "unknown"
_SAID_BY_STEPS = {"steps_cut"}  # pages of steps say it where it counts

FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host whose recording it is", role=Role.HOST),
    Field("check", "text", "the rule that was broken", role=Role.TERM),
    Field("count", "count", "how many events or steps break it", "int"),
    Field("percent", "percent", "their share, of such events or of their time; of a slowed step, by how much"),
    Field("found", "text", "what was found", role=Role.TEXT),
    Field("doubtful", "text", "what may be wrong because of it", role=Role.TEXT),
    Field("fix", "text", "how to record without it", role=Role.TEXT),
    Field("grave", "text", "`yes` if verdict and advice rest on figures that are wrong", role=Role.TERM),
)
CHECKED: tuple[Field, ...] = (
    Field("rule", "text", "what was checked, as it should be", role=Role.LABEL),
    Field(
        "holds",
        "text",
        "`yes`, `no` where a doubt below says what was found, or `unknown` where the recording has nothing to check",
        role=Role.TERM,
    ),
    Field("hosts", "count", "on how many hosts it does not hold", "int", label="Not on hosts"),
)
MISSING: tuple[Field, ...] = (
    Field("what", "text", "what was not recorded", role=Role.LABEL),
    Field("remedy", "text", "how who recorded it records that", role=Role.TEXT),
)
REPAIRS: tuple[Field, ...] = (
    Field("host", "text", "the host whose recording it is", role=Role.HOST),
    Field("repair", "text", "the fault that was repaired", role=Role.TERM),
    Field("count", "count", "how many events had it", "int"),
    Field("of", "count", "among how many of their kind", "int"),
    Field("ms", "ms", "how much time was taken away"),
    Field("found", "text", "what was found", role=Role.TEXT),
    Field("done", "text", "what was made of it", role=Role.TEXT),
    Field("effect", "text", "which figures would be wrong without it", role=Role.TEXT),
)


@dataclass(frozen=True)
class DoubtsOfHost:
    """The doubts about one host's recording, what was repaired in it, the rules of which it tells nothing, and what it
    lacks."""

    origin: Origin
    doubts: list[Doubt]
    repairs: list[Repair]
    untold: list[str]
    missing: list[Missing]


@dataclass(frozen=True, kw_only=True)
class TrustReport(Report):
    """The doubts about a session, what is grave first.

    Attributes:
        line: the worst of them in a sentence; empty if there is none.
        first: what to do before anything else; empty if no doubt is grave.
        doubtful_percent: the share of the step that is wrong then, at most.
    """

    TOOL: ClassVar[str] = "trust"

    line: str
    rows: Table = as_table("Doubts", FIELDS, "")
    repairs: Table = as_table("Repairs", REPAIRS, "Nothing had to be repaired")
    missing: Table = as_table("Not recorded", MISSING, "Nothing that analyses ask for is missing")
    checks: Table = as_table("Checks", CHECKED)
    first: str = not_in_json()
    doubtful_percent: float = not_in_json(0.0)

    def why_empty(self) -> None:
        """Nothing is missing where there are no doubts."""

    def all_doubts(self, warnings: Sequence[str]) -> list[dict[str, Any]]:
        """Each doubt about the session once: a row with all of its `hosts`, or only what was `found` of a warning.

        Args:
            warnings: those of the overview, which knows more than a recording: how steps were found, and warm-up.
        """
        rows = [row for row in self.rows if row["check"] not in _SAID_BY_STEPS]
        hosts = {row["check"]: [each["host"] for each in rows if each["check"] == row["check"]] for row in rows}
        found = [{**next(row for row in rows if row["check"] == check), "hosts": of} for check, of in hosts.items()]
        return [*found, *({"found": text} for text in warnings if text not in (self.line, *self.warnings))]

    def sections(self) -> Sequence[Section]:
        """The worst doubt, and all of them."""
        lines: tuple[str, ...] = (self.line or (_SMALL if self.rows else _all_passed(self.checks)),)
        if self.repairs:
            faults = counted(len(self.repairs), "fault")
            lines = (f"{faults} of the recording {_HAVE[len(self.repairs) > 1]} repaired.", *lines)
        return [Prose("summary", "Can this recording be trusted?", lines), *super().sections()]


def partial(trace: HostTrace) -> DoubtsOfHost:
    """The part of one host."""
    missing = list_missing(trace, steps_of(trace).source)
    return DoubtsOfHost(origin_of(trace), doubts_of(trace), list(trace.repairs), untold_rules(trace), missing)


def compute_ahead(trace: HostTrace) -> None:
    """Computes what the account needs beside its graph, then what it needs of that."""
    for compute in (stretches_of, attribute, user_ranges, model_of):
        compute(trace)


def merge(partials: Sequence[DoubtsOfHost]) -> TrustReport:
    """The doubts about all hosts."""
    found = [(part.origin.host, doubt) for part in partials for doubt in part.doubts]
    repaired = [each for part in partials for each in part.repairs]
    found.sort(key=lambda each: (not each[1].is_grave, -(each[1].percent or 0.0) if each[1].is_grave else 0))
    return TrustReport(
        **header([part.origin for part in partials]),
        rows=make_rows(
            FIELDS,
            [doubt for _, doubt in found],
            host=[host for host, _ in found],
            grave=lambda doubt: "yes" if doubt.is_grave else "no",
        ),
        repairs=make_rows(
            REPAIRS,
            repaired,
            host=[part.origin.host for part in partials for _ in part.repairs],
            repair=lambda each: each.code,
            ms=lambda each: round_ms(each.ps),
        ),
        missing=make_rows(MISSING, [*dict.fromkeys(item for part in partials for item in part.missing)]),
        checks=tuple(_check_row(rule, found, partials) for rule in CHECKS.values()),
        line=_describe_doubts(found, len(partials)),
        first=next((doubt.fix for _, doubt in found if doubt.is_grave), ""),
        doubtful_percent=max((doubt.of_step for _, doubt in found if doubt.is_grave), default=0.0),
    )


def _check_row(rule: str, found: Sequence[tuple[str, Doubt]], partials: Sequence[DoubtsOfHost]) -> dict[str, Cell]:
    hosts = len({host for host, doubt in found if doubt.rule == rule})
    is_told = any(rule not in part.untold for part in partials)
    return {"rule": rule, "holds": "no" if hosts else "yes" if is_told else _UNTOLD, "hosts": hosts}


def _all_passed(checks: Table) -> str:
    passed = sum(row["holds"] == "yes" for row in checks)
    rest = len(checks) - passed
    return f"{counted(passed, 'check')} passed{f'; for {rest} the recording holds nothing to check' if rest else ''}."


def _describe_doubts(found: Sequence[tuple[str, Doubt]], hosts: int) -> str:
    """The worst doubt and how to avoid it, with its host if there are several, and how many others there are."""
    found = [each for each in found if each[1].check not in _SAID_BY_STEPS]
    if not found:
        return ""
    host, worst = found[0]
    where = f"{host}: " if hosts > 1 else ""
    others = len({doubt.check for _, doubt in found} - {worst.check})
    more = f"; {counted(others, 'other doubt')}: stepscope trust" if others else ""
    return f"{where}{worst.found}; may be wrong: {worst.doubtful}; {worst.fix}{more}"
