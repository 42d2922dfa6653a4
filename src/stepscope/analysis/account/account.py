"""The one account of the median step: each moment has one cause, the parts add up to the step.

The account is read off the model. From the end of the step it follows whatever the step waited for last, back to its
start. The replay error of the capture says how far the model is to be trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.account.causes import Cause, causes_of_work, own_work_ps
from stepscope.analysis.account.contention import asleep_ps
from stepscope.analysis.account.coverage import Blindness, blindness_of, exposed_spans
from stepscope.analysis.account.critical_path import Pieces
from stepscope.analysis.account.culprits import Culprit, PieceFinder
from stepscope.analysis.account.devices import busy_by_device, devices_text, idle_ps
from stepscope.analysis.account.every_step import EveryStep, every_step, median_by_device
from stepscope.analysis.account.evidence import Known
from stepscope.analysis.account.graph import Graph
from stepscope.analysis.account.long_steps import OUTLIER, LongSteps, find_long_steps
from stepscope.analysis.account.model import StepModel, model_of, usual_steps
from stepscope.analysis.account.piece_causes import awaits_silent_device
from stepscope.analysis.account.predict import causes_without, gain_of_cause
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.device_steps import device_name
from stepscope.analysis.steps.find_steps import holds_only_dispatch, steps_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.analysis.trace.columns import events_of_kind, holds_sums_only
from stepscope.analysis.trace.grouping import device_rows
from stepscope.analysis.trace.lost_work import share_lost
from stepscope.analysis.trace.remedies import PYTHON_CALLS, recorder_of, remedy
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import I64, U8, Mask, median, percentiles
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.traits import CodeTrait

# A line of code stands behind these.
_OF_CODE = (Cause.PYTHON, Cause.INPUT, Cause.LAUNCH, Cause.HOST_COMPUTE, Cause.CHECKPOINT)
# Causes that say that nothing computes: the host waits for an idle device, or a device has nothing to do.
_IDLE = tuple(cause.name.lower() for cause in (Cause.SYNC, Cause.DEVICE_GAP, Cause.UNKNOWN))
_OF_DEVICES = (Cause.DEVICE_COMPUTE, Cause.COMMUNICATION, Cause.COPY, Cause.TRANSFER)
CONTENTION = Cause.CONTENTION.name.lower()
_WORTH_SAYING = 0.03  # of the step: less contention than the least gain that is advised changes no answer
_MOMENTS = 200  # cells of the step's picture, each a few pixels wide
_EVENLY = 1.5  # times the least share of lost launches in a step: the most, if chance lost them
_NEARLY_ALL = 0.8  # of the loop's Python: with less asleep its words would deny what runs in the rest
_UNEVEN = 5.0  # percent of the step: XProf finds less worth a word of no part
_MOST_OF = 0.5  # of what is unknown: one that covers less explains no more than that
_WORTH_NAMING = 0.05  # of a cause's time
_GROWS = 0.01  # of the step: a cause that gets no longer than this was no rival


@dataclass(frozen=True)
class AccountRow:
    """One cause of a step's time.

    Attributes:
        cause: see Cause; ps: how long.
        culprit: None where nothing recorded names one.
        idle_ps: the part of it in which no device works; None on a host without devices.
        known_ps: how much of it is recorded, inferred and not recorded; None where that was not asked.
        gain_ps: by how much the median step gets shorter in the replay without any time of that cause, also that which
            no step waits for now; None where the model does not carry a forecast.
        words: what it is, more closely than the table of causes says; empty where no more is known.
    """

    cause: str
    ps: int
    culprit: Culprit | None
    idle_ps: int | None
    gain_ps: int | None
    known_ps: tuple[int, ...] | None = None
    words: str = ""


@dataclass(frozen=True)
class NextCause:
    """What a step is spent on once its longest cause is gone.

    Attributes:
        now_ps: its time in the account; then_ps: its time in the median step after that.
    """

    cause: str
    now_ps: int
    then_ps: int


@dataclass(frozen=True)
class DeviceBar:
    """A device during one step.

    Attributes:
        device: `GPU:0`; busy_ps: how long it works.
        causes_ps: what it does, and while it idles what the step waits for, by name of cause, as `median_by_device`
            says; they add up to the step but for what only other devices do.
    """

    device: str
    busy_ps: int
    causes_ps: dict[str, int]


@dataclass(frozen=True)
class StepAccount:
    """Where the time of one host's median step goes.

    Attributes:
        step: the step's number; has_steps: that is False where no steps were found, so that it is the whole capture.
        step_ps: how long it took, from its start to the start of the next; is_median: that is False where it is much
            longer than the median one, as such steps take most of the time (see `median_step`).
        rows: causes, the longest first; they add up to `step_ps`.
        replay_error_percent: how far the replayed median step is from the recorded one.
        steps: how many complete steps there are; the median is of these.
        devices: the host's devices in words, such as `the GPU`; None without any.
        why_not: why no forecasts may be made from the model; None if they may.
        rivals: causes that take the place of the longest one when that is removed, the one that grows most first.
        noise_percent: for each cause by how much its share of a usual step may be off, in percent of the step: two
            standard errors of the median over the usual steps.
        mean_percent: for each cause its share of the time of these steps; something that only some steps do, such as
            saving, is in it.
        own_ps: the mean time of these steps without communication; the host with the largest sets the pace of a
            session.
        moments: the causes in the order of time, each with how long it goes on; within a 200th of the step those of one
            cause are together.
        sleeps: for nearly all of the Python of these steps the thread used no processor and was not ready.
        to_record: what to record to see the line of code behind the longest cause; None where it is known, or where no
            line stands behind that cause.
        only_dispatch: nothing of what the steps compute was recorded, only that it was called.
        blindness: what of the work in the steps was not recorded, so that nothing is said that depends on it; None
            where the recording holds it.
        certain: causes that hold up the step whatever that work is: most of their time lies where devices have nothing
            to do.
        device_bars: the host's devices that work during that step; empty without any.
        silent_ps: the part of what is unknown in which work that was launched waits for a device that shows none.
        long_steps: long steps that come again; None where none are known to.
        mean_ps: the mean length of the usual steps; is_average: the rows are of that, see `representative_step`.
    """

    host: str
    step: int
    step_ps: int
    rows: list[AccountRow]
    replay_error_percent: float | None
    steps: int
    devices: str | None
    why_not: str | None
    rivals: list[NextCause]
    noise_percent: dict[str, float]
    mean_percent: dict[str, float]
    own_ps: int
    sleeps: bool = False
    to_record: str | None = None
    has_steps: bool = True
    is_median: bool = True
    moments: tuple[tuple[str, int], ...] = ()
    only_dispatch: bool = False
    blindness: Blindness | None = None
    certain: tuple[str, ...] = ()
    device_bars: tuple[DeviceBar, ...] = ()
    silent_ps: int = 0
    long_steps: LongSteps | None = None
    mean_ps: int = 0
    is_average: bool = False

    @property
    def representative_step(self) -> StepAccount:
        """The account of the average step where long steps that come again spend clearly more on something than the
        median one; else the same."""
        again = self.long_steps
        shown = {row.cause: row for row in self.rows}
        if again is None or not self.is_median or self.is_average:
            return self
        own_ps = shown[again.cause].ps if again.cause in shown else 0
        if self.mean_percent.get(again.cause, 0.0) - 100.0 * own_ps / self.step_ps < _UNEVEN:
            return self
        rows = [self._average_row(cause, shown.get(cause)) for cause in self.mean_percent]
        rows.sort(key=lambda row: -row.ps)
        return replace(self, rows=rows, step_ps=sum(row.ps for row in rows), is_average=True)

    def described(self, cause: str, words: str) -> StepAccount:
        """The same account, in which a cause is said in other words, which are known to be closer."""
        rows = [replace(row, words=words) if row.cause == cause else row for row in self.rows]
        return replace(self, rows=rows)

    def _average_row(self, cause: str, shown: AccountRow | None) -> AccountRow:
        ps, again = round(self.mean_percent[cause] / 100 * self.mean_ps), self.long_steps
        culprit = shown.culprit if shown is not None else None
        if again is not None and again.name and cause == again.cause:
            culprit = Culprit(again.name, again.file, again.line, None, None, None, round(again.share * self.mean_ps))
        if shown is None:
            return AccountRow(cause, ps, culprit, None if self.idle_ps is None else 0, None)
        idle, gain = (None if each is None else round(each * ps / shown.ps) for each in (shown.idle_ps, shown.gain_ps))
        return replace(shown, ps=ps, culprit=culprit, idle_ps=idle, gain_ps=gain, known_ps=None)

    @property
    def gained_ps(self) -> int:
        """The step that gains are told of: the mean of all where that is a far longer or shorter one, as a person
        measures that."""
        is_far = not self.is_median or self.mean_ps > OUTLIER * self.step_ps
        return self.mean_ps if self.mean_ps and is_far else self.step_ps

    @property
    def idle_ps(self) -> int | None:
        """The part of it in which no device works; None on a host without devices."""
        known = [row.idle_ps for row in self.rows if row.idle_ps is not None]
        return sum(known) if len(known) == len(self.rows) else None

    @property
    def contradicted_ps(self) -> int:
        """For how long it says that nothing computes while a device works."""
        return sum(row.ps - row.idle_ps for row in self.rows if row.cause in _IDLE and row.idle_ps is not None)

    def is_uneven(self, row: AccountRow) -> bool:
        """Whether a cause takes clearly more or less of that step than of all of them together, so that its share there
        is not that of each step."""
        share = 100.0 * row.ps / self.step_ps if self.step_ps > 0 else 0.0
        return self.has_steps and self.is_median and abs(share - self.mean_percent.get(row.cause, share)) >= _UNEVEN

    @property
    def is_silent(self) -> bool:
        """Whether most of what is unknown is that launched work waits for a device that shows none."""
        return any(row.cause == "unknown" and 2 * self.silent_ps > row.ps for row in self.rows)

    @property
    def contention_ps(self) -> int:
        """The part of it in which the loop waited for a free core: that of the machine, not of the program."""
        return sum(row.ps for row in self.rows if row.cause == CONTENTION)

    def percent(self, ps: float, cause: str = "") -> float:
        """A time in percent of what `each_step` says: on a busy machine of the step without contention, which says of
        the program what a quiet one would show, though contention itself is a share of the whole step."""
        is_of_all = cause == CONTENTION or not self.is_busy
        own_ps = self.step_ps if is_of_all else self.step_ps - self.contention_ps
        return 100.0 * ps / own_ps if own_ps > 0 else 0.0

    @property
    def each_step(self) -> str:
        """What its shares are of, in words that follow `of`."""
        return f"{self.whole_step} without contention" if self.is_busy else self.whole_step

    @property
    def is_busy(self) -> bool:
        """Whether the loop waited for a free core for so long that it matters."""
        return self.contention_ps >= _WORTH_SAYING * self.step_ps > 0

    @property
    def whole_step(self) -> str:
        """The same of what is a share of all of it."""
        if not self.has_steps:
            return "the capture"
        if self.is_average:
            return "the average step"
        return "each step" if self.is_median else "each long step"

    @property
    def the_step(self) -> str:
        """The same where it was named before."""
        return "the step" if self.has_steps else "the capture"


def account_shown(accounts: Sequence[StepAccount | None]) -> StepAccount | None:
    """The account that stands for a session: that of the host that sets the pace, which is busy longest, communication
    not counted, since there it waits for others; None without any account.

    Hosts on which no steps were found count only where there are no others.
    """
    known = [account for account in accounts if account is not None and account.step_ps > 0]
    return max(known, key=lambda account: (account.has_steps, account.own_ps, account.step_ps), default=None)


def account_of(trace: HostTrace) -> StepAccount | None:
    """The account of a host's median step, made once per trace; where no steps were found, that of the whole capture;
    None where nothing takes time."""
    return trace.derived("step account", _account)


def account_without_culprits(trace: HostTrace) -> StepAccount | None:
    """The same without culprits, gains and rivals, which take a third of its time: for tools that show no sentence
    of it."""
    return trace.derived("step account without culprits", _account_without_culprits)


def _account(trace: HostTrace) -> StepAccount | None:
    account = account_without_culprits(trace)
    found, model = (None, None) if account is None else (every_step(trace), model_of(trace))
    if account is None or found is None:
        return None
    pieces, cause = found.pieces_of_median()
    finder = PieceFinder(trace, found.graph, pieces)
    silent = awaits_silent_device(trace, found.graph, pieces, cause)
    rows = [_name_culprit(model, finder, cause, silent, row) for row in account.rows]
    rivals = _rivals(model, rows) if model is not None else []
    return replace(account, rows=rows, rivals=rivals, to_record=_suggest_recording(trace, rows))


def _name_culprit(
    model: StepModel | None, finder: PieceFinder, causes: U8, silent: Mask, row: AccountRow
) -> AccountRow:
    cause = Cause[row.cause.upper()]
    # Contention is by what runs elsewhere, not by what the thread was about to do; so is a device that shows no work.
    rows = np.flatnonzero((causes == int(cause)) & ~silent)
    culprit = None if cause == Cause.CONTENTION else finder.culprit(rows, cause)
    if cause == Cause.UNKNOWN and silent.any():
        waits = finder.waiting_call(np.flatnonzero(silent))
        culprit = waits if waits is not None and waits.ps >= (0 if culprit is None else culprit.ps) else culprit
    if culprit is not None and culprit.ps < (_MOST_OF if cause == Cause.UNKNOWN else _WORTH_NAMING) * row.ps:
        culprit = None  # it does not stand for the part
    return replace(row, culprit=culprit, gain_ps=None if model is None else gain_of_cause(model, cause))


def _account_without_culprits(trace: HostTrace) -> StepAccount | None:
    if holds_sums_only(trace):
        return None
    found, model = every_step(trace), model_of(trace)
    if found is None:
        return None
    pieces, cause = found.pieces_of_median()
    rows = _list_rows(found.graph, pieces, cause, found.known_of_median())
    why_not = "no steps were found" if model is None else model.why_not
    usual, length = usual_steps(trace, found.graph), steps_of(trace).length_ps[found.graph.steps]
    spent = found.causes_ps()[usual]
    steps = found.graph.steps[usual]
    blindness = blindness_of(trace, int(found.graph.steps[found.median]))
    return StepAccount(
        host=trace.host,
        step=int(steps_of(trace).number[found.graph.steps[found.median]]),
        has_steps=model is not None,
        is_median=bool(length[found.median] <= OUTLIER * median(length[usual])),
        step_ps=sum(row.ps for row in rows),
        rows=rows,
        replay_error_percent=None if model is None else model.error_percent,
        steps=len(usual),
        devices=devices_text(trace),
        why_not=why_not,
        rivals=[],
        noise_percent=_noise_percent(spent),
        mean_percent=_mean_percent(spent),
        own_ps=own_work_ps(spent.mean(axis=0).round().astype(np.int64).tolist()),
        sleeps=_sleeps(trace, found),
        moments=moments_of(pieces, cause),
        only_dispatch=holds_only_dispatch(trace),
        blindness=blindness,
        certain=() if blindness is None or blindness.hides_causes else _find_certain(trace, found, blindness),
        device_bars=_device_bars(trace, pieces),
        silent_ps=int((pieces.end_ps - pieces.start_ps)[awaits_silent_device(trace, found.graph, pieces, cause)].sum()),
        long_steps=None if model is None else find_long_steps(trace, steps, spent),
        mean_ps=round(spent.sum() / len(usual)),
    )


def _device_bars(trace: HostTrace, pieces: Pieces) -> tuple[DeviceBar, ...]:
    """The devices of a host during the step that the account is of.

    Args:
        pieces: of that step.
    """
    if not len(pieces):
        return ()
    step = Spans(pieces.start_ps.min(keepdims=True), pieces.end_ps.max(keepdims=True))
    busy = {device_name(trace, plane): (spans & step).total for plane, spans in busy_by_device(trace).items()}
    return tuple(
        DeviceBar(name, busy[name], {cause.name.lower(): ps for cause in Cause if (ps := causes_ps[cause])})
        for name, causes_ps in median_by_device(trace).items()
    )


def _find_certain(trace: HostTrace, found: EveryStep, blindness: Blindness) -> tuple[str, ...]:
    """The causes of the median step that hold whatever was not recorded: those of which most is recorded and lies where
    devices have nothing to do; and where launches lost their work evenly over the steps, those that are the limit
    whether or not the lost work is like the rest: the longest on devices that work nearly all the time then."""
    pieces, cause = found.pieces_of_median()
    known = found.known[found.step == found.median] == Known.RECORDED
    exposed = np.where(known, exposed_spans(trace).overlap_ps(pieces.start_ps, pieces.end_ps), 0)
    part = np.bincount(cause, weights=exposed, minlength=len(Cause))
    whole = np.bincount(cause, weights=pieces.end_ps - pieces.start_ps, minlength=len(Cause))
    certain = 2 * part > whole
    for each in _limits_with_lost_work(trace, found, blindness.lost):
        certain[each] = True
    if blindness.lost:  # what devices do for most of the step is known, whatever else they were to do
        certain[[*_OF_DEVICES]] |= 2 * whole[[*_OF_DEVICES]] > whole.sum()
    return tuple(Cause(at).name.lower() for at in np.flatnonzero(certain).tolist())


def _limits_with_lost_work(trace: HostTrace, found: EveryStep, lost: float) -> list[Cause]:
    """The causes that limit the usual steps if the work that launches lost is like what they kept: that of the devices
    which takes most, or those of the host; none where nothing was lost, or not evenly."""
    steps = steps_of(trace)
    usual = found.graph.steps[usual_steps(trace, found.graph)]
    start, end = steps.start_ps[usual], steps.until_ps[usual]
    by_step = [share_lost(trace, start[[at]], end[[at]]) for at in range(len(usual))] if 0 < lost < 1 else []
    if not by_step or max(by_step) >= 1 or max(by_step) > _EVENLY * max(min(by_step), 1 - 1 / _EVENLY):
        return []
    rows = device_rows(trace)
    does = causes_of_work(trace)[trace.events.kind[rows]]
    length = int((end - start).sum())
    whole = spans_of(trace, rows).overlap_ps(start, end).sum() / (1 - share_lost(trace, start, end))
    if whole <= LARGE_SHARE / 100 * length:
        return [Cause.LAUNCH, Cause.PYTHON, Cause.INPUT]
    if whole < (1 - LARGE_SHARE / 100) * length:
        return []
    kinds = [spans_of(trace, rows[does == each]).overlap_ps(start, end).sum() for each in Cause]
    most = Cause(int(np.argmax(kinds)))
    return [most] if 2 * kinds[most] > sum(kinds) else []


def _sleeps(trace: HostTrace, found: EveryStep) -> bool:
    """By what the thread used of the processors, else by recorded calls such as `time.sleep`."""
    python = found.pieces.take(found.cause == Cause.PYTHON)
    asleep = asleep_ps(trace, threads_of(trace).main, Spans.union(python.start_ps, python.end_ps))
    if asleep is None:
        calls = has_trait(trace, trace.events.type[python.event], CodeTrait.SLEEPS) & (python.event >= 0)
        asleep = int((python.end_ps - python.start_ps)[calls].sum())
    return asleep > _NEARLY_ALL * int((python.end_ps - python.start_ps).sum())


def _list_rows(graph: Graph, pieces: Pieces, cause: U8, known_ps: I64) -> list[AccountRow]:
    total, idle = np.zeros(len(Cause), np.int64), idle_ps(graph, pieces)
    np.add.at(total, cause, pieces.end_ps - pieces.start_ps)
    order = [each for each in np.argsort(-total, kind="stable").tolist() if total[each] > 0]
    return [
        AccountRow(
            Cause(each).name.lower(),
            int(total[each]),
            None,
            None if idle is None else int(idle[cause == each].sum()),
            None,
            tuple(known_ps[each].tolist()),
        )
        for each in order
    ]


def moments_of(pieces: Pieces, cause: U8) -> tuple[tuple[str, int], ...]:
    """What each 200th of a step is spent on, in the order of time; equal neighbours are one.

    Within a 200th the causes stand in the order of their first moment, so that all times of a cause add up to its row.
    """
    if not len(pieces):
        return ()
    start, end = pieces.start_ps, pieces.end_ps
    low, high = int(start.min()), int(end.max())
    edges = low + np.arange(_MOMENTS + 1) * (high - low) // _MOMENTS  # floats lack the digits of times after a day
    first = np.searchsorted(edges, start, side="right") - 1
    cells = np.searchsorted(edges, end, side="left") - first  # that a piece touches
    piece = np.repeat(np.arange(len(start)), cells)
    cell = np.repeat(first, cells) + np.arange(len(piece)) - np.repeat(np.cumsum(cells) - cells, cells)
    inside = np.minimum(end[piece], edges[cell + 1]) - np.maximum(start[piece], edges[cell])
    key, place, group = np.unique(cell * len(Cause) + cause[piece], return_index=True, return_inverse=True)
    spent = np.zeros(len(key), np.int64)
    np.add.at(spent, group, inside)
    parts = np.lexsort((place, key // len(Cause)))
    causes, spent = (key % len(Cause))[parts], spent[parts]
    begins = np.flatnonzero(np.append(True, causes[1:] != causes[:-1]))
    lengths = np.add.reduceat(spent, begins).tolist()
    return tuple((Cause(at).name.lower(), ps) for at, ps in zip(causes[begins].tolist(), lengths, strict=True) if ps)


def _rivals(model: StepModel, rows: list[AccountRow]) -> list[NextCause]:
    now = {row.cause: row.ps for row in rows}
    then = causes_without(model, Cause[rows[0].cause.upper()], now) if rows else {}
    grown = [NextCause(cause, now.get(cause, 0), ps) for cause, ps in then.items()]
    grown = [rival for rival in grown if rival.then_ps - rival.now_ps > _GROWS * sum(now.values())]
    return sorted(grown, key=lambda rival: rival.now_ps - rival.then_ps)


def _suggest_recording(trace: HostTrace, rows: list[AccountRow]) -> str | None:
    longest = rows[0] if rows else None
    if longest is None or Cause[longest.cause.upper()] not in _OF_CODE:
        return None
    known = longest.culprit is not None and longest.culprit.where is not None
    if known or len(events_of_kind(trace, EventKind.PYTHON_CALL)):
        return None
    return remedy(PYTHON_CALLS, recorder_of(trace))


def _noise_percent(spent: I64) -> dict[str, float]:
    """Two standard errors of the median share of each cause.

    The deviation of a share is read off its quartiles, which one slow step does not move.  A normal deviation is
    assumed, for which the quartiles are 1.349 deviations apart and the error of a median of n is 1.253 deviations over
    the root of n.
    """
    low, high = percentiles(100.0 * spent / np.maximum(spent.sum(axis=1, keepdims=True), 1), (25, 75))
    noise = (2 * 1.253 / 1.349 / np.sqrt(len(spent)) * (high - low)).tolist()
    return {cause.name.lower(): noise[cause] for cause in Cause if noise[cause] > 0}


def _mean_percent(spent: I64) -> dict[str, float]:
    mean = (100.0 * spent.sum(axis=0) / max(int(spent.sum()), 1)).tolist()
    return {cause.name.lower(): mean[cause] for cause in Cause if mean[cause] > 0}
