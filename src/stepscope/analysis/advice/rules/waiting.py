"""The step waits for its next batch: finds the stage that makes it late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Row
from stepscope.analysis.advice.rule import Beside, Finding, Named, Once, Rule, actions_for, predict_change
from stepscope.analysis.advice.rules.words import WORDS_OF_CLASS
from stepscope.analysis.facts.feeding import FEWEST_ROWS, FeedFacts
from stepscope.analysis.facts.inside import act_on_culprit
from stepscope.analysis.steps.verdict import LEAST_PERCENT, MODERATELY_INPUT_BOUND
from stepscope.analysis.trace.remedies import PYTHON_CALLS, remedy
from stepscope.errors import counted
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import CodeTrait

_MOST_OF = 50.0  # percent of the input time: from this share one cause explains it
# Without prefetching, input and computation take turns.  Up to this ratio of the two, overlapping them gains more than
# making the input faster.
_PREFETCH_SUFFICES = 2.0
_HIDDEN = 0.5  # of the step: input that takes no longer than the rest fits beside it
_OF_GAPS = 0.6  # of the long gaps: if this much lies before the step's first work, it is taken for input
# Input that no step waits for still matters if its threads are busy for this much of the step and the step's ops take
# this much less time in steps without contention.
_BUSY_PERCENT = 25.0
_DISTURBED = 0.2  # of the time of the ops

_TITLES = {
    "input_file_read": "Read files ahead, in parallel and in larger chunks",
    "input_no_prefetch": "Prepare the next batch while the step runs",
    "input_python": "Take Python out of the wait for input",
    "input_preprocessing": "Make input preprocessing cheaper or more parallel",
}

_OF_KERAS = (
    "make what `__getitem__` of the PyDataset does cheaper, or do it once, before training",
    Beside("keras.utils.PyDataset(workers=N, use_multiprocessing=True, max_queue_size=2 * N) prepares batches ahead"),
)

_OWN_THREADS = (
    "keep the input off the step's threads: options = tf.data.Options(); options.threading.private_threadpool_size = 2;"
    " dataset.with_options(options)"
)

# What helps where the input's threads and the step want the same processors.
_LESS_INPUT = (
    "do less in the dataset's functions: first pick what the step keeps of an element (crop, select, shorten), then"
    " work on that",
    "do what is the same in each epoch once, before training, or .cache() it; work on whole batches after .batch(n)",
)
_LESS_PYTHON = (
    "do less in the Python that makes the batch: hand over compact arrays (numbers of classes or words, not wide rows"
    " of zeros and ones; integers, not floats), and let the model expand them",
    "do what is the same in each epoch once, before training",
)

_SOME_WORKERS = "num_workers=4 or more"
_LOADER_OF_INFERENCE = Beside(
    f"DataLoader({_SOME_WORKERS}, persistent_workers=True), if one loader feeds many calls of the model; a loader made"
    " for each call gains nothing"
)

# An action whose calls all occur in tf-data's suggestion for a stage says the same as that suggestion.
_CALLS = (".map(fn, num_parallel", "map whole batches", ".cache()", ".interleave(", ".prefetch(", "PyDataset", "pack")
_READY = ("Prefetch", "Root")  # stages without a remedy: nothing slow was recorded behind them

# The loop takes a new iterator of its DataLoader again and again, such as in each short epoch.
_RESTARTS = "the loader's worker processes start {} in the captured steps, and nothing is prepared before that"
_KEEP_WORKERS = (
    "make the DataLoader once, before the loop, with persistent_workers=True: its processes live through all epochs",
    "num_workers=0 for a dataset so small that starting processes takes longer than its batches",
)
_RECORD_LATER = "record later batches, for which the workers run: a training loop pays for the first one once per epoch"


@dataclass(frozen=True, slots=True)
class _Cause:
    """Why the step waits for input, and the words and actions where they are not those of every cause of its class."""

    kind: str  # the class of the advice
    why: str
    confidence: float
    title: str = ""
    actions: tuple[str, ...] = ()
    last_action: str = ""
    share: str = "spent waiting for input"  # "... % of each step is"
    without: str = "waiting for input"

    def general_actions(self, context: Context) -> tuple[str, ...]:
        """What to do about it, before a slow stage is named."""
        actions = self.actions or _general_actions(context, self.kind)
        if not self.actions and not context.feed.has_iterators:
            known = act_on_culprit(context.culprit("input"), is_input=True) or _act_in_workers(context)
            actions = _put_inside(actions, (*_take_whole_batches(context), *map(Named, known)))
        return (*actions, self.last_action) if self.last_action else actions


# Python before a step's first work that neither calls nor samples name: mostly that makes the batch.
_UNNAMED_PYTHON = _Cause(
    "input_python",
    "loops make their batch there",
    confidence=0.5,
    title="Prepare batches ahead of the step, as Python runs before its first work",
    last_action="if that Python saves, logs or collects garbage instead: do so every N steps",
    share="Python before its first op or program",
    without="that Python",
)
# Where nothing was recorded before a step's first work, that this takes an array of the host in says what went on.
_UNRECORDED_BEFORE = _Cause(
    "input_no_prefetch",
    "what follows takes in an array of the host, which is made or waited for in the gap; this profile does not show by"
    " what",
    confidence=0.4,
    title="Prepare batches ahead of the step, as it takes an array in after a gap",
    last_action="if the loop saves, logs or collects garbage there instead: do so every N steps",
    share="a gap before its first op or program",
    without="that gap",
)
# Samples of a PyTorch Dataset that are NumPy arrays, in a profile without Python calls.
_UNKNOWN_READER = _Cause(
    "input_file_read",
    "its samples are NumPy arrays that no op creates: they are read from files or unpacked in memory, and this profile"
    " does not show which",
    confidence=0.4,
    title="Prepare samples ahead of the step, in other processes",
    actions=(
        Beside("DataLoader(num_workers=4 or more, prefetch_factor=4, persistent_workers=True) prepares samples ahead"),
        "if they are read from files: pack them into a few large files (one memory-mapped .npy, WebDataset shards)",
        "if they are unpacked or computed: do it once, before training, and store arrays",
        "torch.profiler.profile(with_stack=True) records which Python function it is",
    ),
)
# The same where the samples are tensors around stored bytes: of a pickle, of a decoded picture, of shared memory.
_UNKNOWN_STORE = replace(
    _UNKNOWN_READER,
    why="its samples are made of stored bytes: they are read, unpickled or decoded; this profile does not show which",
)
# The one batch of a capture, for which worker processes start.
_FIRST_BATCH = _Cause(
    "input_no_prefetch",
    "it is the only batch that was recorded, for which the loader's worker processes start",
    confidence=0.5,
    title="Start the loader's worker processes once, and record later batches",
    actions=(_RECORD_LATER, *_KEEP_WORKERS),
)


def _find_waiting(context: Context) -> Finding | None:
    if (crowds := _find_crowding(context)) is not None:
        return crowds
    unnamed = _gaps_before_steps_ms(context)
    waits = _waiting_ms(context) + unnamed
    if context.percent(waits) < (MODERATELY_INPUT_BOUND if context.has_device else LEAST_PERCENT):
        return _find_contention(context, waits)
    cause = _find_cause(context, waits, unnamed)
    if cause is None:
        return None
    kind, why = cause.kind, cause.why
    if kind == "input_python" and context.feed.has_iterators:
        # Python in other threads holds the interpreter's lock: Python on the loop's thread is really waiting for it.
        waits += context.python_ms
    if _can_be_cached(context, kind):
        why = f"{why}; they already run in parallel, and none of their ops is random"
    # What goes on in a gap of which nothing was recorded may be anything, and so may its gain.
    is_known = cause is not _UNRECORDED_BEFORE
    return Finding(
        part_ms=waits,
        id=f"input.{kind.removeprefix('input_')}",
        kind=kind,
        title=cause.title or _TITLES[kind],
        share=f"{context.percent(waits):.1f} % of each step is {cause.share}",
        evidence=why,
        change=_change(context, kind, unnamed) if is_known else "",
        without=cause.without,
        unknown="" if is_known else f"that gap was not recorded: {remedy(PYTHON_CALLS, context.recorder)}",
        parts=_parts(cause, unnamed),
        actions=_add_stage_action(context, kind, cause.general_actions(context)),
        may_run_beside=True,
        tool="tf-data" if context.feed.has_iterators else "input-pipeline",
        confidence=cause.confidence,
        rows=(Row("overview", "input", round(waits, 3)),),
        intervals=context.intervals(_place(cause, unnamed)),
    )


def _place(cause: _Cause, unnamed: float) -> str:
    """The stretches of the loop to show."""
    if cause is _UNRECORDED_BEFORE:
        return "unknown"
    return "python" if unnamed else "input"


def _parts(cause: _Cause, unnamed: float) -> tuple[str, ...]:
    if cause is _UNRECORDED_BEFORE:
        return ("before_work",)
    return ("before_work", "python") if unnamed else ("input", "feed")


def _change(context: Context, kind: str, unnamed: float) -> str:
    """The row of the table of changes that helps."""
    if unnamed:
        return "python" if context.has_device else "before_work"
    if context.has_device:
        return "workers"
    if kind == "input_no_prefetch" and context.feed.has_iterators:
        return "ahead"
    return "waiting_for_python" if kind == "input_python" and context.feed.has_iterators else "input"


def _waiting_ms(context: Context) -> float:
    """Time per step that waits for input.

    Without a device that is what the loop's thread is in its input at most, and beside worker processes what it sleeps
    there, or what starting them again takes: in the rest it unpacks what they send, or is ready and has no processor,
    and more workers change neither.
    """
    waits, loop = context.cause_ms("input"), context.loop
    if loop is None:
        return waits
    in_loop = context.per_step_ms(loop.input_ps)
    feed = context.feed
    if loop.input_sleeps_percent is not None and feed.loader == "multi":
        starting = context.per_step_ms(feed.starting_ps) if feed.starts else 0.0
        return min(waits, max(loop.input_sleeps_percent / 100 * in_loop, min(starting, in_loop)))
    return waits if context.has_device else min(waits, in_loop)


def _find_contention(context: Context, waits: float) -> Finding | None:
    """Input that is ready in time but takes cores, locks and caches from the step.

    Its computation has to run anyway.  Python can be replaced, and files can be read in larger chunks.
    """
    feed = context.feed
    kind = _replaceable(feed)
    if context.has_device or context.loop is None or not kind:
        return None
    busy = context.per_step_ms(feed.produced_ps)
    slower = context.work.share_lost(context.work.contention_ps)
    if context.percent(busy) < _BUSY_PERCENT or slower < _DISTURBED:
        return None
    activity = "Python prepares it" if kind == "input_python" else "its files are read"
    own_threads = (_OWN_THREADS,) if feed.has_iterators else ()
    return Finding(
        part_ms=min(
            slower * context.work.per_step_ms(context.work.compute_ps), busy
        ),  # the input costs the step at most its own run time
        percent=100.0,
        id="input.python-competes" if kind == "input_python" else "input.reading-competes",
        kind=kind,
        title=_TITLES[kind],
        evidence=f"the step does not wait for its input, but {activity} on other threads for"
        f" {min(context.percent(busy), 100.0):.0f} % of the time, and the step's ops take {100 * slower:.0f} % less"
        " time without contention",
        unknown="the input's threads run during every step",
        parts=("feed",),
        actions=(*_add_stage_action(context, kind, _general_actions(context, kind)), *own_threads),
        tool="tf-data",
        confidence=0.6,
        rows=(Row("overview", "input", round(waits, 3)),),
        intervals=context.intervals("host_compute"),
    )


def _find_crowding(context: Context) -> Finding | None:
    """Input whose threads take processors that the step has too few of, more than it waits for: only less of its work
    helps, as the same on more threads or further ahead takes as much."""
    held, share = context.pace.processors, context.share_of_processors("input")
    if held is None or not share:
        return None
    kind = _replaceable(context.feed) or "input_preprocessing"
    less = _LESS_PYTHON if kind == "input_python" else _LESS_INPUT
    return Finding(
        part_ms=share * context.period_ms,
        id="input.crowds",
        kind=kind,
        title="Make the input cheaper: it takes the processors that the step needs",
        evidence=f"{held.describe()}; {100 * share:.0f} % of their work is input, whether or not a step waits for it",
        gain=predict_change(
            context, "input", share * context.period_ms, "the work of the input's threads"
        ).of_cheaper(),
        parts=("feed",),
        actions=(*_skip_early(context), *map(Named, _call_once(context)), *less),
        tool="tf-data",
        confidence=0.7,
        intervals=context.intervals("host_compute"),
    )


def _replaceable(feed: FeedFacts) -> str:
    """The class of input whose work can mostly be replaced; empty if it cannot."""
    if not feed.ops_ps:
        return ""
    if 2 * feed.python_ps >= feed.ops_ps:
        return "input_python"
    return "input_file_read" if 2 * feed.reading_ps >= feed.ops_ps else ""


def _gaps_before_steps_ms(context: Context) -> float:
    """Time of long gaps before a step's first work, if no input was recorded: there the loop prepares its batch."""
    loop = context.loop
    if loop is None or context.has_device or context.feed.has_iterators or context.feed.loader:
        return 0.0
    gaps = context.python_ms + context.per_step_ms(loop.silent_ps) / context.quiet
    before = context.per_step_ms(loop.before_program_ps)
    return before if gaps and before >= _OF_GAPS * gaps and context.percent(before) >= 5.0 else 0.0


