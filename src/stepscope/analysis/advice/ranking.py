"""Selects and ranks the advice of all rules."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from stepscope.analysis.account.account import CONTENTION, StepAccount
from stepscope.analysis.account.account_text import (
    CAUSES_OF_CLASS,
    COMPUTING,
    VERDICT_OF_CAUSE,
    FirstChange,
    cause_words,
    causes_of_class,
    judge_account,
    row_of_change,
    share_sentence,
    shorten_op,
)
from stepscope.analysis.account.selection import CAUSES
from stepscope.analysis.advice.by_work import act_on_cause
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, plain_name
from stepscope.analysis.advice.no_advice import (
    SURE,
    advise_later_capture,
    advise_nothing,
    find_slow_rank,
    judge_first_calls,
)
from stepscope.analysis.advice.rule import Named, Rule, name_interval
from stepscope.analysis.advice.rule import rules as all_rules
from stepscope.analysis.advice.stopped import OF_JOB, advise_on_end, advise_on_growth
from stepscope.analysis.facts.changes import UNEXPLAINED
from stepscope.analysis.purpose.excess import EXCESSES, PART, SET_UP
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT, UNKNOWN, Verdict
from stepscope.analysis.trace.remedies import LATER, PYTHON_CALLS, remedy
from stepscope.records import dataclass
from stepscope.report import duration_text

_DOUBTED = 0.5  # as sure: what is wrong in the recording explains the gain as well as the advice does
_NEARLY_ALL = 0.9  # of the gain: so much of a function is one cause, which the rule for it describes
_MOST_OF = 0.5  # of the step, or of the time of compiled programs: by the word
_EXPLAINS = 0.5  # of the gain that a better explanation has to predict
_EXPLAINS_PART = 1 / 3  # the same, of a part of the model of which nothing but its time is known

_LARGE_EXTRA = 10.0  # percent of the step: what no step needs is worth naming from there; judgement
_OF_HOST = ("input", "host_compute", "checkpoint", "compile")  # what the host does itself, as its events say
_MOVES = ("transfer", "copy", "communication")  # what no computation hides, and nobody needs for its own sake

_KEEP_WORKERS = "where it comes in each epoch: DataLoader(persistent_workers=True) starts its workers once"
_KNOWN = frozenset((*EXCESSES, "recomputed"))  # work that the recording itself shows to be unneeded

_BARE = ("line.python_overhead", "eager.ops")  # advice that knows who and how much alone

Candidate = tuple[Rule, Advice]


@dataclass(frozen=True)
class Advised:
    """Advice, largest predicted gain first, warnings about rules that failed, and the verdict: the first item said as
    a state."""

    items: tuple[Advice, ...]
    warnings: tuple[str, ...]
    verdict: Verdict


def advise(context: Context, rules: Iterable[Rule] | None = None) -> Advised:
    """All advice that applies.  A rule that raises is named in a warning; the others still run."""
    ended = advise_on_end(context) if any(host.end is not None for host in context.hosts) else None
    if ended is not None:
        advice, verdict, is_all = ended
        others = Advised((), (), verdict) if is_all else _advise_on_steps(context, rules)
        told = (item for item in others.items if item.kind != "none")  # "nothing stands out" is no answer to a crash
        return replace(others, items=(advice, *told), verdict=verdict)
    return _advise_on_steps(context, rules)


def _advise_on_steps(context: Context, rules: Iterable[Rule] | None) -> Advised:
    if context.first_calls is not None:
        first = context.first_calls
        return Advised((advise_later_capture(context, first),), (), judge_first_calls(context, first))
    candidates, warnings = _ask_rules(context, rules)
    left = _unite_with_line(context, _leave_out_explained(context, candidates))
    found = sorted((advice for rule, advice in left if not rule.is_practice), key=_rank_key)
    practices = sorted((advice for rule, advice in left if rule.is_practice), key=_rank_key)
    sure = [advice for advice in found if not _is_doubtful(context, advice)]
    doubtful = [advice for advice in found if _is_doubtful(context, advice)]
    verdict = _say_late_rank(context, _judge(context, sure[0] if sure else None), sure)
    if context.account is None:
        kept = [*sure, *doubtful, *practices]
    elif sure:
        kept = [_say_share(context, sure[0], context.account), *sure[1:], *doubtful, *practices]
    else:
        kept = [advise_nothing(context, context.account, verdict, doubtful), *practices]
    kept, verdict = _say_outside_first(context, _say_gains(context, kept, verdict), verdict)
    growing = any(host.growth is not None for host in context.hosts)
    if growing and (growth := advise_on_growth(context)) is not None:
        kept.insert(1 if kept else 0, growth)  # no step is shorter without it
    return Advised(tuple(kept), (*warnings, *_contention(context)), verdict)


def _ask_rules(context: Context, rules: Iterable[Rule] | None) -> tuple[list[Candidate], tuple[str, ...]]:
    """What the rules find that is about known time and gains enough, and what kept rules from being asked."""
    chosen, warnings = (tuple(rules), ()) if rules is not None else all_rules(context)
    candidates: list[Candidate] = []
    failed = []
    for rule in chosen:
        try:
            advice = rule(context)
        except (Exception, SystemExit) as error:  # a third party's rule may raise anything
            failed.append(f"the rule {rule.id!r} failed and was left out: {type(error).__name__}: {error}")
            continue
        if advice is None or (advice.gain_percent is not None and advice.gain_percent < LEAST_PERCENT):
            continue
        said = advice if context.has_steps else _speak_of_capture(advice)
        if _is_about_known(context, said) and not _is_of_model(context, said):
            candidates.append((rule, _tell_as_recorded(context, said)))
    return candidates, (*warnings, *failed)


def _leave_out_explained(context: Context, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates whose time no other explains better; what is doubtful explains nothing that is certain."""
    certain = [each for each in candidates if not _is_doubtful(context, each[1])]
    return [each for each in candidates if not _is_explained(*each, certain if each in certain else candidates)]


