"""The host spends its time starting small pieces of work: single ops, tiny batches, or values fetched one by one.

All three look alike on a timeline, so one rule decides between them.
"""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.account.predict import usual_error
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Row
from stepscope.analysis.advice.rule import Actions, Finding, Gain, Rule, actions_for
from stepscope.analysis.advice.rules.words import AT_ONCE, WORDS_OF_CLASS
from stepscope.analysis.facts.loop_events import Starts
from stepscope.analysis.facts.work import OPS_OF_A_PROGRAM, OpShare, WorkFacts, module_of
from stepscope.analysis.steps.verdict import LARGE_SHARE
from stepscope.vocabulary.jax import function_of_call, function_of_program

# Of the step.  Of programs that start many ops or programs, the fixed ones of the given set spend up to 14 % on that
# (four ranks that reduce whole buffers), and the slow ones 35 % or more.
_LEAST_PERCENT = 25.0
_MOST_PERCENT = 50.0  # most of the step is no computing then: it is 26 to 48 % in eight small healthy loops
_FEWEST_STARTS = 8.0  # per step: fewer are normal for a compiled step
_FEW_STARTS_PERCENT = 60.0  # for fewer starts, of which fixed programs of the given set spend up to 31 %
_LONGEST_START_MS = 1.0  # of a program, with the framework's work around it; longer waits have another cause
_FETCHES = 10.0  # values per step
_FETCHES_OF_STARTS = 0.1  # fewer are an accident of many small ops
_REPEATS = 4.0  # of the same program, or of forward and backward, in a step
TINY_BATCH = 8  # rows of a matrix product
_TINY_OPS = 0.6  # of the op time is spent starting the ops
_FEW_OPS = 300.0  # per step
_MOSTLY = 0.7  # of a function's time: with so much Python it is no loop that starts ops
_SINGLE_OP_PROGRAMS = 50.0  # programs per step with hardly more than one op each: nothing is compiled as a whole
_NEARLY_ALL = 0.8  # of the starts and their time; as of a function's time in `facts.lines`
_AT_ONCE = "do all rounds in one call"  # how the action begins

_BATCH: Actions = {
    "tensorflow": (
        "use larger batches: Dataset.batch(n) with a larger n, fewer micro-batches",
        "model.compile(steps_per_execution=N), or a tf.function that loops over several batches",
    ),
    "jax": ("use larger batches, or fewer micro-batches", "jax.lax.scan over several batches in one jitted program"),
    "pytorch": ("use larger batches, or accumulate gradients over fewer micro-batches",),
    "": ("use larger batches, or fewer micro-batches",),
}

_SEVERAL_REQUESTS = ("generate for several requests at once, if there are several: a round costs hardly more for them",)


def _find_starts(context: Context) -> Finding | None:
    work, loop = context.work, context.loop
    if context.has_device or loop is None or not work.steps:
        return None
    starts = context.calls(Starts.PROGRAM) + context.calls(Starts.EAGER) + _torch_ops_per_step(context, work)
    repeats = _count_repeats(context, work)
    overhead = min(_overhead_ms(context, work), starts * _LONGEST_START_MS)
    if repeats >= _REPEATS:  # each repetition starts the program's ops again
        overhead += work.per_step_ms(work.start_in_programs_ps) * work.critical_path_share
    unfused = _runs_single_op_programs(context, work)
    enough = _LEAST_PERCENT if max(starts, repeats) >= _FEWEST_STARTS else _FEW_STARTS_PERCENT
    enough = _MOST_PERCENT if repeats >= _REPEATS else enough  # rounds may be what the step has to do
    fetches = context.calls(Starts.SYNC) >= max(_FETCHES, _FETCHES_OF_STARTS * starts)
    is_torch = context.framework == "pytorch"
    fetches = fetches and (not is_torch or context.percent(_fetches_ms(context)) >= LARGE_SHARE)
    if context.percent(overhead) < enough and not unfused:
        return _fetching(context, work) if fetches and is_torch else None
    if fetches and not unfused:
        return _fetching(context, work)
    # Where ops are dispatched one by one, what repeats is a function that JAX itself has compiled.
    if (repeats >= _REPEATS and not unfused) or _is_tiny(context, work, starts):
        return _small_batches(context, work, repeats, overhead)
    if is_torch or starts < _FEWEST_STARTS:
        return None  # PyTorch dispatches all ops one by one; which of them are too many, loops and functions say
    if not unfused and context.percent(context.cause_ms("host_compute")) > 100.0 - _LEAST_PERCENT:
        return None  # its programs compute
    if starts < _SINGLE_OP_PROGRAMS and context.calls(Starts.PROGRAM) >= 1:
        return None  # it is compiled: what takes long is the framework's Python around it
    # Where nothing is compiled as a whole, the Python between the ops dispatches them.
    part = _overhead_ms(context, work) + (context.python_ms if unfused else 0.0)
    merged = _unfused_ms(work) if unfused else 0.0
    if _has_one_starter(context, starts, part + merged):
        return None
    return _single_ops(context, starts, part, merged)


