"""The tool `overview`: where the step time goes, what limits it, and what to do first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, ClassVar, cast

from stepscope.analysis.account import account_text
from stepscope.analysis.account.account import CONTENTION, StepAccount, account_of, account_shown
from stepscope.analysis.account.account_text import input_percent
from stepscope.analysis.account.every_step import accounted_steps
from stepscope.analysis.account.long_steps import OUTLIER, LongSteps
from stepscope.analysis.advice import Advice, Context, advise
from stepscope.analysis.advice.context import Read
from stepscope.analysis.advice.items import describe_speedup
from stepscope.analysis.advice.ranking import find_record_first
from stepscope.analysis.advice.stopped import FILLED_FIELDS, OF_JOB, filled_rows, too_large_request
from stepscope.analysis.facts.host_facts import NEED_ACCOUNT, NEED_NO_ACCOUNT, NEED_NO_LINKS, facts_of
from stepscope.analysis.ops.top_ops import device_ops, host_ops
from stepscope.analysis.overview.findings import RECORD_AGAIN, list_findings
from stepscope.analysis.overview.purpose_rows import EXCESS_FIELDS, PURPOSE_FIELDS, excess_rows, purpose_rows
from stepscope.analysis.overview.session_figures import OP_RELATIONS, TOP_OPS, HostPart, SessionFigures, mean_breakdown
from stepscope.analysis.resources.counted_memory import last_memory_sentence
from stepscope.analysis.steps.breakdown import CATEGORIES
from stepscope.analysis.steps.profiling_cost import ProfilingCost, missed_steps, profiling_cost
from stepscope.analysis.steps.session_steps import (
    STEP_TIME_FIELDS,
    breakdown_of,
    finding_of,
    step_time_statistics,
    step_warnings,
)
from stepscope.analysis.steps.verdict import Verdict
from stepscope.analysis.trace.environment import PYTHON_CALLS_MISSING, Missing, environment_of
from stepscope.analysis.trace.remedies import first_recorder
from stepscope.model import HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Field,
    Figures,
    FirstScreen,
    Prose,
    Report,
    Role,
    Rows,
    Section,
    amount,
    clean,
    duration_text,
    round_ms,
    shorten_name,
)
from stepscope.report.columns import rows_in_ms
from stepscope.vocabulary.workers import describe_workers

MOST_REMEDIES = 3  # for missing data, in the summary
RELATIONS = OP_RELATIONS
KNOW_CULPRITS = ("tf-data", "input-pipeline")  # the tools that name the slow stage, or the function of the workers
_LONG_FROM = 0.5  # of the long step that the account is of: shorter ones are of another kind; judgement
_MOST_STALLS = 4  # steps that a sentence lists by number
_LONGEST_NAME = 100  # of an op in the summary
_TELLING_PERCENT = 5.0  # of all op time; if no op takes as much, the summary lists op types instead
_LEAST_SHOWN = 0.05  # percent: what rounds to 0.0 is left out of the summary

LIMIT_FIELDS: tuple[Field, ...] = (
    *STEP_TIME_FIELDS,
    Field("between_steps_percent", "percent", "the part of the steps after their marks have ended"),
    Field(
        "input_bound_percent",
        "percent",
        "share of the median step, without contention, that waits for its batch or for copies to a device",
    ),
    Field(
        "profiling_cost_percent",
        "percent",
        "difference of the median step inside the capture to the median step before it; negative if the capture's "
        "was shorter; noise if either median is within the other's quartiles",
        label="Cost of profiling",
    ),
)
_ON_SCREEN = (
    *(field.name for field in STEP_TIME_FIELDS),
    "between_steps_percent",
)  # the verdict's sentences give the rest
TOP_OP_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the op: HLO op, framework op, or kernel", "str", role=Role.NAME),
    Field("category", "text", "the op's type", "str", role=Role.TYPE),
    Field("self_time_ms", "ms", "time in the op itself, without nested ops, over the whole capture"),
    Field("self_percent", "percent", "self time as a share of the self time of all ops"),
    Field("cumulative_percent", "percent", "sum of `self_percent` from the first row to this one"),
    Field("calls", "count", "number of runs; several kernels of one run count once", "int"),
)
ENVIRONMENT_FIELDS: tuple[Field, ...] = (
    Field("host_count", "count", "hosts whose traces are in the session; each process counts", "int", label="Hosts"),
    Field(
        "device_type",
        "text",
        "device models, each listed once; CPU if no device took part",
        "str",
        role=Role.PLACE,
        label="Device",
    ),
    Field("device_count", "count", "devices that the profiler saw, over all hosts", "int", label="Devices"),
    Field("devices_used", "count", "devices that ran a kernel or an op during the capture, over all hosts", "int"),
    Field(
        "framework",
        "text",
        "the framework, inferred from names in the profile; python if there is none",
        "str",
        role=Role.TYPE,
    ),
    Field(
        "capture_ms",
        "ms",
        "time from the first to the last event, on the host with the longest capture",
        label="Captured",
    ),
    Field("recorded", "text", "when the recording began, in UTC, where the file states it", role=Role.TEXT),
    Field(
        "pause_ms",
        "ms",
        "how long the program paused when the capture ended, while PyTorch collected its events",
        label="Pause at the end",
    ),
)
PLACEMENT_FIELDS: tuple[Field, ...] = (
    Field("host_op_percent", "percent", "op runs on the host, as a share of all op runs", label="Ops on the host"),
    Field("device_op_percent", "percent", "op runs on devices, as a share of all op runs", label="Ops on devices"),
    Field(
        "host_eager_percent",
        "percent",
        "share of host op time in ops dispatched one by one; unknown if not recorded",
        label="Eager op time",
    ),
    Field(
        "compute_16bit_percent", "percent", "share of device compute time at 16 bits or fewer", label="16-bit compute"
    ),
    Field(
        "compute_32bit_percent", "percent", "share of device compute time at 32 bits or more", label="32-bit compute"
    ),
)
_METRIC_FIELDS: tuple[Field, ...] = (
    Field("metric", "text", "the figure's path in the JSON object", "str", role=Role.LABEL),
    Field("value", "by unit", "the figure; empty if unknown"),
    Field("unit", "text", "the figure's unit", "str", role=Role.TYPE),
    Field("text", "text", "the figure if it is text", "str", role=Role.TEXT),
)
_MOVE_FETCH = (
    "the loop fetches its batch outside the step marks, so some tools count that for the step before and some for none;"
    " move the fetch into the mark: `for i in range(n): with stepscope.step(i): batch = next(iterator); ...`"
)

_OF_DEVICES = ("device_compute", "communication", "copy", "transfer")  # causes in which a device works


@dataclass(frozen=True, kw_only=True)
class OverviewReport(Report):
    """The overview of a session; the FIELDS tables of this module explain its parts.

    Attributes:
        steps_a_host: steps per host, mean over the hosts with steps.  Steps that another host lacks or that the capture
            cuts off count, since they are in the totals of ops.
        outside_steps_percent: share of the op time on `host` and `device` before the first step or after the last.
    """

    TOOL: ClassVar[str] = "overview"
    SCHEMA_VERSION: ClassVar[int] = 3
    MAIN_LIST: ClassVar[str] = "top_ops"

    step_time_ms: dict[str, Cell]
    steps_source: str
    steps_how: str
    confidence: float | None
    steps_a_host: float
    outside_steps_percent: dict[str, float | None]
    breakdown_ms: dict[str, float]
    input_bound_percent: float | None
    verdict: Verdict
    placement: dict[str, Cell]
    top_ops: tuple[dict[str, Cell], ...]
    top_op_types: tuple[dict[str, Cell], ...]
    environment: dict[str, Cell]
    advice: tuple[Advice, ...]
    context: Context
    missing: tuple[Missing, ...]
    step_rows: tuple[dict[str, Cell], ...]
    profiling: ProfilingCost | None
    account: StepAccount | None

    @property
    def record_first(self) -> str:
        """How to record again before anything else, as figures are wrong; empty if they are not."""
        return find_record_first(self.context, self.advice)

    @property
    def median_step_ms(self) -> float | None:
        """The step time that all sentences name, in ms; None without steps, or where their bounds measure none."""
        if self.steps_source == "none" or self.step_time_ms["mean"] is None:
            return None
        return self._median_ms(self.account) if self.account else self._usual_ms()

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "step_time_ms": {key: self.step_time_ms[key] for key in ("mean", "std", "min", "max", "count")},
            "median_step_ms": self.median_step_ms,
            "between_steps_percent": self.step_time_ms["between_steps_percent"],
            "steps_source": self.steps_source,
            "steps_how": self.steps_how,
            "steps_confidence": self.confidence,
            "steps_a_host": self.steps_a_host,
            "breakdown_ms": self.breakdown_ms,
            "input_bound_percent": self.input_bound_percent,
            "verdict": self.verdict.name,
            "verdict_text": self.verdict.sentence,
            "verdict_cause": self.verdict.cause,
            "verdict_percent": self.verdict.share_percent,
            "verdict_evidence": list(self.verdict.evidence),
            "device_compute_precision_percent": {
                "16bit": self.placement["compute_16bit_percent"],
                "32bit": self.placement["compute_32bit_percent"],
            },
            "op_placement": {
                key: self.placement[key] for key in ("host_op_percent", "device_op_percent", "host_eager_percent")
            },
            "top_ops": list(self.top_ops),
            "top_op_types": list(self.top_op_types),
            "environment": self.environment,
            "advice": [advice.to_dict() for advice in self.advice],
            "findings": list_findings(self.verdict, self.account, self.advice, self.missing, self.record_first),
            "missing": [asdict(item) for item in self.missing],
            "profiling_cost_percent": None if self.profiling is None else self.profiling.percent,
            "profiling_cost_is_clear": None if self.profiling is None else self.profiling.is_clear,
            "profiling_cost_limits_percent": None if self.profiling is None else self._cost_limits(self.profiling),
            "filled": list(filled_rows(self.context)),
            "too_large_request": self._too_large_request(),
            "account": account_text.account_json(self.account),
            "account_step": account_text.account_step_json(self.account),
            "account_devices": account_text.device_bars_json(self.account),
            "replay_error_percent": self._replay_error(),
            "purpose": list(purpose_rows(self.context.pace)),
            "excess": list(excess_rows(self.context.pace)),
            "steps": list(self.step_rows),
        }

    def sections(self) -> Sequence[Section]:
        """Verdict, figures, breakdown, top ops, environment, advice, and what is missing."""
        return [
            Prose(
                "verdict",
                "Verdict",
                (*self.verdict.lines, *self._how_lines(), *self._cost_lines()),
            ),
            Rows("filled", "What filled the memory", FILLED_FIELDS, filled_rows(self.context), empty=""),
            Prose("account_summary", "What the median step waits for", self._account_lines()),
            Rows(
                "step_account",
                "Account of the median step",
                account_text.FIELDS,
                account_text.account_rows(self.account),
                empty="no steps, so there is nothing to account for",
            ),
            Figures("step_time", "Step time", LIMIT_FIELDS, self._limit_figures(), _ON_SCREEN),
            Rows("top_ops", f"Top {TOP_OPS} ops", TOP_OP_FIELDS, self.top_ops, empty="the profile contains no ops"),
            Rows(
                "purpose",
                "What the computing is for",
                PURPOSE_FIELDS,
                purpose_rows(self.context.pace),
                empty="no ops of steps were recorded",
            ),
            Rows(
                "excess",
                "Computed without need",
                EXCESS_FIELDS,
                excess_rows(self.context.pace),
                empty="nothing in the recording shows work that the step does not need",
            ),
            Figures("placement", "Placement and precision", PLACEMENT_FIELDS, self.placement),
            Figures("environment", "Environment", ENVIRONMENT_FIELDS, self.environment),
            Prose(
                "advice",
                "What to do first",
                (*self._record_lines(), *(line for advice in self.advice for line in _advice_lines(advice))),
            ),
            Prose("missing", "Not in this capture", tuple(f"{item.what}: {item.remedy}" for item in self.missing)),
        ]

    def first_screen(self) -> FirstScreen:
        """The verdict, what the step waits for or what filled the memory, and what to do first."""
        head, rest = self.verdict.head, self.verdict.rest
        head = "what limits it is not known" if head == "unknown" else head
        ended = bool(self.advice) and self.advice[0].id.startswith(OF_JOB)
        ended = ended or self.context.outside is not None
        time = "" if self.median_step_ms is None or ended else self._step_title(self.median_step_ms)
        filled = filled_rows(self.context)
        bar = (
            [(str(row["kind"]), str(row["kind"]), amount(row["held_bytes"])) for row in filled]
            if filled
            else [(row.cause, row.cause, float(row.ps)) for row in (self.account.rows if self.account else ())]
        )
        first = self.advice[0] if self.advice else None
        return FirstScreen(
            title=time + head, sentence=rest, bar=tuple((key, name.replace("_", " "), size) for key, name, size in bar),
            advice=f"{first.beside} {first.title}".strip() if first else "",
            gain=_gain_text(first) if first and (first.predicted_speedup or first.measured) else "",
            actions=tuple(first.actions) if first else (),
        )  # fmt: skip

    def _step_title(self, median_ms: float) -> str:
        """How long the step of the account lasts, in front of what it takes that for."""
        account = self.account
        ms = median_ms if account is None else round_ms(account.step_ps)
        whole = "Each step" if self.step_time_ms["count"] != 1 else "The step"
        step = "A long step" if account is not None and account.has_steps and not account.is_median else whole
        if step == "Each step" and self._is_mean_far(ms):
            mean = amount(self.step_time_ms["mean"])
            return f"The median step takes {_seconds_text(ms)}, the mean {_seconds_text(mean)}: "
        return f"{step} takes {_seconds_text(ms)}: "

    def _is_mean_far(self, median_ms: float) -> bool:
        """Whether so many steps are so much longer than the median one that it tells little of how long all take."""
        is_found = self.steps_source != "none" and self.step_time_ms["mean"] is not None
        return is_found and amount(self.step_time_ms["mean"]) > OUTLIER * median_ms > 0

    def summary_lines(self) -> Sequence[str]:
        """Ten lines: verdict, steps, breakdown, top ops, first advice."""
        ends = [host.end for host in self.context.hosts if host.end is not None]
        crashes = {said for end in ends for said in (end.crash, "" if self.context.has_steps else end.failure)} - {""}
        others = [warning for warning in self.warnings if not any(crash in warning for crash in crashes)]
        return [*map("! {}".format, others), *self._steps_lines(), *self._ops_lines(), *self._advice_lines()]

    def _too_large_request(self) -> dict[str, Cell] | None:
        found = too_large_request(self.context)
        if found is None:
            return None
        return {
            "place": found.place, "requested_bytes": found.nbytes, "used_bytes": found.used, "free_bytes": found.free,
        }  # fmt: skip

    def _replay_error(self) -> float | None:
        error = self.account.replay_error_percent if self.account else None
        return None if error is None else round(error, 4)

    def _account_lines(self) -> tuple[str, ...]:
        """What stands in front of the account, and how far it is to be trusted."""
        if self.account is None:
            return ()
        if self.steps_source == "none":
            return ("No steps were found, so the whole capture is accounted for.", *self._culprit_lines())
        step = f"step {self.account.step}" + (f" on {self.account.host}" if len(self.hosts) > 1 else "")
        which = "a long one" if not self.account.is_median else "the median"
        of_step = f"The account is of {step}, {which}: {duration_text(round_ms(self.account.step_ps))} to the next step"
        said = self._outlier_sentence() or self._spread_sentence()
        return (*filter(None, [said]), f"{of_step}.", *self._culprit_lines())

    def _spread_sentence(self) -> str:
        """How long the usual steps are, where none is much longer than the others; empty of one step."""
        lengths = [amount(row["duration_ms"]) for row in self.step_rows if row["usual"]]
        if len(lengths) < 2:
            return ""
        return f"The {len(lengths)} steps take {_short(min(lengths))} to {_short(max(lengths))} ms"

    def _outliers(self) -> tuple[dict[str, Cell], ...]:
        """Complete steps that last much longer than the median one; where those take most of the time, the longest."""
        is_usual = self.account is None or self.account.is_median
        long_ms = 0.0 if is_usual or self.account is None else _LONG_FROM * round_ms(self.account.step_ps)
        least = max(OUTLIER * self._usual_ms(), long_ms)
        return tuple(row for row in self.step_rows if row["usual"] and amount(row["duration_ms"]) > least)

    def _usual_ms(self) -> float:
        lengths = sorted(amount(row["duration_ms"]) for row in self.step_rows if row["usual"])
        # Of two in the middle the shorter, as for the account: where half are long, no step lasts what lies between.
        return lengths[(len(lengths) - 1) // 2] if lengths else 0.0

    def _median_ms(self, account: StepAccount) -> float:
        return round_ms(account.step_ps) if account.is_median else self._usual_ms()

    def _outlier_sentence(self) -> str:
        outliers = self._outliers()
        if not outliers:
            return ""
        again = self._describe_recurring(". ")
        if self.account is None or self.account.is_median:
            return _outlier_text(outliers, self.step_rows[0]) + again
        whole = sum(amount(row["duration_ms"]) for row in self.step_rows if row["usual"])
        share = 100 * sum(amount(row["duration_ms"]) for row in outliers) / whole
        count = _count_text(len(outliers), "long step")
        hold = "holds" if len(outliers) == 1 else "hold"
        return f"{count} {hold} {share:.0f} % of the time; the median step takes {_short(self._usual_ms())} ms{again}"

    def _culprit_lines(self) -> Iterator[str]:
        """What to record where nothing recorded names a line of the program."""
        if self.account is not None and self.account.to_record is not None:
            yield f"To see the line of the program, {self.account.to_record}."

    def _how_lines(self) -> list[str]:
        # If a host had no markers, a warning says how steps were found.
        return [f"steps: {self.steps_how}"] if self.steps_source == "markers" else []

    @staticmethod
    def _cost_limits(profiling: ProfilingCost) -> list[float] | None:
        return None if profiling.limits is None else [round(percent, 2) for percent in profiling.limits]

    def _cost_lines(self) -> list[str]:
        return [] if self.profiling is None else [f"cost of profiling: {self.profiling.sentence()}"]

    def _steps_lines(self) -> list[str]:
        return [
            f"verdict    {self.verdict.sentence}",
            f"recorded   {self._recorded_on()}",
            f"step time  {self._step_time()}",
            self._shares_line(),
            *self._python_lines(),
        ]

    def _shares_line(self) -> str:
        """What the step waits for; of a program that ran out of memory, what filled that."""
        filled = filled_rows(self.context)[:MOST_REMEDIES]
        if filled:
            return f"filled by  {', '.join(map(_holder_text, filled))}"
        return f"goes to    {', '.join(self._largest_parts()) or 'nothing recorded'}{self._describe_hidden_device()}"

    def _python_lines(self) -> list[str]:
        """Where Python that was not recorded takes most of the step: how to see it."""
        is_python = self.account is not None and bool(self.account.rows) and self.account.rows[0].cause == "python"
        return [f"           {line[:1].lower()}{line[1:]}" for line in self._culprit_lines() if is_python]

    def _largest_parts(self) -> list[str]:
        """The causes of the account, the longest first; contention last, as a share of the whole step."""
        account = self.account.representative_step if self.account else None
        rows = sorted(account.rows, key=lambda row: row.cause == CONTENTION) if account else []
        parts = [(row.cause, account.percent(row.ps, row.cause)) for row in rows] if account else []
        said = [f"{name.replace('_', ' ')} {share:.1f} %" for name, share in parts if share >= _LEAST_SHOWN]
        if account is None or not account.is_busy or not said:
            return said
        *own, busy = said
        return [*own[:-1], f"{own[-1]} of the step without contention; {busy} of all of it"] if own else said

    def _describe_hidden_device(self) -> str:
        """How busy the busiest device is, where most of that is beside the host, so that the causes do not show it."""
        account = self.account
        bar = max(account.device_bars, key=lambda each: each.busy_ps, default=None) if account else None
        if account is None or bar is None:
            return ""
        shown = sum(row.ps for row in account.rows if row.cause in _OF_DEVICES)
        share = 100 * bar.busy_ps / account.step_ps
        return f"; meanwhile {bar.device} works for {share:.1f} %" if 2 * shown < bar.busy_ps else ""

    def _recorded_on(self) -> str:
        env = self.environment
        if env["device_type"] is None:
            return "no events"
        devices = f"{env['devices_used']} of {env['device_count']} devices used, " if env["device_count"] else ""
        framework = "no framework" if env["framework"] == "python" else env["framework"] or "unknown framework"
        return f"{framework}, {describe_workers(self.hosts)}, {devices}{env['device_type']}"

    def _step_time(self) -> str:
        time = self.step_time_ms
        if time["mean"] is None:
            count = _count_text(time["count"], "step")
            return f"unknown, of {count}: {self.steps_how}" if time["count"] else f"unknown: {self.steps_how}"
        if self.steps_source == "none":
            return f"unknown, as no steps were found; the capture lasts {_short(amount(time['mean']))} ms"
        middle = amount(self.median_step_ms)
        count = _count_text(time["count"], "step" if self.steps_source != "inferred" else "inferred step")
        limits = f", {_short(amount(time['min']))} to {_short(amount(time['max']))}" if time["count"] != 1 else ""
        # Then no step is like the others: a person who divides the time by the steps finds the mean.
        limits += f", mean {_short(amount(time['mean']))}" if self._is_mean_far(middle) else ""
        # A single step begins where each host's profiler did: who waits for whom in it says little of the others.
        does = "works longest" if self.account and self.account.steps == 1 else "sets the pace"
        on = f" on {self.account.host}, which {does}" if self.account and len(self.hosts) > 1 else ""
        cost = f", {self.profiling.short_text()}" if self.profiling else ""
        usual = sum(bool(row["usual"]) for row in self.step_rows)
        again = self._recurring.numbers if self._recurring else ()
        outliers = tuple(row for row in self._outliers() if row["step"] not in again)
        stalls = f". {_stall_text(outliers, usual)}" if outliers else ""
        return f"{_short(middle)} ms{on} ({count}{limits}){cost}{self._describe_recurring('. ')}{stalls}"

    @property
    def _recurring(self) -> LongSteps | None:
        return self.account.long_steps if self.account else None

    def _describe_recurring(self, before: str) -> str:
        """`. Every 5th step (9, 14) does more: ...`; empty where none is known to."""
        said = account_text.describe_long_steps(self._recurring) if self._recurring else ""
        return f"{before}{said[:1].upper()}{said[1:]}" if said else ""

    def _ops_lines(self) -> list[str]:
        spread = bool(self.top_ops) and amount(self.top_ops[0]["self_percent"]) < _TELLING_PERCENT
        more = 1 if self._python_lines() else 2  # ten lines in all
        heads = ("top types  " if spread else "top ops    ", *("           ",) * more)
        rows = self.top_op_types if spread else self.top_ops
        text = _type_text if spread else _op_text
        return [f"{head}{amount(op['self_percent']):5.1f} %  {text(op)}" for head, op in zip(heads, rows, strict=False)]

    def _record_lines(self) -> list[str]:
        """What comes before any advice: advice on figures that are wrong is wrong."""
        return [f"{RECORD_AGAIN}: {self.record_first}"] if self.record_first else []

    def _advice_lines(self) -> list[str]:
        if self.record_first:
            return [f"do first   {line}" for line in self._record_lines()]
        if not self.advice:
            how = [f"           - {item.what}: {item.remedy}" for item in self.missing[:MOST_REMEDIES]]
            return ["do first   record again, with the missing data", *how]
        first = self.advice[0]
        gain = f": makes steps {_gain_text(first)}" if first.predicted_speedup or first.measured else ""
        culprit = first.culprit if first.kind != "none" else None
        is_named = culprit is None or (culprit.file or culprit.name) in first.title
        where = "" if is_named or culprit is None else f", such as {account_text.where_to_look(culprit)}"
        after = f"{first.beside} " if first.beside else ""
        lines = [f"do first   {after}{first.title}{where}{gain}", *first.actions[:2], first.also]
        return [*lines[:1], *(f"           - {line}" for line in lines[1:] if line)]

    def _limit_figures(self) -> dict[str, Cell]:
        cost = None if self.profiling is None else self.profiling.percent
        return {**self.step_time_ms, "input_bound_percent": self.input_bound_percent, "profiling_cost_percent": cost}

    def main_table(self) -> Rows:
        """One row per figure: its path, value and unit."""
        units = {f.name: f.unit for f in (*LIMIT_FIELDS, *ENVIRONMENT_FIELDS, *PLACEMENT_FIELDS)}
        figures: dict[str, tuple[Cell, str]] = {}
        for group, values in (("step_time_ms", self.step_time_ms), ("environment", self.environment)):
            figures |= {f"{group}.{key}": (value, units[key]) for key, value in values.items()}
        figures |= {f"breakdown_ms.{key}": (value, "ms") for key, value in self.breakdown_ms.items()}
        figures |= {f"placement.{key}": (value, units[key]) for key, value in self.placement.items()}
        figures["input_bound_percent"] = (self.input_bound_percent, "percent")
        cost = None if self.profiling is None else self.profiling.percent
        figures["profiling_cost_percent"] = (cost, "percent")
        figures["verdict"] = (self.verdict.name, "text")
        figures["steps_source"] = (self.steps_source, "text")
        return Rows(
            "figures", "Figures", _METRIC_FIELDS, tuple(_metric(key, *figure) for key, figure in figures.items())
        )


def _holder_text(row: Mapping[str, Cell]) -> str:
    """`history` (oom.py:13) 96.9 %"""
    place = f" ({row['place']})" if row["place"] else ""
    name = f"`{row['holder']}`" if row["holder"] else str(row["kind"]).replace("_", " ")
    return f"{name}{place} {amount(row['percent']):.1f} %"


def _count_text(number: Cell, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _metric(path: str, value: Cell, unit: str) -> dict[str, Cell]:
    number = float(value) if isinstance(value, int | float) else None
    return {"metric": path, "value": number, "unit": unit, "text": value if isinstance(value, str) else None}


def _outlier_text(rows: Sequence[Mapping[str, Cell]], first: Mapping[str, Cell]) -> str:
    """Steps that last much longer than the others: how many, and which, the longest first."""
    longest, *others = sorted(rows, key=lambda row: -amount(row["duration_ms"]))
    are = "1 step takes" if len(rows) == 1 else f"{len(rows)} steps take"
    most = f"step {longest['step']} with {duration_text(amount(longest['duration_ms']))}"
    if longest is first:  # profilers take a moment: the first step of JAX took 1.1 to 1.4 times the processor time
        most += ", the first after profiling started"
    if len(rows) > _MOST_STALLS:
        most = f"most of all {most}"
    elif others:
        most += f", then {', '.join(str(row['step']) for row in others)}"
    return f"{are} more than {OUTLIER:g} times as long as the median: {most}"


def _stall_text(rows: Sequence[Mapping[str, Cell]], usual: int) -> str:
    """The same in few words; of many steps, a quarter is no stall, as where each third update follows moves."""
    if len(rows) > _MOST_STALLS and 4 * len(rows) >= usual:
        return f"{len(rows)} of them took over {OUTLIER:g} times as long as the median"
    if len(rows) > _MOST_STALLS:
        longest = max(amount(row["duration_ms"]) for row in rows)
        return f"{len(rows)} steps stalled, up to {_short(longest)} ms"
    numbers = ", ".join(str(row["step"]) for row in rows)
    return f"{'Steps' if len(rows) > 1 else 'Step'} {numbers} stalled"


def _short(ms: float) -> str:
    """A duration with as many digits as a step time is known to: three."""
    return f"{ms:,.0f}" if ms >= 1000 else f"{ms:.1f}" if ms >= 10 else f"{ms:.3g}"


def _seconds_text(ms: float) -> str:
    return f"{_short(ms)} ms" if ms < 1000 else f"{_short(ms / 1000)} s"


def _type_text(row: Mapping[str, Cell]) -> str:
    return f"{clean(str(row['category']))}, {_count_text(row['calls'], 'call')}"


def _op_text(op: Mapping[str, Cell]) -> str:
    """An op with its category, unless its name contains it."""
    category, name = str(op["category"]), str(op["name"])
    text = shorten_name(clean(name), _LONGEST_NAME)
    return text if category in name or category == "op" else f"{category}  {text}"


def _gain_text(advice: Advice) -> str:
    """`about 1.6x faster` or `at least 12x faster`; what was measured, if anything was, and not what is predicted."""
    proved = advice.measured and advice.measured.speedup
    if not proved:
        return describe_speedup(advice.predicted_speedup or 1.0, *(advice.speedup_range or (None, None)))[0]
    return f"{proved[0]:.2f}x faster (measured: {proved[1]:.2f} to {proved[2]:.2f})"


def _advice_lines(advice: Advice) -> list[str]:
    gain = f" ({_gain_text(advice)})" if advice.predicted_speedup or advice.measured else ""
    return [f"{advice.title}{gain}: {advice.evidence}", *(f"  - {action}" for action in advice.actions)]


# -- one host ----------------------------------------------------------------------------------------------------


def partial(trace: HostTrace) -> HostPart:
    """The part of one host; the tool `advice` uses the same."""
    return trace.derived("overview", _partial)


def compute_ahead(trace: HostTrace) -> None:
    """Computes what `partial` needs beside and after the account of the steps, while that begins with the account.

    First comes what needs no links between events, so that neither thread waits for the other to find them; then what
    the way back through each step needs; what needs the account comes last.  All of it is half of the time.
    """
    for compute in (*NEED_NO_LINKS, device_ops, host_ops, *NEED_NO_ACCOUNT, *NEED_ACCOUNT):
        compute(trace)


def _partial(trace: HostTrace) -> HostPart:
    steps = accounted_steps(trace)
    parts, facts = breakdown_of(trace), facts_of(trace)
    on_device, on_host = device_ops(trace), host_ops(trace)
    return HostPart(
        steps=steps,
        environment=environment_of(trace, steps.source),
        on_device=on_device.ops,
        device_types=on_device.types,
        on_host=on_host.ops,
        host_types=on_host.types,
        compute_16bit_ps=parts.compute_16bit_ps,
        compute_32bit_ps=parts.compute_32bit_ps,
        facts=facts,
        profiling=profiling_cost(trace),
        killed=last_memory_sentence(trace),
        missed=missed_steps(trace) if steps.source == "none" else None,
        account=account_of(trace),
    )


# -- all hosts ---------------------------------------------------------------------------------------------------


def merge(partials: Sequence[HostPart]) -> OverviewReport:
    """The overview of the session."""
    session = SessionFigures.combine(partials)
    hosts, aligned = session.hosts, session.aligned
    ends = [part.facts.end for part in partials]
    found = finding_of(session.taking or hosts)
    context = _rule_context(partials, session)
    account, advised = account_shown([part.account for part in partials]), advise(context)
    return OverviewReport(
        hosts=tuple(part.host for part in hosts),
        warnings=(
            *([] if all(end is not None and end.is_snapshot for end in ends) else step_warnings(hosts, aligned)),
            *([_MOVE_FETCH] if any(part.facts.feed.between_marks for part in partials) else []),
            *_warm_up_warning(session, any(part.facts.starts_up for part in partials)),
            *_empty_warning(amount(session.environment["capture_ms"]), account),
            *_start_up_warning(partials),
            *dict.fromkeys(part.missed for part in partials if part.missed),
            *dict.fromkeys(part.killed for part in partials if part.killed),
            *(f"{facts.host}: {each}; all else holds" for facts in context.hosts for each in facts.failed),
            *advised.warnings,
        ),
        partial=any(part.partial for part in hosts),
        # Bounds that measure no step tell no step time, only how many there are: none is better than a false one.
        step_time_ms={
            **(session.step_time if found.measured else step_time_statistics([])),
            "count": session.step_time["count"],
            "between_steps_percent": session.gap,
        },
        steps_source=found.source,
        steps_how=found.how,
        confidence=found.confidence,
        steps_a_host=sum(len(host.rows) for host in session.taking) / max(len(session.taking), 1),
        outside_steps_percent=session.outside_steps_percent,
        breakdown_ms=mean_breakdown(session.usual),
        input_bound_percent=None if account is None else round(input_percent(account), 4),
        verdict=advised.verdict,
        placement=session.placement,
        top_ops=session.top_ops,
        top_op_types=session.top_op_types,
        environment=session.environment,
        advice=advised.items,
        context=context,
        missing=tuple(dict.fromkeys(item for part in partials for item in part.environment.missing)),
        step_rows=_step_rows(session),
        profiling=max(filter(None, (part.profiling for part in partials)), key=lambda cost: cost.percent, default=None),
        account=account,
    )


def finish(report: OverviewReport, read: Read) -> OverviewReport:
    """The report, with what to record first, and the name of the slow input stage if the first advice is about one.

    Of the tools that know details of advice only the one that names the slow stage or function of an input pipeline is
    read; `advice` reads the others.
    """
    context = report.context.with_doubts(read)
    knows = report.advice[0].tool if report.advice and report.advice[0].tool in KNOW_CULPRITS else ""
    if not knows and not context.record_first:
        return report
    advised = advise(replace(context, read=cast(Read, lambda tool: read(tool) if tool == knows else None)))
    return replace(report, advice=advised.items, verdict=advised.verdict, context=context)


_STEP_CELLS = (
    *("step", "name", "slowest_host", "duration_ms", "complete", "usual"), *account_text.CAUSE_CELLS, *CATEGORIES
)  # fmt: skip


def _step_rows(session: SessionFigures) -> tuple[dict[str, Cell], ...]:
    """Each step as on the host that sets the pace."""
    rows, counted = session.paced, set(session.counted)
    columns = zip(
        [row.number for row in rows],
        [row.name for row in rows],
        session.on_host,
        rows_in_ms([[row.duration_ps for row in rows]])[0],
        session.aligned.complete,
        [at in counted for at in range(len(rows))],
        account_text.cause_values([row.causes_ps for row in rows]),
        rows_in_ms([row.parts_ps for row in rows]),
        strict=True,
    )
    # One dict a step, and no more: there may be a hundred thousand.
    return tuple([dict(zip(_STEP_CELLS, (*own, *causes, *parts), strict=True)) for *own, causes, parts in columns])


def _warm_up_warning(session: SessionFigures, starts_up: bool) -> Iterator[str]:
    """The warning that verdict and advice leave out warm-up steps; none without warm-up.

    Args:
        starts_up: the warm-up compiles nothing.
    """
    if session.warm_up:
        longest, usual = (
            step_time_statistics([row.duration_ps for row in rows]) for rows in (session.warm_up, session.usual)
        )
        one = len(session.warm_up) == 1
        steps = "the first step" if one else f"the first {len(session.warm_up)} steps"
        takes, compiles = ("takes", "it traces and compiles") if one else ("take", "they trace and compile")
        if one and starts_up:
            compiles = "libraries and devices start up in it"
        yield (
            f"{steps} of the capture {takes} up to {duration_text(amount(longest['max']))}, the others"
            f" {duration_text(amount(usual['mean']))} on average, because {compiles}: step times, verdict and"
            " advice leave out this warm-up; capture later (skip=..., or wait= and warmup= of a schedule)"
        )


def _empty_warning(capture_ms: float, account: StepAccount | None) -> Iterator[str]:
    """The warning that most of a recording without steps holds nothing, as before the program's work or after it."""
    if account is not None and not account.has_steps and 2 * account.step_ps < capture_ms * 1e9:
        holds, lasts = duration_text(account.step_ps / 1e9), duration_text(capture_ms)
        yield f"the recording lasts {lasts} and holds nothing but for {holds}: start it right before the work"


def _start_up_warning(partials: Sequence[HostPart]) -> Iterator[str]:
    """The warning that much of a recording is the start of libraries and devices, beside what takes longer."""
    found = (part.facts.first_calls for part in partials)
    first = max((each for each in found if each and each.is_beside), key=lambda each: each.percent, default=None)
    if first is not None:
        within = f" in `{first.op}`" if first.op else ""
        calls = f"calls that happen once, above all `{first.name}`{within} ({duration_text(first.longest_ms)})"
        yield f"{first.percent:.1f} % of the recording is {calls}: run a few steps before it starts"


def _rule_context(partials: Sequence[HostPart], session: SessionFigures) -> Context:
    """The input of the rules."""
    return Context(
        hosts=tuple(part.facts for part in partials),
        step_ms=amount(session.step_time["mean"]),
        has_device=session.has_device,
        framework=str(session.environment["framework"] or ""),
        recorder=first_recorder(part.environment.recorder for part in partials),
        top_ops=session.top_ops,
        python_recorded=any(
            PYTHON_CALLS_MISSING not in [each.what for each in part.environment.missing] for part in partials
        ),
        device_type=str(session.environment["device_type"] or ""),
        has_steps=finding_of(session.taking or session.hosts).source != "none",
    )
