"""A thread of the program that runs all the time and so keeps the interpreter, or a core, from the loop.

Python runs one thread at a time.  A thread that never waits takes half of that time, in turns of some milliseconds, and
no trace of a framework shows more than that the loop is late.  What threads used of the processors, and samples of
their stacks, show which one it is.
"""

from __future__ import annotations

from collections.abc import Callable

from stepscope.analysis.account.contention import asleep_ps, lost_spans
from stepscope.analysis.account.threads import threads_of
from stepscope.analysis.steps.find_steps import observed_time, whole_steps
from stepscope.analysis.steps.own_tracers import usage_of_thread
from stepscope.analysis.steps.stack_samples import main_function
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.vocabulary.lines import holds_stack_samples, holds_thread_usage, is_main_thread
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.python import place_of
from stepscope.vocabulary.traits import CodeTrait

_NEVER_WAITS = 0.8  # of the time a thread runs or is ready: one that polls at 100 Hz and sleeps between has less


@dataclass(frozen=True)
class Rival:
    """A thread of the program that never waits while the loop does.

    Attributes:
        thread: its name; name, file, line: the function of the program that it runs.
        share: of the time it runs, or is ready to run.
        lost_ps: how long the loop's thread waits per step, for the interpreter or for a core.
    """

    thread: str
    name: str
    file: str
    line: int
    share: float
    lost_ps: int


def rival_of(trace: HostTrace) -> Rival | None:
    """The busiest such thread; None without one, or where nothing shows what threads used."""
    main, seen, lost = threads_of(trace).main, observed_time(trace), lost_spans(trace)
    others = _other_threads(trace, main) if main >= 0 and lost is not None and seen.total else []
    if lost is None or not others:
        return None
    waits = round((lost & seen).total + (asleep_ps(trace, main, seen - lost) or 0))
    found = []
    for line in others:
        usage = usage_of_thread(trace, line)
        function = main_function(trace, line, seen)
        if usage is None or function is None or not name_has(trace.name_of(function.frame), CodeTrait.OF_USER):
            continue
        share = float((usage.ran_ps + usage.queued_ps).sum()) / max(int((usage.end_ps - usage.start_ps).sum()), 1)
        if share >= _NEVER_WAITS:
            name, file, number = place_of(trace.name_of(function.frame))
            each = round(waits / max(len(whole_steps(trace).number), 1))
            found.append(Rival(trace.line_label(line), name, file or "", number or 0, min(share, 1.0), each))
    return max(found, key=lambda rival: rival.share, default=None)


def _other_threads(trace: HostTrace, main: int) -> list[int]:
    """The lines that say what threads used of the processors, of those that have samples, without the loop's own: some
    profilers number threads in their own way, and then it is the main thread."""
    measured, sampled = (_lines_on(trace, holds) for holds in (holds_thread_usage, holds_stack_samples))
    number = trace.lines.line_id
    own = [line for line in measured if number[line] == number[main]]
    own = own or [line for line in measured if is_main_thread(trace.line_label(line))]
    known = {int(number[line]) for line in sampled}
    return [line for line in measured if line not in own and int(number[line]) in known]


def _lines_on(trace: HostTrace, is_plane: Callable[[str], bool]) -> list[int]:
    return [line for line, plane in enumerate(trace.lines.plane.tolist()) if is_plane(trace.plane_name(plane))]
