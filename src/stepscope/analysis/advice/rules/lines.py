"""A function of the program that the step could leave out: who, how much, and of what kind.

The class describes what lies inside: what takes most of its time, by the ops and causes in it.  Where nothing there
says more, it is Python that runs in every step, and the answer stops at who and how much.
"""

from __future__ import annotations

import builtins
import math

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.account.statements import Statement
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import (
    Finding,
    Named,
    Rule,
    actions_for,
    order_actions,
    place_actions,
    predict_change,
)
from stepscope.analysis.advice.rules.words import AT_ONCE, FOR_REPORTS, SLEEPS, WORDS_OF_CLASS
from stepscope.analysis.facts.inside import Work, act_on_inside, work_in
from stepscope.analysis.facts.lines import LineFacts
from stepscope.analysis.purpose.forward import LONG_OP_PS
from stepscope.vocabulary.jax import function_of_call
from stepscope.vocabulary.python import CODE_OF_MODULE, may_give_anew, may_sleep, reads_value, sleeps

# Chosen by judgement where no measurement is named, then halved and doubled on eight recordings with such functions.
_MOST_OF = 0.5  # of the function's time, by the word: what takes as much is its kind; 0.25 is the same
_TELLING = (
    0.3  # of its time in products, in reading values, or in ops: what it does there; 0.6 misses one loop of reads
)
_MANY = 50.0  # starts per step: fewer are no loop over elements; 25 takes a step's own Python for one, 100 is the same
_MANY_READS = 10.0  # per step: fewer are no loop over values; 5 and 20 are the same
_NAMED = 3  # ops: as many as a sentence bears

_COMPILED = {
    "jax": "compile {0}: {0} = jax.jit({0}), or call it inside the jitted step",
    "tensorflow": "compile {0}: {0} = tf.function({0}), or call it inside the tf.function of the step",
}
_ROUNDS = {
    "jax": "with jax.lax.scan, or jax.lax.fori_loop, inside jax.jit",
    "tensorflow": "with tf.scan, or a loop over tf.range, inside a tf.function",
}
_FEW_NUMBERS = 8  # an op on as many spends all its time on being started; judgement


_LARGE_ROUNDS = (
    "let each round do less: it starts {} on {}, so that all rounds at once gain little. Compute only the part that is"
    " not zero or that is used, such as a window; what all rounds share once; separable filters one axis at a time"
)
_SAME = "if it computes the same in every step: once, before the loop, and keep the result"
_PART = "if the step uses a part of its result, such as the rows of its batch: for that part alone"
_ALL_ROWS = (
    "its ops go over {:,} rows, far more than the step trains on: keep what stays (sums, an order) and change it for"
    " the rows of the batch alone, or do it every N steps"
)
_FAR_MORE = 100  # times the rows: less is a batch with its candidates; judgement
_KEEP_SUMS = (
    "if it goes over all that is kept, such as a replay buffer or a table: keep what stays (powers, sums, a tree of"
    " sums) and change it for the rows that the step changes"
)
_RARELY = "if nothing in the step needs its result, as a metric or a picture: every N steps"
_MAY_BE_RARE = ("redundant_compute", "python_overhead", "eager_dispatch", "host_sync", "memory_churn")
_NOBODY = "run it every N steps, as nothing that trains takes its result"
_CHEAPER = "Make {} cheaper"
_LESS = "Compute less in {}"
_COMPILE = "Compile {}"
_WAIT_LESS = "Wait less in {}, or in another thread"


def _is_asleep(context: Context, kind: str, line: LineFacts) -> bool:
    """Whether most of a function that is Python does not compute but waits for something outside of the program.  On a
    busy machine a thread that does not run may wait for another one that has no core: there its call has to say so."""
    called = line.statement.called if line.statement is not None else ""
    seems = line.asleep >= _MOST_OF and (may_sleep(called) or not context.lacks_cores)
    return kind in ("python_overhead", "input_no_prefetch") and (seems or sleeps(called))


