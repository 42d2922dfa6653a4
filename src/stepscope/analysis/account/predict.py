"""What changes of a model give: the step then, its range, and what it is spent on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.interventions import (
    Changed,
    Intervention,
    RangeEnd,
    Scale,
    Uncertain,
    change_lengths,
    has_device,
    number_at,
    replay_after,
)
from stepscope.analysis.account.model import StepModel
from stepscope.analysis.account.recording import share_uninterrupted, share_without_recording
from stepscope.analysis.account.replay import replay
from stepscope.analysis.account.selectors import part_of_cause
from stepscope.analysis.account.shares import spent_on
from stepscope.analysis.account.silence import sampled_loop_time, silent_spans
from stepscope.analysis.account.stretches import stretches_of
from stepscope.analysis.steps.cycles import LEAST_STEPS
from stepscope.analysis.steps.profiling_cost import profiling_cost
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.program_facts import op_threads_of
from stepscope.errors import counted
from stepscope.model.arrays import F64, I64, median
from stepscope.records import dataclass

_LEAST_HOST_FACTOR, _HALVINGS = 0.2, 8  # a profiler that makes host work five times as long is beyond repair
# The error of predictions on hosts without a device, as shares of the remaining and of the removed time: measured on
# programs that were written without sight of the rules (docs/advice-truth.md).
_OFF_OF_REST, _OFF_OF_GAIN = 0.22, 0.08
_NEARLY_ALL = 0.9  # of a step: what is known of the rest says nothing of it
ENDS = (RangeEnd.FAST, RangeEnd.SLOW)  # of uncertain numbers
_MOST_OF_STEP = 0.5  # where a change leaves more than this, what is left is interrupted much as before
_WIDEST = 2.5  # between the ends of a range: beyond, the upper end of a gain says nothing that one could plan with
WIDE = 1.6  # between the ends of a range: from here on the reader is told what narrows it
_WAITS_FOR_CORE = Cause.CONTENTION.name.lower()
_GROWN, _STEADILY, _SEVERAL = 1.2, 0.8, 8  # times, rank correlation and steps by which savings grow; judgement
_ERRORS = 1.28  # standard errors of a mean to either side, which hold it in 80 of 100 cases


@dataclass(frozen=True)
class Predicted:
    """The median step before and after changes.

    Attributes:
        now_ps: as recorded; then_ps: after the changes, or `most_ps` where no more than that can be told.
        least_ps, most_ps: the range of `then_ps`; `least_ps` is 0 where nothing may be left.
        causes: what a step is spent on then, on average and without recording cost, in ps, the longest first.
        reasons: why the range is as wide as it is, a sentence each.
        causes_now: the same before the changes.
        is_once: but for one of several steps less is saved than any advice is given on, so how often that one comes is
            not known.
        of_processors: the share of the work on full processors that goes, where that is what shortens the step; else 0.
        silent: the share of what is unexplained in which the loop's thread is in no call; a call that says nothing of
            what it does still says how long it takes.
    """

    now_ps: int
    then_ps: int
    least_ps: int
    most_ps: int
    causes: dict[str, int]
    reasons: tuple[str, ...]
    causes_now: dict[str, int]
    is_once: bool = False
    silent: float = 1.0
    of_processors: float = 0.0

    @property
    def why_not(self) -> str | None:
        """Why the changes promise nothing though the model carries: nearly all of what they leave was not recorded;
        None if they promise something."""
        unknown = self.silent * self.causes.get(Cause.UNKNOWN.name.lower(), 0)
        if unknown <= _NEARLY_ALL * self.then_ps or self.then_ps >= self.now_ps:
            return None
        return f"{100.0 * unknown / self.then_ps:.0f} % of what would be left of the step is unexplained"

    def causes_of(self, now: Mapping[str, int]) -> dict[str, int]:
        """What the step of an account is spent on after the changes, in ps, the longest first.

        An account corrects the way back of a replay by what is counted (see `reconciled`), so that the two differ
        before any change: a cause that shrinks in the replay shrinks by the same share in the account, one that grows
        grows by the same time, and all fill the step that is left.  Without a change, that is the account.

        Args:
            now: what it is spent on, ps by cause.
        """
        then = {}
        for cause in dict.fromkeys([*now, *self.causes]):
            was, left = self.causes_now.get(cause, 0), self.causes.get(cause, 0)
            if was or cause != _WAITS_FOR_CORE:  # which is left out of both where it is not what changes
                then[cause] = now.get(cause, 0) * (left / was if left < was else 1.0) + max(left - was, 0)
        whole = self.then_ps / (sum(then.values()) or 1.0)
        longest = sorted(then, key=lambda cause: -then[cause])
        return {cause: round(whole * then[cause]) for cause in longest if whole * then[cause] >= 1.0}

    @property
    def is_most(self) -> bool:
        """Whether `then_ps` is the most that may be left, and how much less it is cannot be told."""
        return self.least_ps == 0 < self.then_ps == self.most_ps


def predict(model: StepModel, changes: Sequence[Intervention], of_machine: bool = False) -> Predicted | None:
    """What some changes give, all at once; None where the model does not carry a forecast (see `model.why_not`).

    Where it is known how long steps take without a profiler, what is left of the step is that of those: the work of
    threads is shortened until the replay takes that long.  The range holds three doubts: the ends of each change's
    uncertain numbers, what steps gain differently, and the error of the prediction: the replay error of the capture,
    and on a host without a device at least the usual one.

    What the loop waited for a free core is no part of the program: a change is worth what it gives where nothing else
    runs, so that wait is left out of the steps with and without the change.

    Args:
        of_machine: the change is about that wait itself.
    """
    if model.why_not is not None or model.error_percent is None:
        return None
    now, steps = recorded_ps(model), steady_steps(model)
    factor = _replay_undisturbed(model).factor
    base = (
        _replay_undisturbed(model) if of_machine else model.trace.derived("quiet steps", lambda _: _replay_quiet(model))
    )
    undisturbed, also = base.steps, base.without
    before = undisturbed.step_ps[steps]
    usual, fast, slow = _replay_range(model, changes, also, factor, before)
    if all(isinstance(change, Scale) and number_at(change.factor, RangeEnd.SLOW) <= 1.0 for change in changes):
        usual, fast, slow = (_give_back(undisturbed, each, steps) for each in (usual, fast, slow))
    then, least, most = range_after(
        now, model.error_percent, has_device(model), before, *(each.step_ps[steps] for each in (usual, fast, slow))
    )
    if also:
        then, least, most = _limit_by_causes(model, changes, (then, least, most))
    reasons = [*_reasons(model, factor), *([_QUIET] if also else []), *sources_of(changes)]
    if most > WIDE * least:
        off = 0.0 if has_device(model) else usual_error(now, then)
        spread = _mean_ratio(before, slow.step_ps[steps]) - _mean_ratio(before, fast.step_ps[steps])
        reasons.append(_suggest_narrowing(now * spread, off, now, before, slow.step_ps[steps]))
    causes = causes_after(model, usual, then), base.causes
    rest, on_devices = then - sum(causes[0].values()), Cause.DEVICE_COMPUTE.name.lower()
    if rest > 0 and all(isinstance(change, Scale) for change in changes):  # what the threads are faster than
        causes[0][on_devices] = causes[0].get(on_devices, 0) + rest
    once = _is_once(undisturbed.step_ps[model.steps], usual.step_ps[model.steps])
    return Predicted(now, then, least, most, causes[0], tuple(reasons), causes[1], once, _silent_share(model))


def _replay_range(
    model: StepModel, changes: Sequence[Intervention], also: Sequence[Intervention], factor: F64 | float, before: I64
) -> tuple[Changed, Changed, Changed]:
    """The steps after some changes: as they usually are, and with the fast and the slow end of what is not certain.

    Args:
        also: what is left out of the steps before the changes, too; before: how long those take, in ps.
    """
    together, steps = [*changes, *also], steady_steps(model)
    usual = replay_after(model, together, host_factor=factor)
    slow = fast = usual
    warm, gone = factor, 1.0 - _mean_ratio(before, usual.step_ps[steps])
    cold: F64 | float | None = model.trace.derived(
        "uninterrupted", lambda _: share_uninterrupted(model.trace, model.graph)
    )
    if cold is not None and gone >= _MOST_OF_STEP:
        if isinstance(factor, float):  # by the clock, which does not tell in which nodes the cost lies
            cold = float(np.average(cold, weights=np.maximum(model.graph.own_ps, 1)))
        # What is left runs warm, as far as what goes is all that interrupts it.
        warm = factor * (1.0 - (1.0 - cold) * gone)
        usual = replay_after(model, together, host_factor=factor * (1.0 - (1.0 - cold) * gone / 2.0))
        fast = replay_after(model, together, host_factor=warm)
    if is_uncertain(changes):
        slow = replay_after(model, together, RangeEnd.SLOW, factor)
        fast = replay_after(model, together, RangeEnd.FAST, warm)
    return usual, fast, slow


def _give_back(before: Changed, after: Changed, steps: I64) -> Changed:
    """Steps after changes that only shorten work: no longer than before.

    Nothing ends later then, but what a first step gains, a later one may lose that another limit holds up anyway: the
    steps between are no longer for that, only the start of them came earlier.
    """
    longer = after.step_ps[steps].sum() > before.step_ps[steps].sum()
    return replace(after, step_ps=before.step_ps) if longer else after


def _is_once(before: I64, after: I64) -> bool:
    """Whether less than the least gain is left without the step that gains most; int64 of shape (steps,), ps."""
    others = np.arange(len(before)) != int(np.argmax(before - after))
    gain = (before - after)[others].sum()
    return len(before) >= LEAST_STEPS and bool(gain < LEAST_PERCENT / 100.0 * before[others].sum())


def _limit_by_causes(
    model: StepModel, changes: Sequence[Intervention], found: tuple[int, int, int]
) -> tuple[int, int, int]:
    """What is left of the median step on a busy machine, the least and the most, where nothing saves more of a step
    than its causes take there.

    Args:
        found: the same by a replay without the wait of the loop's own thread, ps.
    """
    left, now = _share_without_waits(model, changes, _replay_undisturbed(model)), recorded_ps(model)
    if left is None:
        return found
    then, least, most = found
    average, shown = (round(now * each) for each in left)
    recorded, _ = _share_without_waits(model, changes, _replay_recorded(model)) or left
    if now * recorded > then:
        then = round(now * recorded)
        most = max(most, round(then + usual_error(now, then)))
    most = max(most, average, shown)
    least = min(least, max(round(average - usual_error(now, average)), 0))
    # Where threads share an op, it waits for the one without a core: how little it takes otherwise is not known.
    shares_ops = (op_threads_of(model.trace).threads or 1) > 1 and not has_device(model)
    return then, least if most <= _WIDEST * least and not shares_ops else 0, most


def _share_without_waits(model: StepModel, changes: Sequence[Intervention], busy: _Base) -> tuple[float, float] | None:
    """What is left of the average step and of the shown one, as shares, if changes take from them what they take from
    their causes, the wait for a free core aside; None where that wait is no longer than a prediction is off anyway.

    What other threads of the program wait for a core is in their calls and cannot be told from them.  So a replay
    without the wait of the loop's own thread keeps theirs, as if the program needed it: it says too little of a gain,
    and too much where the loop waits for those threads.
    """
    own = {cause: ps for cause, ps in busy.causes.items() if cause != _WAITS_FOR_CORE}
    if busy.causes.get(_WAITS_FOR_CORE, 0) <= _OFF_OF_REST * sum(busy.causes.values()) or not sum(own.values()):
        return None
    after, steps = replay_after(model, list(changes), host_factor=busy.factor), steady_steps(model)
    length = round(recorded_ps(model) * _mean_ratio(busy.steps.step_ps[steps], after.step_ps[steps]))
    left = causes_after(model, after, length)
    gone = {cause: max(ps - left.get(cause, 0), 0) / ps for cause, ps in own.items()}
    shown = {cause: float(model.spent_ps[Cause[cause.upper()]]) for cause in own}
    return _share_left(own, gone), _share_left(shown, gone)


def _share_left(times: Mapping[str, float], gone: Mapping[str, float]) -> float:
    """What is left of some times, as a share, without a share of each."""
    whole = sum(times.values())
    return 1.0 - sum(ps * gone[cause] for cause, ps in times.items()) / whole if whole else 1.0


def _silent_share(model: StepModel) -> float:
    return model.trace.derived("silent share", lambda _: _find_silent_share(model))


def _find_silent_share(model: StepModel) -> float:
    unexplained = stretches_of(model.trace).spans_of_cause(Cause.UNKNOWN)
    silent = silent_spans(model.trace) - sampled_loop_time(model.trace)
    return (unexplained & silent).total / unexplained.total if unexplained.total else 1.0


@dataclass(frozen=True)
class _Base:
    """The steps that changes are compared with.

    Attributes:
        factor: what work of threads counts without a profiler, see `share_undisturbed`.
        steps: their replay; causes: what a step is spent on.
        without: changes that were made to them and belong to whatever they are compared with.
    """

    factor: float | F64
    steps: Changed
    causes: dict[str, int]
    without: list[Intervention]

    @classmethod
    def replay_after(cls, model: StepModel, factor: float | F64, without: list[Intervention]) -> _Base:
        """The steps without a profiler and after some changes."""
        steps = replay_after(model, without, host_factor=factor)
        return cls(factor, steps, causes_after(model, steps, recorded_ps(model)), without)


def _replay_undisturbed(model: StepModel) -> _Base:
    return model.trace.derived("undisturbed steps", lambda _: _Base.replay_after(model, share_undisturbed(model), []))


def _replay_recorded(model: StepModel) -> _Base:
    return model.trace.derived("recorded steps", lambda _: _Base.replay_after(model, 1.0, []))


def _replay_quiet(model: StepModel) -> _Base:
    """The same without what the loop waited for a free core."""
    busy, alone = _replay_undisturbed(model), Scale(part_of_cause(model, Cause.CONTENTION))
    return _Base.replay_after(model, busy.factor, [alone]) if alone.part.own_ps.sum() else busy


def _suggest_narrowing(estimated: float, off: float, now: float, before: I64, after: I64) -> str:
    """What would narrow a range most: a cure for the largest of its doubts.

    Args:
        estimated: between the ends of uncertain numbers, ps; off: how far predictions usually are, ps.
        now: the median step, ps; before, after: replayed steps, ps.
    """
    unequal = now * _ERRORS * _error_of_ratio(before, after)
    if unequal > max(off, estimated / 2):
        return "the gain differs between steps: recording more steps narrows the range"
    return "`stepscope prove` narrows the range: it measures the gain"


def usual_error(now: float, then: float) -> float:
    """How far a predicted step time usually is from the real one on a host without devices."""
    return _OFF_OF_REST * then + _OFF_OF_GAIN * max(now - then, 0.0)


def range_after(
    now: float, error_percent: float, on_device: bool, before: I64, usual: I64, fast: I64, slow: I64
) -> tuple[int, int, int]:
    """The median step after changes in ps, and the least and the most that it may be.

    Where the error is as large as what is left of the step, the recording cannot tell how much is left: then the most
    that may be left is all that is said.  Nor is the least said where that is far below.

    Args:
        now: the median step, ps; error_percent: how far the replay is from it; on_device: the host has device work.
        before, usual, fast, slow: int64 of shape (steps,), replayed steps: as they are, after the changes, and with
            their uncertain numbers at both ends.
    """
    doubt = error_percent / 100.0 * now
    then, fastest, slowest = (now * _mean_ratio(before, each) for each in (usual, fast, slow))
    least = fastest - now * _ERRORS * _error_of_ratio(before, fast)
    most = slowest + now * _ERRORS * _error_of_ratio(before, slow)
    rare, often = rates_of(before - usual)
    least, most = (
        choose(end, _change_at_rate(now, then, by)) for choose, end, by in ((min, least, often), (max, most, rare))
    )
    off = doubt if on_device else max(doubt, usual_error(now, then))
    # The error is of a step as slow as these are on average; what is saved of a faster one is less.
    usually_most = _change_at_rate(now, then + off, 1.0 if on_device else _least_saved(before - usual))
    least, most = min(min(least, then) - doubt, then - off), max(max(most, then) + doubt, usually_most)
    least = 0.0 if most > _WIDEST * least or grows(before - usual) else least
    return round(most if then <= off and most < now else then), max(round(least), 0), round(most)


def rates_of(saved: I64) -> tuple[float, float]:
    """How much less and more often than in these steps that may happen which a change saves: factors, 1 and 1 where
    all steps save alike.

    What one of ten steps has may come in one of a hundred.  The savings are counted as that many events of equal size
    as have their spread; the limits are those of a Poisson rate, which hold it in 80 of 100 cases, by the formula of
    Wilson and Hilferty for chi-squared.
    """
    count, whole = len(saved), float(saved.sum())
    if count < 2 or whole <= 0:
        return 1.0, 1.0
    uneven = (count * float(saved * 1.0 @ saved) / whole**2 - 1.0) / (count - 1)
    if uneven <= 0:
        return 1.0, 1.0
    events = 1.0 / uneven
    low, high = (
        max(1.0 - 1.0 / (9.0 * shape) + side * _ERRORS / (3.0 * np.sqrt(shape)), 0.0) ** 3 * shape / events
        for shape, side in ((events, -1), (events + 1.0, 1))
    )
    return float(low), float(high)


def _least_saved(saved: I64) -> float:
    """What the tenth of the steps that save least saves, as a share of the mean; 1 where that is less than half, as
    some steps do without (see `rates_of`), and for few steps."""
    if len(saved) < _SEVERAL or saved.sum() <= 0:
        return 1.0
    share = float(np.quantile(saved, 0.1)) / float(saved.mean())
    return share if share >= 0.5 else 1.0


def grows(saved: I64) -> bool:
    """Whether what a change saves grows from step to step, as a metric over all batches so far does: later steps than
    those that were recorded gain more.

    Args:
        saved: int64 of shape (steps,), in the order of time.
    """
    if len(saved) < _SEVERAL or saved.sum() <= 0:
        return False
    quarter = len(saved) // 4
    first, last = (median(each) for each in (saved[:quarter], saved[-quarter:]))
    rank = np.argsort(np.argsort(saved, kind="stable"), kind="stable")
    together = np.corrcoef(rank, np.arange(len(saved)))[0, 1]
    return bool(last >= _GROWN * max(first, 1.0) and together >= _STEADILY)


def _change_at_rate(now: float, then: float, rate: float) -> float:
    """The step after a change that saves something which happens that many times as often as it did, in the measure of
    the step as it was."""
    return now * then / (then + max(now - then, 0.0) * rate) if then > 0 else then


def steady_steps(model: StepModel) -> I64:
    """The usual steps but for the first that was recorded, if there are others: what runs before it is not known, so
    its replay starts with empty queues."""
    return model.steps[1:] if model.steps[0] == 0 and len(model.steps) > 1 else model.steps


def recorded_ps(model: StepModel) -> int:
    """The step that every figure is about, as recorded: that of the account."""
    return int(model.graph.recorded_step_ps[model.median])


def share_undisturbed(model: StepModel) -> float | F64:
    """Of the length of threads' work, what remains without a profiler.

    Where nothing tells how long steps took before the capture, or the difference is in the noise, events cost what was
    measured of events of that kind.
    """
    cost = profiling_cost(model.trace)
    if cost is None or cost.is_counted or not cost.is_clear or cost.percent <= 0:
        share = share_without_recording(model.trace, model.graph)
        return 1.0 if share is None else share
    wanted = median(model.now.step_ps[model.steps]) * cost.ms_before / cost.ms_inside
    low, high = _LEAST_HOST_FACTOR, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        longer = median(replay_after(model, [], host_factor=middle).step_ps[model.steps]) > wanted
        low, high = (low, middle) if longer else (middle, high)
    return high


def gain_of_cause(model: StepModel, cause: Cause) -> int | None:
    """By how much the median step gets shorter without all time of a cause, in ps; None where the model does not carry
    that.  `predict` says the same and more, in ten times the time."""
    if model.why_not is not None or cause == Cause.UNKNOWN:
        return None
    lengths = change_lengths(model, [Scale(part_of_cause(model, cause))])
    after = replay(model.graph, lengths.whole_ps, None, lengths.lag_ps, lengths.pause_ps)
    now, steps = recorded_ps(model), steady_steps(model)
    left = np.maximum(after.step_ps, lengths.least_ps)
    return max(round(now * (1.0 - _mean_ratio(model.now.step_ps[steps], left[steps]))), 0)


def causes_without(model: StepModel, cause: Cause, now: Mapping[str, int]) -> dict[str, int]:
    """What the step of an account is spent on without a cause; empty where the model does not carry that.

    Args:
        now: what it is spent on, ps by cause.
    """
    predicted = predict(model, [Scale(part_of_cause(model, cause))]) if cause != Cause.UNKNOWN else None
    return predicted.causes_of(now) if predicted else {}


def is_uncertain(changes: Sequence[Intervention]) -> bool:
    """Whether some number of the changes is an estimate."""
    return any(_estimates(change) for change in changes)


def sources_of(changes: Sequence[Intervention]) -> list[str]:
    """Where the uncertain numbers of changes are known from, each once."""
    return [*dict.fromkeys(number.source for change in changes for number in _estimates(change))]


def _estimates(change: Intervention) -> list[Uncertain]:
    return [value for value in vars(change).values() if isinstance(value, Uncertain)]


def _mean_ratio(before: I64, after: I64) -> float:
    usual = float(before.sum())
    return float(after.sum()) / usual if usual > 0 else 1.0


def _error_of_ratio(before: I64, after: I64) -> float:
    """The standard error of the ratio of two means over the same steps; 0 for one step, of which it is not known."""
    count = len(before)
    if count < 2 or not before.any():
        return 0.0
    off = after - _mean_ratio(before, after) * before
    return float(np.sqrt((off * off).sum() / (count - 1) / count) / before.mean())


def causes_after(model: StepModel, after: Changed, step_ps: int) -> dict[str, int]:
    """What a step of a length is spent on, in the shares that causes have in all steps after changes together; what
    limits them as a whole has no cause."""
    steps, times, own = steady_steps(model), after.replayed, after.own_ps
    shares = replace(model.shares, own_ps=own)
    spent = spent_on(model.graph, shares, steps, times.start_ps, times.end_ps, own.sum_by_node())
    spent *= step_ps / max(int(after.step_ps[steps].sum()), 1)
    order = np.argsort(-spent, kind="stable").tolist()
    return {Cause(each).name.lower(): round(float(spent[each])) for each in order if spent[each] >= 1.0}


_QUIET = "the wait for a free core was left out of both"


def _reasons(model: StepModel, host_factor: float | F64) -> list[str]:
    count = len(model.steps)
    error = round(model.error_percent or 0.0, 2)  # rounded as the figure beside it
    return [f"replay of {counted(count, 'step')}, off by {error:.1f} %", *describe_factor(host_factor)]


def describe_factor(host_factor: float | F64) -> list[str]:
    """Why the work of threads counts less than recorded; empty if it does not."""
    if not isinstance(host_factor, float):
        return ["the cost of recording was subtracted from both"]
    if host_factor == 1.0:
        return []
    return [f"steps were shorter before the capture, so the work of threads counts {host_factor:.2f} times"]
