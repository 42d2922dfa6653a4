"""The step waits for its next batch: which stage makes it late?"""

from __future__ import annotations

from stepscope.analysis.advice.context import MS, Context
from stepscope.analysis.advice.gain import Bound, calm, eased_by, events_ms, without
from stepscope.analysis.advice.items import Advice, Interval, Row
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.analysis.facts.feeding import FeedFacts
from stepscope.analysis.facts.loop_events import Activity

_MOST_OF = 50.0  # percent of the time of the input that makes one cause the cause
# Without prefetching, input and computation take turns.  Up to this ratio of the two, turning them side by side helps
# more than making the input faster does.
_PREFETCH_SUFFICES = 2.0
_OF_GAPS = 0.6  # of the long gaps that have to lie before the step's first work to be taken for input
# Input that nobody waits for still matters where its threads are busy for so much of the step, and the step's ops take
# so much less time in the steps in which they run undisturbed.
_BUSY_PERCENT = 25.0
_DISTURBED = 0.2

_TITLES = {
    "input_file_read": "Read files ahead, in parallel and in larger pieces",
    "input_no_prefetch": "Prepare the next batch while the step runs",
    "input_python": "Take pure Python out of the input",
    "input_preprocessing": "Make the preparation of input cheaper or more parallel",
}
_ACTIONS: dict[str, Actions] = {
    "input_file_read": {
        "tensorflow": (
            "pack many small files into few large TFRecord files",
            "read several files at once: .interleave(open_file, num_parallel_calls=tf.data.AUTOTUNE)",
            "read ahead with .prefetch(tf.data.AUTOTUNE) at the end, and .cache() what fits into memory",
        ),
        "pytorch": (
            "pack the samples into few large files (one .npy that is memory-mapped, WebDataset shards)",
            "DataLoader(num_workers=4 or more, prefetch_factor=4, persistent_workers=True), so that reading overlaps",
        ),
        "": (
            "pack the samples into few large files and read them in large pieces",
            "read ahead in other threads (grain, tf.data, concurrent.futures)",
        ),
        "python": (
            "pack the samples into few large files, and map them: numpy.load(path, mmap_mode='r')",
            "read ahead in other threads (concurrent.futures.ThreadPoolExecutor)",
        ),
    },
    "input_no_prefetch": {
        "tensorflow": (
            ".prefetch(tf.data.AUTOTUNE) at the end of the dataset: what comes after it runs while the step waits",
            ".map(fn, num_parallel_calls=tf.data.AUTOTUNE), where it is not parallel yet",
        ),
        "pytorch": ("DataLoader(num_workers=4 or more, persistent_workers=True, prefetch_factor=2)",),
        "": ("make the next batch in another thread while the step runs, and jax.device_put it there",),
        "python": ("make the next batch in another thread while the step runs (concurrent.futures)",),
    },
    "input_python": {
        "tensorflow": (
            "replace tf.py_function, tf.numpy_function and from_generator by TensorFlow ops (tf.strings, tf.io, ...)",
            "or do that work once, offline, and store its result as TFRecord",
            "if Python has to stay, run several: .interleave(make_dataset, num_parallel_calls=tf.data.AUTOTUNE), or"
            " keras.utils.PyDataset(workers=N, use_multiprocessing=True)",
        ),
        "pytorch": (
            "spread the work of __getitem__ over processes: DataLoader(num_workers=4 or more, persistent_workers=True)",
            "or do it once, before training, and keep tensors",
            "work on whole tensors in collate_fn instead of on one sample in Python",
        ),
        "": (
            "do the work once, before training, and keep arrays",
            "or spread it over processes (grain.DataLoader(worker_count=...), multiprocessing)",
        ),
        "python": (
            "do the work once, before training, and keep arrays",
            "or work on whole arrays with NumPy instead of loops over numbers, or compile the loop",
            "or spread it over processes (multiprocessing)",
        ),
    },
    "input_preprocessing": {
        "tensorflow": (
            "batch first and map over whole batches: .batch(n).map(fn, num_parallel_calls=tf.data.AUTOTUNE)",
            ".map(fn, num_parallel_calls=tf.data.AUTOTUNE), where it is not parallel yet",
            ".cache() what does not change, or prepare it offline",
        ),
        "pytorch": (
            "DataLoader(num_workers=4 or more, persistent_workers=True), so that items are made while the step runs",
            "transform whole batches at once (torchvision.transforms.v2 on a batch, on the device if there is one)",
            "prepare what does not change offline",
        ),
        "": (
            "prepare batches in other threads or processes while the step runs",
            "transform inside the compiled step (jax.jit), where it can run on the device",
            "prepare what does not change offline",
        ),
        "python": (
            "prepare batches in other threads or processes while the step runs (concurrent.futures)",
            "work on whole batches with NumPy instead of loops over samples",
            "prepare what does not change offline",
        ),
    },
}

