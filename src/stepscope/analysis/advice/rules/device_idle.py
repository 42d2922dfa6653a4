"""The devices are idle while the host launches work too slowly, or resumes after waiting for them.

Idle time caused by input, saving, compiling or Python belongs to other rules.
"""

from __future__ import annotations

from stepscope.analysis.account.account_text import cause_words
from stepscope.analysis.advice.by_work import act_on_host_function
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Actions, Finding, ForTraining, Rule, actions_for, rows_of
from stepscope.analysis.advice.rules.dispatch import TINY_BATCH
from stepscope.analysis.advice.rules.words import FEWER_LAUNCHES
from stepscope.analysis.facts.changes import LONG_CALL_PS
from stepscope.analysis.facts.device_facts import DeviceTimes, Share
from stepscope.analysis.facts.loop_events import Starts
from stepscope.analysis.facts.work import OPS_OF_A_PROGRAM
from stepscope.report import duration_text
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.tensorflow import THREAD_MODE
from stepscope.vocabulary.torch import fused_form
from stepscope.vocabulary.traits import CallTrait, OpTrait

_MANY_KERNELS = 50.0  # per step: fewer do not keep a host busy
_MOST_COMPILED = 0.5  # of the kernels: programs launch these without Python
_MANY_PASSES = 4.0  # of forward and backward in a step: micro-batches
_LARGEST_GAP = 0.5  # of all idle time: one gap or call this long is not launching
_BUSY_INPUT = 0.5  # of the steps' time: an input thread this busy competes for the cores

_LARGER: Actions = {
    "tensorflow": (
        "use larger batches: Dataset.batch(n) with a larger n",
        "run several steps in one call: model.compile(steps_per_execution=N)",
    ),
    "jax": ("use larger batches", "jax.lax.scan over several steps in one jitted program"),
    "pytorch": ("use larger batches", "keep inputs and outputs of the graph in place, so that it is replayed at once"),
    "": ("use larger batches", "run several steps in one program"),
}
_COMPILE_ALL = "Compile the step instead of running it op by op"
_GIVE_MORE = "Give each launch more to compute"
_GATHER = ForTraining("use larger batches, or accumulate gradients over fewer micro-batches")
_PRIVATE_THREADS = f"give launching its own threads, apart from the input's: {THREAD_MODE}=gpu_private"
_ON_DEVICE: Actions = {
    "pytorch": (
        "make tensors where they are used, as torch.randn(..., device=device), and move data to the device before it is"
        " computed with, not after",
        "what has to stay on the host: in the workers of a DataLoader, ahead of the step",
    ),
    "tensorflow": (
        "place these ops on the device: tf.debugging.set_log_device_placement(True) lists those on the host",
        "what has to stay on the host: in a .map of the dataset, ahead of the step",
    ),
    "jax": ("write it with jax.numpy, inside the jitted step",),
    "": ("compute it on the device, or ahead of the step",),
}
_USE = "the program does not use this machine's {}: move the model to it once, and each batch (model.to('cuda'))"
_DRAW = (
    "draw them where they are used, which also saves the copy: torch.randn(..., device=device), x.normal_() on a tensor"
    " of the device, torch.Generator(device) for a seed",
)
_SYNC: Actions = {
    "tensorflow": (
        "call .numpy() and print losses every N steps, not in every step",
        "keep metrics as tf.keras.metrics and read them at the end of an epoch",
    ),
    "jax": (
        "fetch values every N steps: float(x), x.item(), np.asarray(x) and block_until_ready() wait for the device",
        "start copies early with x.copy_to_host_async()",
    ),
    "pytorch": (
        "fetch values every N steps, and several at once: .item(), float(), .cpu() and print() wait for the device",
        "avoid ops whose result size depends on data (nonzero, masked_select, boolean indexing) within the step",
        "copy with non_blocking=True to and from pinned memory",
    ),
    "": ("fetch values from the device every N steps, and several at once",),
}


