"""Every step on every worker: its duration there, where the time goes, and which worker is slowest.

A worker is a host. On a host with several devices each device is a worker as well, and the row named `all` is the host
as a whole. The row of a device holds what that device does, and what the host does while the device does nothing; the
step ends there with the device's last work for it.

Workers that train together wait for each other in collective operations, so their steps take equally long. The slowest
worker is therefore the one that is busy longest: of hosts, the step to the start of the next one without the
communication in its account; of several devices of a host, and of a step whose next one was not recorded, the step
without its time in collectives. Where there is no communication, that is the one whose step takes longest.

Steps of different hosts are the same step if the program numbered them so. Otherwise they are aligned by the hosts'
clocks, corrected where collectives that end on all hosts together show how far these differ. Steps that are not on
every host are named and left out.

The columns of causes are the account of the step on that worker: of a host, what its step waits for; of one of several
devices, what it does itself and, while it idles, what the step waits for, but for computation and copies of the other
devices. The bottleneck is the longest of them.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.account.account_text import CAUSE_FIELDS, cause_cells, cause_words
from stepscope.analysis.account.every_step import CausesOfStep, causes_by_device, causes_of_steps
from stepscope.analysis.steps.breakdown import category_cells
from stepscope.analysis.steps.device_steps import DeviceSteps, device_name, device_steps, working_devices
from stepscope.analysis.steps.session_steps import (
    Aligned,
    StepRow,
    StepsOfHost,
    align,
    finding_of,
    step_warnings,
    steps_of_host,
    usual_of,
)
from stepscope.analysis.workers.answer import JobAnswer, answer_of
from stepscope.analysis.workers.clocks import WORTH_NAMING_CLOCK_PS
from stepscope.analysis.workers.collectives import Collectives, collectives_of, rank_title
from stepscope.analysis.workers.joint_replay import RankModel
from stepscope.analysis.workers.matching import correct_clocks
from stepscope.analysis.workers.rank_graphs import PackedGraph, packed_graph_of
from stepscope.analysis.workers.slow_workers import (
    HostStep,
    Lateness,
    WorkerStep,
    compared_workers,
    describe_mismatches,
    lateness,
    longest_cause,
    slowest_worker,
    start_offsets,
)
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Lines,
    Report,
    Role,
    Table,
    as_prose,
    as_table,
    duration_text,
    number_text,
    percent,
    round_ms,
)

ALL = "all"
HOST = ""  # in place of a device

_STEP = Field(
    "step", "number", "the step's number: the program's own if it gave one, else counted from 0", "int", role=Role.STEP
)
_HOST = Field("host", "text", "the host", "str", role=Role.HOST)
_RANK = Field("rank", "count", "the rank in its job; unknown if not recorded", "int", role=Role.ORDINAL)
_DEVICE = Field(
    "device", "text", "the device; `CPU` without one, `all` for a host with several devices", "str", role=Role.PLACE
)
ROW_FIELDS: tuple[Field, ...] = (
    _STEP,
    _RANK,
    _HOST,
    _DEVICE,
    Field("duration_ms", "ms",
          "duration of the step there, to the start of the next; on one of several devices to the end of its work for "
          "it"),
    *CAUSE_FIELDS,
    Field("bottleneck", "text", "the largest cause in the account of the step there", "str", role=Role.TERM),
    Field("complete", "", "no if the capture cuts the step off; statistics leave such steps out", "bool",
          role=Role.COMPLETE),
)  # fmt: skip
SLOWEST_FIELDS: tuple[Field, ...] = (
    _STEP,
    Field("host", "text", "the host with the most time of its own", "str", role=Role.HOST),
    Field("device", "text", "its device with the most", "str", role=Role.PLACE),
    Field("duration_ms", "ms", "duration of the step on this worker: the host, or the device if there is one host"),
    Field(
        "busy_ms", "ms", "time in which it does not wait for others: the step without communication", label="Own time"
    ),
    Field("bottleneck", "text", "the largest cause in its account except communication", "str", role=Role.TERM),
    Field("bottleneck_ms", "ms", "time of that cause"),
    Field("behind_ms", "ms", "how much more that is than the median of the other workers"),
    Field("behind_percent", "percent", "the same as a share of the step: the gain if it were as fast as the others"),
    Field("extra", "text", "the cause in its account with the largest extra time over the median of the others", "str",
          role=Role.TERM),
    Field("extra_ms", "ms", "the extra time of that cause"),
)  # fmt: skip
WORKER_FIELDS: tuple[Field, ...] = (
    _HOST,
    _DEVICE,
    Field("steps", "count", "usual steps", "int"),
    Field("mean_ms", "ms", "mean duration of these steps"),
    Field("min_ms", "ms", "the shortest step"),
    Field("max_ms", "ms", "the longest step"),
    Field(
        "busy_ms", "ms", "mean time of these steps in which it does not wait for others: without communication",
        label="Own time",
    ),
    Field("slowest_count", "count", "steps in which it is the slowest host, or the slowest device", "int"),
    Field("bottleneck", "text", "the largest cause in the account of its median step", "str", role=Role.TERM),
    Field("bottleneck_ms", "ms", "time of that cause in that step"),
    Field("start_offset_ms", "ms",
          "start of the same steps relative to the first host, by clocks that are set right where collectives say how "
          "far they differ; median"),
)  # fmt: skip


@dataclass(frozen=True)
class WorkerOfPod:
    """The part of one host: its steps, the name of its device if it has one, the steps of several devices, the
    accounts of the host and of these devices, the collectives that say how far its clock is wrong, and what a replay
    with the other hosts needs of it."""

    steps: StepsOfHost
    device: str
    devices: list[DeviceSteps]
    accounts: dict[str, list[CausesOfStep]]
    collectives: Collectives
    graph: PackedGraph | None

    @property
    def rank(self) -> RankModel | None:
        """The host as a rank; None if it has no steps or meets nobody."""
        return None if self.graph is None else RankModel(self.steps, self.collectives, self.graph)


def _workers_with_samples(report: PodViewerReport) -> Iterator[dict[str, Any]]:
    """The workers, each with the durations of its complete steps."""
    complete = [row for row in report.rows if row["complete"]] or report.rows
    durations: dict[tuple[Cell, Cell], list[Cell]] = {}
    for row in complete:
        durations.setdefault((row["host"], row["device"]), []).append(row["duration_ms"])
    for worker in report.workers:
        yield {**worker, "samples": durations.get((worker["host"], worker["device"]), [])}


COMPARABLES = (
    Comparable(
        id="workers",
        title="Workers",
        keys=(_HOST, _DEVICE),
        measure=Field("mean_ms", "ms", "mean duration of a step on the worker"),
        rows=_workers_with_samples,
        samples="samples",
        empty="neither side has workers with steps",
    ),
)


_EMPTY = "no steps: the profile contains no events that take time"


@dataclass(frozen=True, kw_only=True)
class PodViewerReport(Report):
    """Every step on every worker.

    Attributes:
        steps_source: "markers", "inferred" or "none"; of several hosts the least certain.
        rows: one a step, host and device; keys as in ROW_FIELDS.
        slowest: one a step: the slowest worker; keys as in SLOWEST_FIELDS.
        workers: one a host and device; keys as in WORKER_FIELDS.
        findings: what the comparison says, as sentences.
    """

    TOOL: ClassVar[str] = "pod-viewer"
    SCHEMA_VERSION: ClassVar[int] = 2

    steps_source: str
    findings: Lines = as_prose("Workers compared")
    workers: Table = as_table("Workers", WORKER_FIELDS, _EMPTY)
    slowest: Table = as_table("Slowest worker of each step", SLOWEST_FIELDS, _EMPTY)
    rows: Table = as_table("Steps by worker", ROW_FIELDS, _EMPTY)


# -- one host ----------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> WorkerOfPod:
    """The part of one host."""
    working = working_devices(trace)
    return WorkerOfPod(
        steps=steps_of_host(trace),
        device=device_name(trace, working[0]) if len(working) == 1 else ALL if working else "CPU",
        devices=device_steps(trace),
        accounts={HOST: causes_of_steps(trace), **(causes_by_device(trace) if len(working) > 1 else {})},
        collectives=collectives_of(trace),
        graph=packed_graph_of(trace, with_work=True),
    )


# -- all hosts ---------------------------------------------------------------------------------------------------


def merge(partials: Sequence[WorkerOfPod]) -> PodViewerReport:
    """Compares the steps of all workers."""
    hosts, apart_ps = correct_clocks([part.steps for part in partials], [part.collectives for part in partials])
    aligned = align(hosts)
    of_host = {host.host: replace(part, steps=host) for host, part in zip(hosts, partials, strict=True)}
    taking = [of_host[host] for host in aligned.hosts]
    stepping = [part.steps for part in taking]
    offsets = start_offsets(stepping, aligned)
    steps = _side_by_side(taking, aligned)
    counted = [steps[at] for at in usual_of(aligned.steps)]
    ranks = {part.steps.host: part.collectives.rank for part in taking if part.collectives.rank >= 0}
    answer = answer_of([part.rank for part in taking if part.rank is not None])
    return PodViewerReport(
        hosts=tuple(host.host for host in hosts),
        warnings=(*step_warnings(hosts, aligned), *describe_mismatches(stepping, aligned, offsets)),
        partial=any(host.partial for host in hosts),
        steps_source=finding_of(stepping or hosts).source,
        rows=_list_rows([worker for each in steps for host in each for worker in host.workers()], ranks),
        slowest=tuple(_slowest(each) for each in steps),
        workers=tuple(_workers(counted, _median_causes(taking), offsets)),
        findings=(*_findings(counted, answer, ranks), *_describe_correction(apart_ps)),
    )


def _describe_correction(apart_ps: float | None) -> Iterator[str]:
    if apart_ps is not None and apart_ps > WORTH_NAMING_CLOCK_PS:
        yield f"clocks differ by up to {number_text(apart_ps / 1e9)} ms, and were set right"


def _side_by_side(taking: Sequence[WorkerOfPod], aligned: Aligned) -> list[list[HostStep]]:
    places = [{id(row): place for place, row in enumerate(part.steps.rows)} for part in taking]
    devices = [_devices_by_place(part) for part in taking]
    causes = [_causes_by_place(part) for part in taking]
    found = []
    for rows in aligned.steps:
        place = [places[at][id(row)] for at, row in enumerate(rows)]
        accounts = [causes[at].get(each, {}) for at, each in enumerate(place)]
        known = all(HOST in account for account in accounts)
        working = [devices[at].get(each, ()) for at, each in enumerate(place)]
        found.append([
            _host_step(*columns, rows[0].number, known)
            for columns in zip(taking, rows, working, accounts, strict=True)
        ])  # fmt: skip
    return found


def _causes_by_place(part: WorkerOfPod) -> dict[int, dict[str, list[int]]]:
    """For each step of a host, the account of the host and of its devices."""
    found: dict[int, dict[str, list[int]]] = {}
    for device, steps in part.accounts.items():
        for step in steps:
            found.setdefault(step.place, {})[device] = step.causes_ps
    return found


def _devices_by_place(part: WorkerOfPod) -> dict[int, list[tuple[DeviceSteps, int]]]:
    """For each step of a host, the participating devices and the step's index in their columns."""
    found: dict[int, list[tuple[DeviceSteps, int]]] = {}
    for device in part.devices:
        for at, place in enumerate(device.step):
            found.setdefault(place, []).append((device, at))
    return found