def _has_one_starter(context: Context, starts: float, part: float) -> bool:
    """Whether a function beside the training starts nearly all, and takes as long as that does: what it could do
    instead is its own advice, as nothing is left to compile without it."""
    from stepscope.analysis.advice.rules.lines import is_model, is_needed

    beside = [line for line in context.lines if not is_model(line) and not is_needed(context, line)]
    return any(min(line.starts / starts, line.own_ps / MS / part) >= _NEARLY_ALL for line in beside)


def _fetches_ms(context: Context) -> float:
    """Time per step of fetching values.

    PyTorch computes on the thread that fetches: a fetch waits for nothing, and all of that time goes with it.
    Elsewhere fetches wait for necessary computation.
    """
    return context.per_step_ms(context.loop.fetches_ps) if context.loop else 0.0


def _torch_ops_per_step(context: Context, work: WorkFacts) -> float:
    return work.ops / work.steps if context.framework == "pytorch" else 0.0


def _overhead_ms(context: Context, work: WorkFacts) -> float:
    """Time per step spent starting work and running ops that are all overhead."""
    others = context.cause_ms("input", "checkpoint", "compile", "communication", "transfer")
    idle = work.brief_ps if _one_at_a_time(work) else work.short_ps
    useful = work.per_step_ms(work.compute_ps) - work.per_step_ms(idle)
    chance = context.per_step_ms(context.loop.chance_ps) if context.loop else 0.0
    # Of functions that could be left out the Python is theirs, long or short, if they start little.
    named = (
        sum(line.causes.get("python", 0) for line in context.lines if line.share("python") >= _MOSTLY)
        / MS
        / context.quiet
    )
    # Compiled code of other libraries starts no ops.
    elsewhere = (line for line in context.lines if line.starts < _FEWEST_STARTS and line.library)
    useful += sum(line.causes.get("host_compute", 0) for line in elsewhere) / MS / context.quiet
    return max(context.period_ms - others - max(context.python_ms, named) - chance - useful, 0.0)


def _runs_single_op_programs(context: Context, work: WorkFacts) -> bool:
    """Whether the loop calls many programs of hardly more than one op."""
    programs = context.calls(Starts.PROGRAM)
    several = [module for module in work.modules if module.calls >= work.steps]
    largest = max((module.total_ps for module in several), default=0)
    spread = largest < 0.5 * work.self_ps
    return programs >= _SINGLE_OP_PROGRAMS and spread and work.ops / work.steps / programs <= OPS_OF_A_PROGRAM


def _unfused_ms(work: WorkFacts) -> float:
    """Time per step that computes in programs of one op other than products, which a compiler merges: each of them
    reads its arrays from memory and writes them there; 0 where no program is known to multiply."""
    if not work.multiplying:
        return 0.0
    alone = sum(module.total_ps for module in work.modules if module.name not in work.multiplying)
    return work.per_step_ms(alone) * work.critical_path_share


def _count_repeats(context: Context, work: WorkFacts) -> float:
    """How often a step runs the same program of several ops, or forward and backward passes."""
    programs = [program for program in context.loop.programs if _has_several_ops(work, program)] if context.loop else []
    most = max((context.per_step(program.calls) for program in programs), default=0.0)
    return max(
        most, work.backward_passes / work.steps if work.backward_passes else 0.0, _loop_iterations(context, work)
    )