def _find_cause(context: Context, waits: float, unnamed: float) -> _Cause | None:
    """Which stage makes the batch late, and why; None where worker processes keep up but for a few batches."""
    feed, loop = context.feed, context.loop
    if feed.loader:
        return _loader_cause(context, feed, waits)
    if feed.has_iterators:
        return _iterator_cause(context, feed, waits)
    if loop is not None and loop.input_from_python_ps:
        return _python_cause(context)
    if 2 * unnamed >= waits:
        is_silent = loop is not None and 2 * loop.before_silent_ps > loop.before_program_ps
        return _UNRECORDED_BEFORE if is_silent else _UNNAMED_PYTHON
    return _unrecorded_cause(context)


def _loader_cause(context: Context, feed: FeedFacts, waits: float) -> _Cause | None:
    if _restarts_workers(context, feed, waits):
        why = _RESTARTS.format(counted(feed.starts, "time"))
        return _Cause("input_no_prefetch", why, 0.8, "Start the loader's worker processes once", _KEEP_WORKERS)
    if feed.loader == "multi" and _is_first_batch(context):
        return _FIRST_BATCH
    if feed.loader == "multi":
        queue = _queue_of_workers(context)
        workers, useful = queue.get("workers"), queue.get("useful_workers")
        if isinstance(workers, int) and isinstance(useful, int) and useful <= workers:
            return None  # as where an epoch begins with an empty queue
        return _Cause("input_preprocessing", f"the DataLoader's workers do not keep up{_workers_text(context)}", 0.6)
    reads = context.loop.input_reads_files_percent if context.loop else None
    if reads is not None and reads >= _MOST_OF:
        return _Cause("input_file_read", "most of the wait is reading files in the training process", 0.85)
    ops = context.per_step_ms(feed.loader_ops_ps)
    share = 100.0 * ops / waits if waits else 0.0
    if share >= _MOST_OF:
        return _Cause("input_preprocessing", "most of the wait is tensor ops in the training process", 0.8)
    if sleeps := _sleeping_text(context):
        return _Cause("input_no_prefetch", sleeps, 0.8)
    if feed.from_storage > feed.made_tensors:
        of_ops = f"{share:.0f} % of the wait is tensor ops; " if share >= 1 else ""
        return replace(_UNKNOWN_STORE, why=f"{of_ops}{_UNKNOWN_STORE.why}")
    if feed.from_arrays > feed.made_tensors:
        if reads is None:
            return _sampled_cause(context) or _UNKNOWN_READER
        return _Cause(
            "input_preprocessing", f"samples are NumPy arrays; {reads:.0f} % of the wait is reading files", 0.7
        )
    return _Cause("input_python", "most of the wait is your Python", 0.8)