def _find_launches(context: Context) -> Finding | None:
    device = context.device
    if device is None:
        return None
    launching = _launching_ms(context, device)
    compiled, op_by_op = device.compiled >= _MOST_COMPILED * device.kernels, _runs_op_by_op(context, device)
    if device.kernels < _MANY_KERNELS * device.steps:
        return _find_larger_programs(context, device, launching) if compiled else None
    small, threads = _small_batch_evidence(context), _has_input_contention(context)
    larger = (compiled and not op_by_op) or bool(small)
    short = f"{100 * device.short_kernels / device.kernels:.0f} % of them shorter than 20 us"
    whole = "each step" if device.marked else "the time"
    found = [
        f"the host launches {device.kernels / device.steps:.0f} kernels, {short}",
        small,
        "tf.data's threads are busy at the same time" if threads else "",
    ]
    actions = actions_for(context.framework, _LARGER if compiled and not op_by_op else FEWER_LAUNCHES)
    actions = (_GATHER, *actions) if small else actions
    if device.update is not None and (fused := fused_form(device.update.name)):
        actions = (*actions, f"use the fused form of the optimizer: {fused}")
    return Finding(
        part_ms=launching,
        kind="small_batch" if larger else "",
        title=_GIVE_MORE if larger else _COMPILE_ALL if op_by_op else "",
        share=f"{context.percent(launching):.1f} % of {whole} is {cause_words('launch')}",
        evidence="; ".join(filter(None, found)),
        change="graph",
        without="dispatching kernel by kernel",
        parts=("launch",),
        actions=(_PRIVATE_THREADS, *actions) if threads and not _has_thread_mode(context) else actions,
        confidence=0.8 if device.short_kernels > 0.5 * device.kernels else 0.6,
        rows=(Row("overview", "launch", round(launching, 3)), *rows_of("op-stats", device.calls[:2], device.steps)),
        intervals=context.idle_places(),
    )


def _launching_ms(context: Context, device: DeviceTimes) -> float:
    """Time per step that goes into launching.  Where no launch is linked to its work, that is what the host computes
    while the devices are idle, unless one gap before many kernels is most of that."""
    blocked = device.per_step_ms(sum(call.total_ps for call in _blocking_calls(device)))
    if context.changes is not None and context.changes.are_launches_linked:
        return max(context.cause_ms("launch") - blocked, 0.0)
    longest = max((end - start for start, end in device.longest_gaps), default=0) * device.steps
    if device.kernels >= _MANY_KERNELS * device.steps and longest >= _LARGEST_GAP * device.idle_ps:
        return 0.0
    host_ms = context.cause_ms("launch", "host_compute")
    return max(min(host_ms, device.per_step_ms(device.idle_ps)) - blocked, 0.0)


def _has_thread_mode(context: Context) -> bool:
    """Whether the program runs with a thread mode already, as far as the capture shows it."""
    return any(THREAD_MODE in host.settings for host in context.hosts)


def _small_batch_evidence(context: Context) -> str:
    """Evidence that kernels are small because batches are; empty if there is none."""
    work = context.work
    tiny = f"matrix products have {work.rows} rows" if work.rows is not None and work.rows <= TINY_BATCH else ""
    if not work.backward_passes:
        return f"inference, and {tiny}" if tiny else ""
    passes = work.backward_passes / max(work.steps, 1)
    if passes >= _MANY_PASSES:
        return f"forward and backward run {passes:.0f} times per step"
    return tiny


def _runs_op_by_op(context: Context, device: DeviceTimes) -> bool:
    """Whether a step calls several programs of hardly more than an op, as a framework makes of ops that nobody compiles
    as a whole."""
    programs = context.calls(Starts.PROGRAM)
    return programs > 1 and device.kernels / device.steps <= OPS_OF_A_PROGRAM * programs


def _find_larger_programs(context: Context, device: DeviceTimes, launching: float) -> Finding:
    """Compiled programs of few kernels, which the host starts more slowly than the device runs them."""
    op_by_op = _runs_op_by_op(context, device)
    return Finding(
        part_ms=launching,
        id="launch.programs",
        kind="eager_dispatch" if op_by_op else "small_batch",
        title=_COMPILE_ALL if op_by_op else _GIVE_MORE,
        evidence=_describe_programs(device, context.calls(Starts.PROGRAM), launching),
        change="graph",
        without="starting programs",
        parts=("launch",),
        actions=actions_for(context.framework, FEWER_LAUNCHES if op_by_op else _LARGER),
        confidence=0.5,
        rows=rows_of("op-stats", device.calls[:2], device.steps),
        intervals=context.idle_places(),
    )


def _describe_programs(device: DeviceTimes, programs: float, launching: float) -> str:
    """`a program runs for 1.92 ms and takes 14.6 ms to start`, on average."""
    each = programs or 1.0  # where other threads start them, one is all of a step
    runs, starts = device.per_step_ms(device.busy_ps) / each, launching / each
    return f"a program runs for {duration_text(runs)} and takes {duration_text(starts)} to start"


