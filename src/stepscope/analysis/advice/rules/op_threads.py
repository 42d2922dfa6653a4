"""The program limits the threads of its ops to fewer than the cores that it may use, and the host computes."""

from __future__ import annotations

from stepscope.analysis.advice.context import Context
from stepscope.analysis.advice.items import Advice
from stepscope.analysis.advice.rule import Rule
from stepscope.analysis.advice.rules._actions import Actions, actions_for
from stepscope.report import amount

_MACHINE = "CPU machine %"
_BUSY = 90.0  # percent of all cores: other processes need them, too

_ACTIONS: Actions = {
    "tensorflow": (
        "leave out tf.config.threading.set_intra_op_parallelism_threads, or pass it the number of cores",
        "for ops that do not depend on each other: tf.config.threading.set_inter_op_parallelism_threads",
    ),
    "pytorch": ("leave out torch.set_num_threads, and unset OMP_NUM_THREADS, or give both the number of cores",),
    "": ("let one op use as many threads as there are cores",),
}


def _evaluate(context: Context, threshold: float) -> Advice | None:
    pace = context.pace
    if context.has_device or pace is None or not pace.op_threads.cores or not pace.op_threads.threads:
        return None
    cores, threads = pace.op_threads.cores, pace.op_threads.threads
    computing = context.percent(context.compute_ms)
    busy = _machine_percent(context)
    if threads >= cores or computing < threshold or busy is None or busy >= _BUSY:
        return None
    return Advice(
        id="threads.few",
        kind="small_batch",
        title="Let each op use all cores",
        evidence=f"ops compute for {min(computing, 100.0):.0f} % of each step with at most {threads} of {cores} cores"
        f" each, and the machine's cores are busy {busy:.0f} % of the time",
        predicted_speedup=None,
        actions=actions_for(context.framework, _ACTIONS),
        tool="system",
        confidence=0.5,
    )


def _machine_percent(context: Context) -> float | None:
    """Mean use of all cores while the capture ran; None if it was not recorded."""
    report = context.read("system")
    rows = [row for row in report.rows if row["counter"] == _MACHINE] if report is not None else []
    return max((amount(row["mean"]) for row in rows), default=None)


RULE = Rule(id="threads.few", threshold_percent=50.0, evaluate=_evaluate, is_practice=True)