def _is_first_batch(context: Context) -> bool:
    """Whether the capture holds one batch of worker processes, for which these start."""
    culprit = _culprit_of_input(context)
    return not context.has_steps and culprit is not None and culprit.calls == 1


def _restarts_workers(context: Context, feed: FeedFacts, waits: float) -> bool:
    """Whether starting and ending worker processes again takes most of the wait."""
    starting = 100.0 * context.per_step_ms(feed.starting_ps)
    return feed.loader == "multi" and feed.starts > 0 and starting >= _MOST_OF * waits


def _sleeping_text(context: Context) -> str:
    """That the loop's thread sleeps while it makes its input, so that others could do that side by side; empty if it
    does not, as far as is known."""
    asleep = context.loop.input_sleeps_percent if context.loop else None
    if asleep is None or asleep < _MOST_OF:
        return ""
    return f"for {asleep:.0f} % of the wait the loop's thread sleeps: it waits for a server or a disk, sample by sample"


def _queue_of_workers(context: Context) -> Mapping[str, Any]:
    """The figures of the queue between worker processes and the loop; empty where none were recorded."""
    report = context.read("input-pipeline")
    return report.queue if report else {}


def _act_in_workers(context: Context) -> tuple[str, ...]:
    """What to do about the function in which worker processes spend their time, of which no more is known."""
    culprit = context.culprit("input")
    if context.feed.loader != "multi" or culprit is None or culprit.file is None:
        return ()
    what = f"what {culprit.name} ({culprit.file}:{culprit.line}) does in each worker"
    return (f"make {what} cheaper, such as by reading no more than is used, or do it once, before training",)