def _say_late_rank(context: Context, verdict: Verdict, sure: Sequence[Advice]) -> Verdict:
    """The verdict with the rank that the others wait for: in the headline where the first advice is about it, or where
    there is none and much of the step is lost by it; else beside it."""
    if sure and sure[0].late:
        return replace(verdict, late=sure[0].late)
    found = find_slow_rank(context)
    if found is None:
        return verdict
    late = "" if sure or not found.holds_up_much else found.name
    return replace(verdict, late=late, evidence=(found.said, *verdict.evidence))


def _say_gains(context: Context, kept: Sequence[Advice], verdict: Verdict) -> list[Advice]:
    """The advice with how sure it is, and its gain for the step that the account shows; why the first is first."""
    sure = [round(each.confidence * (_DOUBTED if _is_covered(context, each) else 1.0), 4) for each in kept]
    kept = [replace(advice, confidence=each) for advice, each in zip(kept, sure, strict=True)]
    account = context.account
    if account is None or not kept:
        return kept
    kept = [_explain_other_savings(_scale_to_step(advice, account), context, account) for advice in kept]
    first, *others = (name_interval(advice, _steps_between(context, advice)) for advice in kept)
    return [_say_beside(first, others, context, verdict), *others]


def _say_outside_first(context: Context, kept: list[Advice], verdict: Verdict) -> tuple[list[Advice], Verdict]:
    """Advice and verdict of steps that are the smaller part of the recording: what holds the rest is said first."""
    outside = context.outside
    if outside is None:
        return kept, verdict
    holds = f"`{shorten_op(outside.name)}` holds most of it" if outside.name else "nothing there says what runs"
    if outside.beside:
        holds = f"other threads are in `{shorten_op(outside.beside)}` for most of it"
    stretch, whole = (duration_text(ps / MS) for ps in (outside.longest_ps, outside.whole_ps))
    longest = f"{stretch} of {whole} lie {outside.where}; {holds}"
    head = "not known" if verdict.head == "unknown" else verdict.head
    lies = f"{outside.percent:.0f} % of the recording lies {outside.where}"
    evidence = (longest, *verdict.evidence)
    verdict = Verdict(
        verdict.name, verdict.share_percent, lies, f"the steps themselves are {head}", verdict.cause, evidence
    )
    has_workers = context.feed.loader == "multi"
    actions = (
        f"where it comes once, leave it out: {remedy(LATER, context.recorder)}",
        *((_KEEP_WORKERS,) if has_workers else ()),
        f"where it comes again: to see what runs there, {remedy(PYTHON_CALLS, context.recorder)}",
    )
    title = f"Find out what the recording holds {outside.where}"
    told = Advice(
        id="capture.outside-steps", kind="none", title=title, evidence=longest, predicted_speedup=None, actions=actions,
        tool="steps", confidence=SURE, reasoning="what lies outside of steps is in no figure of them",
    )  # fmt: skip
    if kept and kept[0].kind != "none":
        return [kept[0], told, *kept[1:]], verdict
    nothing = [action for each in kept[:1] for action in each.actions]
    return [replace(told, actions=(*actions, *nothing)), *kept[1:]], verdict


