"""The one account of the median step: each moment has one cause, the parts add up to the step.

The account is read off the model. From the end of the step it follows whatever the step waited for last, back to its
start. The replay error of the capture says how far the model is to be trusted.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of, own_work_of_steps
from stepscope.analysis.account.culprits import Culprit, PieceFinder
from stepscope.analysis.account.devices import devices_text, idle_ps
from stepscope.analysis.account.every_step import steps_among_others
from stepscope.analysis.account.foretell import causes_without, gain_of_cause
from stepscope.analysis.account.graph import NodeKind
from stepscope.analysis.account.model import StepModel, model_of, spent_in_step
from stepscope.analysis.account.pieces import OWN, Pieces, kinds_of, pieces_of_step
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import F64, I64, U8, percentiles
from stepscope.records import dataclass

_MOST_SPREAD = 9  # steps that shares are compared over
_OF_CODE = (
    Cause.PYTHON,
    Cause.INPUT,
    Cause.LAUNCH,
    Cause.HOST_COMPUTE,
    Cause.CHECKPOINT,
)  # a line of code stands behind
_OF_NOTHING = (Cause.CONTENTION,)  # what runs elsewhere, not what the thread was about to do
_GROWS = 0.01  # of the step: a cause that gets no longer than this was no rival


@dataclass(frozen=True)
class AccountRow:
    """One cause of a step's time.

    Attributes:
        cause: see Cause; ps: how long.
        culprit: None where nothing recorded names one.
        idle_ps: the part of it in which no device works; None on a host without devices.
        gain_ps: by how much the median step gets shorter in the replay without any time of that cause, also that which
            no step waits for now; None where the model does not carry a forecast.
    """

    cause: str
    ps: int
    culprit: Culprit | None
    idle_ps: int | None
    gain_ps: int | None


@dataclass(frozen=True)
class Rival:
    """What a step is spent on once its longest cause is gone.

    Attributes:
        now_ps: its time in the account; then_ps: its time in the median step after that.
    """

    cause: str
    now_ps: int
    then_ps: int


@dataclass(frozen=True)
class StepAccount:
    """Where the time of one host's median step goes.

    Attributes:
        step: the step's number; step_ps: how long it took, from its start to the start of the next.
        rows: causes, the longest first; they add up to `step_ps`.
        replay_error_percent: how far the replayed median step is from the recorded one.
        unconnected_percent: the share of the step for which the model knows no reason.
        steps: how many complete steps there are; the median is of these.
        devices: the host's devices in words, such as `the GPU`; None without any.
        to_devices_ps: the part of the step that copies to a device take.
        carries: whether forecasts may be made from the model; why_not: the reason if not.
        rivals: causes that take the place of the longest one when that is removed, the one that grows most first.
        noise_percent: for each cause by how much its share of a usual step may be off, in percent of the step: two
            standard errors of the median over some usual steps, 9 at most.
        mean_percent: for each cause its share of the time of these steps; something that only some steps do, such as
            saving, is in it.
        own_ps: the mean time of these steps, or of all usual ones where hosts meet in collectives, without
            communication; the host with the largest sets the pace of a session.
        to_record: what to record to see the line of code behind the longest cause; None where it is known, or where no
            line stands behind that cause.
    """

    host: str
    step: int
    step_ps: int
    rows: list[AccountRow]
    replay_error_percent: float | None
    unconnected_percent: float
    steps: int
    devices: str | None
    to_devices_ps: int
    carries: bool
    why_not: str | None
    rivals: list[Rival]
    noise_percent: dict[str, float]
    mean_percent: dict[str, float]
    own_ps: int
    to_record: str | None = None


def account_of(trace: HostTrace) -> StepAccount | None:
    """The account of a host's median step, made once per trace; None where no steps were found."""
    return trace.derived("step account", _account)


def account_without_culprits(trace: HostTrace) -> StepAccount | None:
    """The same without culprits, gains and rivals, which take a third of its time: for tools that show no sentence
    of it."""
    return trace.derived("step account without culprits", _account_without_culprits)


def _account(trace: HostTrace) -> StepAccount | None:
    account, model = account_without_culprits(trace), model_of(trace)
    if account is None or model is None:
        return None
    pieces, cause = _median_pieces(model)
    finder = PieceFinder(trace, model.graph, pieces)
    rows = [_with_culprit(model, finder, cause, row) for row in account.rows]
    return replace(account, rows=rows, rivals=_rivals(model, rows), to_record=_to_record(trace, rows))


def _with_culprit(model: StepModel, finder: PieceFinder, causes: U8, row: AccountRow) -> AccountRow:
    cause = Cause[row.cause.upper()]
    culprit = None if cause in _OF_NOTHING else finder.culprit(np.flatnonzero(causes == int(cause)))
    return replace(row, culprit=culprit, gain_ps=gain_of_cause(model, cause))


def _median_pieces(model: StepModel) -> tuple[Pieces, U8]:
    """The pieces of the median step, and the cause of each."""
    return model.trace.derived("pieces of the median step", lambda _: _cut_median_step(model))


def _cut_median_step(model: StepModel) -> tuple[Pieces, U8]:
    pieces = pieces_of_step(model.trace, model.graph, model.median)
    return pieces, causes_of(model.trace, model.graph, pieces, model.threads)


