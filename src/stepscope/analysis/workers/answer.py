"""The one answer about the ranks of a session: how much faster they would be with equal work, and what is at fault.

`distributed`, the pod viewer, the advice and `whatif` all say this one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stepscope.analysis.account.model import MOST_ERROR_PERCENT
from stepscope.analysis.workers.equal_work import MOSTLY, Job
from stepscope.analysis.workers.joint_replay import RankModel, join_ranks, joint_error_percent
from stepscope.analysis.workers.layout import layout_of
from stepscope.analysis.workers.matching import name_groups
from stepscope.analysis.workers.stragglers import (
    NEARLY_ALL,
    WORTH_NAMING,
    JobCulprit,
    Straggling,
    find_culprit,
    share_cores,
)
from stepscope.analysis.workers.waiting import find_waits
from stepscope.records import dataclass
from stepscope.report import duration_text
from stepscope.vocabulary.workers import machine_of

_MOST_NAMED = 8


@dataclass(frozen=True)
class LateRank:
    """A rank that the others wait for.

    Attributes:
        rank: its place; times: how many meetings it comes to last.
        held_up_ps: how long each of the others waits for it in a step, on average.
        of_time, of_waiting: the share of the steps, and of all waiting.
    """

    rank: int
    times: int
    held_up_ps: int
    of_time: float
    of_waiting: float

    def sentence(self, name: str) -> str:
        """What that is in a sentence."""
        waits = duration_text(self.held_up_ps / 1e9)
        of_all = f"{100 * self.of_waiting:.0f} % of all waiting"
        return f"the others wait {waits} of a step for {name}: that is {of_all}"


@dataclass(frozen=True)
class JobAnswer:
    """What is said of a job.

    Attributes:
        job: its ranks, replayed together; error_percent: how far that is off.
        culprit: what is at fault; None where nothing considerable is to be gained.
        late: the rank that nearly all waiting is for though the trace does not show what makes it late; None for none.
    """

    job: Job
    error_percent: float
    culprit: JobCulprit | None
    late: LateRank | None = None

    @property
    def straggler(self) -> int | None:
        """The place of the one rank that is at fault; None without such a one."""
        culprit = self.culprit
        if culprit is None:
            return self.late.rank if self.late else None
        return culprit.ranks[0] if culprit.stage < 0 and len(culprit.ranks) == 1 else None

    @property
    def change(self) -> str:
        """What is replayed, in words that begin a sentence: what one rank alone does is left out of it, not shared."""
        is_left_out = self.culprit is not None and self.culprit.cause == Straggling.EXTRA_WORK
        return "without that work" if is_left_out else "with equal work"

    def sentence(self, names: Sequence[str]) -> str:
        """The answer in a sentence.

        Args:
            names: of the ranks.
        """
        gain = f"{self.change} the job would be {self.job.slowdown:.2f}x as fast"
        if self.late is not None:
            return self.late.sentence(names[self.late.rank])
        if self.culprit is None:
            return f"no rank and no stage is a straggler: {gain}"
        return f"{_name_fault(self.job, self.culprit, names)}: {gain}{_clear_workers(self.job, self.culprit)}"


def job_of(ranks: Sequence[RankModel]) -> Job | None:
    """The ranks as one job; None without two that have a usual step in common and meet."""
    named = name_groups([rank.collectives for rank in ranks])
    graph = None
    if len(ranks) > 1:
        graph = join_ranks([replace(rank, collectives=own) for rank, own in zip(ranks, named, strict=True)])
    if graph is None:
        return None
    job = Job(graph, layout_of(named, graph.pairs))
    return job if job.places.shape[1] else None


def error_of(job: Job) -> float:
    """How far the median step of the worst rank is from the recorded one, in percent."""
    return max((each for each in joint_error_percent(job.graph, job.now) if each is not None), default=0.0)


def answer_of(ranks: Sequence[RankModel]) -> JobAnswer | None:
    """The answer about some ranks; None if these cannot be replayed together, or not well enough."""
    job = job_of(ranks)
    return answer_for(job, [rank.name for rank in ranks]) if job is not None else None


def answer_for(job: Job, hosts: Sequence[str]) -> JobAnswer | None:
    """The same for a job.

    Args:
        hosts: of its ranks.
    """
    error = error_of(job)
    if error > MOST_ERROR_PERCENT:
        return None
    machines = [machine_of(host) for host in hosts]
    culprit = find_culprit(job, machines)
    is_known = culprit or job.layout.stages or share_cores(job, machines)
    return JobAnswer(job, error, culprit, None if is_known else _find_late_rank(job))


def _find_late_rank(job: Job) -> LateRank | None:
    waits, numbers = find_waits(job), {*job.step_numbers}
    held = [{key: ps for key, ps in each.held_up.items() if key[1] in numbers} for each in waits]
    totals = [sum(each.values()) for each in held]
    rank = max(range(len(waits)), key=lambda at: totals[at])
    held_up, whole = totals[rank], sum(totals)
    of_time = held_up / max(*(int(steps.sum()) for steps in job.now.step_ps), 1)
    if of_time < WORTH_NAMING or held_up < NEARLY_ALL * whole:
        return None
    steps = len({step for each in held for step in each})
    return LateRank(rank, waits[rank].last, held_up // steps, of_time, held_up / whole)


def _name_fault(job: Job, culprit: JobCulprit, names: Sequence[str]) -> str:
    who = list_names([names[rank] for rank in culprit.ranks])
    more = f"{100 * culprit.more:.0f} %"
    if culprit.cause == Straggling.UNEQUAL_STAGES:
        return f"{_name_stage(job, culprit.stage)} makes steps {more} longer"
    if culprit.cause == Straggling.SLOW_LINK:
        return f"the link between {who} is slow"
    if not culprit.ranks:
        return {
            Straggling.SEQUENCE_LENGTHS: "sequences differ in length, and no single worker is at fault",
            Straggling.GARBAGE_COLLECTION: "threads pause on one rank after another, as for garbage collection",
        }.get(culprit.cause, "ranks differ, and no part explains most of that")
    is_one = len(culprit.ranks) == 1
    verb = "is the straggler" if is_one else "are stragglers"
    its, wait, does = ("its", "waits", "does") if is_one else ("their", "wait", "do")
    why = {
        Straggling.SLOW_MACHINE: f"whose work takes {more} longer than the mean of all ranks",
        Straggling.LATE_INPUT: f"which {wait} for {its} input",
        Straggling.EXTRA_WORK: f"which {does} work that the others do not",
        Straggling.MORE_DATA: "with more data than the others",
    }.get(culprit.cause, "but no cause was recorded")
    return f"{who} {verb}, {why}"


def _name_stage(job: Job, stage: int) -> str:
    if stage in (0, job.layout.stages - 1):
        return f"the {'last' if stage else 'first'} pipeline stage"
    return f"pipeline stage {stage} (from 0)"


def _clear_workers(job: Job, culprit: JobCulprit) -> str:
    """That no single rank of a stage that is too long is at fault, if so."""
    if culprit.stage < 0 or len(culprit.ranks) < 2:
        return ""
    alone = max(job.explains(job.rows_of_places((rank,))) for rank in culprit.ranks[:_MOST_NAMED])
    return "; no single worker is at fault" if alone < MOSTLY else ""


def list_names(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    >>> list_names(["a", "b", "c"])
    'a, b and c'
    """
    if len(names) > _MOST_NAMED:
        return f"{', '.join(names[:_MOST_NAMED])} and {len(names) - _MOST_NAMED} more"
    return " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])} and {names[-1]}"