def _is_evaluation(line: LineFacts) -> bool:
    """Whether a function runs the model, or most of it, once more."""
    return line.models >= _MOST_OF


def kind_of(line: LineFacts) -> str:
    """The class of a function by what lies inside."""
    for kind, cause in (
        ("checkpoint_stall", "checkpoint"), ("recompilation", "compile"), ("communication_bound", "communication"),
        ("input_transfer", "transfer"),
    ):  # fmt: skip
        if line.share(cause) >= _MOST_OF:
            return kind
    if line.peers_ps >= _MOST_OF * line.own_ps:
        return "communication_bound"
    if line.copies_in and line.causes.get("transfer", 0) + line.moves_ps >= _MOST_OF * line.own_ps:
        return "input_transfer"
    is_input = line.is_input and not line.in_layer  # a model that what trains takes is run for: no batch of the input
    if is_input and _goes_round(line):  # what one round gives the next one needs: no batch ahead of the step
        return "eager_dispatch"
    if is_input and line.statement is not None and sleeps(line.statement.called):
        return "input_no_prefetch"
    if is_input:
        return "input_python" if line.share("python", "input") >= _MOST_OF else "input_preprocessing"
    moves = line.moves_ps >= _MOST_OF * line.ps
    if line.heavy_ps >= _TELLING * line.ps or (_is_evaluation(line) and not moves):
        return "redundant_compute"
    reads_much = line.fetches_ps >= _TELLING * line.ps or 2 * line.fetches >= line.starts
    if line.fetches >= _MANY_READS and reads_much:
        return "host_sync"
    if 0 < _MOST_OF * line.own_ps <= line.waits_ps:  # it starts nothing meanwhile: it needs a value of what runs
        return "host_sync"
    of_ops = line.share("host_compute", "device_compute", "launch", "transfer")  # eager ops take Python numbers in
    if line.own_ps <= LONG_OP_PS * line.starts:  # small ops: what of its time holds up nothing says nothing of them
        of_ops /= line.share_known or 1.0
    if line.starts >= _MANY and of_ops >= _TELLING and not line.is_of_large_arrays:
        return "eager_dispatch"
    if line.share("python") >= _MOST_OF:
        return "python_overhead"
    if moves:
        return "memory_churn"
    return "redundant_compute" if line.share("host_compute", "device_compute") >= _MOST_OF else "python_overhead"


def _goes_round(line: LineFacts) -> bool:
    """Whether a function mostly starts ops or programs one after another, each with the result of the one before."""
    carries = line.statement is not None and bool(line.statement.carries)
    return carries and line.starts >= _MANY and line.share("python") < _MOST_OF and line.heavy_ps < _TELLING * line.ps


def _goes_over_all(context: Context, line: LineFacts) -> bool:
    """Whether the ops of a function, which take most of its time, work on far more rows than the step trains on."""
    rows = context.work.rows
    if not rows or line.goes_over < _FAR_MORE * rows:
        return False
    return context.per_step(sum(op.total_ps for op in line.ops)) >= _MOST_OF * line.own_ps


def _is_most_without_ops(context: Context, line: LineFacts) -> bool:
    """Whether a function takes most of the step, and starts nothing of the framework that computes what trains: it is
    no part of the model.  Samples blur its edges, so that an op of some steps seems to start in it."""
    if line.starts >= 1.0 or not context.work.ops:
        return False
    return context.percent(line.own_ps / MS / context.quiet) >= 100.0 * _MOST_OF


