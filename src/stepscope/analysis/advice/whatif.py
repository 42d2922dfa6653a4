"""What if: the median step after changes of a user's choice, replayed on the model of the steps.

A change is about a part: a cause of the account (`input`), a category of the step breakdown (`kernel_launch`), a class
of advice (`input_python`), an op or kernel, a recorded Python function, or `file.py:line`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.every_step import CausesOfStep
from stepscope.analysis.account.foretell import Foretold, foretell
from stepscope.analysis.account.interventions import Intervention, Move, Overlap, Scale
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.selection import CAUSE_OF_CLASS, CAUSES, Selection, select_part, similar_names
from stepscope.analysis.account.shown import SENTENCE_OF
from stepscope.analysis.advice.items import CLASSES
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.workers.balance import balance_ranks
from stepscope.errors import InputError, UsageError, counted
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Figures, Prose, Report, Role, Rows, Section, percent, round_ms

REMOVE, SCALE, OVERLAP, MOVE, BALANCE = "remove", "scale", "overlap", "move", "balance"

FIELDS: tuple[Field, ...] = (
    Field("step_time_ms", "ms", "median time from step to step, without recording cost where that is known"),
    Field("removed_ms", "ms", "time that the changes remove from it"),
    Field("predicted_step_time_ms", "ms", "median time from step to step after the changes"),
    Field("predicted_least_ms", "ms", "the shortest that it may be"),
    Field("predicted_most_ms", "ms", "the longest that it may be"),
    Field("predicted_speedup", "ratio", "step time now over step time after the changes"),
    Field("replay_error_percent", "percent", "how far the replayed step is from the recorded one, without any change"),
)
CAUSE_FIELDS: tuple[Field, ...] = (
    Field("cause", "text", "what the median step waits for after the changes", "str", Role.TERM),
    Field("ms", "ms", "its time then"),
    Field("percent", "percent", "the same as a share of that step"),
)
CHANGE_FIELDS: tuple[Field, ...] = (
    Field("change", "text", "remove, scale, overlap, move or balance", "str", Role.TERM),
    Field("part", "text", "what is changed, as it was named", "str", Role.NAME),
    Field(
        "number",
        "ratio",
        "the share of its time that stays, or the number of workers or ranks",
        "float",
    ),
    Field("what", "text", "what the name stands for", "str", Role.TEXT),
    Field("part_ms", "ms", "its time in an average step, on all threads and queues"),
)
_TABLE: tuple[Field, ...] = (
    Field("part", "text", "the parts that are changed", "str", role=Role.TERM),
    *FIELDS,
    Field("reasoning", "text", "how the prediction is made", "str", role=Role.TEXT),
)


@dataclass(frozen=True)
class Change:
    """A change as a user names it.

    Attributes:
        action: REMOVE, SCALE, OVERLAP or MOVE.
        part: what it is about.
        number: of SCALE the share of the time that stays; of MOVE the number of workers.
    """

    action: str
    part: str
    number: float = 0.0


@dataclass(frozen=True, kw_only=True)
class WhatIfReport(Report):
    """The median step after some changes.

    Attributes:
        changes: the changes; keys as in CHANGE_FIELDS.
        figures: keys as in FIELDS.
        causes: what the step is spent on then, the longest first; keys as in CAUSE_FIELDS.
        reasoning: how the prediction is made, a sentence each.
    """

    TOOL: ClassVar[str] = "whatif"

    changes: tuple[dict[str, Cell], ...]
    figures: dict[str, Cell]
    causes: tuple[dict[str, Cell], ...]
    reasoning: tuple[str, ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "part": self._parts(),
            "changes": list(self.changes),
            **self.figures,
            "critical": list(self.causes),
            "reasoning": "; ".join(self.reasoning),
        }

    def sections(self) -> Sequence[Section]:
        """The figures, what the step is spent on then, the changes, and the reasons."""
        return [
            Figures("figures", f"The median step {self._title()}", FIELDS, self.figures),
            Rows("critical", "What the step waits for then", CAUSE_FIELDS, self.causes),
            Rows("changes", "What is changed", CHANGE_FIELDS, self.changes),
            Prose("reasoning", "Reasoning", self.reasoning),
        ]

    def main_table(self) -> Rows:
        """One row."""
        row: dict[str, Cell] = {"part": self._parts(), **self.figures, "reasoning": "; ".join(self.reasoning)}
        return Rows("whatif", "What if", _TABLE, (row,))

    def _parts(self) -> str:
        return ", ".join(str(change["part"]) for change in self.changes)

    def _title(self) -> str:
        return "; ".join(_describe(str(each["change"]), str(each["part"]), each["number"]) for each in self.changes)


def what_if(
    models: Sequence[StepModel],
    changes: Sequence[Change],
    ops_of_class: Callable[[str], Sequence[str]],
    hosts: tuple[str, ...] = (),
    warnings: tuple[str, ...] = (),
) -> WhatIfReport:
    """The median step after some changes, all at once.

    Args:
        models: of the hosts; each is changed, and the one whose step is longest then is reported.
        ops_of_class: the ops that the advice of a class names, for classes that no cause stands for.

    Raises:
        UsageError: there is no change, no step, no part of a name, or a number makes no sense.
        InputError: no model carries a forecast.
    """
    _check(changes)
    if not models:
        raise UsageError("the profile holds no steps", hint="mark them; see `stepscope doctor`")
    carrying = [model for model in models if model.why_not is None]
    if not carrying:
        raise InputError(
            f"the recorded steps cannot be replayed well enough to predict a change: {models[0].why_not}",
            hint="`stepscope overview` shows where the time goes all the same",
        )
    without_cause = {change.part for change in changes} & set(CLASSES) - set(CAUSE_OF_CLASS)
    ops = {kind: ops_of_class(kind) for kind in without_cause}
    found = [(model, _select(model, changes, ops)) for model in carrying]
    if not any(parts for _, parts in found):
        raise _no_such_part(carrying[0], changes, ops)
    foretold = [(model, parts, foretell(model, _interventions(changes, parts))) for model, parts in found if parts]
    model, parts, longest = max(foretold, key=lambda each: each[2].then_ps if each[2] else 0)
    assert longest is not None
    return WhatIfReport(
        hosts=hosts or tuple(model.trace.host for model in models),
        warnings=warnings,
        partial=False,
        changes=tuple(_change_row(model, *pair) for pair in zip(changes, parts, strict=True)),
        figures=_figures(model.error_percent, longest),
        causes=_cause_rows(longest),
        reasoning=_reasoning(model, longest, len(carrying)),
    )


def what_if_balanced(
    steps_of_ranks: Mapping[str, Sequence[CausesOfStep]], warnings: tuple[str, ...] = ()
) -> WhatIfReport:
    """The median step of a session whose ranks all have the same amount of own work.

    Raises:
        UsageError: no two ranks have a step in common in which they communicate.
    """
    found = balance_ranks(steps_of_ranks)
    if found is None:
        raise UsageError(
            "no two ranks have a step in common in which they communicate",
            hint="--balance-ranks takes a session of several ranks; see `stepscope distributed`",
        )
    change: dict[str, Cell] = {
        "change": BALANCE,
        "part": "ranks",
        "number": float(found.ranks),
        "what": "the own work of every rank, which is all but communication",
        "part_ms": round_ms(found.now_ps - found.then_ps),
    }
    foretold = Foretold(found.now_ps, found.then_ps, found.least_ps, found.most_ps, found.causes, ())
    return WhatIfReport(
        hosts=tuple(steps_of_ranks),
        warnings=warnings,
        partial=False,
        changes=(change,),
        figures=_figures(None, foretold),
        causes=_cause_rows(foretold),
        reasoning=(
            "the slowest rank's own work is replaced by the mean of all ranks, step by step; the others wait for it in"
            " the same collectives",
            f"{found.slowest} is the slowest in {found.slowest_steps} of {counted(found.steps, 'common step')}",
        ),
    )


def _check(changes: Sequence[Change]) -> None:
    if not changes:
        raise UsageError("no change is given", hint="for example --remove input, or --scale OP=0.5")
    for change in changes:
        if change.action == SCALE and not change.number >= 0:
            wrong = "negative" if change.number < 0 else "not a number"
            raise UsageError(f"--scale {change.number:g} is {wrong}", hint="0 removes the part, 0.5 halves it")
        if change.action == MOVE and not 1 <= change.number < float("inf"):
            raise UsageError(f"{change.number:g} workers cannot do anything", hint="for example --to workers=4")


def _select(model: StepModel, changes: Sequence[Change], ops: dict[str, Sequence[str]]) -> list[Selection]:
    """The parts of the changes on one host; none if the host lacks one of them."""
    found = [select_part(model, change.part, ops.get(change.part, ())) for change in changes]
    return [each for each in found if each is not None] if all(found) else []


def _no_such_part(model: StepModel, changes: Sequence[Change], ops: dict[str, Sequence[str]]) -> UsageError:
    names = [change.part for change in changes]
    unknown = next((name for name in names if select_part(model, name, ops.get(name, ())) is None), names[0])
    if unknown in ops:
        return UsageError(
            f"no advice of the class {unknown} names an op", hint="`stepscope advice` lists what it found"
        )
    close = similar_names(model, unknown, (*CAUSES, *CATEGORIES, *CLASSES))
    known = (
        f"causes: {', '.join(CAUSES)}; categories: {', '.join(CATEGORIES)}; `stepscope advice` lists classes,"
        " `stepscope op-stats` ops"
    )
    return UsageError(
        f"{unknown!r} is not a cause, a class of advice, a category, an op, a function or a place in the code",
        hint=f"similar names: {', '.join(close)}" if close else known,
    )


def _interventions(changes: Sequence[Change], parts: Sequence[Selection]) -> list[Intervention]:
    made: list[Intervention] = []
    for change, selection in zip(changes, parts, strict=True):
        if change.action == OVERLAP:
            made.append(Overlap(selection.part))
        elif change.action == MOVE:
            made.append(Move(selection.part, change.number))
        else:
            made.append(Scale(selection.part, change.number if change.action == SCALE else 0.0))
    return made


def _change_row(model: StepModel, change: Change, selection: Selection) -> dict[str, Cell]:
    in_steps = np.isin(model.graph.step, model.steps)
    return {
        "change": change.action,
        "part": change.part,
        "number": change.number if change.action in (SCALE, MOVE) else None,
        "what": selection.what,
        "part_ms": round_ms(selection.part.own_ps.select_nodes(in_steps).sum() / max(len(model.steps), 1)),
    }


def _figures(error_percent: float | None, foretold: Foretold) -> dict[str, Cell]:
    now, then = foretold.now_ps, foretold.then_ps
    return {
        "step_time_ms": round_ms(now),
        "removed_ms": round_ms(now - then),
        "predicted_step_time_ms": round_ms(then),
        "predicted_least_ms": round_ms(foretold.least_ps),
        "predicted_most_ms": round_ms(foretold.most_ps),
        "predicted_speedup": round(now / then, 2) if then > 0 else None,
        "replay_error_percent": None if error_percent is None else round(error_percent, 2),
    }


def _cause_rows(foretold: Foretold) -> tuple[dict[str, Cell], ...]:
    total = sum(foretold.causes.values())
    return tuple(
        {"cause": cause, "ms": round_ms(ps), "percent": percent(ps, total)} for cause, ps in foretold.causes.items()
    )


def _reasoning(model: StepModel, foretold: Foretold, hosts: int) -> tuple[str, ...]:
    said = ["the recorded steps were replayed with the changes made"]
    if foretold.causes:
        first = next(iter(foretold.causes))
        said.append(f"most of the step is then spent on {SENTENCE_OF[first]}")
    if hosts > 1:
        said.append(f"of {hosts} hosts, {model.trace.host} has the longest step then")
    return (*said, *foretold.reasons)


def _describe(action: str, part: str, number: Cell) -> str:
    if action == REMOVE:
        return f"without {part}"
    if action == SCALE:
        return f"with {part} at {number:g}x its time"
    if action == BALANCE:
        return "with the same work on every rank"
    if action == OVERLAP:
        return f"with {part} beside everything else"
    return f"with {part} on {number:g} other workers"
