"""What is said where nothing is to be advised: no change stands out, or only first calls were recorded.

Then the answer is what limits the run, what the recording does not show, and what to look at or to record next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stepscope.analysis.account.account import CONTENTION, StepAccount
from stepscope.analysis.account.account_text import (
    cause_sentence,
    culprit_name,
    next_to_unknown,
    share_sentence,
    shorten_op,
    where_to_look,
    words_of_row,
)
from stepscope.analysis.account.causes import TERMS
from stepscope.analysis.advice.by_work import act_on_host_function, act_on_work, title_of_work
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.facts.first_calls import FirstCalls
from stepscope.analysis.facts.inside import act_on_culprit
from stepscope.analysis.facts.lines import LineFacts
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT, Verdict
from stepscope.analysis.trace.remedies import HOST_ACTIVITY, LATER, PYTHON_CALLS, SEE_DEVICE, STEP_MARKS, remedy
from stepscope.errors import counted
from stepscope.records import dataclass
from stepscope.vocabulary.kernel_names import brief
from stepscope.vocabulary.native import is_of_program
from stepscope.vocabulary.python import CODE_OF_MODULE

SURE, _OPEN = 0.8, 0.5  # how sure it is that nothing is to change, if all was recorded: with and without a limit
_MOST_OF = 0.5  # of the step, or of the time of compiled programs: by the word
_NEARLY_ALL = 0.9  # of the step: what else could be made cheaper gains less
_SEEN = 0.5  # of a compiled program: its ops are seen, what they repeat is not
_WHOLE_STEP = 50.0  # percent in one compiled program
_HIDDEN = {"unknown": "is unexplained", "python": "is Python whose calls were not recorded"}
_NO_STEPS = "Record several steps: the capture shows none"
_AWAIT_LONGER = "give the loop time to begin: stepscope run --patience SECONDS, with more than the set-up takes"
_SEE_RANK = "see which part of its step takes longer than on the others: stepscope distributed, and pod-viewer"
_QUIETER = (
    "stop what else runs; if nothing does, the job's own threads and processes share the cores: use fewer of them"
    " (OMP_NUM_THREADS, taskset), or make what they do cheaper"
)


def advise_nothing(context: Context, account: StepAccount, verdict: Verdict, doubtful: Sequence[Advice]) -> Advice:
    """The item for a run in which nothing stands out: what limits the run, what may gain nothing, and what the
    recording does not show, by which it is less sure."""
    top = next((op for op in context.top_ops if op["self_percent"] is not None), None)
    culprit = next((row.culprit for row in account.rows), None)
    largest = [f"the largest op is {shorten_op(top['name'])}"] if top and culprit is None else []
    is_busy, hidden = verdict.name == "compute_bound", _list_hidden(account, context.python_recorded)
    hidden |= _inside_program(context)
    most_first = sorted(hidden, key=lambda each: -hidden[each])
    not_said = (each for each in most_first if not any(each in said for said in verdict.evidence))
    perhaps = _remark_on(context, doubtful)
    known = next_to_unknown(account) if verdict.cause == "unknown" else None
    beside = [cause_sentence(account, known)] if known is not None else []
    slow = find_slow_rank(context)
    visible = 1.0 - sum(hidden.values()) / 100.0
    return Advice(
        id="none",
        kind="none",
        title=_title_of_nothing(context, account, is_busy),
        # One reservation, the most useful one: the verdict has its own beside it.
        evidence="; ".join(
            (*verdict.evidence[: 1 if slow is None else 2], *[*beside, *perhaps, *not_said, *largest][:1])
        ),
        predicted_speedup=None,
        actions=(
            *((_QUIETER,) if account.rows and account.rows[0].cause == CONTENTION else ()),
            *((_SEE_RANK,) if slow is not None and slow.holds_up_much else ()),
            *_act_on_most(context, account),
            *_act_on_untrained(context),
            *_act_on_largest(context),
            *_act_on_update(context),
            *_order_next(context, account, _suggest_next(context, verdict)),
        ),
        tool="op-stats",
        confidence=round(max((SURE if is_busy else _OPEN) * visible, 0.0), 2),
        step_time_ms=round(context.period_ms, 3),
        reasoning="no known change gains more than predictions are usually off"
        if perhaps
        else "nothing that a known change removes takes 3 % of the step",
        rows=(Row("op-stats", str(top["name"]), 0.0),) if top else (),
        culprit=culprit,
    )


def _order_next(context: Context, account: StepAccount, then: Sequence[str]) -> tuple[str, ...]:
    """What to do next, and to mark steps where there are none: first where nothing else is known to do."""
    if context.has_steps:
        return (*then,)
    marks, is_known = remedy(STEP_MARKS, context.recorder), _most_of_capture(account) is not None
    lacks_devices = account.blindness is not None and not account.blindness.of_host
    return (*then, marks) if is_known or lacks_devices or account.is_silent else (marks, *then)


def _act_on_most(context: Context, account: StepAccount) -> tuple[str, ...]:
    """What to do about a library's work that takes most of a capture without steps, of which no rule can say more."""
    culprit = account.rows[0].culprit if account.rows else None
    if context.has_steps or culprit is None or account.percent(culprit.ps) < 100.0 * _MOST_OF:
        return ()
    return act_on_culprit(culprit)