def _workers_text(context: Context) -> str:
    """What the workers were seen to do: `: 2 worker processes take 76.1 ms for a batch, ...`; empty if unknown."""
    report = context.read("input-pipeline")
    return f": {report.queue_summary}" if report and report.queue_summary else ""


def _iterator_cause(context: Context, feed: FeedFacts, waits: float) -> _Cause:
    if feed.ops_ps and feed.python_ps * 2 >= feed.ops_ps:
        return _Cause("input_python", "the dataset calls Python to produce its elements", 0.9)
    longest = max(feed.iterators_ps, feed.produced_ps)
    if feed.file_read_ps and 100.0 * feed.file_read_ps >= 0.8 * _MOST_OF * longest:
        share = min(100.0 * feed.file_read_ps / longest, 100.0)
        return _Cause("input_file_read", f"its stages spend {share:.0f} % of their time reading files", 0.85)
    if feed.reading_ps and feed.reading_ps * 2 >= feed.ops_ps:
        share = 100.0 * feed.reading_ps / feed.ops_ps
        return _Cause("input_file_read", f"its ops spend {share:.0f} % of their time reading files", 0.8)
    if waits <= _PREFETCH_SUFFICES * (context.period_ms - waits):
        if not feed.has_prefetch:
            return _Cause(
                "input_no_prefetch", "nothing prefetches on another thread, so input and step take turns", 0.9
            )
        if 100.0 * context.per_step_ms(feed.in_the_wait_ps) >= _MOST_OF * waits:
            return _Cause("input_no_prefetch", "the stages after the last prefetch take turns with the step", 0.85)
    return _Cause("input_preprocessing", "its stages are slower than the step that consumes their elements", 0.8)