def _has_input_contention(context: Context) -> bool:
    """Whether tf.data keeps a core busy for much of the time in which TensorFlow launches kernels."""
    if context.framework != "tensorflow" or context.loop is None:
        return False
    return max(context.feed.ops_ps, context.feed.produced_ps) >= _BUSY_INPUT * context.loop.observed_ps


def _find_waits(context: Context) -> Finding | None:
    device = context.device
    if device is None:
        return None
    blocked = _blocking_calls(device)
    after = device.after_sync_ps if device.syncs > device.steps else 0
    waiting = device.per_step_ms(max(after, sum(call.total_ps for call in blocked)))
    once = not device.marked or (bool(blocked) and blocked[0].calls < device.steps)
    whole = "each step" if device.marked else "the time"
    how = (
        f"in {blocked[0].name}"
        if blocked
        else f"after the host has waited for it, {device.syncs / device.steps:.0f} times per step"
    )
    known = "this does not occur in every step" if context.has_steps else "without steps it may have happened once"
    seldom = f"; {known}, so check whether it matters" if once else ""
    return Finding(
        part_ms=waiting,
        evidence=f"the device is idle for {context.percent(waiting):.1f} % of {whole} {how}{seldom}",
        change="waits",
        without="waits for the device",
        parts=("sync", "copy"),
        confidence=0.3 if once else 0.7,
        rows=rows_of("op-stats", blocked or device.calls[:2], device.steps),
        intervals=context.work_places(blocked) or context.idle_places(),
    )


def _blocking_calls(device: DeviceTimes) -> list[Share]:
    """Calls that copy or wait, during which the devices are idle for most of the idle time or for long each time: that
    is no launching."""
    calls = [call for call in device.calls if name_has(call.name, CallTrait.MAY_BLOCK)]
    return [
        call for call in calls
        if call.total_ps >= _LARGEST_GAP * device.idle_ps or call.total_ps >= LONG_CALL_PS * call.calls
    ]  # fmt: skip


def _find_host_work(context: Context) -> Finding | None:
    """Ops that the host computes beside a device, or where it has one that the program does not use; where no launch is
    linked to its work, they may be launching."""
    account, unused = context.account, context.pace.unused_device
    blindness = account.blindness if account is not None else None
    unknown = blindness.why if blindness is not None and blindness.of_devices else ""
    unknown = f"nothing shows how fast the {unused} is" if unused else unknown
    is_linked = context.has_device and context.changes is not None and context.changes.are_launches_linked
    if not unknown and not is_linked:
        return None
    culprit = next((row.culprit for row in account.rows if row.cause == "host_compute"), None) if account else None
    is_random = culprit is not None and name_has(culprit.op or culprit.name, OpTrait.IS_RANDOM)
    computing, own = context.cause_ms("host_compute"), act_on_host_function(culprit)
    use = (_USE.format(unused),) if unused else own or actions_for(context.framework, _ON_DEVICE)
    return Finding(
        part_ms=computing,
        title="Draw random numbers on the device" if is_random else "Spend less time on the host" if own else "",
        share=f"{context.percent(computing):.1f} % of each step is {cause_words('host_compute')}",
        change="host_compute",
        without="computation on the host",
        unknown=unknown,
        parts=("host_compute",),
        actions=(*(_DRAW if is_random else ()), *use),
        intervals=context.intervals("host_compute"),
    )


_INPUT = ("input_preprocessing", "input_python", "input_file_read", "input_no_prefetch")

# Of the step.  Below, what one launch would save is mostly the Python between launches, and what that does decides: a
# drawn job that reads a value after each of 40 ops launches for 3 % of its step, and fewer launches give it nothing.
_LAUNCH_PERCENT = 10.0

RULES = (
    Rule(
        "launch.bound", _LAUNCH_PERCENT, kind="eager_dispatch", title="Fuse or graph the small kernels",
        find=_find_launches, tool="idle", yields_to=("recompilation", *_INPUT),
    ),
    Rule(
        "device.sync", kind="host_sync", title="Stop waiting for the device within the step", find=_find_waits,
        actions=_SYNC, tool="syncs", yields_to=("recompilation", "checkpoint_stall", "input_transfer", *_INPUT),
    ),
    Rule(
        "host.compute", kind="input_preprocessing", title="Compute on the device what the host computes",
        find=_find_host_work, tool="op-stats", confidence=0.6, yields_to=("recompilation", "checkpoint_stall", *_INPUT),
    ),
)  # fmt: skip