def _act_on_untrained(context: Context) -> tuple[str, ...]:
    """What to do about a function within the model's forward pass in which nothing is trained, where it takes much."""
    own = [
        line
        for line in context.lines
        if line.in_layer and not line.calls_model and line.share("host_compute") >= _MOST_OF
    ]
    return tuple(
        f"{line.name} ({line.where}) takes {share:.0f} % of the step, and nothing in it is trained: if it computes the"
        " same in every step, do that once, before the loop, and keep the result"
        for line in own[:1]
        if (share := context.percent(line.own_ps / MS / context.quiet)) >= LARGE_SHARE
    )


def _find_largest(context: Context) -> tuple[LineFacts, float] | None:
    """The function of the program that takes most of the steps of those that neither train nor are the model, with its
    share in percent; None where that is little."""
    from stepscope.analysis.advice.rules.lines import is_model

    own = [line for line in context.lines if not (line.is_forward or line.in_layer or is_model(line))]
    line = max((each for each in own if each.file), key=_known_ps, default=None)
    share = context.percent(_known_ps(line) / MS / context.quiet) if line is not None else 0.0
    return (line, share) if line is not None and context.has_steps and 2 * share >= LARGE_SHARE else None


def _known_ps(line: LineFacts) -> int:
    """What a function does itself, per step: while it waits for what was started before, nothing of it is left out."""
    return min(line.own_ps, sum(ps for cause, ps in line.causes.items() if cause not in ("contention", "sync")))


def _act_on_largest(context: Context) -> tuple[str, ...]:
    """Where to look first, where nothing says what is wrong there: who and how much."""
    found = _find_largest(context)
    if found is None:
        return ()
    line, share = found
    calls = f", in {line.calls:,.0f} calls" if line.calls is not None and line.calls > 1 else ""
    starts = f", and starts {line.starts:,.0f} ops" if line.starts >= 1 else ""
    return (
        f"beside the training, `{line.name}` ({line.where}) takes most: {share:.0f} % of each step{calls}{starts}. See"
        " whether each step needs it, and all of it",
    )


def _act_on_update(context: Context) -> tuple[str, ...]:
    from stepscope.analysis.advice.rules.redundant_compute import act_on_update

    return act_on_update(context)