def is_needed(context: Context, line: LineFacts) -> bool:
    """Whether a function is ordinary computation whose result is needed: within a layer, by the layers that follow; or
    by what trains, which takes it, as it takes what the model draws, and nothing in it says how it could be less."""
    kind = kind_of(line)
    if _goes_over_all(context, line) and not line.calls_model:
        return False
    if line.in_layer and kind == "redundant_compute":
        return True
    if _starts_many(context, line) and line.is_of_large_arrays and not line.calls_model:
        return False
    if _is_most_without_ops(context, line):
        return False
    computes = kind == "redundant_compute" or (kind == "python_overhead" and line.share("python") < _MOST_OF)
    return bool(line.feeds) and computes and not line.inside and work_of(line) is None


def _find_function(context: Context) -> Finding | None:
    predicted = context.changes.predicted if context.changes is not None else {}
    known = [line for line in context.lines if line.key in predicted and not is_needed(context, line)]
    known = [line for line in known if not is_model(line) and not _is_kept_up(context, line)]
    known = [line for line in known if not waits_for_result(context, line)]
    if context.infers:  # nothing trains, so that nothing says what is needed: what the model computes is
        known = [line for line in known if kind_of(line) != "redundant_compute" or work_of(line) is not None]
    line = min(known, key=lambda each: predicted[each.key].then_ps, default=None)
    if line is None:
        return None
    kind, part = kind_of(line), line.own_ps / MS / context.quiet
    gain, actions = predict_change(context, line.key, part, line.name), actions_of(context, kind, line)
    if line.statement is not None and line.statement.share < _MOST_OF and work_of(line) is not None:
        gain = gain.of_part(line.statement.share)  # what the first action is about
    if kind.startswith("input"):
        actions, gain = place_actions(context, actions, gain, part)
    what = f"{line.name} ({line.where})" if line.file else line.name
    if line.name == CODE_OF_MODULE and line.file:
        what = f"line {line.line} of {line.file}"
    title = WORDS_OF_CLASS[kind].title
    if actions and actions[0] == _compile_it(context, line):
        title = _COMPILE
    if _is_asleep(context, kind, line):
        title = _WAIT_LESS
    elif line.inside or (line.feeds and kind == "python_overhead"):
        title = _CHEAPER
    elif kind == "redundant_compute" and not _is_evaluation(line):
        title = _LESS
        if line.statement is not None and line.statement.called and work_of(line) is not None:
            title, what = _CHEAPER, f"{line.statement.called} ({line.where}, in {line.name})"
    return Finding(
        part_ms=part,
        id=f"line.{kind}",
        kind=kind,
        title=title.format(what),
        evidence=_describe(context, line),
        gain=gain,
        culprit=Culprit(
            line.owner if line.inside else line.name,
            line.file or None, line.line if line.file else None, line.ops[0].name if line.ops else None,
            None, None if line.calls is None else max(round(line.calls), 1), line.ps, statement=line.statement,
        ),
        actions=actions,
        rows=(Row("overview", line.name, round(part, 3)),),
    )  # fmt: skip


def _is_kept_up(context: Context, line: LineFacts) -> bool:
    """Whether a function waits for another thread of the program, whose advice is its own."""
    rival = context.pace.rival
    return rival is not None and kind_of(line) == "python_overhead" and rival.lost_ps >= _MOST_OF * line.own_ps


def waits_for_result(context: Context, line: LineFacts) -> bool:
    """Whether most of a function is the wait for a value that the framework computes on threads of its own, as JAX and
    TensorFlow do: without the function another line waits for it."""
    if context.framework == "pytorch" or line.statement is None:
        return False
    return line.asleep >= _MOST_OF and reads_value(line.statement.called)


def is_model(line: LineFacts) -> bool:
    """Whether a function is the model or a part of it, as far as is known: its result is needed, and nothing in it says
    that it could be had for less; its Python is that between the model's ops, or a layer's, and not most of it; or it
    calls a few compiled programs, and what else it does is less."""
    kind = kind_of(line)
    starts_ops = line.in_layer and not line.inside and line.share("python") < _MOST_OF
    is_between = line.is_forward or starts_ops or (line.share("launch") >= _MOST_OF and line.asleep < _MOST_OF)
    return (line.is_needed and kind == "redundant_compute") or (is_between and kind == "python_overhead")