def _host_step(
    part: WorkerOfPod,
    row: StepRow,
    devices: Sequence[tuple[DeviceSteps, int]],
    causes: Mapping[str, list[int]],
    number: int,
    by_account: bool,
) -> HostStep:
    """A step on one host; `by_account` if every host has an account of it, so that these can be compared."""
    host, own = part.steps.host, list(causes.get(HOST, ()))
    return HostStep(
        WorkerStep(number, host, part.device, row.duration_ps, row.parts_ps, row.complete, own, by_account),
        tuple(
            WorkerStep(
                *(number, host, of.device, of.duration_ps[at], of.parts_ps[at], row.complete),
                list(causes.get(of.device, ())),
            )
            for of, at in devices
        ),
    )


def _list_rows(steps: Sequence[WorkerStep], ranks: Mapping[str, int]) -> tuple[dict[str, Cell], ...]:
    causes = cause_cells([step.causes_ps for step in steps])
    parts = category_cells([step.parts_ps for step in steps])
    return tuple(
        {
            "step": step.number,
            "rank": ranks.get(step.host),
            "host": step.host,
            "device": step.device,
            "duration_ms": round_ms(step.duration_ps),
            **of_causes,
            **of_parts,
            "bottleneck": longest_cause(step.causes_ps),
            "complete": step.complete,
        }
        for step, of_causes, of_parts in zip(steps, causes, parts, strict=True)
    )


