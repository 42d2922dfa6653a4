"""The order of the actions within an advice, and what each can give.

    Named    what the recording shows of the work, and what to do instead: "index whole batches", "parse that text once"
    str      what suits any work of the class: "do it once, before training"
    Beside   the same work on other threads or processes: no more than the cores that are free
    ForTraining   what only a program that trains can do: of a server or a test it is not said

Named ones come first.  Work that moves to other threads or processes is still done: where the program keeps its cores
busy already, workers take from the step what they save it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.gain import Gain
from stepscope.analysis.advice.items import Advice, describe_speedup

_EVERY, _N = "every N steps", 20  # one in as many leaves 5 % of what it costs: less than steps differ
_WORTH_SAYING = 1.05  # times as fast: 3 % is the least gain that is advised, and starting workers costs as much again
_AS_GOOD = 0.9  # of what less work gives: then workers come first, as they need no change of the work itself
_CORE = 1.0  # what the loop's thread keeps busy while it makes its input


class Named(str):
    """An action on what the recording shows to be done, not on whatever has its class."""

    __slots__ = ()


class Beside(str):
    """An action after which the same work is done on other threads or processes, beside the step."""

    __slots__ = ()


class Once(str):
    """An action that keeps the result of work, which helps where that is the same each time."""

    __slots__ = ()


class ForTraining(str):
    """An action on the backward pass, the update or the batches of a program that trains."""

    __slots__ = ()


def most_beside(context: Context, waits_ms: float) -> float | None:
    """How many times as fast steps are at most once their input is made beside them; None where the number of cores is
    not known, or a device computes.

    All of the work is still done, so that no step takes less than it takes on all cores.  Where it was not recorded how
    many the program uses, its step takes all of them, and its input one.
    """
    cores, used = context.cores, context.pace.cores_used
    if not cores or context.has_device or not context.period_ms:
        return None
    if used is not None:
        return max(cores / max(used / context.quiet, _CORE / 2), 1.0)
    share = min(waits_ms / context.period_ms, 1.0)
    return 1.0 / (1.0 - share + share * _CORE / cores)


def order_actions(actions: Sequence[str]) -> tuple[str, ...]:
    """The actions, each once, those on work that was recorded first."""
    return tuple(sorted(dict.fromkeys(actions), key=lambda each: not isinstance(each, Named)))


def place_actions(
    context: Context, actions: Sequence[str], gain: Gain, waits_ms: float
) -> tuple[tuple[str, ...], Gain]:
    """The actions in their order, with the most that the first of a kind can give, and the gain of the first of them.

    Args:
        gain: without the input's time.
        waits_ms: that time, per step.
    """
    most, whole, actions = most_beside(context, waits_ms), gain.speedup, order_actions(actions)
    if most is None or whole is None or gain.then_ms is None or not any(isinstance(each, Beside) for each in actions):
        return actions, gain
    most = min(most, whole)
    cheaper = [each for each in actions if not isinstance(each, Beside)]
    beside = [
        f"{each}: at most {most:.2g}x on these {context.cores} cores" for each in actions if isinstance(each, Beside)
    ]
    is_named = any(isinstance(each, Named) for each in cheaper)
    if not cheaper or (most >= _AS_GOOD * whole and not is_named):
        least_ms = gain.now_ms / most
        return (*beside, *cheaper), replace(
            gain, then_ms=max(gain.then_ms, least_ms), most_ms=_at_least(gain, least_ms)
        )
    beside = beside if most >= _WORTH_SAYING else []
    said = cheaper[0] + (f": up to {gain.now_ms / gain.least_ms:.2g}x" if gain.least_ms else "")
    first = Named(said) if isinstance(cheaper[0], Named) else said
    return (first, *cheaper[1:], *beside), gain.of_cheaper()


def _at_least(gain: Gain, ms: float) -> float:
    return max(gain.most_ms or ms, ms)


def name_interval(advice: Advice, every: float = 1.0) -> Advice:
    """The advice with a number for N in "every N steps", and what each of these actions gives; that of the first action
    is the gain of the advice.

    Args:
        every: how many steps lie from one time to the next now.
    """
    rare = [_EVERY in action for action in advice.actions]
    if not any(rare):
        return advice
    number = round(_N * max(every, 1.0))
    actions = tuple(action.replace(_EVERY, f"every {number} steps") for action in advice.actions)
    now, then = advice.step_time_ms, advice.predicted_step_time_ms
    if not now or then is None:
        return replace(advice, actions=actions)
    ends = (then, advice.least_step_time_ms, advice.most_step_time_ms)
    left, least, most = (each if not each else round(each + (now - each) / _N, 6) for each in ends)
    seldom = replace(
        advice, predicted_step_time_ms=left, least_step_time_ms=least, most_step_time_ms=most,
        predicted_speedup=round(now / left, 2) if left else None,
        reasoning=f"{advice.reasoning}; with N = {number}, {left:.2f} ms",
    )  # fmt: skip
    gain = describe_speedup(seldom.predicted_speedup or 1.0, *(seldom.speedup_range or (None, None)))[0]
    said = (f"{each}: {gain}" if is_rare else each for each, is_rare in zip(actions[1:], rare[1:], strict=True))
    return replace(seldom if rare[0] else advice, actions=(actions[0], *said))
