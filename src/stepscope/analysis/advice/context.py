"""The input of rules: the overview's figures, the facts of every host and, on demand, the reports of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, overload

from stepscope.analysis.account.account import CONTENTION, StepAccount, account_shown
from stepscope.analysis.account.culprits import Culprit
from stepscope.analysis.advice.items import Interval
from stepscope.analysis.facts.changes import Changes
from stepscope.analysis.facts.device_facts import DeviceTimes, Share
from stepscope.analysis.facts.feeding import FeedFacts
from stepscope.analysis.facts.first_calls import FirstCalls
from stepscope.analysis.facts.host_facts import HostFacts
from stepscope.analysis.facts.lines import LineFacts
from stepscope.analysis.facts.loop import LoopFacts
from stepscope.analysis.facts.loop_events import Starts
from stepscope.analysis.facts.work import WorkFacts
from stepscope.analysis.purpose.excess import SET_UP, ExcessFact
from stepscope.analysis.steps.outside_steps import OutsideSteps
from stepscope.analysis.steps.verdict import LARGE_SHARE, LEAST_PERCENT
from stepscope.records import dataclass
from stepscope.report import amount
from stepscope.vocabulary.lookup import name_has
from stepscope.vocabulary.traits import OpTrait

if TYPE_CHECKING:
    from stepscope.analysis.input.input_pipeline_tool import InputPipelineReport
    from stepscope.analysis.input.tf_data_tool import TfDataReport
    from stepscope.analysis.ops.kernel_stats_tool import KernelStatsReport
    from stepscope.analysis.ops.op_stats_tool import OpStatsReport
    from stepscope.analysis.resources.memory_profile_tool import MemoryProfileReport
    from stepscope.analysis.resources.system_tool import SystemReport
    from stepscope.analysis.waits.critical_path_tool import CriticalPathReport
    from stepscope.analysis.workers.answer import JobAnswer
    from stepscope.analysis.workers.distributed_tool import DistributedReport
    from stepscope.report import Report

MS = 10**9  # picoseconds
_MOST_PLACES = 3  # shown
_LEAST_QUIET = 0.01  # of the time: with less of its own a loop has no shares
NOT_KNOWN = HostFacts("")  # where no host has steps or a loop


class Read(Protocol):
    """Returns a tool's report for the same hosts and steps; None if there is none."""

    @overload
    def __call__(self, tool: Literal["critical-path"], /) -> CriticalPathReport | None: ...
    @overload
    def __call__(self, tool: Literal["distributed"], /) -> DistributedReport | None: ...
    @overload
    def __call__(self, tool: Literal["input-pipeline"], /) -> InputPipelineReport | None: ...
    @overload
    def __call__(self, tool: Literal["kernel-stats"], /) -> KernelStatsReport | None: ...
    @overload
    def __call__(self, tool: Literal["memory-profile"], /) -> MemoryProfileReport | None: ...
    @overload
    def __call__(self, tool: Literal["op-stats"], /) -> OpStatsReport | None: ...
    @overload
    def __call__(self, tool: Literal["system"], /) -> SystemReport | None: ...
    @overload
    def __call__(self, tool: Literal["tf-data"], /) -> TfDataReport | None: ...
    @overload
    def __call__(self, tool: str, /) -> Report | None: ...


def read_nothing(_tool: str, /) -> None:
    """A `Read` that has no reports."""