_OF_THREAD = (
    "make that work itself cheaper, or do it once, before training: it runs beside the step already",
    "share it between several threads, or processes if it is Python (concurrent.futures, grain)",
)


def _waits_for_thread(context: Context) -> str:
    """The program's function that waits, in a lock or a queue, for a thread that makes the batch; empty if it makes it
    itself."""
    culprit = context.culprit("input")
    if culprit is None or culprit.inside is None or not name_has(f"${culprit.inside}", CodeTrait.BLOCKS):
        return ""
    return culprit.name


def _python_cause(context: Context) -> _Cause:
    loop = context.loop
    if waiting := _waits_for_thread(context):
        why = f"{waiting} waits for a thread that prepares the batch, which cannot keep up"
        return _Cause("input_preprocessing", why, 0.8, title="Prepare batches faster", actions=_OF_THREAD)
    reads = (loop.input_reads_files_percent or 0.0) if loop else 0.0
    native = (loop.input_is_native_percent or 0.0) if loop else 0.0
    name = next((place.name.lstrip("$") for place in context.intervals("input")), "Python")
    if reads >= _MOST_OF:
        return _Cause("input_file_read", f"{reads:.0f} % of the wait is reading files, in {name}", 0.85)
    calls = context.per_step(loop.python_calls) if loop else 0.0
    if native >= _MOST_OF and context.cause_ms("input") <= _HIDDEN * context.period_ms:
        return _Cause("input_no_prefetch", f"{name} and the step take turns, although they could overlap", 0.7)
    if native >= _MOST_OF or calls < _CALLS_PER_MS * context.cause_ms("input"):
        return _Cause("input_preprocessing", f"{name} processes whole arrays on the loop's thread", 0.7)
    return _Cause("input_python", f"{name} runs on the loop's thread", 0.85)