def _account_without_culprits(trace: HostTrace) -> StepAccount | None:
    model = model_of(trace)
    if model is None:
        return None
    total = int(model.graph.recorded_step_ps[model.median])
    pieces, cause = _median_pieces(model)
    rows = _rows(model, pieces, cause)
    unknown = sum(row.ps for row in rows if row.cause == Cause.UNKNOWN.name.lower())
    some = _spent_in_some(model)
    return StepAccount(
        host=trace.host,
        step=int(steps_of(trace).number[model.graph.steps[model.median]]),
        step_ps=total,
        rows=rows,
        replay_error_percent=model.error_percent,
        unconnected_percent=100.0 * unknown / total if total else 0.0,
        steps=len(model.steps),
        devices=devices_text(trace),
        to_devices_ps=_copied_to_devices_ps(model, pieces, cause),
        carries=model.why_not is None,
        why_not=model.why_not,
        rivals=[],
        noise_percent=_noise_percent(*some),
        mean_percent=_mean_percent(*some),
        own_ps=_mean_own_ps(trace, some[0]),
    )


def _rows(model: StepModel, pieces: Pieces, cause: U8) -> list[AccountRow]:
    total, idle = np.zeros(len(Cause), np.int64), idle_ps(model.graph, pieces)
    np.add.at(total, cause, pieces.end_ps - pieces.start_ps)
    order = [each for each in np.argsort(-total, kind="stable").tolist() if total[each] > 0]
    return [
        AccountRow(
            Cause(each).name.lower(),
            int(total[each]),
            None,
            None if idle is None else int(idle[cause == each].sum()),
            None,
        )
        for each in order
    ]


def _copied_to_devices_ps(model: StepModel, pieces: Pieces, cause: U8) -> int:
    """The time of a step that copies to a device take: on the device, or on the thread that makes them."""
    copies = (cause == Cause.COPY) & (pieces.edge == OWN)
    work = model.graph.kind[pieces.node] == NodeKind.WORK
    copies &= ~work | (kinds_of(model.trace, pieces.event) == EventKind.COPY_HOST_TO_DEVICE)
    return int((pieces.end_ps - pieces.start_ps)[copies].sum())


def _rivals(model: StepModel, rows: list[AccountRow]) -> list[Rival]:
    now = {row.cause: row.ps for row in rows}
    then = causes_without(model, Cause[rows[0].cause.upper()]) if rows else {}
    grown = [Rival(cause, now.get(cause, 0), ps) for cause, ps in then.items()]
    grown = [rival for rival in grown if rival.then_ps - rival.now_ps > _GROWS * sum(now.values())]
    return sorted(grown, key=lambda rival: rival.now_ps - rival.then_ps)


def _to_record(trace: HostTrace, rows: list[AccountRow]) -> str | None:
    longest = rows[0] if rows else None
    if longest is None or Cause[longest.cause.upper()] not in _OF_CODE:
        return None
    known = longest.culprit is not None and longest.culprit.file is not None
    if known or len(events_of_kind(trace, EventKind.PYTHON_CALL)):
        return None
    return f"to see the line of code behind it, {remedy(PYTHON_CALLS, trace.framework)}"


def _spent_in_some(model: StepModel) -> tuple[F64, I64]:
    """What some usual steps, the median one among them, were spent on: float64 of shape (steps, causes) and int64 of
    shape (steps,), how long each took; ps."""
    count = min(len(model.steps), _MOST_SPREAD)
    chosen = model.steps[np.linspace(0, len(model.steps) - 1, count).round().astype(np.int64)]
    length = model.graph.recorded_step_ps
    steps = [step for step in dict.fromkeys([model.median, *chosen.tolist()]) if length[step] > 0]
    spent = np.array([spent_in_step(model, step) for step in steps]).reshape(len(steps), len(Cause))
    return spent, length[np.array(steps, np.int64)]


def _noise_percent(spent: F64, step_ps: I64) -> dict[str, float]:
    """Two standard errors of the median share of each cause.

    The deviation of a share is read off its quartiles, which one slow step does not move.  A normal deviation is
    assumed, for which the quartiles are 1.349 deviations apart and the error of a median of n is 1.253 deviations over
    the root of n.
    """
    if not len(spent):
        return {}
    low, high = percentiles(100.0 * spent / step_ps[:, None], (25, 75))
    noise = (2 * 1.253 / 1.349 / np.sqrt(len(spent)) * (high - low)).tolist()
    return {cause.name.lower(): noise[cause] for cause in Cause if noise[cause] > 0}


def _mean_percent(spent: F64, step_ps: I64) -> dict[str, float]:
    mean = (100.0 * spent.sum(axis=0) / max(int(step_ps.sum()), 1)).tolist()
    return {cause.name.lower(): mean[cause] for cause in Cause if mean[cause] > 0}


def _mean_own_ps(trace: HostTrace, spent: F64) -> int:
    usual = [step.own_ps for step in steps_among_others(trace) if step.usual]
    own = np.array(usual) if usual else own_work_of_steps(spent.astype(np.int64))
    return round(float(own.mean())) if len(own) else 0
