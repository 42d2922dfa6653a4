"""The facts about one host that advice needs beyond the step breakdown."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any

from stepscope.analysis.account.account import AccountRow, StepAccount, account_of
from stepscope.analysis.account.every_step import CausesOfStep, steps_among_others
from stepscope.analysis.account.model import model_of
from stepscope.analysis.account.stretches import stretches_of
from stepscope.analysis.facts.augmentation import AugmentationFacts, augmentation_of
from stepscope.analysis.facts.changes import Changes, changes_of
from stepscope.analysis.facts.compiles import CompileFacts, compiles_of
from stepscope.analysis.facts.culprits import culprits_of
from stepscope.analysis.facts.device_facts import DeviceTimes, device_facts_of
from stepscope.analysis.facts.feeding import FeedFacts, feed_of
from stepscope.analysis.facts.first_calls import FirstCalls, first_calls_of
from stepscope.analysis.facts.lines import LineFacts, is_one_function, lines_of
from stepscope.analysis.facts.loop import LoopFacts, loop_of
from stepscope.analysis.facts.processors import Processors, processors_of
from stepscope.analysis.facts.rivals import Rival, rival_of
from stepscope.analysis.facts.stopped import EndFacts, end_of
from stepscope.analysis.facts.strategy import SentBuffers, sent_buffers, strategy_of
from stepscope.analysis.facts.work import WorkFacts, work_of
from stepscope.analysis.purpose.excess import ExcessFact, excess_facts_of, excesses_of
from stepscope.analysis.purpose.purposes import purposes_of
from stepscope.analysis.resources.counted_memory import growing_holder
from stepscope.analysis.resources.counters import cores_used
from stepscope.analysis.resources.memory_growth import Staying
from stepscope.analysis.steps.find_steps import count_warm_up_steps, starts_up
from stepscope.analysis.steps.outside_steps import OutsideSteps, outside_steps
from stepscope.analysis.steps.session_steps import breakdown_of
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.devices_told_of import unused_device
from stepscope.analysis.trace.environment import settings_of
from stepscope.analysis.trace.program_facts import OpThreads, TracedGraph, op_threads_of, traced_graphs
from stepscope.analysis.workers.joint_replay import RankModel, rank_of
from stepscope.errors import LeftOutError, StepscopeError
from stepscope.model import EventKind, HostTrace
from stepscope.model.arrays import used_rows
from stepscope.records import dataclass
from stepscope.vocabulary.lookup import traits_by_type
from stepscope.vocabulary.traits import OpTrait, PurposeTrait


@dataclass(frozen=True)
class HostFacts:
    """Facts about one host.

    Attributes:
        loop: how the loop's thread spends its time; None if no steps or no such thread were found.
        device: what its devices do; None if no device works.
        compiles: what is traced and compiled in the steps; None for nothing.
        warm_up: number of warm-up steps, which all these facts leave out; starts_up: it is one that compiles nothing.
        account: where the time of the median step goes, with the culprit of each cause; None without steps.
        steps: the account of every step, of a host that takes part in collectives; else empty.
        rank: what a replay with the other ranks needs of this one; None if it has no steps or meets nobody.
        changes: what changes give that step, by the replay of its model; None without steps.
        strategy: how the model is spread over ranks, see `strategy_of`; "" where that is not known.
        buffers: what DDP sends before forward passes; None for nothing.
        first_calls: those that the capture holds, alone or beside more.
        settings: environment variables of the program that the capture found set, such as TF_GPU_THREAD_MODE.
        augmentation: the input moves pictures after it has cast them to floats; None if it does not.
        graphs: what the program has traced into graphs, by a capture of Stepscope's.
        culprits: the parts of the steps that advice is about, with their culprits; see `facts/culprits.py`.
        purposes: the time of computing by purpose, ps per step; see `purpose.purposes`.
        excesses: work that the steps do not need, the longest first.
        op_threads: cores of the machine and threads of one op.
        cores_used: how many cores the process kept busy, on average; None where that was not recorded.
        processors: what threads take of the processors where these are too few for them; None elsewhere.
        lines: functions of the program that the steps could leave out, the longest first.
        is_one_function: see `lines.is_one_function`.
        rival: a thread of the program that keeps the interpreter from the loop; None where none is known to.
        end: what the recording shows of the end of the job; None for nothing.
        growth: the variable that keeps more with each step; None where none is known to.
        failed: what could not be found because its finder failed, in words that follow the host's name.
        outside: the time outside of usual steps, where that is most of the recording.
        unused_device: a device of the machine that the program does not use; empty where none is known to be there.
    """

    host: str
    loop: LoopFacts | None = None
    work: WorkFacts = field(default_factory=WorkFacts)
    feed: FeedFacts = field(default_factory=FeedFacts)
    device: DeviceTimes | None = None
    compiles: CompileFacts | None = None
    warm_up: int = 0
    starts_up: bool = False
    account: StepAccount | None = None
    steps: tuple[CausesOfStep, ...] = ()
    rank: RankModel | None = None
    changes: Changes | None = None
    strategy: str = ""
    buffers: SentBuffers | None = None
    first_calls: FirstCalls | None = None
    settings: tuple[str, ...] = ()
    augmentation: AugmentationFacts | None = None
    graphs: tuple[TracedGraph, ...] = ()
    culprits: dict[str, AccountRow] = field(default_factory=dict)
    purposes: dict[str, int] = field(default_factory=dict)
    excesses: tuple[ExcessFact, ...] = ()
    op_threads: OpThreads = field(default_factory=lambda: OpThreads(None, None))
    cores_used: float | None = None
    processors: Processors | None = None
    lines: list[LineFacts] = field(default_factory=list)
    is_one_function: bool = False
    rival: Rival | None = None
    end: EndFacts | None = None
    growth: Staying | None = None
    outside: OutsideSteps | None = None
    unused_device: str = ""
    failed: tuple[str, ...] = ()


def read_names_of_ops(trace: HostTrace) -> None:
    """Reads all that the names of ops say, which most of what follows asks for."""
    types = used_rows(trace.events.type[events_of_kind(trace, EventKind.OP)], len(trace.event_types))
    for traits in (~OpTrait(0), ~PurposeTrait(0)):
        traits_by_type(trace, types, traits)


# What `facts_of` is made of and takes long, for a thread that computes it ahead.
NEED_NO_LINKS = (read_names_of_ops,)
NEED_NO_ACCOUNT = (breakdown_of, work_of, stretches_of, purposes_of, device_facts_of, excesses_of, feed_of)
NEED_ACCOUNT = (model_of, account_of, culprits_of)


_FINDERS: dict[str, Callable[[HostTrace], Any]] = {
    "loop": loop_of,
    "work": work_of,
    "feed": feed_of,
    "device": device_facts_of,
    "compiles": compiles_of,
    "warm_up": count_warm_up_steps,
    "starts_up": starts_up,
    "account": account_of,
    "steps": lambda trace: tuple(steps_among_others(trace)),
    "rank": rank_of,
    "changes": changes_of,
    "strategy": strategy_of,
    "buffers": sent_buffers,
    "first_calls": first_calls_of,
    "settings": settings_of,
    "augmentation": augmentation_of,
    "graphs": traced_graphs,
    "culprits": culprits_of,
    "purposes": purposes_of,
    "excesses": excess_facts_of,
    "op_threads": op_threads_of,
    "cores_used": cores_used,
    "processors": processors_of,
    "lines": lines_of,
    "is_one_function": is_one_function,
    "rival": rival_of,
    "end": end_of,
    "growth": growing_holder,
    "outside": outside_steps,
    "unused_device": unused_device,
}
"""What finds each of the facts."""


def facts_of(trace: HostTrace) -> HostFacts:
    """The facts about one host, from the steps that the capture does not cut.

    What fails to be found is left out and named, so that no finder stops the answer of the others.  That a question
    needs stats which were not kept is no failure: the file is read again for it.
    """
    found, failed = {}, []
    for name, find in _FINDERS.items():
        try:
            found[name] = find(trace)
        except (StepscopeError, LeftOutError, MemoryError):
            raise
        except Exception as error:  # of any finder: its fact is not known then
            failed.append(f"{name.replace('_', ' ')} could not be found ({type(error).__name__}: {error})")
    return HostFacts(host=trace.host, failed=tuple(failed), **found)