def _describe(context: Context, line: LineFacts) -> str:
    """`71.7 % of each step is draw_preview, 3 calls, mostly Python in the loop; per step it starts 14 aten::linear`."""
    causes = sorted(line.causes, key=lambda cause: -line.causes[cause])
    most = next((cause for cause in causes if cause != "contention"), None)
    what = f", mostly {cause_words(most)}" if most is not None and line.share(most) >= _MOST_OF else ""
    calls = f", {line.calls:,.0f} calls" if line.calls is not None and line.calls > 1 else ""
    within = f" within {line.owner}" if line.owner and line.owner != CODE_OF_MODULE else ""
    name = line.where if line.name == CODE_OF_MODULE and line.file else line.name
    said = f"{_share_of(context, line)} is {name}{within}{calls}{what}"
    said += (
        f"; for {100 * line.asleep:.0f} % of that time the thread sleeps"
        if _is_asleep(context, kind_of(line), line)
        else ""
    )
    if 0 < _MOST_OF * line.own_ps <= line.waits_ps:
        said += f"; for {100 * line.waits_ps / line.own_ps:.0f} % of that time it waits for what a device computes"
    elif 0 < _MOST_OF * line.own_ps <= line.peers_ps:
        said += f"; for {100 * line.peers_ps / line.own_ps:.0f} % of that time it waits for other processes"
    if line.statement is not None and not line.inside:
        said += f", {line.statement.describe()}"
    elif line.parts:
        said += f"; of its time {', '.join(_describe_part(part) for part, _ in line.parts[:2])}"
    held = context.pace.processors
    if held is not None and context.share_of_processors(line.key):
        said += f"; other work runs beside it, but {held.describe()}"
    if not _starts_many(context, line):
        return said
    steps = context.loop.steps if context.loop else 1
    ops = [f"{op.calls / steps:,.0f} {op.name}" for op in line.ops[:_NAMED] if op.calls >= steps]
    return said + (f"; per step it starts {', '.join(ops)}" if ops else "")


def _describe_part(part: Statement) -> str:
    """`44 % is train.py:72 (self.rng.choice)`."""
    called = f" ({part.called})" if part.called else ""
    return f"{100 * part.share:.0f} % is {part.place}{called}"


def _share_of(context: Context, line: LineFacts) -> str:
    """`68.1 % of each step`; of the step that the account is of, where it names the function as a culprit and that step
    is a long one, or a few long steps hold others."""
    account, share = context.account, context.percent(line.own_ps / MS / context.quiet)
    if account is None:
        return f"{share:.1f} % of each step"
    is_long = account.has_steps and not account.is_median
    percent = percent_of_account(context, line) or 0.0
    if percent > (0.0 if is_long else 2 * share):
        return f"{percent:.1f} % of {account.each_step}"
    whole = "the average step" if is_long else "each step"  # as a function's time is
    return f"{share:.1f} % of {whole}{' without contention' if account.is_busy else ''}"


def percent_of_account(context: Context, line: LineFacts) -> float | None:
    """The share of the step that the account is of, where it names the function as a culprit."""
    account = context.account
    culprits = [row.culprit for row in account.rows if row.culprit is not None] if account is not None else []
    own_ps = sum(each.ps for each in culprits if (each.file, each.line) == (line.file, line.line))
    return account.percent(own_ps) if account is not None and own_ps else None


def work_of(line: LineFacts) -> Work | None:
    """The work of a library that a function spends its time in; None if that is not known."""
    if line.inside:
        return work_in(line.inside if line.inside != line.name else None, line.name)
    return work_in(line.library, line.statement.called) if line.statement is not None else None


