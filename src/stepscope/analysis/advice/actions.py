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

_WORTH_SAYING = 1.05  # times as fast: 3 % is the least gain that is advised, and starting workers costs as much again
_AS_GOOD = 0.9  # of what less work gives: then workers come first, as they need no change of the work itself
_CORE = 1.0  # what the loop's thread keeps busy while it makes its input


class Named(str):
    """An action on what the recording shows to be done, not on whatever has its class."""

    __slots__ = ()


class Beside(str):
    """An action after which the same work is done on other threads or processes, beside the step."""

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
    said = f"{cheaper[0]}: up to {whole:.2g}x"
    first = Named(said) if isinstance(cheaper[0], Named) else said
    half_ms = (gain.now_ms + gain.then_ms) / 2  # how much cheaper it gets, no recording shows
    return (first, *cheaper[1:], *beside), replace(gain, most_ms=_at_least(gain, half_ms))


def _at_least(gain: Gain, ms: float) -> float:
    return max(gain.most_ms or ms, ms)
