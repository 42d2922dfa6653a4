"""Which rank comes late to the collectives, sends and receives of one step, and which ranks wait for it there.

All members of a collective end together, so the one that is in it for the shortest time came last, and the others wait
for as long as they are in it longer.  That needs no common clock: each time is of its rank's own session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from stepscope.analysis.account.every_step import every_step
from stepscope.analysis.steps.find_steps import steps_of
from stepscope.analysis.steps.session_steps import steps_of_host
from stepscope.analysis.trace.grouping import forest
from stepscope.analysis.workers.collectives import Collectives, collectives_of, rank_title, rows_in_order
from stepscope.analysis.workers.matching import (
    Matched,
    StepKey,
    match_collectives,
    match_steps,
    match_transfers,
    name_groups,
)
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import duration_text, round_ms

MOST_SHOWN = 12  # lines that a picture of a step can hold


@dataclass(frozen=True)
class Waiter:
    """A rank that waits: since when, and for how long, in ps; `line`: the row of the line on which it does."""

    host: str
    line: int
    start_ps: int
    waiting_ps: int


@dataclass(frozen=True)
class LateArrival:
    """A meeting of ranks to which one came last.

    Attributes:
        operation: the collective; host: the rank that came last.
        line, start_ps: where and when it came; launch_line, launch_ps: where its program asked for that, else the same.
        waiters: the others that wait, the longest wait first.
    """

    operation: str
    host: str
    line: int
    start_ps: int
    launch_line: int
    launch_ps: int
    waiters: tuple[Waiter, ...]

    @property
    def waiting_ps(self) -> int:
        """How long all others wait in sum."""
        return sum(each.waiting_ps for each in self.waiters)


@dataclass(frozen=True)
class LateRanks:
    """The meetings of one step with most waiting.

    Attributes:
        step: its number; None where ranks share none.
        host: the rank for which the others wait longest in sum; None where none waits.
        sentence: the same in words; arrivals: the meetings, that with most waiting first.
    """

    step: int | None
    host: str | None
    sentence: str
    arrivals: tuple[LateArrival, ...]


def late_ranks(traces: Sequence[HostTrace], number: int | None = None) -> LateRanks:
    """Finds who was late in a step of several ranks; in the step that stands for the first of them if none is named."""
    hosts = [steps_of_host(trace) for trace in traces]
    steps = match_steps(hosts)
    key = _chosen(traces, steps, number)
    if key is None:
        return LateRanks(number, None, "", ())
    columns = name_groups([collectives_of(trace) for trace in traces])
    matched, _ = match_collectives(hosts, columns, steps)
    pairs = match_transfers(columns, steps)
    met = [rows for step, rows in matched if step == key]
    for ((sender, sent), (receiver, received)), step in zip(pairs.pairs, pairs.steps, strict=True):
        if step == key and sender != receiver:
            met.append({sender: sent, receiver: received})
    found = sorted(_arrivals(traces, columns, met), key=lambda each: -each.waiting_ps)
    waited: Counter[str] = Counter()
    for each in found:
        waited[each.host] += each.waiting_ps
    late = waited.most_common(1)[0][0] if waited else None
    titles = {trace.host: rank_title(of.rank, trace.host) for trace, of in zip(traces, columns, strict=True)}
    return LateRanks(key[1], late, _sentence(key[1], late, found, titles), tuple(found[:MOST_SHOWN]))


def _chosen(traces: Sequence[HostTrace], steps: Sequence[Sequence[StepKey]], number: int | None) -> StepKey | None:
    """The key of the step with a number; without one of the step of the first rank's account."""
    if number is not None:
        return next((key for own in steps for key in own if key[1] == number), None)
    account = every_step(traces[0]) if traces and steps[0] else None
    if account is None:
        return next((key for own in steps for key in own), None)
    wanted = int(steps_of(traces[0]).number[account.graph.steps[account.median]])
    return next((key for key in steps[0] if key[1] == wanted), None)


def _arrivals(
    traces: Sequence[HostTrace], columns: Sequence[Collectives], met: Sequence[Matched]
) -> Iterator[LateArrival]:
    """The meetings in which somebody waits."""
    rows, causes = [rows_in_order(trace) for trace in traces], [forest(trace).cause for trace in traces]
    for members in met:
        lasts = {rank: columns[rank].duration_ps[at] for rank, at in members.items()}
        last = min(lasts, key=lasts.__getitem__)
        waiters = [
            Waiter(traces[rank].host, int(traces[rank].events.line[rows[rank][at]]), columns[rank].start_ps[at], ps)
            for rank, at in members.items()
            if (ps := lasts[rank] - lasts[last]) > 0
        ]
        if not waiters:
            continue
        trace, event = traces[last], int(rows[last][members[last]])
        launch = int(causes[last][event])
        launch = launch if launch >= 0 else event
        of = columns[last]
        yield LateArrival(
            operation=of.names[of.name[members[last]]],
            host=trace.host,
            line=int(trace.events.line[event]),
            start_ps=of.start_ps[members[last]],
            launch_line=int(trace.events.line[launch]),
            launch_ps=int(trace.events.start_ps[launch]),
            waiters=tuple(sorted(waiters, key=lambda each: -each.waiting_ps)),
        )


def _sentence(step: int, late: str | None, found: Sequence[LateArrival], titles: dict[str, str]) -> str:
    """The late rank, and the longest wait for it."""
    if late is None:
        return f"In step {step} no rank waits for another"
    most = max((each for each in found if each.host == late), key=lambda each: each.waiters[0].waiting_ps)
    first = most.waiters[0]
    length = duration_text(round_ms(first.waiting_ps))
    return f"In step {step} {titles[late]} comes last: {titles[first.host]} waits {length} for it in {most.operation}"