def _has_several_ops(work: WorkFacts, program: OpShare) -> bool:
    """Whether a program is more than one op that JAX dispatches by itself, such as `multiply`; true if that is not
    known."""
    called = function_of_call(program.name)
    modules = ((function_of_program(module_of(module)), module.calls) for module in work.modules)
    ops = sum(calls for name, calls in modules if name == called)
    return not ops or ops / program.calls > OPS_OF_A_PROGRAM


def _loop_iterations(context: Context, work: WorkFacts) -> float:
    """How often a loop inside the step's graph or program runs its ops, if they hardly do more than start; else 0.

    Recurrent layers loop too, but their ops do real work: starts are 5 to 20 % of the time of an LSTM.
    """
    tiny = work.start_in_programs_ps >= _TINY_OPS * work.self_ps > 0
    if not tiny or context.calls(Starts.PROGRAM) >= _REPEATS:
        return 0.0
    return work.ops_in_programs / work.op_types_in_programs / work.steps


def _is_tiny(context: Context, work: WorkFacts, starts: float) -> bool:
    if work.rows is not None:
        few = work.ops / work.steps <= _FEW_OPS
        return work.rows <= TINY_BATCH and (few or _one_at_a_time(work))
    return starts < _FEWEST_STARTS and context.framework != "pytorch"


def _one_at_a_time(work: WorkFacts) -> bool:
    """Whether a step processes samples one at a time."""
    return work.rows == 1 and work.alike / work.steps >= _REPEATS


def _fetching(context: Context, work: WorkFacts) -> Finding:
    count = f"reads {context.calls(Starts.SYNC):.0f} values one by one, as .item(), float() and bool() do"
    is_torch = context.framework == "pytorch"
    part = _fetches_ms(context) if is_torch else _overhead_ms(context, work)
    goes_to = "reading values" if is_torch else "starting work and waiting for its values"
    return Finding(
        part_ms=part,
        percent=100.0,
        id="host.sync",
        kind="host_sync",
        title="Read values rarely, and all at once",
        evidence=f"{context.percent(part):.1f} % of each step goes to {goes_to}; it {count}",
        change="fetching" if is_torch else "",
        without="reading values one by one",
        unknown="it does not show how much of that work a single fetch needs",
        parts=("fetches", "starts"),
        actions=actions_for(context.framework, WORDS_OF_CLASS["host_sync"].actions),
        confidence=0.85,
        rows=_evidence_rows(context),
        intervals=context.intervals("fetches"),
    )


def _small_batches(context: Context, work: WorkFacts, repeats: float, part: float) -> Finding:
    if _one_at_a_time(work):
        repeats = max(repeats, work.alike / work.steps)
    comes_again = repeats >= _REPEATS
    needs_last = context.infers and _one_at_a_time(work)  # as a model that generates needs each token for the next
    generates = needs_last and work.generates
    how = f"the same work runs {repeats:.0f} times per step" if comes_again else "its ops are tiny"
    rounds = actions_for(context.framework, AT_ONCE) if comes_again and not generates else ()
    at_once = [f"{_AT_ONCE}, if none needs the one before: {each}" for each in rounds]
    return Finding(
        part_ms=part,
        percent=100.0,
        id="batch.small",
        kind="small_batch",
        title="Give each call more to compute",
        evidence=f"{context.percent(part):.1f} % of each step is spent starting work instead of computing: {how}",
        gain=_start_once(context, part, part / repeats) if comes_again and not needs_last else None,
        unknown="ops of one size do not show how their time grows with the batch",
        # A service that answers one request after the other has no larger batch, and any model that generates rounds.
        is_indication=generates
        or (not comes_again and context.percent(context.cause_ms("host_compute")) > _MOST_PERCENT),
        parts=("starts",),
        actions=_SEVERAL_REQUESTS if generates else (*at_once, *actions_for(context.framework, _BATCH)),
        rows=_evidence_rows(context),
        intervals=context.intervals("host_compute") or context.intervals("launch"),
    )


