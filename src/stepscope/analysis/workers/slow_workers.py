"""The same step on all workers, and which worker is the straggler.

Workers that train together wait for each other in collective operations, so a step takes equally long on all of them
whoever is to blame.  What distinguishes hosts is how long they are busy: the step without the communication in its
account.  The account of a device holds what the step waits for while the device idles, so devices of one host are
distinguished by how long their own step lasts without collectives; so are hosts in a step that has no account.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence

from stepscope.analysis.account.causes import Cause, own_work_ps
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.session_steps import Aligned, StepsOfHost, numbered_alike
from stepscope.analysis.workers.matching import describe_other_steps, match_steps
from stepscope.analysis.workers.stragglers import STRAGGLES
from stepscope.records import dataclass

_WAITING = CATEGORIES.index("device_collectives")


@dataclass(frozen=True)
class WorkerStep:
    """One step on one worker: a device or a whole host.

    `parts_ps` is in the order of CATEGORIES.  `causes_ps` is its account, in the order of Cause; empty where none is
    known, as of a step whose next one was not recorded.  `by_account` says that it tells how long the worker is busy.
    """

    number: int
    host: str
    device: str
    duration_ps: int
    parts_ps: list[int]
    complete: bool
    causes_ps: list[int]
    by_account: bool = False

    @property
    def busy_ps(self) -> int:
        """Time in which it does not wait for other workers."""
        if self.by_account:
            return own_work_ps(self.causes_ps)
        return self.duration_ps - self.parts_ps[_WAITING]

    @property
    def busy_causes_ps(self) -> list[int]:
        """The account with 0 for communication; empty without one."""
        return [0 if at == Cause.COMMUNICATION else ps for at, ps in enumerate(self.causes_ps)]


@dataclass(frozen=True)
class HostStep:
    """One step on one host, and on each of its devices if it has several."""

    whole: WorkerStep
    devices: tuple[WorkerStep, ...]

    def workers(self) -> Iterator[WorkerStep]:
        """The host, then its devices."""
        yield self.whole
        yield from self.devices


@dataclass(frozen=True)
class Lateness:
    """The slowest worker of a step, and how much longer it is busy than the median of the others.

    In ps, in total and by cause of the account; empty where that of a worker is not known.
    """

    step: WorkerStep
    behind_ps: float
    more_ps: list[float]


def compared_workers(hosts: Sequence[HostStep]) -> Sequence[WorkerStep]:
    """The workers of a step to compare: the hosts, or the devices if there is only one host."""
    if len(hosts) == 1 and hosts[0].devices:
        return hosts[0].devices
    return [host.whole for host in hosts]


def slowest_worker(workers: Sequence[WorkerStep]) -> WorkerStep:
    """The worker that is busy longest; needs at least one worker."""
    return max(workers, key=lambda step: (step.busy_ps, step.duration_ps))


def longest_cause(causes_ps: Sequence[float]) -> str | None:
    """The cause that takes longest; None if nothing takes any time."""
    most = max(causes_ps, default=0.0)
    return Cause([*causes_ps].index(most)).name.lower() if most > 0 else None


def lateness(workers: Sequence[WorkerStep]) -> Lateness | None:
    """How the slowest worker compares with the others, None if there are none."""
    worst = slowest_worker(workers)
    others = [step for step in workers if step is not worst]
    if not others:
        return None
    known = all(step.causes_ps for step in workers)
    usual = [statistics.median(each) for each in zip(*(step.busy_causes_ps for step in others if known), strict=True)]
    more = [ps - typical for ps, typical in zip(worst.busy_causes_ps, usual, strict=False)]
    return Lateness(worst, worst.busy_ps - statistics.median(step.busy_ps for step in others), more)


# -- clocks and missing steps ------------------------------------------------------------------------------------


def start_offsets(hosts: Sequence[StepsOfHost], aligned: Aligned) -> dict[str, int | None]:
    """The start of the same steps on each host relative to the first host, by the hosts' own clocks, in ps: the median
    over the steps, None without clocks.

    Args:
        hosts: those of `aligned`, in its order.
    """
    first = hosts[0].start_unix_ns if hosts else None
    found: dict[str, int | None] = {}
    for at, host in enumerate(hosts):
        found[host.host] = None
        if len(hosts) > 1 and aligned.steps and first is not None and host.start_unix_ns is not None:
            later = statistics.median(rows[at].start_ps - rows[0].start_ps for rows in aligned.steps)
            found[host.host] = (host.start_unix_ns - first) * 1000 + int(later)
    return found


def describe_mismatches(
    hosts: Sequence[StepsOfHost], aligned: Aligned, offsets: dict[str, int | None]
) -> Iterable[str]:
    """Sentences on what keeps steps of different hosts from being compared."""
    if len(hosts) < 2 or not aligned.steps:
        return
    by_number = numbered_alike(hosts)
    if by_number:
        yield from describe_other_steps(match_steps(hosts))
    elif None in offsets.values():
        yield "the hosts record neither step numbers nor clocks: steps are matched in order, from the first"
    usual = statistics.median([rows[0].duration_ps for rows in aligned.steps])
    for name, offset in offsets.items():
        if offset is not None and abs(offset) > usual:  # workers that wait for each other differ by less than a step
            yield (
                f"by its clock {name} starts the same steps {abs(offset) / 1e9:,.3f} ms "
                f"{'later' if offset > 0 else 'earlier'} than {hosts[0].host}: their clocks differ, or they do not "
                f"wait for each other; steps are matched by {'number' if by_number else 'clock'}"
            )


# -- ranks that meet nowhere -------------------------------------------------------------------------------------


def slowest_alone(medians_ps: Sequence[float]) -> int | None:
    """The place of the rank whose median step is as much longer than those of the others as a straggler's, where no
    collective shows who waits for whom; None if none is.

    Args:
        medians_ps: the median step of each rank; 0 if it has none.

    >>> slowest_alone([8.0, 16.0]), slowest_alone([8.0, 8.5, 8.2]), slowest_alone([8.0, 0.0])
    (1, None, None)
    """
    ranked = sorted((ps, place) for place, ps in enumerate(medians_ps) if ps)
    if len(ranked) < 2:
        return None
    others = statistics.median(ps for ps, _ in ranked[:-1])
    longest, place = ranked[-1]
    return place if longest >= STRAGGLES * others else None