def actions_of(context: Context, kind: str, line: LineFacts) -> tuple[str, ...]:
    """What to do about a function, what its recording shows first."""
    known = work_of(line) is not None
    inside, at_once = act_on_work(line), () if known else tuple(map(Named, _start_at_once(context, line)))
    if not known and not at_once:
        inside = _replace_python_loop(line) or inside
    elif at_once and _goes_round(line):
        inside = ()
    if kind.startswith("input"):
        from stepscope.analysis.advice.rules.waiting import act_on_input

        is_many = _starts_many(context, line) and not line.is_of_large_arrays
        return (*at_once, *act_on_input(context, kind, inside, is_many, line.draws))
    if line.inside and inside:
        return inside
    if kind == "communication_bound":  # what else its rounds start is the lesser part
        return order_actions(
            (*inside, *actions_for(context.framework, WORDS_OF_CLASS[kind].actions), *map(str, at_once))
        )
    rarely = _rarely(line, kind)
    if kind == "redundant_compute" and not _is_evaluation(line):
        whole = (Named(_ALL_ROWS.format(line.goes_over)),) if _goes_over_all(context, line) else ()
        parts = (_KEEP_SUMS, *_act_on_parts(line)) if _is_most_without_ops(context, line) else ()
        return order_actions((*whole, *parts, *inside, *rarely, *at_once, _SAME, _PART))
    waits = (SLEEPS,) if _is_asleep(context, kind, line) else ()
    usual = _act_on_copies(context, kind) or actions_for(context.framework, WORDS_OF_CLASS[kind].actions)
    if line.feeds or line.in_layer or line.inside:
        usual = tuple(each for each in usual if each not in FOR_REPORTS)
    if kind == "python_overhead" and (line.feeds or line.in_layer) and not line.inside:
        usual = (_SAME, *usual)
    first = rarely if line.feeds is False else ()
    if kind == "eager_dispatch":  # fewer ops help whether or not something needs the result
        return order_actions((*first, *inside, *at_once, *rarely, *waits, *usual))
    return order_actions((*first, *inside, *rarely, *at_once, *waits, *usual))


def _act_on_parts(line: LineFacts) -> tuple[str, ...]:
    """What to do about the work of libraries that a function spends a large share of its time in."""
    known = ((part, work_in(inside, part.called)) for part, inside in line.parts)
    return tuple(
        f"look at {part.called} in {part.place}: {work.action}" for part, work in known if work and part.called
    )


def _act_on_copies(context: Context, kind: str) -> tuple[str, ...]:
    if kind != "memory_churn":
        return ()
    from stepscope.analysis.advice.rules.memory import act_on_copies

    return act_on_copies(context)


def _replace_python_loop(line: LineFacts) -> tuple[str, ...]:
    """What to do about a loop of Python that a function spends its time in, whose rounds do not need each other."""
    said = line.statement
    if said is None or not said.loop or said.is_of_steps or said.carries:
        return ()
    if line.share("python", "input", "launch" if said.called else "python") < _MOST_OF:
        return ()
    loop = f"the loop in line {said.loop} of {line.name}"
    if said.called and not hasattr(
        builtins, said.called
    ):  # which may do the same each time, or work on arrays: its rounds are no loop over numbers by that
        return (Named(f"call {said.called} ({said.place}) once for all rounds of {loop}, not in each"),)
    return (Named(f"replace {loop} ({said.place}), with any loops around it, by ops on whole arrays, as of NumPy"),)


def _rarely(line: LineFacts, kind: str) -> tuple[str, ...]:
    """To run a function less often, where nothing that trains takes its result, as far as is known."""
    is_evaluation = kind == "redundant_compute" and _is_evaluation(line)
    may_be_needed = line.feeds or line.is_needed or line.in_layer or line.calls_model or line.inside
    if kind not in _MAY_BE_RARE or may_be_needed:
        return ()
    if line.feeds is False:
        return (Named(_NOBODY),)
    return () if is_evaluation else (Named(_RARELY),)


