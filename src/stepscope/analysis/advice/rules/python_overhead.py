"""The loop runs Python for long while nothing computes."""

from __future__ import annotations

from dataclasses import replace

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.advice.rule import Actions, Finding, Named, Rule, actions_for, order_actions
from stepscope.analysis.advice.rules.words import FEWER_LAUNCHES, SLEEPS, WORDS_OF_CLASS
from stepscope.analysis.facts.inside import act_on_culprit
from stepscope.analysis.facts.loop import LoopFacts
from stepscope.analysis.facts.loop_events import Starts
from stepscope.vocabulary.python import CODE_OF_MODULE, sleeps

_MOST_OF = 0.5  # of the time that the advice is about
_ALL = 95.0  # % of the step: what lasts so long is the step itself; as for the lines of `facts.lines`

"""For what the step does not need."""
_OF_LIBRARY = "most of that is `{}`, of a library: give each call more to do, call it less often, or compile its caller"
_FASTER = (
    "move work that is the same in every step out of the loop",
    "log and evaluate metrics every N steps, not in every step",
)


def _find_gaps(context: Context) -> Finding | None:
    if context.loop is None or context.has_device or context.framework == "python":
        return None
    return _gaps(context, context.loop)


def _find_on_device(context: Context) -> Finding | None:
    if context.loop is None or not context.has_device or _is_between_launches(context):
        return None
    return _gaps(context, context.loop)


def _is_between_launches(context: Context) -> bool:
    """Whether most of the Python while the devices idle runs from one launch to the next, in stretches no longer than
    a dispatch, and in no function that could be left out: what makes that less is fewer launches, whoever wrote it."""
    loop, changes = context.loop, context.changes
    if loop is None or changes is None or "graph" not in changes.predicted:
        return False
    device = context.device
    if device is None or 2 * context.calls(Starts.SYNC) * device.steps > device.kernels:
        return False  # it goes from one value that it reads to the next
    lines = [line for line in context.lines if line.share("python") >= _MOST_OF]
    apart = loop.python_ps / loop.steps + sum(line.causes.get("python", 0) for line in lines)
    return 2 * apart / MS < context.python_ms


def _find_between_launches(context: Context) -> Finding | None:
    """Python of the model, of a compiler's wrapper or of a framework, which goes from launch to launch."""
    if not context.has_device or not _is_between_launches(context):
        return None
    idle = context.python_ms
    return Finding(
        part_ms=idle,
        share=f"{context.percent(idle):.1f} % of each step is {cause_words('python')}",
        evidence="it goes from one launch to the next",
        change="graph",
        without="the Python and the calls between launches",
        parts=("python",),
        rows=(Row("overview", "python", round(idle, 3)),),
        intervals=_name_intervals(context.intervals("python")),
    )


def _find_plain(context: Context) -> Finding | None:
    """A program without a framework, which computes in Python itself."""
    if context.framework != "python" or context.loop is None or context.pace.is_one_function:
        return None
    running = context.cause_ms("python")
    function = _function(context)
    name = "{1}:{2} {0}".format(*function.place) if function else context.hottest_python
    if not name:
        return None
    return Finding(
        part_ms=running,
        evidence=f"plain Python runs for {context.percent(running):.1f} % of each step; most of it is {name}"
        + _describe_sleep(context),
        unknown="no trace shows how fast the same work is without Python loops",
        parts=("python",),
        title="Wait less, or in another thread" if _is_asleep(context) else "",
        actions=(
            SLEEPS
            if _is_asleep(context)
            else f"replace loops over numbers in {name} with NumPy on whole arrays, or compile it",
            *_FASTER,
        ),
        intervals=_name_intervals(context.intervals("python")),
    )


def _is_asleep(context: Context) -> bool:
    """Whether most of the Python does not compute but waits for something outside of the program."""
    return _says_sleep(context) or _percent_asleep(context) >= 100 * _MOST_OF


def _says_sleep(context: Context) -> bool:
    """Whether the line that most of the Python is followed to calls what sleeps."""
    function = _function(context)
    return function is not None and function.statement is not None and sleeps(function.statement.called)


def _percent_asleep(context: Context) -> float:
    return (context.loop.python_sleeps_percent or 0.0) if context.loop is not None else 0.0


