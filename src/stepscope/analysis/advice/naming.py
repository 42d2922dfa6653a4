"""Names the culprit of an advice: what a person can edit, with how often it runs in a step and for how long."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.account.account import AccountRow
from stepscope.analysis.account.account_text import cause_sentence, cause_words, describe_culprit
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy

_MOST_OF = 0.5  # of a part's time: a culprit with less is only the largest part of it
_LITTLE = 0.05  # of a part's time: such a culprit explains nothing
_OF_PYTHON = ("input", "python", "checkpoint")  # causes that a line of the program explains, not an op


def name_culprit(
    context: Context, advice: Advice, *parts: str, host: HostFacts | None = None, share: str = ""
) -> Advice:
    """The advice with the culprit of what it is about.

    Args:
        parts: keys of `HostFacts.culprits`; the first of them that takes a considerable part of the step counts.
        host: that the advice is about; None for the one that sets the pace.
        share: how much of the step the advice is about, in words that begin its evidence where the sentence on the
            culprit does not say so already.
    """
    facts = host or context.pace
    row = _find_part(facts, parts)
    if facts is None or facts.account is None or row is None or row.culprit is None:
        advice = replace(advice, evidence=_join(": ", share, advice.evidence))
        return replace(advice, actions=(*advice.actions, *_recording_action(context, advice, None, parts)))
    is_most, of_account = row.culprit.ps >= _MOST_OF * row.ps, row in facts.account.rows
    if is_most and (share or of_account):
        percent, account = context.percent(row.culprit.ps / MS / context.quiet), facts.account.representative_step
        counted = f"{percent:.1f} % of {account.each_step} is {cause_words(row.cause)}: "
        counted += describe_culprit(row.culprit)
        sentence = cause_sentence(facts.account, row) if of_account else counted
        evidence = _join("; ", sentence, advice.evidence)
    else:
        part = "most of it is" if is_most else "the largest part is"
        evidence = f"{_join(': ', share, advice.evidence)}; {part} {describe_culprit(row.culprit)}"
    actions = (*advice.actions, *_recording_action(context, advice, row.culprit, (row.cause,)))
    return replace(advice, culprit=row.culprit, evidence=evidence, actions=actions)


def _join(between: str, first: str, second: str) -> str:
    second = second.removeprefix("; ")
    return f"{first}{between}{second}" if first and second else first or second


def has_culprit(context: Context, part: str) -> bool:
    """Whether a part is followed to a line of the program, or to an op that explains more than a little of it."""
    return _find_part(context.pace, (part,)) is not None


def name_op(context: Context, advice: Advice, name: str, calls: float, ps: float) -> Advice:
    """The advice with an op or kernel as its culprit.

    Args:
        calls, ps: per step.
    """
    culprit = Culprit(name, None, None, name, None, max(round(calls), 1), round(ps), None)
    if not context.period_ms or not ps:
        return replace(advice, culprit=culprit)
    share = f"{context.percent(ps / MS):.1f} % of each step is {describe_culprit(culprit)}"
    return replace(advice, culprit=culprit, evidence=f"{share}; {advice.evidence}")


def _find_part(facts: HostFacts | None, parts: tuple[str, ...]) -> AccountRow | None:
    """The first of the parts that was counted and has a culprit that explains more than a little of it."""
    rows = [facts.culprits[part] for part in parts if part in facts.culprits] if facts else []
    return next((row for row in rows if row.culprit is not None and row.culprit.ps >= _LITTLE * row.ps), None)


def _recording_action(
    context: Context, advice: Advice, culprit: Culprit | None, causes: tuple[str, ...]
) -> tuple[str, ...]:
    """What to record to see the line, where the cause is Python that was not recorded."""
    of_python = any(cause in _OF_PYTHON for cause in causes)
    of_dataset = "input" in causes and context.pace is not None and context.pace.feed.has_iterators
    if context.python_recorded or (culprit and culprit.file) or not of_python or of_dataset:
        return ()
    what = "what within that line takes it" if culprit and culprit.where else "the line"
    text = f"to see {what}, {remedy(PYTHON_CALLS, context.recorder)}"
    return () if any("with_stack" in action or "python_tracer" in action for action in advice.actions) else (text,)
