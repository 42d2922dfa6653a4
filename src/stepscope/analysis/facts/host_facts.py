"""What advice is based on beyond the step breakdown, for one host."""

from __future__ import annotations

from stepscope.analysis.facts.compiles import CompileFacts, compiles_of
from stepscope.analysis.facts.device_facts import DeviceFacts, device_facts_of
from stepscope.analysis.facts.feeding import FeedFacts, feed_of
from stepscope.analysis.facts.loop import LoopFacts, loop_of
from stepscope.analysis.facts.work import WorkFacts, work_of
from stepscope.analysis.steps.breakdown import Rank
from stepscope.analysis.steps.find_steps import steps_of, warm_up_of
from stepscope.analysis.steps.session_steps import breakdown_of
from stepscope.model import HostTrace
from stepscope.records import dataclass


@dataclass(frozen=True)
class HostFacts:
    """Facts about one host.

    Attributes:
        loop: how the loop's thread spends its time; None where no steps or no such thread were found.
        device: what its devices do, None where none works.
        compiles: what is traced and compiled in the steps, None for nothing.
        warm_up: how many first steps are left out of all this, since they compile what the others only run.
        copies_in_ps: time of all steps in which data is copied to a device and nothing more important happens.
    """

    host: str
    loop: LoopFacts | None
    work: WorkFacts
    feed: FeedFacts
    device: DeviceFacts | None
    compiles: CompileFacts | None
    copies_in_ps: int
    warm_up: int = 0


def facts_of(trace: HostTrace) -> HostFacts:
    """The facts about one host, from the steps that the capture's edges do not cut."""
    return HostFacts(
        host=trace.host,
        loop=loop_of(trace),
        work=work_of(trace),
        feed=feed_of(trace),
        device=device_facts_of(trace),
        compiles=compiles_of(trace),
        copies_in_ps=_copies_in(trace),
        warm_up=warm_up_of(trace),
    )


def _copies_in(trace: HostTrace) -> int:
    steps, copies = steps_of(trace), breakdown_of(trace).per_step_ps[:, Rank.COPY_TO_DEVICE]
    whole = copies[steps.complete] if steps.complete.any() else copies
    return int(whole[warm_up_of(trace) :].sum())