def _speak_of_capture(advice: Advice) -> Advice:
    """The advice without the words on steps, where none was found."""

    def reword(text: str) -> str:
        for words in ("of each step", "of the time is"):
            text = text.replace(words, words.replace("each step", "the capture").replace("the time", "the capture"))
        return text.replace(" per step", "").replace(" within the step", "")

    title, evidence = reword(advice.title), reword(advice.evidence)
    return replace(advice, title=title, evidence=evidence, actions=(*map(reword, advice.actions),))


def _is_about_known(context: Context, advice: Advice) -> bool:
    """Whether an advice is about time that holds up the step whatever was not recorded, and enough of it."""
    account = context.account
    if account is None:
        return True
    if account.only_dispatch and advice.kind == "python_overhead" and advice.gain_percent is not None:
        return False  # what Python waits for was not recorded
    if account.blindness is None:
        return True
    row = row_of_change(account, _causes_in(context, advice))
    if row is None or row.cause not in account.certain or account.percent(row.ps, row.cause) < LARGE_SHARE:
        return row is not None and _is_most_as_recorded(account, row.cause)
    return advice.gain_percent is not None or row.cause == judge_account(account).cause  # what was lost may be more


def _is_most_as_recorded(account: StepAccount, cause: str) -> bool:
    """Whether the host itself works on a cause for most of the step, of whose devices nothing was recorded."""
    if account.blindness is None or not account.blindness.of_devices:
        return False
    most = account.rows[0]
    return most.cause == cause and cause in _OF_HOST and account.percent(most.ps, cause) > 100.0 * _MOST_OF


def _tell_as_recorded(context: Context, advice: Advice) -> Advice:
    """An advice on a host of whose devices nothing was recorded: without a gain, and with how to record them."""
    account = context.account
    if account is None or account.blindness is None:
        return advice
    row = row_of_change(account, _causes_in(context, advice))
    if row is None or row.cause in account.certain or not _is_most_as_recorded(account, row.cause):
        return advice
    return replace(
        advice,
        evidence=f"{advice.evidence}; {account.blindness.why}",
        actions=(*advice.actions, account.blindness.fix),
        predicted_speedup=None,
        predicted_step_time_ms=None,
        least_step_time_ms=None,
        most_step_time_ms=None,
        reasoning=f"nothing is predicted, because {account.blindness.why}",
    )


def _is_of_model(context: Context, advice: Advice) -> bool:
    """Whether an advice takes a part of the model for computation that nothing needs."""
    if advice.kind != "redundant_compute" or advice.change in _KNOWN or advice.culprit is None:
        return False
    from stepscope.analysis.advice.rules.lines import is_model

    model = [(line.file, line.line) for line in context.lines if is_model(line)]
    return (advice.culprit.file or "", advice.culprit.line or 0) in model


