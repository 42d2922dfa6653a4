"""What `stepscope over-time` answers with."""

from __future__ import annotations

from typing import ClassVar

from stepscope.records import dataclass
from stepscope.report import Field, Lines, Report, Role, Row, Table, as_figures, as_prose, as_table

RUN_FIELDS: tuple[Field, ...] = (
    Field("run", "text", "name of the run whose time series this is", role=Role.LABEL),
    Field("hours", "h", "time between the first row and the last", role=Role.MEASURE),
    Field("steps", "count", "steps that ended in this time", "int"),
    Field("step_ms_median", "ms", "median of the median step of each row"),
    Field("step_change_percent", "percent", "change of the median step from the first fifth of the run to the last",
          role=Role.CHANGE),
    Field("slow_steps", "count", "steps that were far longer than those before them", "int"),
    Field("contended_steps", "count", "slow steps that would not be slow if their thread had not waited for a "
          "processor", "int"),
    Field("triggers", "count", "triggers that the watch noticed", "int"),
    Field("watch_percent", "percent", "what the watch has cost, as far as it measures that: the windows of the "
          "framework's profiler, and the processor time of its own threads"),
)  # fmt: skip
ROW_FIELDS: tuple[Field, ...] = (
    Field("hour", "h", "time since the first row or trigger", role=Role.MEASURE),
    Field("time", "text", "local time", role=Role.LABEL),
    Field("host", "text", "the host", role=Role.HOST),
    Field("steps", "count", "steps that ended", "int"),
    Field("step_ms_median", "ms", "median step"),
    Field("step_ms_p90", "ms", "90th percentile of the step time"),
    Field("step_ms_max", "ms", "longest step"),
    Field("slow_steps", "count", "steps that were far longer than those before them", "int"),
    Field(
        "contended_steps",
        "count",
        "slow steps that would not be slow if their thread had not waited for a core",
        "int",
    ),
    Field("thread_cpu_percent", "percent", "share of the step in which the thread of the steps computed"),
    Field("thread_queued_percent", "percent", "share of the step in which it waited for a core"),
    Field("collector_percent", "percent", "share of the step in which Python's garbage collector ran"),
    Field("cpu_process_percent", "percent of a core", "processor time of the process", role=Role.MEASURE),
    Field("cpu_machine_percent", "percent", "how busy all processors of the machine were"),
    Field("resident_bytes", "bytes", "memory of the process that is in RAM"),
    Field("device_allocated_bytes", "bytes", "memory of the devices that the framework uses"),
    Field("marks", "text", "triggers of this time, by kind", role=Role.TEXT),
)
MARK_FIELDS: tuple[Field, ...] = (
    Field("hour", "h", "time since the first row or trigger", role=Role.MEASURE),
    Field("time", "text", "local time", role=Role.LABEL),
    Field("host", "text", "the host", role=Role.HOST),
    Field("trigger", "text", "kind of trigger", role=Role.TERM),
    Field("step", "number", "the step at that moment", "int", role=Role.STEP),
    Field("sentence", "text", "what happened, and why if that is known", role=Role.TEXT),
    Field("run", "text", "session with what came before; empty if it was only noticed", role=Role.LABEL),
    Field("window", "text", "session with the framework's record of the steps after", role=Role.LABEL),
)
GROWTH_FIELDS: tuple[Field, ...] = (
    Field("memory", "text", "kind of memory", role=Role.LABEL),
    Field("first_bytes", "bytes", "level after the warm-up"),
    Field("last_bytes", "bytes", "level at the end"),
    Field("bytes_per_hour", "bytes/h", "median slope between any two rows", role=Role.CHANGE),
    Field("least_bytes_per_hour", "bytes/h", "lower end of its 95 % interval", role=Role.CHANGE),
    Field("most_bytes_per_hour", "bytes/h", "upper end of its 95 % interval", role=Role.CHANGE),
    Field("grows", "", "whether it clearly grows", "bool"),
    Field("percent_of_growth", "percent", "its part of the growth of the process; unknown for other memories"),
)
CAPTURE_FIELDS: tuple[Field, ...] = (
    Field("hour", "h", "time since the first row or trigger", role=Role.MEASURE),
    Field("run", "text", "session", role=Role.LABEL),
    Field("trigger", "text", "why it was captured", role=Role.TERM),
    Field("step_ms", "ms", "median step in it"),
    Field("verdict", "text", "what limits the steps in it", role=Role.TERM),
    Field("causes", "text", "the largest causes of the account of its median step, with their shares",
          role=Role.TEXT),
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OverTimeReport(Report):
    """A run over time.

    Attributes:
        figures: of the whole run, as `RUN_FIELDS`.
        findings: what stands out, in sentences, the most important first.
        rows: the time series, thinned out to what a page can show.
        marks: the triggers.
        growth: each kind of memory.
        captures: the parts of the account in the sessions that the watch has kept.
        runs: those that have a time series.
    """

    TOOL: ClassVar[str] = "over-time"

    findings: Lines = as_prose("What stands out")
    figures: Row = as_figures("The run", RUN_FIELDS)
    marks: Table = as_table("Triggers", MARK_FIELDS, "nothing was triggered")
    growth: Table = as_table("Memory", GROWTH_FIELDS, "too few rows to measure growth")
    captures: Table = as_table("Captures", CAPTURE_FIELDS, "no capture was kept")
    rows: Table = as_table("Over time", ROW_FIELDS, "no row has been written yet")
    runs: tuple[str, ...]