# By these an action and what the tool tf-data suggests for a stage are found to say the same.
_CALLS = (".map(fn, num_parallel_calls", "batch first", ".cache()", ".interleave(", ".prefetch(", "PyDataset(", "pack")
_READY = ("Prefetch", "Root")  # stages of which tf-data can only tell that nothing slow was recorded behind them

# Samples of a PyTorch Dataset that come as NumPy arrays, where no Python was recorded.
_UNTOLD = (
    "its samples come as NumPy arrays that no op makes: they are read from files, or unpacked in memory, and this"
    " profile does not tell which"
)
_UNTOLD_TITLE = "Make samples ahead of the step, in other processes"
_UNTOLD_ACTIONS = (
    "DataLoader(num_workers=4 or more, prefetch_factor=4, persistent_workers=True), so that the step does not wait",
    "where they are read: pack the samples into few large files (one .npy that is memory-mapped, WebDataset shards)",
    "where they are unpacked or computed: do it once, before training, and keep arrays",
    "torch.profiler.profile(with_stack=True) records which Python function it is",
)


def _evaluate(context: Context, threshold: float) -> Advice | None:
    waits = context.part_ms(Activity.INPUT)
    unnamed = _before_the_step(context)
    waits += unnamed
    if context.percent(waits) < context.least_of_input(threshold):
        return _competing(context, waits)
    kind, why, confidence = _cause(context, waits, unnamed)
    parts: tuple[Activity, ...] = (Activity.PYTHON if unnamed else Activity.INPUT,)
    if kind == "input_python" and _feed(context).has_iterators:
        # Python in other threads holds the interpreter's lock: what looks like Python of the loop waits for it.
        parts = (Activity.INPUT, Activity.PYTHON)
        waits += context.part_ms(Activity.PYTHON)
    recorded = events_ms(context, _feed(context).events)
    bounds = _bounds(context, kind, max(waits - recorded, 0.0))
    gain = without(
        context, waits, "waiting for input", bounds, parts, _beside(context, waits), recorded,
        crowded=_crowded(context),
    )  # fmt: skip
    if _to_cache(context, kind):
        why = f"{why}; they do it in parallel as it is, and no op of theirs is random"
    actions = _UNTOLD_ACTIONS if why == _UNTOLD else _in_general(context, kind)
    return gain.advice(
        rule=f"input.{kind.removeprefix('input_')}",
        kind=kind,
        title=_UNTOLD_TITLE if why == _UNTOLD else _TITLES[kind],
        evidence=f"{context.percent(waits):.1f} % of the time of a step waits for input: {why}",
        actions=_with_the_stage(context, kind, actions),
        tool="tf-data" if _feed(context).has_iterators else "input-pipeline",
        confidence=confidence,
        rows=(Row("overview", "input", round(waits, 3)),),
        intervals=_places(context, unnamed),
    )


def _competing(context: Context, waits: float) -> Advice | None:
    """Input that is ready in time, but takes cores, locks and caches from the step.  What computes in it has to run
    anyway; Python can be replaced, and files can be read in better pieces."""
    feed = _feed(context)
    kind = _replaceable(feed)
    if context.has_device or context.loop is None or not kind:
        return None
    busy, slower = context.per_step(feed.produced_ps) / MS, 1 - calm(context)
    if context.percent(busy) < _BUSY_PERCENT or slower < _DISTURBED:
        return None
    # The input takes no more from the step than it runs itself.
    taken = min((1 - eased_by(context, _crowded(context))) * context.compute_ms, busy)
    does = "Python makes it" if kind == "input_python" else "reading files for it goes on"
    return without(context, taken, "what the threads of the input take from the step", computes=True).advice(
        rule="input.python-competes" if kind == "input_python" else "input.reading-competes",
        kind=kind,
        title=_TITLES[kind],
        evidence=f"the step does not wait for its input, but {does} on other threads for"
        f" {min(context.percent(busy), 100.0):.0f} % of the time, and the step's ops take {100 * slower:.0f} % less"
        " time where they run undisturbed",
        actions=_with_the_stage(context, kind, _in_general(context, kind)),
        tool="tf-data",
        confidence=0.6,
        rows=(Row("overview", "input", round(waits, 3)),),
        intervals=context.intervals(Activity.PROGRAM),
    )