def _title_of_nothing(context: Context, account: StepAccount, is_busy: bool) -> str:
    row = next((row for row in account.rows if row.cause != CONTENTION), None)
    if row is not None and row.cause == "unknown" and account.is_silent and row is account.rows[0]:
        where = f", {where_to_look(row.culprit)}" if row.culprit is not None else ""
        return f"Find out what {account.devices} does while launched work waits{where}"
    if account.blindness is not None and account.blindness.hides_causes:
        return "Record again: what its events mean is not known"
    lacks_devices = account.blindness is not None and not account.blindness.of_host
    if lacks_devices and row is not None and row.cause in ("unknown", "sync", "launch"):
        return "Record again: what the devices do is missing"
    if (slow := find_slow_rank(context)) is not None and slow.holds_up_much:
        return f"Find out why {slow.name} takes longer than the others"
    if not context.has_steps:
        found = _most_of_capture(account)
        do = "Find out what runs" if row is not None and row.cause == "unknown" else "Shorten"
        return _NO_STEPS if found is None else f"{do} {found[0]}: it is {found[1]:.0f} % of the capture"
    if is_busy or account.rows[0].cause == CONTENTION:
        waits = ", but the loop waits for a free core" if account.rows[0].cause == CONTENTION else ""
        largest = _find_largest(context)
        name = f"; look at `{largest[0].name}` first" if largest is not None and largest[1] >= LARGE_SHARE else ""
        return title_of_work(context, account) or f"Nothing stands out{waits}{name}"
    share = 0.0 if row is None else account.percent(row.ps, row.cause)
    if row is not None and row.cause == "unknown" and row.culprit is not None and share >= LARGE_SHARE:
        return f"Find out what {shorten_op(row.culprit.name)} does: it holds most of the unexplained {share:.0f} %"
    if row is not None and row.cause == "unknown" and share >= LARGE_SHARE:
        return f"Record more detail: nothing was recorded for {share:.0f} % of {account.each_step}"
    if row is None or share < 100.0 * _MOST_OF:
        return "No single cause stands out"
    return f"Nothing known shortens {words_of_row(account, row)}"


@dataclass(frozen=True)
class SlowRank:
    """A rank whose steps take longer than those of all others.

    Attributes:
        name: of the rank; said: by how much, in words.
        holds_up_much: whether the others lose a large share of the step by it.
    """

    name: str
    said: str
    holds_up_much: bool


def find_slow_rank(context: Context) -> SlowRank | None:
    """The rank whose steps take longer than those of all others; None where none does.

    Where the ranks were replayed together, that says it.  Else their own times are compared, without communication, in
    which the others wait.  Processes that compute on the cores of a machine, and those of a busy one, share them: which
    of them is kept waiting is chance.
    """
    if context.job is not None:
        late, ranks = context.job.late, context.job.job.graph.ranks
        if late is None:
            return None
        name = ranks[late.rank].title
        return SlowRank(name, late.sentence(name), 100.0 * late.of_time >= LARGE_SHARE)
    accounts = [(each.account, each.host) for each in context.hosts if each.account is not None]
    if not context.has_device or any(account.is_busy for account, _ in accounts):
        return None
    times = sorted((account.own_ps, host) for account, host in accounts if account.has_steps)
    if len(times) < 2 or 100.0 * times[-1][0] < (100.0 + LARGE_SHARE) * times[-2][0]:
        return None
    (usual_ps, _), (most_ps, host) = times[-2:]
    return SlowRank(
        host, f"{host} takes {most_ps / MS:,.2f} ms of the average step, the others at most {usual_ps / MS:,.2f}", True
    )


def _most_of_capture(account: StepAccount) -> tuple[str, float] | None:
    """What a person can look at that is most of a capture without steps, with its share in percent; None where nothing
    is, or where the host only waits in it."""
    row = next((row for row in account.rows if row.cause not in (CONTENTION, "sync")), None)
    culprit = row.culprit if row is not None and row is account.rows[0] else None
    share = account.percent(culprit.ps, row.cause) if culprit is not None and row is not None else 0.0
    if culprit is None or share < (LARGE_SHARE if is_of_program(culprit.name) else 100.0 * _MOST_OF):
        return None
    return f"`{brief(culprit_name(culprit))}`", share


def _list_hidden(account: StepAccount, python_recorded: bool) -> dict[str, float]:
    """What the recording does not show, a sentence each, with its share of the step in percent."""
    shares = {row.cause: account.percent(row.ps, row.cause) for row in account.rows}
    return {
        f"{share:.1f} % of {account.each_step} {_HIDDEN[cause]}": share
        for cause, share in shares.items()
        if cause in _HIDDEN and share >= LEAST_PERCENT and not (python_recorded and cause == "python")
    }


def _inside_program(context: Context) -> dict[str, float]:
    """The largest compiled program, if it computes for most of the step, and half of its share, as its ops are seen."""
    work = context.work
    if not work.modules or not work.compute_ps:
        return {}
    of_computing = min(work.modules[0].total_ps / work.compute_ps, 1.0)  # several threads may compute at once
    share = context.percent(context.cause_ms("host_compute")) * of_computing
    text = f"most of the step is the program {work.modules[0].name}: work repeated inside it cannot be seen"
    return {text: _SEEN * share} if share >= _WHOLE_STEP else {}