def act_on_work(line: LineFacts) -> tuple[str, ...]:
    """What to do about the work in a function, or about a call in its loop that is the same in each round."""
    said = line.statement
    if line.inside:
        work = work_of(line)
        return (Named(f"look at {line.name} in {line.where}: {work.action}"),) if work is not None else ()
    if said is not None and said.is_same and said.called and not may_give_anew(said.called):
        return (
            Named(
                f"call {said.called} ({said.place}) once, before the loop of line {said.loop}, if it gives the same"
                " each time: the loop changes nothing that it takes"
            ),
        )
    return tuple(map(Named, act_on_inside(line.name, line.library, said, line.is_input)))


def _starts_many(context: Context, line: LineFacts) -> bool:
    """Whether a function starts one op many times in a step."""
    return bool(line.often) and line.often[0].calls >= _MANY * (context.loop.steps if context.loop else 1)


def _started_ops(context: Context, line: LineFacts) -> tuple[str, str]:
    """The ops that a function starts most often, and how often a step starts the first: `` `mul` ``, `40 times`."""
    names = " and ".join(f"`{function_of_call(each.name) or each.name}`" for each in line.often)
    return names, f"{line.often[0].calls / (context.loop.steps if context.loop else 1):,.0f} times"


def _compile_it(context: Context, line: LineFacts) -> str:
    """How to compile a function that starts many ops in no loop of its own; empty for any other."""
    said = line.statement
    has_loop = said is not None and (said.is_same or bool(said.loop))
    if context.framework not in _COMPILED or has_loop or not _starts_many(context, line):
        return ""
    names, times = _started_ops(context, line)
    return f"{_COMPILED[context.framework].format(line.name)}: op by op it starts {names} {times}"


def _start_at_once(context: Context, line: LineFacts) -> tuple[str, ...]:
    """What to do about an op that a function starts many times in a step; nothing where it starts none so often."""
    said = line.statement
    if not _starts_many(context, line) or (said is not None and said.is_same):
        return ()
    names, times = _started_ops(context, line)
    if line.is_of_large_arrays and not line.of_parameters:
        size = " x ".join(map(str, line.often_size or ()))
        return (_LARGE_ROUNDS.format(f"{names} {times}", size),)
    (how,) = actions_for(context.framework, AT_ONCE)
    if compiled := _compile_it(context, line):
        return (compiled,)
    if line.of_parameters:
        return (
            f"work on all parameters at once: torch.optim's class for it with fused=True, or torch._foreach_mul_,"
            f" torch._foreach_add_ and the like on lists of tensors, instead of {line.of_parameters:.0f} ops for each"
            f" parameter ({names} {times})",
        )
    at = f"line {said.loop}" if said is not None and said.loop else line.loop
    loop = f"the loop in {at}" if at else "its loop"
    few = line.often_size is not None and math.prod(line.often_size) <= _FEW_NUMBERS
    if line.carries:
        needs = f"a round needs `{line.carries}` of the one before; now it starts {names} {times} a step"
        if not few and context.framework in _ROUNDS:
            return (f"run all rounds of {loop} in one compiled program, {_ROUNDS[context.framework]}: {needs}",)
        wide = (
            f"let each round of {loop} work on several rows at once, of all calls of {line.name}, or such as several"
            f" environments or sequences: {needs}"
        )
        plain = f"or compute on Python numbers or NumPy in {line.name} (.tolist() before it), which starts no ops"
        return (wide, plain) if few else (wide,) if line.loop or at else ()
    on = f" on {' x '.join(map(str, line.often_size))}" if line.often_size else ""
    unless = "" if said is not None and said.loop else ", if they are independent"
    around = ", with any loops around it," if at else ""
    return (
        f"replace {loop}{around} by one op for all rounds{unless}, instead of {names} {times}{on}",
        f"for that: {how}",
    )


RULES = (Rule("line", find=_find_function, tool="critical-path", confidence=0.8),)