@dataclass(frozen=True)
class Context:
    """The input of rules.

    Attributes:
        hosts: the facts of every host.
        step_ms: mean step time; 0 if there are no steps.
        has_device: an accelerator took part.
        top_ops: the overview's list.
        python_recorded: some host recorded Python function calls.
        device_type: the model of the devices.
        recorder: who recorded it, a key of the tables of remedies.
        profiling: what recording cost the steps, if it was measured.
        read: returns another tool's report, None if there is none.
        has_steps: steps were found; else the figures are those of the whole capture.
        record_first: how to record again, as figures are wrong; empty if they are not known to be.
        doubtful_percent: the share of the step that is wrong then, at most.
    """

    hosts: Sequence[HostFacts]
    step_ms: float
    has_device: bool
    framework: str
    top_ops: Sequence[Mapping[str, Any]] = ()
    python_recorded: bool = False
    device_type: str = ""
    recorder: str = ""
    read: Read = read_nothing
    has_steps: bool = True
    record_first: str = ""
    doubtful_percent: float = 0.0

    def with_doubts(self, read: Read) -> Context:
        """The same with what makes the recording doubtful."""
        trust = read("trust")
        first, percent = getattr(trust, "first", ""), getattr(trust, "doubtful_percent", 0.0)
        return replace(self, record_first=first, doubtful_percent=percent)

    def largest_op(self, trait: OpTrait) -> str | None:
        """The name of the overview's largest op with a trait; None if no listed op has it."""
        named = ((str(op.get("name", "")), str(op.get("category", ""))) for op in self.top_ops)
        return next((name for name, kind in named if name_has(name, trait) or name_has(f":{kind}", trait)), None)

    @cached_property
    def pace(self) -> HostFacts:
        """The host that sets the pace, which the account stands for; the first one with a loop if none has an account;
        one of which nothing is known if none has that."""
        shown = account_shown([host.account for host in self.hosts])
        paced = (host for host in self.hosts if host.account is shown and shown is not None)
        return next(paced, next((host for host in self.hosts if host.loop is not None), NOT_KNOWN))

    @cached_property
    def working(self) -> list[HostFacts]:
        """The ranks whose accounts say how long they work; with devices, only if the program marks its steps."""
        known = [host for host in self.hosts if host.rank is not None and host.account is not None]
        return [host for host in known if not self.has_device or (host.device is not None and host.device.marked)]

    @cached_property
    def job(self) -> JobAnswer | None:
        """The one answer about these ranks; None where they cannot be replayed together."""
        ranks = [host.rank for host in self.working if host.rank is not None]
        if len(ranks) < 2:
            return None
        from stepscope.analysis.workers.answer import answer_of  # which a run of one process does without

        return answer_of(ranks)

    @property
    def loop(self) -> LoopFacts | None:
        """The loop of the host that sets the pace."""
        return self.pace.loop

    @property
    def work(self) -> WorkFacts:
        """The work of the host that sets the pace."""
        return self.pace.work

    @property
    def feed(self) -> FeedFacts:
        """The input stages of the host that sets the pace, else of the first host."""
        return (self.hosts[0] if self.pace is NOT_KNOWN else self.pace).feed

    @property
    def lines(self) -> list[LineFacts]:
        """The functions of the program that the host that sets the pace could leave out."""
        return self.pace.lines

    @property
    def cores(self) -> int | None:
        """The cores of its machine; None if that was not recorded."""
        return self.pace.op_threads.cores

    def share_of_processors(self, change: str) -> float:
        """The share of the work on full processors that a change saves, where that shortens the step most; else 0."""
        found = self.changes.predicted.get(change) if self.changes is not None else None
        return found.of_processors if found is not None else 0.0

    def culprit(self, part: str) -> Culprit | None:
        """The culprit of a part of its steps, see `HostFacts.culprits`; None if none is known."""
        row = self.pace.culprits.get(part)
        return None if row is None else row.culprit

    @property
    def excesses(self) -> tuple[ExcessFact, ...]:
        """What the host that sets the pace computes without need."""
        return self.pace.excesses

    @property
    def device(self) -> DeviceTimes | None:
        """The device facts of the host that sets the pace, or of the first host with devices if it has none."""
        return next((host.device for host in (self.pace, *self.hosts) if host.device is not None), None)

    @property
    def account(self) -> StepAccount | None:
        """The account of the host that sets the pace, of the average step where that says more than the median one."""
        shown = account_shown([host.account for host in self.hosts])
        return None if shown is None else shown.representative_step

    @property
    def trains(self) -> bool:
        """Whether some of what is computed is known to be of a backward pass, or of an update, or is told from that."""
        return any({"backward", "update", "forward_only", "recomputing"} & host.purposes.keys() for host in self.hosts)

    @property
    def infers(self) -> bool:
        """Whether what is computed is known, and none of it trains; PyTorch records a backward pass as that."""
        purposes = {purpose for host in self.hosts for purpose in host.purposes}
        is_known = "forward" in purposes or (self.framework == "pytorch" and bool(purposes))
        return is_known and not self.trains

    @property
    def changes(self) -> Changes | None:
        """What changes give the host that sets the pace."""
        return self.pace.changes

    def line(self, change: str) -> LineFacts | None:
        """The function that a row of the table of changes leaves out; None for other rows."""
        return next((line for line in self.lines if line.key == change), None)

    @property
    def first_calls(self) -> FirstCalls | None:
        """The first calls that the capture holds on every host, if it holds nothing else."""
        found = [each for host in self.hosts if (each := host.first_calls) is not None and not each.is_beside]
        whole = len(found) == len(self.hosts)
        return max(found, key=lambda each: each.percent, default=None) if whole else None

    @property
    def outside(self) -> OutsideSteps | None:
        """The time outside of usual steps on the host that sets the pace, where that is most of the recording and the
        account is of such a step."""
        is_usual = self.account is not None and self.account.is_median and self.account.has_steps
        return self.pace.outside if is_usual else None

    @property
    def hottest_python(self) -> str:
        """The Python function with the largest self time; empty if none was recorded."""
        functions = (op for op in self.top_ops if op["category"] == "Python" and op["self_percent"] is not None)
        return str(max(functions, key=lambda op: op["self_percent"], default={"name": ""})["name"])

    @property
    def period_ms(self) -> float:
        """Time from the start of one step to the start of the next, gaps included, but for what the loop waits for
        ranks that have no core: no work of its own is part of that."""
        loop = self.loop
        return (loop.observed_ps - loop.late_ps) / loop.steps / MS if loop else self.step_ms

    def cause_ms(self, *causes: str) -> float:
        """Time per step that the account gives some causes, the mean over steps, with their part of the time in which
        the loop waits for a free core: so does the time of ops hold what they wait, and what others take of the machine
        makes no part of the program small.  0 without an account."""
        if self.account is None:
            return 0.0
        busy = self.account.mean_percent.get(CONTENTION, 0.0) / 100
        share = sum(self.account.mean_percent.get(cause, 0.0) for cause in causes) / 100
        return share / max(1.0 - busy, _LEAST_QUIET) * self.period_ms

    @property
    def python_ms(self) -> float:
        """Time per step of the loop's Python while nothing computes: by the account; without a device, where the Python
        between ops dispatches them, of its long stretches."""
        if self.loop is None or self.has_device:
            return self.cause_ms("python")
        return self.per_step_ms(self.loop.python_ps) / self.quiet

    def percent(self, time_ms: float) -> float:
        """A time per step in percent of the period."""
        return 100.0 * time_ms / self.period_ms if self.period_ms > 0 else 0.0

    @property
    def quiet(self) -> float:
        """The share of that time in which the loop waits for no free core, above 0 to 1."""
        busy = self.account.mean_percent.get(CONTENTION, 0.0) / 100 if self.account else 0.0
        late = self.loop.late_ps / self.loop.observed_ps if self.loop and self.loop.observed_ps else 0.0
        return max((1.0 - busy) / max(1.0 - late, _LEAST_QUIET), _LEAST_QUIET)

    @property
    def lacks_cores(self) -> bool:
        """Whether the loop waits for a free core for a large share of the time: then other threads of the program do,
        too, and what waits for those seems to sleep."""
        return 100.0 * (1.0 - self.quiet) >= LARGE_SHARE

    def counter(self, name: str) -> float | None:
        """The mean of a counter of the system while the capture ran; None if it was not recorded."""
        report = self.read("system")
        rows = [row for row in report.rows if row["counter"] == name] if report is not None else []
        return max((amount(row["mean"]) for row in rows), default=None)

    def per_step(self, count_or_ps: float) -> float:
        """A total of the loop divided by its steps."""
        return count_or_ps / self.loop.steps if self.loop else 0.0

    def per_step_ms(self, total_ps: float) -> float:
        """The same of a time, in ms."""
        return self.per_step(total_ps) / MS

    def calls(self, what: Starts) -> float:
        """How often the loop's thread starts something per step."""
        return self.per_step(self.loop.calls[what.name.lower()]) if self.loop else 0.0

    def work_places(self, work: Sequence[Share]) -> tuple[Interval, ...]:
        """The longest interval of each kind of device work or call."""
        return tuple(self._device_interval(share.name, share.start_ps, share.end_ps) for share in work[:_MOST_PLACES])

    def idle_places(self) -> tuple[Interval, ...]:
        """The longest intervals in which the devices are idle."""
        gaps = self.device.longest_gaps if self.device else []
        return tuple(self._device_interval("devices idle", *gap) for gap in gaps)

    def _device_interval(self, name: str, start_ps: int, end_ps: int) -> Interval:
        host = next(host.host for host in self.hosts if host.device is self.device)
        return Interval(host, name, round(start_ps / MS, 6), round(end_ps / MS, 6))

    def intervals(self, place: str) -> tuple[Interval, ...]:
        """The longest of `LoopFacts.places` with a name."""
        spans = self.loop.places.get(place, []) if self.loop is not None else []
        return tuple(
            Interval(self.pace.host, span.name, round(span.start_ps / MS, 6), round(span.end_ps / MS, 6))
            for span in spans
        )

    @cached_property
    def subjects(self) -> frozenset[str]:
        """The files of `registry.FILES` whose rules this run can be about, as it has what all rules of a file need: a
        cause that takes a share which any rule speaks of, or facts of the kind that they read."""

        def takes(cause: str) -> bool:
            return self.percent(self.cause_ms(cause)) >= LEAST_PERCENT

        work, device, loop, on_host = self.work, self.device, self.loop, not self.has_device
        before_ms = self.per_step_ms(loop.before_program_ps) if loop is not None else 0.0
        is_blind = self.account is not None and self.account.blindness is not None
        devices = [host.device for host in self.hosts if host.device is not None]
        accounts = [host.account for host in self.hosts if host.account is not None]
        extra = work.forward_only_ps or 0 < work.backward_ps < work.forward_ps or len(work.modules) > 1
        again = work.recomputed_ps or (device is not None and "recomputed" in device.kinds)
        reports = self.read is not read_nothing
        found = {
            "lines": self.lines and self.changes,
            "recompilation": takes("compile"),
            "waiting": takes("input")
            or (loop and on_host and (self.feed.ops_ps or self.percent(before_ms) >= LEAST_PERCENT)),
            "transfer": takes("transfer") or (on_host and work.casts_ps),
            "checkpoint": takes("checkpoint"),
            "python_overhead": self.percent(self.python_ms) >= LEAST_PERCENT
            or (self.framework == "python" or self.pace.rival or work.callbacks_ps),
            "dispatch": work.steps and loop and on_host,
            "device_idle": self.has_device or device or is_blind or self.pace.unused_device,
            "straggler": sum(host.rank is not None for host in self.hosts) > 1,
            "communication": any(each.exposed_collectives_ps for each in devices)
            or any(each.mean_percent.get("communication") for each in accounts),
            "redundant_compute": again or (on_host and extra) or any(each.kind != SET_UP for each in self.excesses),
            "set_up": any(each.kind == SET_UP for each in self.excesses),
            "memory": work.moves if on_host else reports,
            "device_work": device or work.doubles_ps,
            "input_work": self.pace.augmentation or reports,
            "model": reports or any(graph.unused_layers for host in self.hosts for graph in host.graphs),
        }
        return frozenset(name for name, has in found.items() if has)