def _remark_on(context: Context, doubtful: Sequence[Advice]) -> list[str]:
    """The first advice that was not sure enough, in words, if it gains something even where its prediction is as far
    off as usual, or is about a large share and nothing is predicted; of others their upper ends say nothing about the
    run."""
    for each in doubtful:
        if (each.certain_percent or 0.0) >= LEAST_PERCENT:
            return [f'perhaps "{each.title}" (about {each.predicted_speedup:.2f}x)']
        is_large = context.percent(each.part_ms or 0.0) >= LARGE_SHARE
        if (
            each.gain_percent is None and is_large and each.kind != "host_sync"
        ):  # what waits for the unknown is no cause
            return [f'perhaps "{each.title}"']
    return []


def _suggest_next(context: Context, verdict: Verdict) -> tuple[str, ...]:
    """What to do next if a limit has no single cause."""
    own = act_on_host_function(context.account.rows[0].culprit if context.account and context.account.rows else None)
    if verdict.name == "compute_bound" or own:
        said = _say_most(context)
        return own or ((said,) if said else act_on_work(context, context.account))
    return (_suggest_recording(context, verdict),)


def _suggest_recording(context: Context, verdict: Verdict) -> str:
    """What to record or look at next."""
    if verdict.cause in (None, "unknown") and context.device is not None and not context.work.ops:
        return remedy(HOST_ACTIVITY, context.recorder)
    if context.account is not None and context.account.blindness is not None:
        return context.account.blindness.fix
    if verdict.cause == "unknown" and context.account is not None and context.account.is_silent:
        return SEE_DEVICE
    terms = TERMS.get(verdict.cause or "")
    if terms is not None and terms.next:
        return terms.next
    if not context.python_recorded:
        return f"to see what the host does, {remedy(PYTHON_CALLS, context.recorder)}"
    name = context.hottest_python
    if not name:
        return "see which Python functions run in that time (stepscope op-stats)"
    return f"look at {shorten_op(name)}, the Python function with the largest self time (stepscope op-stats)"


def _say_most(context: Context) -> str:
    """Which function or line computes for most of the step: what else could be made cheaper gains less than that."""
    account = context.account
    row = next((row for row in account.rows if row.cause != CONTENTION), None) if account is not None else None
    culprit = row.culprit if row is not None else None
    if account is None or row is None or culprit is None or not culprit.file or culprit.name == CODE_OF_MODULE:
        return ""
    share, where = account.percent(culprit.ps, row.cause), culprit.statement
    # The loop of a function that is called within a step is none over steps.
    goes_round = where is not None and bool(where.loop) and not where.carries and culprit.calls is not None
    goes_round = goes_round and where is not None and not where.is_of_steps
    if share < 100.0 * (_MOST_OF if goes_round else _NEARLY_ALL):
        return ""
    said = f"`{culprit_name(culprit)}` is {share:.0f} % of the step"
    if where is not None and goes_round:
        called = f" calls `{where.called}`" if where.called else " runs"
        return (
            f"{said}, most of it at {where.place}, which{called} in each round of the loop in line {where.loop}: do all"
            " rounds with one op on whole arrays, if they do not need each other"
        )
    return f"{said}: compute less in it, or use faster hardware"


# ---- captures of first calls only ------------------------------------------------------------------------------------


def _say_awaited(first: FirstCalls) -> str:
    return f"no step of a training loop came in the {first.awaited_s:.0f} s before the capture, nor in it"


def _say_largest(context: Context) -> list[str]:
    """What takes most of the capture, and where."""
    account = context.account
    row = account.rows[0] if account is not None and account.rows else None
    if account is None or row is None:
        return []
    place = f", most of it in `{culprit_name(row.culprit)}`" if row.culprit is not None else ""
    what = words_of_row(account, row).removesuffix(" in the loop")  # which had not begun
    return [f"{account.percent(row.ps, row.cause):.1f} % of the capture is {what}{place}"]