def _unite_with_line(context: Context, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those that say the same of a function that could be left out, or less.

    What speaks of the same class, or names the same function as the culprit, is about the same time.  The rule for the
    class knows more about it: it is said if it gains nearly as much, else the function with the actions of that rule.
    """
    own = next(((rule, advice) for rule, advice in candidates if context.line(advice.change)), None)
    if own is None:
        return list(candidates)
    rule, line = own
    others = [each for each in candidates if each[0] is not rule]
    same = [
        each
        for each in others
        if not each[0].of_others and (_is_alike(each[1], line) or _names_function(each[1], line))
    ]
    rest = [each for each in others if each not in same]
    alike = next((each for each in same if each[1].kind == line.kind), None)
    if alike is None:
        return [(rule, line), *rest]
    found, evidence = alike[1], _add_evidence(line.evidence, alike[1].evidence)
    # Of Python nothing is known but the function.
    least = _MOST_OF if found.kind == "python_overhead" else 1.0 / _NEARLY_ALL
    if found.gain_percent is None or _is_at(found, line) or least * _gain_ms(found) < _gain_ms(line):
        # What the rule for the class names is in its own culprit, which may be another function.
        about = [each for each in line.actions if isinstance(each, Named)]
        known = [each for each in found.actions if not isinstance(each, Named)]
        if (
            found.kind == "python_overhead" and line.kind == found.kind
        ):  # the function's rule knows who needs its result
            known = [each for each in line.actions if not isinstance(each, Named)]
        actions = (*about, *(each for each in known if each not in about)) or line.actions
        return [(rule, replace(line, evidence=evidence, actions=actions)), *rest]
    if found.culprit is None or found.culprit.file is None:
        evidence = _add_evidence(found.evidence, line.evidence)
        found = (
            replace(found, culprit=line.culprit, evidence=evidence) if 2 * _gain_ms(line) >= _gain_ms(found) else found
        )
    return [(alike[0], found), *rest]


_STEPS = ("each", "each long", "the average", "the median")
_PLACE_FIRST = ("most of it is ", "the largest part is ")


def _add_evidence(said: str, also: str) -> str:
    """The evidence of one rule with that of another for the same function: its share and its place stand once."""
    clauses = [each for each in also.split("; ") if not each.startswith(_PLACE_FIRST)]
    words = map(_leave_out_share, clauses)
    return "; ".join([said, *(each for each in words if not each.startswith("it is "))])


def _leave_out_share(clause: str) -> str:
    """`it runs the model` for `71.7 % of each step runs the model`; any other clause as it is."""
    share, _, rest = clause.removeprefix("for ").partition(" step ")
    if share.partition(" % of ")[2] not in _STEPS:
        return clause
    rest = rest.removeprefix("without contention ")
    return rest if clause.startswith("for ") else f"it {rest}"


def _is_alike(advice: Advice, line: Advice) -> bool:
    """Whether two are of one class, or both about the input."""
    return advice.kind == line.kind or all(each.kind.startswith("input_p") for each in (advice, line))


def _is_at(advice: Advice, line: Advice) -> bool:
    """Whether two have the same culprit."""
    return advice.culprit is not None and line.culprit is not None and advice.culprit.place == line.culprit.place


def _names_function(advice: Advice, line: Advice) -> bool:
    """Whether an advice has the function of another as its culprit, and gains no more, or says only how often that
    starts something."""
    gains_more = advice.gain_percent is not None and _gain_ms(advice) > _gain_ms(line)
    return _is_at(advice, line) and (not gains_more or advice.kind == "small_batch")


def _causes_in(context: Context, advice: Advice) -> tuple[str, ...]:
    """The causes that an advice shortens, the most telling one first: of a function those in it."""
    line = context.line(advice.change)
    if line is None:
        return causes_shortened(advice)
    known = {cause: ps for cause, ps in line.causes.items() if cause != CONTENTION}
    return tuple(sorted(known, key=lambda cause: -known[cause])) or causes_shortened(advice)


def find_record_first(context: Context, items: Sequence[Advice]) -> str:
    """How to record again before anything else, as what is wrong may be all that the first advice is about; else the
    empty string."""
    return context.record_first if not items or _is_covered(context, items[0]) else ""


def _is_covered(context: Context, advice: Advice) -> bool:
    """Whether what is wrong in the recording may be all that the advice is about; of a run with nothing to change,
    whether it may hide something."""
    if not context.record_first or advice.id.startswith(OF_JOB):
        return False
    if advice.kind == "none":
        return context.doubtful_percent >= LEAST_PERCENT
    share = context.percent(advice.part_ms or 0.0) if advice.gain_percent is None else advice.gain_percent
    return share <= context.doubtful_percent


def _judge(context: Context, first: Advice | None) -> Verdict:
    if context.account is None:
        return UNKNOWN
    change, account = None if first is None else _first_change(context, first), context.account
    if first is not None and _is_in_tiny_ops(context, first):
        account = account.described("host_compute", "computation in tiny ops")
    verdict = judge_account(account, change)
    if first is not None and (full := _state_of_processors(context, first, verdict)) is not None:
        return full
    if first is not None and (state := _state_of_change(context, first, verdict)) is not None:
        return state
    if (
        first is not None
        or not context.pace.is_one_function
        or verdict.cause != "python"
        or verdict.share_percent is None
    ):
        return verdict
    said = f"{verdict.share_percent:.1f} % of each step is one function: its Python, or compiled code"
    return Verdict("unknown", verdict.share_percent, "unknown", said, "python", (f"{said} such as NumPy's",))


def _first_change(context: Context, first: Advice) -> FirstChange:
    """The first advice as the verdict needs it: of computation with what it is spent on, else the function."""
    line, state = context.line(first.change), first.state
    part_ms = first.part_ms or 0.0 if line is None else line.own_ps / MS / context.quiet
    if not state and first.culprit is not None and first.culprit.file and first.change not in CAUSES:
        state = f"`{plain_name(first.culprit.name)}`"
    percent = context.percent(part_ms)
    if line is not None:
        from stepscope.analysis.advice.rules.lines import percent_of_account

        known = line.share(*(cause for cause in line.causes if cause != CONTENTION)) or 1.0
        computing = line.share(*COMPUTING) / known
        percent = computing * max(percent, percent_of_account(context, line) or 0.0)
    return FirstChange(_causes_in(context, first), first.gain_percent, state, percent)


def _state_of_processors(context: Context, first: Advice, verdict: Verdict) -> Verdict | None:
    """The verdict on steps that are as long as the work of all threads, as the processors are full: the limit is what
    the first advice takes from them, though no step waits for it; None for other steps."""
    share, held = context.share_of_processors(first.change), context.pace.processors
    if not share or held is None or verdict.cause != "host_compute":  # else the account has it as the limit, too
        return None
    cause, name = ("input", cause_words("input")) if first.kind.startswith("input") else ("python", "")
    name = name or (f"`{first.culprit.name}`" if first.culprit is not None else cause_words(cause))
    state, evidence = VERDICT_OF_CAUSE[cause], (held.describe(), *verdict.evidence)
    said = f"threads compete for the processors, {100 * share:.1f} % of their work is {name}"
    return Verdict(state, round(100 * share, 4), state.replace("_", "-"), said, cause, evidence)


# What computes on the host may do it for another end: the batch, a file, or only to be started.  What the time of the
# first advice is spent on then, in words that follow its share.
_STATES = {
    "input": "making the batch", "launch": "starting small pieces of work", "checkpoint": "saving or restoring state",
    "python": "Python and what it calls", "transfer": "copying data in", "sync": "reading values one by one",
}  # fmt: skip


def _state_of_change(context: Context, first: Advice, verdict: Verdict) -> Verdict | None:
    """The first advice said as a state, where the account has its time as computation of the host, and it takes half as
    long as what else computes; or where most of the step is unexplained, and still in one function that is known; None
    elsewhere."""
    account, cause = context.account, causes_of_class(first.kind)[0]
    of_account = verdict.cause in ("host_compute", "unknown")
    if account is None or context.has_device or not of_account or cause not in _STATES:
        return None
    if first.change in CAUSES:  # which the account has counted
        return None
    line = context.line(first.change)
    if line is not None:
        is_small = line.starts_small_work(context.framework == "pytorch")
        cause = "launch" if is_small else cause
        if cause == "launch" and line.share("python") >= _MOST_OF:
            cause = "python"
        if cause == "launch" and not is_small:
            return None
    part_ms = first.part_ms or 0.0 if line is None else line.own_ps / MS / context.quiet
    share, computes = context.percent(part_ms), context.percent(context.cause_ms("host_compute"))
    if verdict.cause == "unknown" and (line is None or share < 100.0 * _MOST_OF):
        return None
    inside = share * line.share("host_compute") if line is not None else share
    if share < max(LARGE_SHARE, (computes - inside) / 2) or (first.gain_percent or share) < LARGE_SHARE:
        return None
    name = VERDICT_OF_CAUSE[cause]
    where = f", in `{plain_name(first.culprit.name)}`" if first.culprit is not None and first.culprit.file else ""
    of, where = ("", "") if verdict.busy else (f" of {account.each_step}", where)
    said = f"{share:.1f} %{of} is {_STATES[cause]}{where}"
    label = name.replace("_", "-")
    return replace(verdict, name=name, label=label, share_percent=round(share, 4), said=said, cause=cause)


def _is_in_tiny_ops(context: Context, first: Advice) -> bool:
    """Whether the first advice spares starting ops that are mostly too short to do more than start."""
    return first.kind == "eager_dispatch" and 2 * context.work.tiny_share >= 1


def causes_shortened(advice: Advice) -> tuple[str, ...]:
    """The cause that the replayed change leaves out; else those that the class of the advice shortens."""
    return (advice.change,) if advice.change in CAUSES else causes_of_class(advice.kind)


def _say_share(context: Context, first: Advice, account: StepAccount) -> Advice:
    """The first advice with the share that the account gives the cause which it is about; a function's share is said
    already."""
    row = row_of_change(account, causes_shortened(first))
    if row is None or context.line(first.change) or account.percent(row.ps, row.cause) < LEAST_PERCENT:
        return first
    sentence = share_sentence(account, row)
    share, words = sentence.split(" ", 1)
    counted = re.compile(rf"^[\d.]+ {re.escape(words)}\b")  # the same, as a rule counted it
    found = counted.sub(f"{share} {words}", first.evidence)
    if counted.match(first.evidence):
        return replace(first, evidence=found)
    bare = _leave_out_share(found)
    return replace(first, evidence=f"{sentence}; {bare if bare.startswith('it is spent ') else found}")


def _explain_other_savings(advice: Advice, context: Context, account: StepAccount) -> Advice:
    """The advice with what else gets shorter, where the change gains more than the time of the cause that it names."""
    predicted = context.changes.predicted.get(advice.change) if context.changes else None
    named = None if context.line(advice.change) else row_of_change(account, causes_shortened(advice))
    shown = account.percent(named.ps) if named else 0.0
    if predicted is None or named is None or round((advice.gain_percent or 0.0) - shown) < 1:
        return advice
    # A replay does not know what the devices do while it waits for launches; the account does.
    most = {cause: context.percent(context.cause_ms(cause)) for cause in account.mean_percent}
    saved = [
        (min(100.0 * (ps - predicted.causes.get(each, 0)) / predicted.now_ps, most.get(each, 0.0)), each)
        for each, ps in predicted.causes_now.items()
        if each != named.cause
    ]
    usual = most.get(named.cause, 0.0)
    others = [f"{by:.1f} % {cause_words(each)}" for by, each in sorted(saved, reverse=True) if round(by) > 0]
    said = [f"{usual:.1f} % of the average step is {cause_words(named.cause)}"] * (round(usual - shown) > 0)
    also = "; ".join([*said, *([f"the change also saves {', '.join(others)}"] if others else [])])
    return replace(advice, also=also, reasoning=f"{advice.reasoning}; {also}") if also else advice


def _say_beside(first: Advice, others: Sequence[Advice], context: Context, verdict: Verdict) -> Advice:
    """The first advice with the words that nothing known shortens what limits the run, where it shortens another cause:
    by the replay, or by its class where nothing is predicted; or that another advice does so, and what that gains."""
    limit = verdict.cause
    line, shortened = context.line(first.change), (*_causes_in(context, first), *causes_shortened(first))
    if limit == "launch" and line is not None and line.starts_small_work(context.framework == "pytorch"):
        return first  # the verdict is the state of that function
    if limit is None or first.kind == "none" or verdict.name == "unknown" or limit in shortened:
        return first
    if limit == "host_compute" and _is_in_tiny_ops(context, first):
        return first  # what starts them is computing, too, where no device does
    predicted = context.changes.predicted.get(first.change) if context.changes else None
    if predicted is not None:
        saved = predicted.causes_now.get(limit, 0) - predicted.causes.get(limit, 0)
        if saved >= LEAST_PERCENT / 100.0 * predicted.now_ps:
            return first
    named = cause_words(limit)
    of_limit = [other.gain_percent for other in others if limit in _causes_in(context, other)]
    if not of_limit:
        if context.account is not None and (known := act_on_cause(context, context.account, limit)):
            actions = (*first.actions[:1], f"for {named}: {known[0]}", *first.actions[1:])
            return replace(first, beside=f"What shortening {named} gains is not known. First:", actions=actions)
        return replace(first, beside=f"Nothing known shortens {named} here. Next:")
    gains = [gain for gain in of_limit if gain is not None]
    if first.gain_percent is None or len(gains) < len(of_limit) or max(gains) >= first.gain_percent:
        return replace(first, beside=f"What shortening {named} gains is not known. First:")
    return replace(first, beside=f"Shortening {named} gains less here. First:")


def _scale_to_step(advice: Advice, account: StepAccount) -> Advice:
    """The advice with the step time that the account shows, or that gains are told of: a prediction is a ratio."""
    step_ms = (account.step_ps if advice.predicted_step_time_ms is None else account.gained_ps) / MS
    if not advice.step_time_ms or advice.step_time_ms == step_ms:
        return advice
    times = (advice.predicted_step_time_ms, advice.least_step_time_ms, advice.most_step_time_ms)
    then, least, most = (None if each is None else round(each * step_ms / advice.step_time_ms, 6) for each in times)
    return replace(
        advice,
        step_time_ms=round(step_ms, 6),
        predicted_step_time_ms=then,
        least_step_time_ms=least,
        most_step_time_ms=most,
    )


def _steps_between(context: Context, advice: Advice) -> float:
    """How many steps lie from one time to the next of an advice: 1 where each has it, or nothing tells."""
    line, account = context.line(advice.change), context.account
    if line is not None and line.calls:
        return max(1.0 / line.calls, 1.0)
    again = account.long_steps if account is not None else None
    if account is None or again is None or again.cause not in _causes_in(context, advice):
        return 1.0
    return account.steps / max(len(again.numbers), 1)


def _contention(context: Context) -> tuple[str, ...]:
    """The warning that other processes, or the program's own threads, took the processor from the loop."""
    account = context.account
    percent = 100.0 * (1.0 - context.quiet) if account is None else account.percent(account.contention_ps, CONTENTION)
    if percent < LEAST_PERCENT:
        return _lack_of_cores(context)
    own = ("the program's own threads used most of the cores",) if _uses_most_cores(context) else ()
    share = f"the machine was busy: the loop waited {percent:.1f} % of each step for a free core"
    return (f"{share}; this job's own threads and processes used it, or other programs", *own)


def _lack_of_cores(context: Context) -> tuple[str, ...]:
    """The same of ops whose waits for a core were not recorded, as those of XLA, by how long they ran and how long the
    program had a core."""
    used, computes = context.pace.cores_used, context.percent(context.cause_ms("host_compute"))
    if context.has_device or used is None or 100 * used >= _DOUBTED * computes:
        return ()
    spent = f"ops ran for {computes:.0f} % of the time, and the program had a core for {100 * used:.0f} % of it"
    return (f"the machine was busy, by others or by this job's own processes, or ops waited: {spent}",)


def _uses_most_cores(context: Context) -> bool:
    """Whether the program used more than half of what was used of the machine's processors."""
    own, busy = context.counter("CPU process %"), context.counter("CPU machine %")  # of one core, and of all
    return own is not None and busy is not None and context.cores is not None and 2 * own > busy * context.cores > 0


def _gain_ms(advice: Advice) -> float:
    if advice.step_time_ms is None or advice.predicted_step_time_ms is None:
        return advice.part_ms or 0.0
    return advice.step_time_ms - advice.predicted_step_time_ms


def _is_doubtful(context: Context, advice: Advice) -> bool:
    """Whether the gain may be no more than the error of predictions, and no large share of the step speaks for it: that
    of a function, or of a cause that stands for the class; computation stands for none.  Work that is known to be
    unneeded speaks for itself.  So is what is only an indication; a gain that is unknown, where most is unexplained, or
    no change could be replayed and the part is small; and what takes less than is unexplained.
    """
    if advice.is_indication or (not advice.id.startswith(OF_JOB) and _is_less_than_unexplained(context, advice)):
        return True
    if advice.change in _KNOWN:
        has_end = advice.speedup_range is not None and advice.speedup_range[1] is not None
        is_little = has_end and (advice.gain_percent or 0.0) < _LARGE_EXTRA
        return is_little and advice.may_gain_nothing and not context.has_device
    if _gains_more_than_its_causes(context, advice):
        return True
    if advice.gain_percent is None and context.account is not None and not advice.id.startswith(OF_JOB):
        nothing_replayed = context.changes is None or context.changes.why_not is not None
        is_small = not context.has_device and context.percent(advice.part_ms or 0.0) < LARGE_SHARE
        return (nothing_replayed and is_small) or not _is_about_limit(context, context.account, advice)
    predicted = context.changes.predicted.get(advice.change) if context.changes else None
    if predicted is not None and predicted.is_once and (advice.certain_percent or 0.0) < LARGE_SHARE:
        return True  # what one step has may not come again for long
    if context.has_device or not advice.may_gain_nothing:
        return False
    line, account = context.line(advice.change), context.account
    least = _LARGE_EXTRA if line is not None else LARGE_SHARE if advice.kind == "python_overhead" else 0.0
    if (advice.gain_percent or 0.0) < least:
        return True  # however large its share is, leaving all of it out gives little
    if account is None or not advice.change:
        return True
    if advice.kind == "python_overhead" and (advice.culprit is None or advice.culprit.file is None):
        return True  # nobody's Python: that of the framework between its ops
    if line is not None:
        from stepscope.analysis.advice.rules.lines import percent_of_account

        is_extra = not advice.kind.startswith("input") and not line.feeds  # its result is not known to be needed
        share = max(context.percent(advice.part_ms or 0.0), percent_of_account(context, line) or 0.0)
        return share < (_LARGE_EXTRA if is_extra else LARGE_SHARE)
    row = row_of_change(account, causes_shortened(advice))
    has_cause = advice.change in CAUSES or advice.kind in CAUSES_OF_CLASS
    if not has_cause or row is None:
        return True
    again = account.long_steps is not None and account.long_steps.cause == row.cause  # most steps do without it
    least = _LARGE_EXTRA if again else LARGE_SHARE
    return min(account.percent(row.ps), context.percent(context.cause_ms(row.cause))) < least  # not in one step alone


def _gains_more_than_its_causes(context: Context, advice: Advice) -> bool:
    """Whether an advice is to gain more than the replay gives for leaving out the whole of what it shortens a part of,
    as something takes over that was not recorded: then there is no telling what any of it gains."""
    account = context.account
    if account is None or advice.gain_percent is None or not context.line(advice.change) or not context.has_device:
        return False
    if all(rival.cause != "unknown" for rival in account.rivals[:1]):
        return False
    causes = _causes_in(context, advice)
    gains = [row.gain_ps for row in account.rows if row.cause in causes and row.gain_ps is not None]
    return bool(gains) and 100.0 * sum(gains) < (advice.gain_percent - LEAST_PERCENT) * account.step_ps


def _is_about_limit(context: Context, account: StepAccount, advice: Advice) -> bool:
    """Whether an advice shortens what limits the step, which has to be known, or a large share of it; one of an unknown
    gain is not the first thing to change otherwise."""
    limit = judge_account(account).cause
    row = row_of_change(account, _causes_in(context, advice))
    least = LEAST_PERCENT if row is not None and row.cause in _MOVES else LARGE_SHARE
    is_large = row is None or row.cause == limit or account.percent(row.ps, row.cause) >= least
    return (limit != "unknown" or account.is_silent) and is_large


def _is_less_than_unexplained(context: Context, advice: Advice) -> bool:
    """Whether more of the step is unexplained than the causes of a change take, or may gain where its gain is unknown:
    that may be the first thing to change."""
    account = context.account
    unexplained = next((row for row in account.rows if row.cause == "unknown"), None) if account else None
    if account is None or unexplained is None or account.percent(unexplained.ps) < LARGE_SHARE:
        return False
    if account.is_silent:  # what was not recorded is of the device, not of the program
        return False
    row = row_of_change(account, _causes_in(context, advice))
    if row is None or row is unexplained:
        return False
    if advice.gain_percent is None:
        return unexplained.ps > (row.ps if row.cause == "input" else row.ps / 2)  # only waiting may go as a whole
    predicted = context.changes.predicted.get(advice.change) if context.changes else None
    shortened = 0.0  # of what is unexplained, by the change
    if predicted is not None:
        now, then = (
            100.0 * each.get("unknown", 0) / predicted.now_ps for each in (predicted.causes_now, predicted.causes)
        )
        shortened = now - then
    more = account.percent(unexplained.ps) - shortened - max(account.percent(row.ps), advice.gain_percent)
    without = context.changes.predicted.get(UNEXPLAINED) if context.changes else None
    if without is not None:
        part_of_it = max(advice.gain_percent - account.percent(row.ps), 0.0)  # which the change removes as well
        more = max(more, 100.0 * (1.0 - without.then_ps / without.now_ps) - part_of_it - advice.gain_percent)
    return more >= LEAST_PERCENT


def _is_explained(rule: Rule, advice: Advice, candidates: Sequence[Candidate]) -> bool:
    """Whether another candidate explains the same time better.

    Of two that yield to each other, the one that ranks first stays.
    """
    one = rule, advice
    return any(
        other[0] is not rule
        and _yields(one, other)
        and not (_yields(other, one) and _rank_key(advice) < _rank_key(other[1]))
        for other in candidates
    )


def _yields(one: Candidate, other: Candidate) -> bool:
    # What is made anew is counted as whatever it does: as input, launching, compiling or Python.
    # The time of a function or of many ops alone says less than an excess that was recorded in it.
    is_bare = one[1].id in _BARE and other[1].change in _KNOWN and other[1].gain_percent is not None
    # A function that makes one rank late is what that rank has to do more than the others.
    is_lag = bool(other[1].late) and _is_at(one[1], other[1])
    explains = is_bare or is_lag or other[1].change == SET_UP or other[1].kind in one[0].yields_to
    least = _EXPLAINS_PART if one[1].change == PART else _NEARLY_ALL if is_lag else _EXPLAINS
    return explains and _gain_ms(other[1]) >= least * _gain_ms(one[1])


def _certain_ms(advice: Advice) -> float:
    """The gain at the lower end of its range; of an unknown gain, the time that the advice is about.  Half of it for
    Python and for needless work whose gain is unknown, which still take time once they are faster, and for Python that
    lies in no file that a person can edit."""
    if advice.step_time_ms is None or advice.certain_percent is None:
        gain = _gain_ms(advice)
    else:
        gain = advice.step_time_ms * advice.certain_percent / 100.0
    is_python, is_unknown = advice.kind == "python_overhead", advice.predicted_step_time_ms is None
    has_place = advice.culprit is not None and advice.culprit.file is not None
    is_vague = (is_unknown and (is_python or advice.change in _KNOWN)) or (is_python and not has_place)
    return gain / 2 if is_vague else gain


def _rank_key(advice: Advice) -> tuple[float, float, float, str]:
    """Ranks advice by the gain that is certain, then its confidence, then its name."""
    return -_certain_ms(advice), -_gain_ms(advice), -advice.confidence, advice.id