def _describe_sleep(context: Context) -> str:
    percent = _percent_asleep(context)
    return f"; for {percent:.0f} % of that time the thread sleeps" if percent >= 100 * _MOST_OF else ""


def _function(context: Context) -> Culprit | None:
    """The function of the program that most of the Python of the step is followed to; None if it is not known."""
    culprit = context.culprit("python")
    return culprit if culprit is not None and culprit.file is not None else None


_OUT_OF_PROGRAM: Actions = {
    "jax": (
        "write it with jax.numpy and jax.lax, so that it is compiled with the step",
        "or compute it before the step and pass its result as an array",
    ),
    "tensorflow": (
        "write it with TensorFlow ops instead of tf.py_function or tf.numpy_function, so that it joins the graph",
        "or compute it in the dataset, on tf.data's threads, and pass its result with the batch",
    ),
    "": ("write it with the framework's ops, so that it is compiled with the step",),
}

_ON_BATCH = (
    "compute {0} with the batch, or once for each example before training, and pass its result to the step as an array:"
    " it takes only what the step is given"
)
_REPORTS = (
    "return what {0} looks at from the step (of a scan as its second result), and look at it every N steps, instead of"
    " calling it inside"
)


def _find_callbacks(context: Context) -> Finding | None:
    work = context.work
    if not work.callbacks_ps:
        return None
    called = work.per_step_ms(work.callbacks_ps)
    name = work.callback.rpartition(":")[0] or work.callback
    at = f", asked for at {work.callback_line.rpartition('/')[2]}" if work.callback_line else ""
    actions = actions_for(context.framework, _OUT_OF_PROGRAM)
    caller = context.culprit("callbacks")
    what = caller.name if caller is not None and caller.file else "it"
    if work.callback_takes_given:
        actions = (_ON_BATCH.format(what), *actions)
    elif context.framework == "jax" and not name.startswith("pure"):
        actions = (_REPORTS.format(what), *actions[:1])
    return Finding(
        part_ms=called,
        evidence=f"the compiled program spends {context.percent(called):.1f} % of each step waiting for the Python"
        f" callback {name}{at}",
        actions=actions,
        change="callbacks",
        without="Python callbacks",
        parts=("callbacks",),
        rows=(Row("op-stats", name, round(called, 3)),),
        intervals=context.intervals("host_compute"),
    )


def _gaps(context: Context, loop: LoopFacts) -> Finding | None:
    idle = context.python_ms - context.per_step_ms(loop.after_moves_ps - loop.after_silent_ps)
    rival = context.pace.rival
    if rival is not None and rival.lost_ps / MS >= _MOST_OF * idle:
        return None  # there the loop waits for another thread, which is advice of its own
    if _is_asleep(context) and not _says_sleep(context) and context.lacks_cores:
        return None  # what it waits for has no core, as far as is known: a lock of a thread that is ready, too
    function = _function(context)
    if function is not None and _only_calls(context, function):
        return None
    row = Row("overview", "python", round(idle, 3))
    if function:
        row = Row("op-stats", "{1}:{2} {0}".format(*function.place), round(function.ps / MS, 3))
    return Finding(
        part_ms=idle,
        evidence=f"for {context.percent(idle):.1f} % of each step Python runs and nothing computes"
        + _describe_sleep(context),
        change="python" if context.has_device else "python_gaps",
        without="Python while nothing computes",
        parts=("python",),
        actions=(*([SLEEPS] if _is_asleep(context) else []), *WORDS_OF_CLASS["python_overhead"].actions[""]),
        confidence=0.8 if function else 0.6,
        rows=(row,),
        intervals=_name_intervals(context.intervals("python")),
    )


def _only_calls(context: Context, culprit: Culprit) -> bool:
    """Whether samples show the loop over steps in a line that calls a function whose time is told by itself.

    A thread is sampled as it lets go of the interpreter: after compiled code that keeps it, as a solver of SciPy does,
    that is in the lines behind the call, whose time is the function's.
    """
    called = culprit.statement.called.rpartition(".")[2] if culprit.statement is not None else ""
    return culprit.holds_steps and any(line.name.rpartition(".")[2] == called for line in context.lines)


