"""What the threads of a program take of its processors, where these are too few for all of them.

While each thread that is ready has a processor, a step is as long as its critical path.  Where threads have work for
more processors than there are, each waits for the others, in whatever they do: then a step is as long as the work of
all of them, and input that no step waits for, or Python beside a program that computes, makes it longer by its share.

How much each thread waited in its work is mostly not recorded.  If all wait alike, a part takes the share of the
processors that it has of what threads seem to work; one that waits less takes more.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stepscope.analysis.account.model import StepModel, model_of
from stepscope.analysis.account.predict import Predicted
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.facts.feeding import ops_of_iterators
from stepscope.analysis.purpose.computing import computing_of
from stepscope.analysis.resources.counters import cores_used
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.own_tracers import usage_of_thread
from stepscope.analysis.steps.verdict import HIGHLY_INPUT_BOUND, LEAST_PERCENT
from stepscope.analysis.trace.grouping import is_device_work
from stepscope.analysis.trace.program_facts import op_threads_of
from stepscope.analysis.trace.spans import Spans, spans_of
from stepscope.errors import counted
from stepscope.model import HostTrace
from stepscope.records import dataclass

_HAD_CORES = 0.9  # of the time that its threads seem to work: that of programs on a quiet machine is 0.95 to 1.03


@dataclass(frozen=True)
class Processors:
    """What threads do on a host's processors, in ps per step.

    Attributes:
        cores: that the program may use.
        used: how many worked for it, on average.
        work_ps: how long its threads seem to work, waits for a processor included; at least that.
        input_ps: the same of the ops that make batches on threads of their own.
    """

    cores: int
    used: float
    work_ps: float
    input_ps: float

    def share(self, ps: float) -> float:
        """What some work takes of the processors, if it waits for them as the rest does."""
        return ps / self.work_ps

    def is_large(self, ps: float) -> bool:
        """Whether that is a large share: that from which XProf calls a step highly input-bound."""
        return 100.0 * self.share(ps) >= HIGHLY_INPUT_BOUND

    def predict_without(self, found: Predicted, ps: float) -> Predicted:
        """The step without some work: shorter by the share of the processors that it takes, and by no less than what
        the replay gives, in which work of other threads stays as slow as it was.  How much faster that gets without it
        was not recorded, so that the gain has no upper end: of eight programs the real one was above the share of the
        processor time in four."""
        then = round(found.now_ps * (1.0 - self.share(ps)))
        if not self.is_large(ps) or then >= found.then_ps:
            return found
        most = max(min(found.then_ps, found.now_ps), then)
        return replace(
            found, then_ps=then, least_ps=0, most_ps=most, reasons=(self.describe(), *found.reasons),
            is_once=False, of_processors=self.share(ps),
        )  # fmt: skip

    def describe(self) -> str:
        """`the program's threads compete for 2 processors, of which they had 1.9`."""
        return (
            f"the program's threads compete for {counted(self.cores, 'processor')}, of which they had {self.used:.1f}"
        )


def lacks_cores(model: StepModel) -> bool:
    """Whether several threads of the program seem to work for clearly longer than the process had cores: what each of
    them waited for one was not recorded, so that what a change leaves may take far less than it did."""
    graph = model.graph
    inside = np.isin(graph.step, model.steps) & (graph.line >= 0)
    return _are_too_many(model, graph.own_ps[inside].sum() / max(graph.recorded_step_ps[model.steps].sum(), 1))


def _are_too_many(model: StepModel, seems: float) -> bool:
    """The same of threads that seem to work on so many cores."""
    used = cores_used(model.trace)
    return used is not None and seems > 1.0 + LEAST_PERCENT / 100.0 and used < _HAD_CORES * seems


def processors_of(trace: HostTrace) -> Processors | None:
    """What threads take of the processors in the steps, found once; None where these suffice, a device computes, or
    it was not recorded."""
    return trace.derived("processors", _find_processors)


def _find_processors(trace: HostTrace) -> Processors | None:
    used, cores, seen, model = cores_used(trace), op_threads_of(trace).cores, observed_time(trace), model_of(trace)
    if used is None or not cores or used <= cores - 1 or model is None or is_device_work(trace).any():
        return None  # one that is free at all times would be taken by whatever waits
    graph, loop, work = model.graph, threads_of(trace).main, computing_of(trace)
    is_of_loop = trace.events.line[work.rows] == loop
    ran, of_input = ran_ps(trace, loop, seen), _time_of_input(trace)
    of_loop = int(work.own_ps[is_of_loop].sum()) if ran is None else ran  # with the Python between its ops
    others = np.isin(graph.step, model.steps) & (graph.line >= 0) & (graph.line != loop)
    seems = graph.own_ps[others].sum() / max(graph.recorded_step_ps[model.steps].sum(), 1)
    if not _are_too_many(model, seems + of_loop / max(seen.total, 1)):
        return None
    steps = max(len(whole_steps(trace).number), 1)
    work_ps = max(int(work.own_ps[~is_of_loop].sum()) + of_input + of_loop, used * seen.total)
    return Processors(cores, used, work_ps / steps, of_input / steps)


def _time_of_input(trace: HostTrace) -> int:
    """How long ops of the input run on threads of their own, summed over these."""
    rows, seen = ops_of_iterators(trace), observed_time(trace)
    line = trace.events.line[rows]
    others = np.unique(line[line != threads_of(trace).main])
    return sum((spans_of(trace, rows[line == each]) & seen).total for each in others.tolist())


def ran_ps(trace: HostTrace, line: int, spans: Spans) -> int | None:
    """How long a thread ran, or was ready to, in some time; None where that was not recorded."""
    usage = usage_of_thread(trace, line) if line >= 0 else None
    if usage is None:
        return None
    length = usage.end_ps - usage.start_ps
    share = np.minimum((usage.ran_ps + usage.queued_ps) / np.maximum(length, 1), 1.0)
    return round(float((spans.overlap_ps(usage.start_ps, usage.end_ps) * share).sum()))