def _replaceable(feed: FeedFacts) -> str:
    """The class of input, most of whose ops need not run in this way; empty if they have to."""
    if not feed.ops_ps:
        return ""
    if 2 * feed.python_ps >= feed.ops_ps:
        return "input_python"
    return "input_file_read" if 2 * feed.reading_ps >= feed.ops_ps else ""


def _beside(context: Context, waits: float) -> float:
    """How much the input takes from what stays, at most.  A DataLoader without workers takes turns with the step: it
    only takes the caches, the more of them the more of the time it runs."""
    feed = _feed(context)
    if feed.loader == "single":
        return waits * context.percent(waits) / 100
    return max(waits, context.per_step(feed.produced_ps) / MS)


def _crowded(context: Context) -> float | None:
    """The cores for each thread that wants one while a step computes.  The threads that run the ops of tf.data are as
    many as the cores."""
    feed, work = _feed(context), context.work
    if not feed.threads or not feed.produced_ps or work is None or not work.compute_ps:
        return None
    period = context.period_ms * MS
    making = min(context.per_step(feed.produced_ps) / period, 1.0)
    side_by_side = context.per_step(feed.ops_ps) / period if feed.in_parallel else 0.0
    wanted = work.self_ps / work.compute_ps + max(making, side_by_side)
    return min(feed.threads / wanted, 1.0)


def _places(context: Context, unnamed: float) -> tuple[Interval, ...]:
    return context.intervals(Activity.PYTHON if unnamed else Activity.INPUT)


def _feed(context: Context) -> FeedFacts:
    """The input stages of the host that sets the pace, else of the first host."""
    return (context.pace or context.hosts[0]).feed


def _before_the_step(context: Context) -> float:
    """Long gaps before a step's first work, where nothing else tells of input: the loop makes its batch there."""
    loop = context.loop
    if loop is None or context.has_device or _feed(context).has_iterators or _feed(context).loader:
        return 0.0
    gaps, before = context.part_ms(Activity.PYTHON), context.per_step(loop.before_program_ps) / MS
    return before if gaps and before >= _OF_GAPS * gaps and context.percent(before) >= 5.0 else 0.0


def _cause(context: Context, waits: float, unnamed: float) -> tuple[str, str, float]:
    """Class, what speaks for it, and how sure that is."""
    feed, loop = _feed(context), context.loop
    if feed.loader:
        return _cause_in_loader(context, feed, waits)
    if feed.has_iterators:
        return _cause_in_iterators(context, feed, waits)
    if loop is not None and loop.input_from_python_ps:
        return _cause_in_python(context)
    if 2 * unnamed >= waits:
        return "input_python", "Python runs before the first op or program of each step", 0.5
    return "input_preprocessing", "nothing of how the input is made was recorded", 0.4


def _cause_in_loader(context: Context, feed: FeedFacts, waits: float) -> tuple[str, str, float]:
    if feed.loader == "multi":
        return "input_preprocessing", "the workers of the DataLoader do not keep up", 0.6
    reads = context.loop.input_reads_files_percent if context.loop else None
    if reads is not None and reads >= _MOST_OF:
        return "input_file_read", f"{reads:.0f} % of that reads files in the training process", 0.85
    ops = context.per_step(feed.loader_ops_ps) / MS
    share = 100.0 * ops / waits if waits else 0.0
    if share >= _MOST_OF:
        return "input_preprocessing", f"{share:.0f} % of that is tensor ops in the training process", 0.8
    if feed.unpickled > feed.made_tensors:
        return "input_file_read", "the DataLoader unpickles its samples in the training process", 0.6
    if feed.from_arrays > feed.made_tensors:
        if reads is None:
            return "input_file_read", _UNTOLD, 0.4
        return "input_preprocessing", f"its samples are NumPy arrays, and only {reads:.0f} % of that reads files", 0.7
    return "input_python", f"only {share:.0f} % of that is ops; the rest is Python in the training process", 0.8


