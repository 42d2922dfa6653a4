"""What if: the median step after changes of a user's choice, replayed on the model of the steps.

A change is about a part: a cause of the account (`input`), a category of the step breakdown (`kernel_launch`), a class
of advice (`input_python`), an op or kernel, a recorded Python function, or `file.py:line`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from stepscope.analysis.account.account import CONTENTION, StepAccount, account_without_culprits
from stepscope.analysis.account.account_text import CAUSES_OF_CLASS, SENTENCE_OF
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.every_step import CausesOfStep
from stepscope.analysis.account.interventions import Intervention, Move, Overlap, Scale
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.predict import Predicted, predict
from stepscope.analysis.account.selection import CAUSES, Selection, select_part, similar_names
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import CLASSES, Advice
from stepscope.analysis.facts.changes import CHANGES_OF_CLASS, LEAST
from stepscope.analysis.facts.lines import part_of_line
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.workers.balance import KIND, RANKS, STAGES, balance
from stepscope.analysis.workers.joint_replay import RankModel
from stepscope.analysis.workers.predict_ranks import JointModel, join_models, predict_ranks
from stepscope.errors import InputError, UsageError, counted
from stepscope.records import dataclass
from stepscope.report import Cell, Field, Figures, Prose, Report, Role, Rows, Section, percent, round_ms

UNKNOWN = Cause.UNKNOWN.name.lower()
REMOVE, SCALE, OVERLAP, MOVE, BALANCE = "remove", "scale", "overlap", "move", "balance"

FIELDS: tuple[Field, ...] = (
    Field("step_time_ms", "ms", "median time from step to step, without recording cost where that is known"),
    Field("removed_ms", "ms", "time that the changes remove from it"),
    Field(
        "predicted_step_time_ms",
        "ms",
        "the same after the changes; equal to `predicted_most_ms` where only the most is known",
    ),
    Field("predicted_least_ms", "ms", "the lower end of the predicted range"),
    Field("predicted_most_ms", "ms", "the upper end of the predicted range"),
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
    Field("number", "ratio", "the share of its time that stays, or the number of workers or ranks", "float"),
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


def list_changes(
    remove: str | Sequence[str],
    scale: float,
    scales: Mapping[str, float],
    overlap: str | Sequence[str],
    move: Mapping[str, float],
) -> list[Change]:
    """The changes that a user names; parts that are removed keep a share of their time unless that is 0."""
    return [
        *(
            Change(SCALE if scale else REMOVE, part, scale)
            for part in ([remove] if isinstance(remove, str) else remove)
        ),
        *(Change(SCALE, part, factor) for part, factor in scales.items()),
        *(Change(OVERLAP, part) for part in ([overlap] if isinstance(overlap, str) else overlap)),
        *(Change(MOVE, part, workers) for part, workers in move.items()),
    ]


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
        models: of the hosts; each is changed, and the one whose step is longest then is reported.  Those of ranks
            that meet in collectives are replayed together.
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
        raise _cannot_replay(models[0].why_not)
    without_cause = {change.part for change in changes} & set(CLASSES) - set(CAUSES_OF_CLASS)
    ops = {kind: ops_of_class(kind) for kind in without_cause}
    found = [(model, _select(model, changes, ops)) for model in carrying]
    joint, why_alone = join_models(carrying) if len(carrying) > 1 else (None, "")
    predicted = _predict_together(joint, changes, found) if joint else _predict_alone(changes, found)
    if not predicted:
        raise _no_such_part(carrying[0], changes, ops)
    model, parts, longest, error = max(predicted, key=lambda each: each[2].then_ps)
    now = _spent_on(account_without_culprits(model.trace))
    return WhatIfReport(
        hosts=hosts or tuple(model.trace.host for model in models),
        warnings=warnings,
        partial=False,
        changes=tuple(_change_row(*each) for each in zip(changes, parts, strict=True)),
        figures=_figures(error, longest),
        causes=_cause_rows(longest.causes_of(now)),
        reasoning=(
            *_reasoning(model, longest, now, 1 if joint else len(carrying), why_alone),
            *_explain_small_gain([_part_ps(*part) for part in parts], longest, now),
            *([f"no advice promises this, because {longest.why_not}"] if longest.why_not else []),
        ),
    )


def what_if_advised(advice: Advice, context: Context, warnings: tuple[str, ...] = ()) -> WhatIfReport:
    """The median step after what an advice changes: the replay that the advice itself is ranked by.

    Raises:
        InputError: nothing is predicted of it.
    """
    now, then = advice.step_time_ms, advice.predicted_step_time_ms
    if now is None or then is None:
        raise InputError(advice.reasoning, hint="`stepscope advice` says what it is about, and for how long")
    predicted = context.changes.predicted.get(advice.change) if context.changes else None
    figures: dict[str, Cell] = {
        "step_time_ms": now,
        "removed_ms": round(now - then, 3),
        "predicted_step_time_ms": then,
        "predicted_least_ms": advice.least_step_time_ms,
        "predicted_most_ms": advice.most_step_time_ms,
        "predicted_speedup": advice.predicted_speedup,
    }
    row: dict[str, Cell] = {"part": advice.kind, "what": advice.title, "part_ms": advice.part_ms}
    return _report_of_class(context, row, figures, predicted, (advice.reasoning,), warnings)


def what_if_of_class(kind: str, context: Context, warnings: tuple[str, ...] = ()) -> WhatIfReport:
    """The median step after what can be done about a class that no advice is given on: of the changes that the advice
    of that class may play, the one that gives most.

    Raises:
        InputError: the model does not carry a forecast.
    """
    changes, account = context.changes, context.account
    if changes is None or account is None or changes.why_not is not None:
        raise _cannot_replay("there are no steps" if changes is None else changes.why_not)
    known = {name: found for name, found in changes.predicted.items() if name in CHANGES_OF_CLASS.get(kind, ())}
    known = {name: found for name, found in known.items() if found.then_ps < found.now_ps}
    name, now = min(known, key=lambda each: known[each].then_ps, default=""), account.step_ps
    nothing = f"the step waits for nothing of that kind, or for less than {100 * LEAST:g} % of its time"
    causes = {row.cause: row.ps for row in account.rows}
    predicted = known.get(name, Predicted(now, now, now, now, causes, (nothing,), causes))
    row: dict[str, Cell] = {"part": kind, "what": SENTENCE_OF.get(name, name.replace("_", " ")), "part_ms": None}
    why = ("no advice of that class is given", *predicted.reasons)
    return _report_of_class(context, row, _figures(None, predicted), predicted, why, warnings)


def _report_of_class(
    context: Context,
    row: dict[str, Cell],
    figures: dict[str, Cell],
    predicted: Predicted | None,
    reasoning: tuple[str, ...],
    warnings: tuple[str, ...],
) -> WhatIfReport:
    error = context.account.replay_error_percent if context.account else None
    return WhatIfReport(
        hosts=tuple(host.host for host in context.hosts),
        warnings=warnings,
        partial=False,
        changes=({"change": REMOVE, "number": None, **row},),
        figures=figures | {"replay_error_percent": None if error is None else round(error, 2)},
        causes=_cause_rows(predicted.causes_of(_spent_on(context.account))) if predicted else (),
        reasoning=reasoning,
    )


def _cannot_replay(why: str | None) -> InputError:
    return InputError(
        f"the recorded steps cannot be replayed well enough to predict a change: {why}",
        hint="`stepscope overview` shows where the time goes all the same",
    )


_Part = tuple[StepModel, Selection]
_Prediction = tuple[StepModel, Sequence[_Part], Predicted, float | None]


def _predict_alone(
    changes: Sequence[Change], found: Sequence[tuple[StepModel, list[Selection | None]]]
) -> list[_Prediction]:
    """Each host that has all of the parts by itself."""
    predictions: list[_Prediction] = []
    for model, selections in found:
        parts = [(model, each) for each in selections if each is not None]
        of_machine = any(change.part == CONTENTION for change in changes)
        given = _interventions(changes, selections)
        predicted = predict(model, given, of_machine) if len(parts) == len(changes) else None
        if predicted is not None:
            predictions.append((model, parts, predicted, model.error_percent))
    return predictions


def _predict_together(
    joint: JointModel, changes: Sequence[Change], found: Sequence[tuple[StepModel, list[Selection | None]]]
) -> list[_Prediction]:
    """All hosts at once, each with those parts that it has: the one that waits least for others then; none if one of
    the parts is on no host."""
    by_change = zip(*([(model, each) for each in selections] for model, selections in found), strict=True)
    known = [[(model, each) for model, each in parts if each is not None] for parts in by_change]
    if not all(known):
        return []
    longest = [max(parts, key=lambda part: _part_ps(*part)) for parts in known]
    at, predicted = predict_ranks(joint, [_interventions(changes, selections) for _, selections in found])
    return [(found[at][0], longest, predicted, joint.error_percent[at])]


_BALANCED = {RANKS: "all work of every rank", STAGES: "the device work of every stage of the pipeline"}


def what_if_balanced(
    ranks: Sequence[RankModel],
    steps_of_ranks: Mapping[str, Sequence[CausesOfStep]],
    warnings: tuple[str, ...] = (),
    what: str = RANKS,
) -> WhatIfReport:
    """The median step of a session with equal work.

    Args:
        steps_of_ranks: the account of every step, by rank.
        what: whose work is equal, see `balance`.

    Raises:
        UsageError: no two ranks have a step in common in which they communicate, or it cannot be replayed well enough.
    """
    found = balance(ranks, what)
    if found is None:
        raise UsageError(
            "no two ranks share a step in which they communicate, or the replay of that step is too far off",
            hint="--balance takes a session of several ranks; see `stepscope distributed`",
        )
    change: dict[str, Cell] = {
        "change": BALANCE,
        "part": what,
        "number": float(found.ranks),
        "what": _BALANCED.get(what, f"{what.removeprefix(KIND)} on every rank"),
        "part_ms": round_ms(found.now_ps - found.then_ps),
    }
    causes = _causes_when_balanced(steps_of_ranks.get(found.slowest, ()), found.then_ps)
    predicted = Predicted(found.now_ps, found.then_ps, found.least_ps, found.most_ps, causes, (), {})
    return WhatIfReport(
        hosts=tuple(rank.name for rank in ranks),
        warnings=warnings,
        partial=False,
        changes=(change,),
        figures=_figures(found.error_percent, predicted),
        causes=_cause_rows(causes),
        reasoning=(
            "the recorded steps of all ranks were replayed together with the mean of their work: sends meet receives,"
            " collectives all their ranks",
            f"{found.slowest} waits least in {found.slowest_steps} of {counted(found.steps, 'common step')}",
            found.sentence,
        ),
    )


def _causes_when_balanced(steps: Sequence[CausesOfStep], then_ps: int) -> dict[str, int]:
    """The causes of a rank's median step of which only so much own work is left as fits, the longest first."""
    usual = sorted((step for step in steps if step.usual), key=lambda step: step.step_ps)
    if not usual:
        return {}
    step = usual[(len(usual) - 1) // 2]
    left = max(then_ps - step.causes_ps[Cause.COMMUNICATION], 0) / max(step.own_ps, 1)
    then = {cause: round(step.causes_ps[cause] * (1.0 if cause == Cause.COMMUNICATION else left)) for cause in Cause}
    return {cause.name.lower(): ps for cause, ps in sorted(then.items(), key=lambda each: -each[1]) if ps > 0}


def _check(changes: Sequence[Change]) -> None:
    if not changes:
        raise UsageError("no change is given", hint="for example --remove input, or --scale OP=0.5")
    for change in changes:
        if change.action == SCALE and not change.number >= 0:
            wrong = "negative" if change.number < 0 else "not a number"
            raise UsageError(f"--scale {change.number:g} is {wrong}", hint="0 removes the part, 0.5 halves it")
        if change.action == MOVE and not 1 <= change.number < float("inf"):
            raise UsageError(f"{change.number:g} is not a number of workers", hint="for example --to workers=4")


def _select(model: StepModel, changes: Sequence[Change], ops: dict[str, Sequence[str]]) -> list[Selection | None]:
    """The parts of the changes on one host; None for those that it lacks."""
    return [_select_one(model, change.part, ops.get(change.part, ())) for change in changes]


def _select_one(model: StepModel, name: str, ops: Sequence[str]) -> Selection | None:
    """A part by its name: of a function that advice may be on, the same as there."""
    part = part_of_line(model, name)
    if part is not None:
        return Selection(name, "a function of the program, with all that it causes", part)
    return select_part(model, name, ops)


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


def _interventions(changes: Sequence[Change], parts: Sequence[Selection | None]) -> list[Intervention]:
    made: list[Intervention] = []
    for change, selection in zip(changes, parts, strict=True):
        if selection is None:
            continue
        if change.action == OVERLAP:
            made.append(Overlap(selection.part))
        elif change.action == MOVE:
            made.append(Move(selection.part, change.number))
        else:
            made.append(Scale(selection.part, change.number if change.action == SCALE else 0.0))
    return made


def _change_row(change: Change, part: _Part) -> dict[str, Cell]:
    selection = part[1]
    return {
        "change": change.action,
        "part": change.part,
        "number": change.number if change.action in (SCALE, MOVE) else None,
        "what": selection.what,
        "part_ms": round_ms(_part_ps(*part)),
    }


def _part_ps(model: StepModel, selection: Selection) -> float:
    """The time of a part in an average step."""
    in_steps = np.isin(model.graph.step, model.steps)
    return selection.part.own_ps.select_nodes(in_steps).sum() / max(len(model.steps), 1)


def _figures(error_percent: float | None, predicted: Predicted) -> dict[str, Cell]:
    now, then = predicted.now_ps, predicted.then_ps
    return {
        "step_time_ms": round_ms(now),
        "removed_ms": round_ms(now - then),
        "predicted_step_time_ms": round_ms(then),
        "predicted_least_ms": round_ms(predicted.least_ps),
        "predicted_most_ms": round_ms(predicted.most_ps),
        "predicted_speedup": round(now / then, 2) if then > 0 else None,
        "replay_error_percent": None if error_percent is None else round(error_percent, 2),
    }


def _spent_on(account: StepAccount | None) -> dict[str, int]:
    """What an account's step is spent on, ps by cause; empty without account."""
    return {row.cause: row.ps for row in account.rows} if account else {}


def _cause_rows(causes: Mapping[str, int]) -> tuple[dict[str, Cell], ...]:
    total = sum(causes.values())
    return tuple({"cause": cause, "ms": round_ms(ps), "percent": percent(ps, total)} for cause, ps in causes.items())


def _reasoning(
    model: StepModel, predicted: Predicted, now: Mapping[str, int], hosts: int, why_alone: str
) -> tuple[str, ...]:
    said = ["the recorded steps were replayed with the changes made"]
    if causes := predicted.causes_of(now):
        said.append(f"most of the step is then spent on {SENTENCE_OF[next(iter(causes))]}")
    if hosts > 1:
        said.append(f"of {hosts} hosts, {model.trace.host} has the longest step then")
    if why_alone:
        said.append(f"each rank was replayed alone, waits for others as recorded: {why_alone}")
    return (*said, *predicted.reasons)


def _explain_small_gain(parts_ps: Sequence[float], predicted: Predicted, now: Mapping[str, int]) -> Iterator[str]:
    """Why a change gives little, where it gives less than half of the time that it is about."""
    removed, whole = predicted.now_ps - predicted.then_ps, sum(parts_ps)
    if 2 * removed < whole:
        more = {cause: ps - now.get(cause, 0) for cause, ps in predicted.causes_of(now).items()}
        grown = max(more, key=lambda cause: more[cause], default=UNKNOWN)
        grows = more.get(grown, 0) > LEAST * predicted.now_ps
        beside = "most of that part runs in parallel with other work"
        if not grows:
            yield beside
        elif grown == UNKNOWN:
            yield f"{beside}; what the step does meanwhile was not recorded"
        else:
            yield f"{beside}; the step is then spent on {SENTENCE_OF[grown]} instead"


def _describe(action: str, part: str, number: Cell) -> str:
    if action == REMOVE:
        return f"without {part}"
    if action == SCALE:
        return f"with {part} at {number:g}x its time"
    if action == BALANCE:
        return "with the same work on every stage" if part == STAGES else "with the same work on every rank"
    if action == OVERLAP:
        return f"with {part} in parallel with the rest"
    return f"with {part} on {number:g} other workers"
