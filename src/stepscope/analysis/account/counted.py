"""The account held against what is counted without a model.

    main    M0-I=====-a-------------M1-      a device that works is not waited for by nobody; ops of the program that
    other        op------                    run beside a silent thread are what it waits for; a loop that waits for
    gpu       k-----         k-----          input while no device works is held up by its input; and steps end before
                                             the recording does

What the account says of its step is compared with these sums.  Where they are further apart than the error of a replay
that still predicts something, `trust` says so.
"""

from __future__ import annotations

import numpy as np

from stepscope.analysis.account.account import StepAccount, account_without_culprits
from stepscope.analysis.account.causes import Cause
from stepscope.analysis.account.devices import busy_by_device
from stepscope.analysis.account.every_step import EveryStep, every_step
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.program_runs import program_ops_elsewhere
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass

# Percent of the step from which on the account and what is counted contradict each other: the error of a replay that
# still predicts something, see `model.MOST_ERROR_PERCENT`.
CONTRADICTS = 10.0
_NOBODY = (Cause.SYNC, Cause.UNKNOWN)  # causes that name nothing that computes
_OF_INPUT = (Cause.INPUT, Cause.TRANSFER, Cause.CONTENTION, Cause.CHECKPOINT, Cause.COMPILE)
_PS_PER_NS = 1000  # a unit


@dataclass(frozen=True)
class Contradiction:
    """What an account says against what is counted, of the step that it is of.

    Attributes:
        ps: for how long they differ.
        step_ps: how long that step is.
        said: what differs, in words that follow `for 12.3 % of the step`.
    """

    ps: int
    step_ps: int
    said: str

    @property
    def percent(self) -> float:
        """The share of the step."""
        return 100.0 * self.ps / self.step_ps if self.step_ps else 0.0


def contradictions_of(trace: HostTrace) -> list[Contradiction]:
    """Where the account of a host's step contradicts what is counted, each sum compared once; empty without account."""
    account, found = account_without_culprits(trace), every_step(trace)
    if account is None or found is None or not account.step_ps:
        return []
    pieces, cause = found.pieces_of_median()
    nobody = np.isin(cause, _NOBODY)
    waiting = Spans.union(pieces.start_ps[nobody], pieces.end_ps[nobody])
    step = Spans.union(pieces.start_ps, pieces.end_ps)
    differs = (
        (
            account.contradicted_ps if account.idle_ps is not None else None,
            "the account says that nothing computes, but a device works then",
        ),
        (_ops_beside(trace, waiting), "the account says that nothing computes, but ops of a program run then"),
        (
            _input_beyond(trace, account, step),
            "the loop waits for input while no device works, and the account says something else",
        ),
        (_time_after_stop(trace, found), "the step lasts on after the recording says that it ended"),
    )
    return [Contradiction(ps, account.step_ps, said) for ps, said in differs if ps is not None]


def contradiction_of(trace: HostTrace) -> Contradiction | None:
    """The largest of them; None without an account."""
    return max(contradictions_of(trace), key=lambda each: each.ps, default=None)


def _ops_beside(trace: HostTrace, waiting: Spans) -> int | None:
    """For how long ops of programs run on other threads than the loop's in some time."""
    main = threads_of(trace).main
    ops = np.flatnonzero(program_ops_elsewhere(trace, main))
    return (spans_of(trace, ops) & waiting).total if len(ops) else None


def _input_beyond(trace: HostTrace, account: StepAccount, step: Spans) -> int | None:
    """By how much the loop's own waits for input, in which no device works, exceed what the account gives to input and
    what may lie in such a wait."""
    main = threads_of(trace).main
    waits = events_of_kind(trace, EventKind.INPUT_WAIT)
    waited = spans_of(trace, waits[trace.events.line[waits] == main]) & step
    for busy in busy_by_device(trace).values():
        waited = waited - busy
    given = sum(row.ps for row in account.rows if Cause[row.cause.upper()] in _OF_INPUT)
    return max(waited.total - given, 0) if len(waits) else None


def _time_after_stop(trace: HostTrace, found: EveryStep) -> int | None:
    """How much of the step lies after the stop that the file states."""
    if trace.start_unix_ns is None or trace.stop_unix_ns is None:
        return None
    stop_ps = (trace.stop_unix_ns - trace.start_unix_ns) * _PS_PER_NS
    at = int(found.graph.steps[found.median])
    steps = steps_of(trace)
    return max(int(steps.until_ps[at]) - max(stop_ps, int(steps.start_ps[at])), 0) if stop_ps > 0 else None