def _unrecorded_cause(context: Context) -> _Cause:
    """Where neither a library's stages nor Python calls were recorded."""
    unknown = _Cause("input_preprocessing", "how the input is prepared was not recorded", 0.4)
    return _sampled_cause(context) or unknown


def _sampled_cause(context: Context) -> _Cause | None:
    """The function that samples of the stack name; None where there are none."""
    culprit = _culprit_of_input(context)
    if culprit is None or not culprit.file:
        return None
    inside = f", mostly in {culprit.inside}" if culprit.inside else ""
    why = f"{culprit.name} prepares it on the loop's thread, in Python or compiled code{inside}"
    return _Cause("input_preprocessing", why, 0.5)


def _culprit_of_input(context: Context) -> Culprit | None:
    rows = context.account.rows if context.account else []
    return next((row.culprit for row in rows if row.cause == "input"), None)


_CALLS_PER_MS = 20.0  # Python calls per ms; with fewer, the time is spent in compiled code


def _can_be_cached(context: Context, kind: str) -> bool:
    """Whether elements are already prepared in parallel, and in the same way in each epoch."""
    feed = context.feed
    return kind == "input_preprocessing" and feed.in_parallel and feed.repeatable


def _cache_action(context: Context, kind: str) -> tuple[str, ...]:
    if not _can_be_cached(context, kind):
        return ()
    return (".cache() after the map that prepares the elements, before .shuffle(): only the first epoch prepares them",)


def _general_actions(context: Context, kind: str) -> tuple[str, ...]:
    """The actions for the library that prepares the input: tf.data serves programs of any framework."""
    actions = WORDS_OF_CLASS[kind].actions
    if context.feed.has_iterators:
        return (*_call_once(context), *actions_for("tensorflow", actions))
    if context.feed.of_keras:  # its workers take the place of a library's threads and processes
        return _OF_KERAS
    if context.framework == "pytorch" and context.has_device and not context.trains:
        return (*actions_for("python", actions), _LOADER_OF_INFERENCE)
    cores = context.cores
    workers, fitting = _queue_of_workers(context).get("workers"), actions_for(_reader(context), actions)
    if cores is not None and isinstance(workers, int) and workers >= cores:  # more workers would find no processor
        return tuple(action for action in fitting if _SOME_WORKERS not in action)
    few = f"num_workers={cores}" if cores is not None and cores < 4 else _SOME_WORKERS
    return tuple(type(action)(action.replace(_SOME_WORKERS, few)) for action in fitting)


def _reader(context: Context) -> str:
    """Whose words fit what makes the batch: without a loader, or one that was not recorded, those of plain Python."""
    plain = context.framework == "pytorch" and not context.feed.loader and context.loop is not None
    return "python" if plain and context.python_recorded else context.framework


