"""Names the culprit of an advice: what a person can edit, with how often it runs in a step and for how long."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.account.account import AccountRow, StepAccount
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.shown import cause_sentence, describe_culprit
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.facts.device_facts import Share
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy

_MOST_OF = 0.5  # of a cause's time: a culprit with less is only the largest part of it
_WORTH_NAMING = 0.02  # of the step
_LITTLE = 0.05  # of a cause's time: such a culprit explains nothing
_OF_PYTHON = ("input", "python", "checkpoint")  # causes that a line of the program explains, not an op


def name_culprit(
    context: Context, advice: Advice, *causes: str, account: StepAccount | None = None, share: str = ""
) -> Advice:
    """The advice with the culprit of a cause of the account.

    Args:
        causes: the first of them that takes a considerable part of the step counts.
        account: of the host that the advice is about; None for the one that sets the pace.
        share: how much of the step the advice is about, in words that begin its evidence where the account's sentence
            does not say so already.
    """
    unnamed = replace(advice, evidence=f"{share}: {advice.evidence}") if share else advice
    found = account or context.account
    row = _row_of_cause(found, causes)
    if found is None or row is None or row.culprit is None or row.culprit.ps < _LITTLE * row.ps:
        return replace(unnamed, actions=(*advice.actions, *_recording_action(context, advice, None, causes)))
    culprit = row.culprit
    actions = (*advice.actions, *_recording_action(context, advice, culprit, (row.cause,)))
    if culprit.ps < _MOST_OF * row.ps:
        evidence = f"{unnamed.evidence}; the largest part is {describe_culprit(culprit)}"
    else:
        evidence = f"{cause_sentence(found, row)}; {advice.evidence}"
    return replace(advice, culprit=culprit, evidence=evidence, actions=actions)


def name_op(context: Context, advice: Advice, name: str, calls: float, ps: float) -> Advice:
    """The advice with an op or kernel as its culprit.

    Args:
        calls, ps: per step.
    """
    culprit = Culprit(name, None, None, name, None, max(round(calls), 1), round(ps), None)
    step_ps = context.period_ms * 1e9
    if not step_ps or not ps:
        return replace(advice, culprit=culprit)
    share = f"{100.0 * ps / step_ps:.1f} % of each step is {describe_culprit(culprit)}"
    return replace(advice, culprit=culprit, evidence=f"{share}; {advice.evidence}")


def name_share(context: Context, advice: Advice, share: Share, steps: int) -> Advice:
    """The advice with device work or a call of one name as its culprit."""
    return name_op(context, advice, share.name, share.calls / steps, share.total_ps / steps)


def _row_of_cause(account: StepAccount | None, causes: tuple[str, ...]) -> AccountRow | None:
    """The row of the first of the causes that takes a part worth naming of the step."""
    rows = {row.cause: row for row in account.rows if row.ps >= _WORTH_NAMING * account.step_ps} if account else {}
    return next((rows[cause] for cause in causes if cause in rows), None)


def _recording_action(
    context: Context, advice: Advice, culprit: Culprit | None, causes: tuple[str, ...]
) -> tuple[str, ...]:
    """What to record to see the line, where the cause is Python that was not recorded."""
    of_python = any(cause in _OF_PYTHON for cause in causes)
    of_dataset = "input" in causes and context.pace is not None and context.pace.feed.has_iterators
    if context.python_recorded or (culprit and culprit.file) or not of_python or of_dataset:
        return ()
    text = f"to see which line of the program it is, {remedy(PYTHON_CALLS, context.framework)}"
    return () if any("with_stack" in action or "python_tracer" in action for action in advice.actions) else (text,)