def _slowest(hosts: Sequence[HostStep]) -> dict[str, Cell]:
    compared = compared_workers(hosts)
    worst, late = slowest_worker(compared), lateness(compared)
    devices = next(host.devices for host in hosts if host.whole.host == worst.host)
    causes = worst.busy_causes_ps
    return {
        "step": worst.number,
        "host": worst.host,
        "device": slowest_worker(devices).device if devices else worst.device,
        "duration_ms": round_ms(worst.duration_ps),
        "busy_ms": round_ms(worst.busy_ps),
        "bottleneck": longest_cause(causes),
        "bottleneck_ms": round_ms(max(causes)) if causes else None,
        **_behind(late),
    }


def _behind(late: Lateness | None) -> dict[str, Cell]:
    if late is None:
        return dict.fromkeys(("behind_ms", "behind_percent", "extra", "extra_ms"), None)
    extra = longest_cause(late.more_ps)
    return {
        "behind_ms": round_ms(late.behind_ps),
        "behind_percent": percent(late.behind_ps, late.step.duration_ps),
        "extra": extra,
        "extra_ms": round_ms(max(late.more_ps)) if extra else None,
    }


def _median_causes(parts: Sequence[WorkerOfPod]) -> dict[tuple[str, str], list[int]]:
    """The account of the median step of every worker."""
    return {
        (part.steps.host, device or part.device): step.causes_ps
        for part in parts
        for device, steps in part.accounts.items()
        for step in steps
        if step.is_median
    }