def act_on_input(
    context: Context, kind: str, inside: Sequence[str], is_of_framework: bool = False, draws: bool = False
) -> tuple[str, ...]:
    """What to do about a function that makes the batch.

    Args:
        inside: what to do about the work in it; then what fits any input but fewer samples at once is not said.
        is_of_framework: it starts ops of the framework one by one, whose arrays in JAX belong to this process.
        draws: it draws random numbers, so that its result is another one each time.
    """
    actions = actions_for(_reader(context), WORDS_OF_CLASS[kind].actions)
    if is_of_framework and context.framework == "jax":
        actions = tuple(each for each in actions if not isinstance(each, Beside))
    if draws:
        actions = tuple(each for each in actions if not isinstance(each, Once))
    return _put_inside(actions, inside)


def _put_inside(actions: tuple[str, ...], inside: Sequence[str]) -> tuple[str, ...]:
    """The actions with what is known of the work inside first, instead of what suits any input."""
    return (*inside, *(each for each in actions if isinstance(each, Beside))) if inside else actions


def _take_whole_batches(context: Context) -> tuple[str, ...]:
    """What to do about samples that are rows of tensors already, taken one by one and joined again."""
    rows = context.feed.takes_rows
    how = (
        "take a whole batch with one index, instead of {:,} rows one by one that are joined again: __getitems__(self,"
        " indices) of the dataset with a collate_fn that returns its result, or batch_size=None with"
        " sampler=BatchSampler(...), or x[order[i:i + n]] without a DataLoader"
    )
    return (Named(how.format(rows)),) if rows else ()


def _call_once(context: Context) -> tuple[str, ...]:
    """What to do about a dataset that calls Python for each element of a batch."""
    calls = round(context.per_step(context.feed.python_calls))
    how = (
        f"let Python make a whole batch at once, instead of {calls:,} calls: yield batches from the generator, or put"
        " .batch(n) before the map that calls it"
    )
    in_memory = "arrays in memory need no Python: tf.data.Dataset.from_tensor_slices"
    return (Named(how), in_memory) if calls >= FEWEST_ROWS else ()


def _skip_early(context: Context) -> tuple[str, ...]:
    """What to do about elements that are made and then passed over."""
    feed = context.feed
    if 2 * feed.skipped < feed.made_below or feed.skipped < FEWEST_ROWS:  # buffers hold one or two
        return ()
    how = (
        f".skip() passes over {feed.skipped:,} of {feed.made_below:,} elements that are made before it: keep one"
        " iterator for all rounds (batches = iter(dataset), then next(batches)) instead of skip(n) in each, or put"
        " .skip() before .map() and .batch()"
    )
    return (Named(how),)


def _add_stage_action(context: Context, kind: str, actions: tuple[str, ...]) -> tuple[str, ...]:
    """The actions, with tf-data's suggestion for the slowest stage.

    The suggestion names the stage, so actions that say the same without a name are dropped.  Prefetching comes first if
    it is enough; caching does not help the first epoch, which may be the only one.
    """
    # Python holds the interpreter's lock: parallel calls of it take turns.
    suggestion = "" if kind == "input_python" else _tf_data_suggestion(context)
    first = actions[:1] if kind == "input_no_prefetch" else ()
    known = (*_skip_early(context), *([suggestion] if suggestion else []), *_cache_action(context, kind))
    others = (action for action in actions if action not in first and not _covers_action(suggestion, action))
    return (*first, *(known if first else map(Named, known)), *others)[:4]


def _covers_action(suggestion: str, action: str) -> bool:
    """Whether a suggestion contains all calls of an action."""
    calls = [call for call in _CALLS if call in action]
    return bool(calls) and all(call in suggestion for call in calls)


def _tf_data_suggestion(context: Context) -> str:
    """tf-data's suggestion for the slowest stage; empty if there is nothing to change."""
    if not context.feed.has_iterators:
        return ""
    report = context.read("tf-data")
    bottleneck = (report and report.bottleneck) or {}
    op = str(bottleneck.get("dataset_op") or "")
    if bottleneck.get("iterator") in _READY and (not op or op.startswith(_READY)):
        return ""
    return str(bottleneck.get("suggestion") or "")


RULES = (Rule("input", find=_find_waiting, yields_to=("recompilation", "straggler")),)