def advise_later_capture(context: Context, first: FirstCalls) -> Advice:
    """The item for a capture of first calls only: nothing about later steps can be read from it."""
    what = f" {_name_calls(first)}" if first.name else ""
    where = "the only step" if first.is_step else "the capture"
    said = f"tracing and compiling{what}, which a program does at its first calls; {_describe_later_calls(first)}"
    if first.starts_up:
        calls = f"{what.strip()} ({first.longest_ms:,.1f} ms)"
        many = f"{first.longest_calls} first calls of " if first.longest_calls > 1 else "one call of "
        if first.captures:
            many, calls = "", calls.replace(what.strip(), f"capturing {counted(first.longest_calls, 'graph')}")
        before = f"what comes before the first work of a device ({first.silent_ms:,.1f} ms)"
        calls = f"starting up, or ending, libraries and devices, above all in {many}{calls}"
        said = "; ".join((_holds_most(first, before, calls), *_say_next_largest(context)))
    evidence = f"{first.percent:.1f} % of {where} is {said}"
    if first.awaited_s is not None:
        evidence = "; ".join((_say_awaited(first), *((evidence,) if first.percent else _say_largest(context))))
    return Advice(
        id="capture.first-calls",
        kind="none",
        title="Record later steps",
        evidence=evidence,
        predicted_speedup=None,
        actions=(
            *((remedy(HOST_ACTIVITY, context.recorder),) if first.is_silent and not context.work.ops else ()),
            _AWAIT_LONGER if first.awaited_s is not None else remedy(LATER, context.recorder),
            remedy(STEP_MARKS, context.recorder),
        ),
        tool="steps",
        confidence=0.9,
        reasoning="what happens once cannot be compared with what happens in every step",
    )


def judge_first_calls(context: Context, first: FirstCalls) -> Verdict:
    """The verdict on it."""
    where = "the step" if context.has_steps else "the capture"
    if first.awaited_s is not None:
        what = "what limits the steps was not recorded, unless the program has no loop of steps"
        return Verdict("unknown", None, "unknown", "the training loop had not begun", None, (_say_awaited(first), what))
    if first.starts_up:
        calls = f"calls that happen once, above all {_name_calls(first)}"
        if first.captures:
            calls = f"what happens once, above all capturing {counted(first.longest_calls, 'graph')}"
        before = "what comes before the first work of a device"
        said = f"{first.percent:.1f} % of {where} is {_holds_most(first, before, calls)}"
        what = "libraries and devices start up or end in them, so what limits later steps was not recorded"
        return Verdict(
            "unknown", None, "start-up", said, None, (what, *_say_launches(context), *_say_next_largest(context))
        )
    captured = "hardly a later call" if first.later_calls else "no later call"
    return Verdict(
        "unknown",
        round(first.percent, 4),
        "compiling",
        f"{first.percent:.1f} % of {where} traces and compiles, and {captured} was recorded",
        "compile",
        ("tracing and compiling happen once, so what limits later steps was not recorded",),
    )


def _name_calls(first: FirstCalls) -> str:
    """What takes longest of them, with the op that calls it."""
    return f"`{brief(first.name)}`" + (f" in `{brief(first.op)}`" if first.op else "")


def _holds_most(first: FirstCalls, before: str, calls: str) -> str:
    """What a start-up is: calls, what comes before the first work of a device, or both."""
    if not first.silent_ms:
        return calls
    return f"{before}, unrecorded" if first.is_silent else f"{before}, and {calls}"


def _say_launches(context: Context) -> Iterator[str]:
    """The row of the account that the calls which happen once are part of."""
    for row in context.account.rows if context.account is not None else ():
        if row.cause == "launch" and context.account is not None:
            yield f"{share_sentence(context.account, row)}, these calls among it"


def _say_next_largest(context: Context) -> tuple[str, ...]:
    """What takes most of a capture beside starting up, where that is a large share."""
    account = context.account
    if account is None:
        return ()
    row = next((row for row in account.rows[1:] if row.cause != "unknown"), None)
    is_large = row is not None and account.percent(row.ps, row.cause) >= LARGE_SHARE
    return (cause_sentence(account, row),) if row is not None and is_large else ()


def _describe_later_calls(first: FirstCalls) -> str:
    if not first.later_calls:
        return "no later call was recorded"
    return f"only {counted(first.later_calls, 'later call')} {'was' if first.later_calls == 1 else 'were'} recorded"