def _workers(
    steps: Sequence[Sequence[HostStep]],
    medians: Mapping[tuple[str, str], Sequence[int]],
    offsets: dict[str, int | None],
) -> Iterable[dict[str, Cell]]:
    of_worker: dict[tuple[str, str], list[WorkerStep]] = {}
    worst: Counter[tuple[str, str]] = Counter()
    for hosts in steps:
        for step in (worker for host in hosts for worker in host.workers()):
            of_worker.setdefault((step.host, step.device), []).append(step)
        devices = [device for host in hosts for device in host.devices]
        for step in map(slowest_worker, filter(None, ([host.whole for host in hosts], devices))):
            worst[step.host, step.device] += 1
    place = {host: at for at, host in enumerate(offsets)}
    for (host, device), own in sorted(of_worker.items(), key=lambda item: place[item[0][0]]):
        yield _worker(own, medians.get((host, device), ()), worst[host, device], offsets[host])


def _worker(
    steps: Sequence[WorkerStep], causes: Sequence[int], slowest_count: int, offset: int | None
) -> dict[str, Cell]:
    durations = [step.duration_ps for step in steps]
    return {
        "host": steps[0].host,
        "device": steps[0].device,
        "steps": len(steps),
        "mean_ms": round_ms(statistics.fmean(durations)),
        "min_ms": round_ms(min(durations)),
        "max_ms": round_ms(max(durations)),
        "busy_ms": round_ms(statistics.fmean(step.busy_ps for step in steps)),
        "slowest_count": slowest_count,
        "bottleneck": longest_cause(causes),
        "bottleneck_ms": round_ms(max(causes)) if causes else None,
        "start_offset_ms": None if offset is None else round_ms(offset),
    }


def _findings(steps: Sequence[Sequence[HostStep]], answer: JobAnswer | None, ranks: Mapping[str, int]) -> Iterable[str]:
    """What a replay of the hosts together says; without one, which worker is busy longest, and with what."""
    if answer is not None:
        yield answer.sentence([rank.title for rank in answer.job.graph.ranks])
        return
    late = [each for each in (lateness(compared_workers(hosts)) for hosts in steps) if each is not None]
    if not late:
        if steps:
            yield "only one worker took part: there is nothing to compare"
        return
    if not any(each.behind_ps > 0 for each in late):
        yield "all workers take equally long without communication"
        return
    (host, device), count = Counter((each.step.host, each.step.device) for each in late).most_common(1)[0]
    own = [each for each in late if (each.step.host, each.step.device) == (host, device)]
    behind = statistics.fmean(each.behind_ps for each in own) / 1e9
    known = [each.more_ps for each in own if each.more_ps]
    extra = longest_cause([statistics.fmean(column) for column in zip(*known, strict=True)])
    worker = rank_title(ranks.get(host, -1), host) if len(steps[0]) > 1 else f"{device} of {host}"
    yield (
        f"without communication {worker} takes longest in {count} of {len(late)} steps, "
        f"{duration_text(behind)} longer than the median of the others ({_share(own):.1f} % of the step)"
        f"{f', mostly with {cause_words(extra)}' if extra else ''}; the replay cannot show whether others wait for it"
    )


def _share(late: Sequence[Lateness]) -> float:
    """How far the slowest worker is behind, in percent of the steps' time."""
    return 100.0 * sum(each.behind_ps for each in late) / max(sum(each.step.duration_ps for each in late), 1)