def _cause_in_iterators(context: Context, feed: FeedFacts, waits: float) -> tuple[str, str, float]:
    if feed.ops_ps and feed.python_ps * 2 >= feed.ops_ps:
        return "input_python", "the dataset calls Python for its elements", 0.9
    longest = max(feed.iterators_ps, feed.produced_ps)
    if feed.file_read_ps and 100.0 * feed.file_read_ps >= 0.8 * _MOST_OF * longest:
        share = min(100.0 * feed.file_read_ps / longest, 100.0)
        return "input_file_read", f"{share:.0f} % of the time of its stages reads files", 0.85
    if feed.reading_ps and feed.reading_ps * 2 >= feed.ops_ps:
        return (
            "input_file_read",
            f"{100.0 * feed.reading_ps / feed.ops_ps:.0f} % of the time of its ops reads files",
            0.8,
        )
    if waits <= _PREFETCH_SUFFICES * (context.period_ms - waits):
        if not feed.has_prefetch:
            return (
                "input_no_prefetch",
                "no stage hands elements to another thread, so that input and step take turns",
                0.9,
            )
        if 100.0 * context.per_step(feed.in_the_wait_ps) / MS >= _MOST_OF * waits:
            return "input_no_prefetch", "the stages behind the last prefetch take turns with the step", 0.85
    return "input_preprocessing", "its stages make elements more slowly than the step uses them", 0.8


def _cause_in_python(context: Context) -> tuple[str, str, float]:
    loop = context.loop
    reads = (loop.input_reads_files_percent or 0.0) if loop else 0.0
    native = (loop.input_is_native_percent or 0.0) if loop else 0.0
    name = context.intervals(Activity.INPUT)[0].name.lstrip("$") if context.intervals(Activity.INPUT) else "Python"
    if reads >= _MOST_OF:
        return "input_file_read", f"{reads:.0f} % of that reads files, in {name}", 0.85
    calls = context.per_step(loop.python_calls) if loop else 0.0
    if native >= _MOST_OF or calls < _CALLS_PER_MS * context.part_ms(Activity.INPUT):
        return "input_preprocessing", f"{name} works on whole arrays in the loop's thread", 0.7
    return "input_python", f"{name} runs in the loop's thread", 0.85


_CALLS_PER_MS = 20.0  # Python calls per ms below which the time is spent in compiled code


def _bounds(context: Context, kind: str, waits: float) -> list[Bound]:
    """What becomes critical when the step no longer waits."""
    feed, bounds = _feed(context), []
    if kind == "input_no_prefetch":
        bounds.append(Bound(waits, "the input, now side by side with the step,"))
    if kind in ("input_preprocessing", "input_no_prefetch") and feed.threads and not _to_cache(context, kind):
        work = context.work
        own = work.self_ps / max(work.steps, 1) / MS if work else 0.0
        total = own + max(context.per_step(feed.ops_ps) / MS - events_ms(context, feed.events), 0.0)
        bounds.append(Bound(total / feed.threads, f"the work of input and step on {feed.threads} threads"))
    return bounds


def _to_cache(context: Context, kind: str) -> bool:
    """Whether elements are prepared in parallel as it is, in the same way in each epoch."""
    feed = _feed(context)
    return kind == "input_preprocessing" and feed.in_parallel and feed.repeatable


def _cached(context: Context, kind: str) -> tuple[str, ...]:
    if not _to_cache(context, kind):
        return ()
    return (".cache() after the map that prepares the elements, before .shuffle(): then only the first epoch prepares",)


def _in_general(context: Context, kind: str) -> tuple[str, ...]:
    """The actions for what makes the input: tf.data does so for programs of any framework."""
    return actions_for("tensorflow" if _feed(context).has_iterators else context.framework, _ACTIONS[kind])


def _with_the_stage(context: Context, kind: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    """The actions, with what the tool tf-data says of the slowest stage: that names the stage, so that actions that say
    the same without it are left out.  Prefetching comes before it where that alone is enough."""
    suggestion = _from_tf_data(context)
    first = actions[:1] if kind == "input_no_prefetch" else _cached(context, kind)
    others = tuple(action for action in actions if action not in first and not _says(suggestion, action))
    return (*first, *((suggestion,) if suggestion else ()), *others)[:4]


def _says(suggestion: str, action: str) -> bool:
    """Whether a suggestion holds all calls of an action."""
    calls = [call for call in _CALLS if call in action]
    return bool(calls) and all(call in suggestion for call in calls)


def _from_tf_data(context: Context) -> str:
    """What the tool tf-data says of the slowest stage; empty if it has nothing to change there."""
    if not _feed(context).has_iterators:
        return ""
    report = context.read("tf-data")
    bottleneck = (report and report.bottleneck) or {}
    op = str(bottleneck.get("dataset_op") or "")
    if bottleneck.get("iterator") in _READY and (not op or op.startswith(_READY)):
        return ""
    return str(bottleneck.get("suggestion") or "")


RULE = Rule(id="input", threshold_percent=10.0, evaluate=_evaluate, yields_to=("recompilation", "straggler"))