def _start_once(context: Context, part_ms: float, kept_ms: float) -> Gain | None:
    """The gain if what starts work is paid once, and what computes takes as long as now, all rounds together: at least
    that, since larger ops compute no slower; None where that is little, as most is gained in what computes then.

    Args:
        part_ms: of starting work, per step; kept_ms: what is left of it.
    """
    now, then = context.period_ms, context.period_ms - part_ms + kept_ms
    most = then + usual_error(now, then)
    if 100.0 * (now - most) < LARGE_SHARE * now:
        return None
    saved = f"at least {100.0 * (1.0 - most / now):.1f} % of the step is saved"  # no times: the card scales them
    text = f"{saved} where work is started once; what computes takes as long as now"
    return Gain(now, most, text, 0.0, most, part_ms=part_ms)


def _dispatching_python_ms(context: Context) -> float:
    """Time per step of long Python of the framework in one function of the program: between ops that it dispatches."""
    culprit = context.culprit("python")
    return culprit.ps / MS if culprit is not None and culprit.inside else 0.0


def _single_ops(context: Context, starts: float, part: float, unfused: float = 0.0) -> Finding:
    """The advice to compile what a step starts op by op, which takes `part` ms; `unfused` ms compute ops of their own
    that a compiler merges."""
    gain = None
    if context.framework in ("jax", "tensorflow"):  # a graph of 2,000 small ops takes 0.15 us for each
        whole = min(part + _dispatching_python_ms(context), context.cause_ms("launch", "python"))
        gain = _start_once(context, max(whole, part), part / starts)
    starting = context.percent(context.cause_ms("launch", "python"))
    how = f", which takes {context.percent(part):.1f} % of its time"
    if unfused:  # what computes runs beside the Python whose share is said
        how = f"; for {context.percent(unfused):.0f} % of its time programs of one op compute, other than products"
    return Finding(
        gain=gain,
        part_ms=part + unfused,
        percent=100.0,
        change="host_compute" if unfused and starting < LARGE_SHARE else "",  # what it shortens then
        id="eager.ops",
        kind="eager_dispatch",
        title="Compile the step instead of running it op by op",
        evidence=f"each step starts {starts:.0f} ops and programs one by one{how}",
        unknown="it does not show which ops a compiler merges",
        parts=("starts",),
        actions=actions_for(context.framework, WORDS_OF_CLASS["eager_dispatch"].actions),
        rows=_evidence_rows(context),
        intervals=context.intervals("launch") or context.intervals("host_compute"),
    )


def _name_loop(context: Context, advice: Advice) -> Advice:
    """The advice on single ops with the loop of the program that starts most of them, last of all actions: compiling
    the step does away with what each round costs.  Where rounds need each other it comes first in that on small
    batches, whose rounds cannot be done at once then."""
    said = advice.culprit.statement if advice.culprit is not None else None
    is_small = advice.kind == "small_batch"
    if (
        said is None
        or not said.loop
        or said.is_of_steps
        or (advice.kind != "eager_dispatch" and not (is_small and said.carries))
    ):
        return advice
    loop = f"the loop in line {said.loop} of {said.file}"
    how = f"replace {loop} by ops for all its rounds at once"
    if said.carries:
        how = (
            f"let each round of {loop} work on several rows at once, such as several sequences or environments: a round"
            f" needs `{said.carries}` of the one before, other rows do not"
        )
    if is_small:
        return replace(advice, actions=(how, *(each for each in advice.actions if not each.startswith(_AT_ONCE))))
    return replace(advice, actions=(*advice.actions, how))


def _evidence_rows(context: Context) -> tuple[Row, ...]:
    loop = context.loop
    named = (*loop.programs[:2], *loop.eager_ops[:2]) if loop else ()
    return tuple(Row("op-stats", each.name, round(context.per_step_ms(each.total_ps), 3)) for each in named)


RULES = (
    Rule(
        "dispatch", find=_find_starts, tool="op-stats", reword=_name_loop,
        yields_to=(
            "recompilation", "input_preprocessing", "input_python", "input_file_read", "input_no_prefetch",
            "checkpoint_stall", "straggler", "communication_bound",
        ),
    ),
)  # fmt: skip