def _name_function(context: Context, advice: Advice) -> Advice:
    """The advice with the function that the account names: what is known of the work in it first of all actions, and
    in the title where it is most of what the advice is about, and not the step itself."""
    culprit = advice.culprit
    if culprit is None or culprit.file is None:
        return advice
    what = culprit.where if culprit.name == CODE_OF_MODULE else f"{culprit.name} ({culprit.where})"
    known, usual = act_on_culprit(culprit), advice.actions
    if culprit.inside and not known:
        known = (_OF_LIBRARY.format(culprit.inside),)
        usual = tuple(each for each in usual if each not in WORDS_OF_CLASS["python_overhead"].actions[""])
    actions = order_actions((*map(Named, known), *usual))
    is_step = context.percent(culprit.length_ps / MS) >= _ALL
    is_most = advice.part_ms is not None and culprit.ps / MS >= _MOST_OF * advice.part_ms and not is_step
    title = f"Speed up {what} or run it less often"
    if SLEEPS in advice.actions:
        title = f"Wait less in {what}, or in another thread"
    return replace(advice, actions=actions, title=title if is_most else advice.title)


def _name_intervals(places: tuple[Interval, ...]) -> tuple[Interval, ...]:
    return tuple(place if place.name else replace(place, name="Python") for place in places)


def _find_rival(context: Context) -> Finding | None:
    """A thread of the program that never waits, so that the loop's has to."""
    rival = context.pace.rival
    if rival is None:
        return None
    what, lost = f"{rival.name} ({rival.file}:{rival.line})", rival.lost_ps / MS
    return Finding(
        part_ms=lost,
        title=f"Make {what} cheaper, or run it less often: the loop waits for its thread",
        evidence=f"for {context.percent(lost):.1f} % of each step the loop's thread waits for the interpreter, a lock"
        f" or a core, while the thread {rival.thread} runs {rival.name} for {100 * rival.share:.0f} % of the time",
        unknown="other programs may take a part of it",
        culprit=Culprit(rival.name, rival.file or None, rival.line or None, None, None, None, rival.lost_ps),
    )


_AWAIT = (
    "if the loop needs what it makes: make that cheaper, or before training",
    "else let it wait between its rounds until there is something to do: threading.Event.wait, queue.Queue.get",
    "run it in a process of its own (multiprocessing), if it has that much to compute",
)

_EXPLAINED_BY = (
    "recompilation", "checkpoint_stall", "input_python", "input_file_read", "input_preprocessing",
    "input_no_prefetch",
)  # fmt: skip

_IDLE_PERCENT = 10.0  # of the step: less is what the host does between launches, which a device hides
_REDUCE = "Take Python out of the loop"

RULES = (
    Rule(
        "python.gaps", kind="python_overhead", title=_REDUCE, find=_find_gaps, tool="steps",
        reword=_name_function,
        yields_to=(*_EXPLAINED_BY, "straggler", "communication_bound", "memory_churn", "input_transfer"),
    ),
    # With a device, its collectives and copies do not explain a gap on the host.
    Rule(
        "python.device-idle", _IDLE_PERCENT, kind="python_overhead", title=_REDUCE, find=_find_on_device, tool="steps",
        reword=_name_function, yields_to=_EXPLAINED_BY,
    ),
    Rule(
        "python.between-launches", _IDLE_PERCENT, kind="eager_dispatch", title="Launch the step's work at once",
        find=_find_between_launches, actions=FEWER_LAUNCHES, tool="idle",
        yields_to=(*_EXPLAINED_BY, "eager_dispatch", "small_batch"),
    ),
    Rule(
        "python.plain", kind="python_overhead", title="Make the Python of the step faster", find=_find_plain,
        tool="op-stats", confidence=0.7, reword=_name_function,
    ),
    Rule(
        "python.rival", kind="python_overhead", find=_find_rival, actions={"": _AWAIT}, tool="system",
        confidence=0.7, of_others=True,
    ),
    Rule(
        "python.callback", kind="python_overhead", title="Remove Python callbacks from the compiled step",
        find=_find_callbacks, tool="op-stats", confidence=0.85,
    ),
)  # fmt: skip
