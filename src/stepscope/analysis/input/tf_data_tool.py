"""The tool `tf-data`: which stage of a tf.data input pipeline makes training wait, and what to change there.

It follows the five steps of a bottleneck analysis:

1. the most input-bound host is the one with the slowest call of an input pipeline;
2. its slowest pipeline is the one with that call;
3. the graph of the pipeline is rebuilt from the calls of its iterators, across the threads that they run on;
4. the critical path contains the iterators that the slow call waited for;
5. the bottleneck is the iterator on the critical path with the longest self time, summed over the slow calls that take
   at least a tenth of the slowest. So neither one odd call decides nor many barely slow ones. A call that waited for
   work started before the capture counts only if there is no other. The graph shows the slowest call that the
   bottleneck delayed.

The long name of an iterator is `Iterator::Root::<Dataset 1>::...::<Dataset n>`. The last part is the iterator itself.
The parts before it are the transformations that read from it, the one nearest to training first. TensorFlow before
2.9 has no `Root`. TensorFlow rewrites pipelines before it runs them: `MapAndBatch` fuses a `.map()` and a `.batch()`,
`ParallelMapV2` may be a plain `.map()`, and the `Prefetch` at the top may be TensorFlow's own. The name of the dataset
op shows what the program wrote.

In JSON a node of `graph` also has: `id`, `parent` (the `id` of the node that reads from it, null for the outermost),
`long_name`, `dataset_op`, and `parallel`, true if it runs on another thread than its reader. Each of `executions` has
its own `graph`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from stepscope.analysis.account.account import account_without_culprits
from stepscope.analysis.input.iterators import iterator_calls
from stepscope.analysis.input.pipeline_advice import makes_datasets, suggestion
from stepscope.analysis.input.pipelines import RANKS, SLOW_PS, Execution, IteratorNode, Pipeline, pipelines_of
from stepscope.analysis.steps.verdict import LEAST_PERCENT
from stepscope.analysis.trace.columns import events_of_kind
from stepscope.analysis.trace.origin import Origin, header, origin_of
from stepscope.model import EventKind, HostTrace
from stepscope.records import dataclass
from stepscope.report import (
    Cell,
    Comparable,
    Field,
    Figures,
    Prose,
    Report,
    Role,
    Row,
    Rows,
    Section,
    Table,
    amount,
    duration_text,
    make_row,
    percent,
    round_ms,
    round_us,
)
from stepscope.vocabulary.lookup import has_trait
from stepscope.vocabulary.tf_data import last_part, parent_name
from stepscope.vocabulary.traits import OpTrait

PIPELINE_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host that runs the pipeline", role=Role.HOST),
    Field(
        "name", "text",
        "Host:n runs the program's tf.data code; Device:n fetches from it for one device (distribution strategies)",
        role=Role.NAME,
    ),
    Field("calls", "count", "requests for an element from the pipeline", "int"),
    Field("slow_calls", "count", "calls that took longer than 50 us", "int"),
    Field("min_us", "us", "shortest call"),
    Field("mean_us", "us", "mean duration of the calls"),
    Field("max_us", "us", "longest call"),
    Field("total_ms", "ms", "total time of all calls"),
    Field(
        "bottleneck", "text",
        "the iterator that delays its slow calls most; unknown without slow calls", role=Role.NAME,
    ),
    Field("iterators", "count", "iterators over the dataset, one per epoch or `iter()`", "int"),
)  # fmt: skip
BOTTLENECK_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the most input-bound host", role=Role.HOST),
    Field("pipeline", "text", "its slowest pipeline", role=Role.LABEL),
    Field("iterator", "text", "type of the iterator with the longest self time on the critical path", role=Role.NAME),
    Field("long_name", "text", "its long name: its readers, then the iterator itself", role=Role.NAME),
    Field("dataset_op", "text", "its dataset op; unknown in older TensorFlow", role=Role.LABEL),
    Field("self_us", "us", "its self time in the execution shown in the graph"),
    Field(
        "slow_self_percent",
        "percent",
        "its self time in the slow calls that count, as a share of that of all critical iterators",
    ),
    Field("execution_us", "us", "duration of the execution shown in the graph"),
    Field("suggestion", "text", "what to change", role=Role.TEXT),
)
GRAPH_FIELDS: tuple[Field, ...] = (
    Field("name", "text", "the iterator's type", role=Role.NAME),
    Field(
        "start_ms",
        "ms",
        "start of its first call in this execution, from the start of the host's session",
        role=Role.INSTANT,
    ),
    Field("total_us", "us", "total elapsed time of its calls in this execution"),
    Field("self_us", "us", "the same without the time in which the iterators it reads from ran for it"),
    Field("calls", "count", "its calls in this execution", "int"),
    Field("critical", "", "yes if the execution waited for it", "bool"),
    Field("bottleneck", "", "yes for the bottleneck", "bool"),
)
EXECUTION_FIELDS: tuple[Field, ...] = (
    Field("host", "text", "the host that runs the pipeline", role=Role.HOST),
    Field("pipeline", "text", "the pipeline's name", role=Role.LABEL),
    Field("rank", "number", "1 for the pipeline's slowest execution", "int", role=Role.ORDINAL),
    Field("start_ms", "ms", "its start, from the start of the host's session", role=Role.INSTANT),
    Field("duration_us", "us", "its duration"),
    Field("bottleneck", "text", "the critical iterator with the longest self time in this execution", role=Role.NAME),
)


@dataclass(frozen=True)
class PipelinesOfHost:
    """The part of one host; `input_percent` is the share of its median step that is input, None without an account."""

    origin: Origin
    framework: str
    waits: int
    has_roots: bool
    pipelines: list[Pipeline]
    runs_python: bool = False
    input_percent: float | None = None


@dataclass(frozen=True, kw_only=True)
class TfDataReport(Report):
    """The tf.data bottleneck analysis; see the FIELDS tables of this module.

    Attributes:
        pipelines: the pipelines of all hosts; those that run the program's code first, then by longest call.
        bottleneck: None if no call was slow.
        graph: nodes of the execution that `bottleneck` refers to; of the slowest one without a bottleneck.
        executions: the slowest executions of each pipeline, each with its own graph.
        summary: the finding in words.
    """

    TOOL: ClassVar[str] = "tf-data"
    MAIN_LIST: ClassVar[str] = "pipelines"

    pipelines: tuple[dict[str, Cell], ...]
    bottleneck: dict[str, Cell] | None
    graph: tuple[dict[str, Cell], ...]
    executions: tuple[dict[str, Any], ...]
    summary: tuple[str, ...]

    def body(self) -> dict[str, Any]:
        """The tool's own part of the JSON object."""
        return {
            "summary": list(self.summary),
            "pipelines": list(self.pipelines),
            "bottleneck": self.bottleneck,
            "graph": list(self.graph),
            "executions": list(self.executions),
        }

    def sections(self) -> Sequence[Section]:
        """Summary, bottleneck, all pipelines, the graph, the slowest executions."""
        found: dict[str, Cell] = self.bottleneck or dict.fromkeys((f.name for f in BOTTLENECK_FIELDS), None)
        ranked = tuple({f.name: row[f.name] for f in EXECUTION_FIELDS} for row in self.executions)
        return [
            Prose("summary", "Performance analysis", self.summary),
            Figures("bottleneck", "Bottleneck", BOTTLENECK_FIELDS[:-1], found),
            Rows("pipelines", "Input pipelines", PIPELINE_FIELDS, self.pipelines, empty=_EMPTY),
            Rows(
                "graph",
                "Graph of the slow execution",
                GRAPH_FIELDS,
                self.graph,
                empty="no execution to show",
                brief=functools.partial(_indent_name, _depths(self.graph)),
            ),
            Rows("executions", "Slowest executions", EXECUTION_FIELDS, ranked, empty="no execution to show"),
        ]

    def head(self, rows: int) -> TfDataReport:
        """The report with at most `rows` pipelines and executions."""
        return replace(self, pipelines=self.pipelines[:rows], executions=self.executions[:rows])


_EMPTY = (
    "no tf.data pipeline in the capture: the program uses none, or its host events were not recorded; record with "
    "ProfilerOptions(host_tracer_level=2)"
)


def _depths(graph: Sequence[Row]) -> dict[Cell, int]:
    """The depth of each node in the graph, by its id."""
    depth: dict[Cell, int] = {None: -1}
    for node in graph:
        depth[node["id"]] = depth[node["parent"]] + 1
    return depth


def _indent_name(depths: dict[Cell, int], node: Row) -> Row:
    """A node with its name indented by its depth."""
    return {**node, "name": "  " * depths[node["id"]] + str(node["name"])}


def _iterator_rows(report: TfDataReport) -> Iterator[dict[str, Cell]]:
    for node in report.graph:
        yield {"iterator": node["name"], "self_us": node["self_us"]}


def _pipeline_rows(report: TfDataReport) -> Iterator[dict[str, Cell]]:
    for row in report.pipelines:
        yield {"pipeline": row["name"], "total_ms": row["total_ms"], "calls": row["calls"]}


def _compare_bottlenecks(before: TfDataReport, after: TfDataReport) -> tuple[str, ...]:
    if not (before.pipelines or after.pipelines):
        return ()
    return f"bottleneck before: {_bottleneck_text(before)}", f"bottleneck after: {_bottleneck_text(after)}"


def _bottleneck_text(report: TfDataReport) -> str:
    if report.bottleneck is None:
        return "none (no call was slow)"
    return f"{report.bottleneck['iterator']}, {duration_text(float(str(report.bottleneck['self_us'])) / 1e3)} self time"


COMPARABLES = (
    Comparable(
        id="tf_data_iterators",
        title="Iterators of the slow call",
        keys=(Field("iterator", "text", "the iterator's type", role=Role.NAME),),
        measure=Field("self_us", "us", "self time of the iterator in the slow call that the graph shows"),
        rows=_iterator_rows,
        sentences=_compare_bottlenecks,
        empty="neither side has a slow call",
    ),
    Comparable(
        id="tf_data_pipelines",
        title="Input pipelines",
        keys=(Field("pipeline", "text", "the pipeline's name", role=Role.LABEL),),
        measure=Field("total_ms", "ms", "time of all calls of the pipeline, over all hosts"),
        rows=_pipeline_rows,
        count="calls",
        is_total=True,
        empty="neither side has a tf.data pipeline",
    ),
)


def partial(trace: HostTrace) -> PipelinesOfHost:
    """The part of one host."""
    calls = iterator_calls(trace)
    return PipelinesOfHost(
        origin=origin_of(trace),
        framework=trace.framework,
        waits=int((trace.events.kind == EventKind.INPUT_WAIT).sum()),
        has_roots=calls.has_roots,
        pipelines=list(pipelines_of(trace, calls)),
        runs_python=_runs_python(trace),
        input_percent=_input_share(trace),
    )


def _input_share(trace: HostTrace) -> float | None:
    """What the account of the median step puts down to input, in percent of that step."""
    account = account_without_culprits(trace)
    if account is None:
        return None
    return percent(sum(row.ps for row in account.rows if row.cause == "input"), account.step_ps)


def _runs_python(trace: HostTrace) -> bool:
    """Whether a graph called a Python function during the capture."""
    ops = events_of_kind(trace, EventKind.OP)
    return bool(has_trait(trace, trace.events.type[ops], OpTrait.CALLS_PYTHON).any())


def merge(partials: Sequence[PipelinesOfHost]) -> TfDataReport:
    """The analysis of the session."""
    found = [(part.origin.host, pipeline) for part in partials for pipeline in part.pipelines]
    found.sort(key=lambda item: (item[1].name.startswith("Device"), -item[1].max_ps))
    python = any(part.runs_python for part in partials)
    bottleneck, graph = (None, ()) if not found else _find_bottleneck(*found[0], python)
    return TfDataReport(
        **header([part.origin for part in partials], _warnings(partials)),
        pipelines=tuple(_pipeline_row(host, pipeline) for host, pipeline in found),
        bottleneck=bottleneck,
        graph=graph,
        executions=tuple(
            _execution_row(host, pipeline, execution)
            for host, pipeline in found
            for execution in pipeline.executions[:RANKS]
        ),
        summary=tuple(_summary(found, bottleneck, partials)),
    )


def _find_bottleneck(
    host: str, pipeline: Pipeline, runs_python: bool
) -> tuple[dict[str, Cell] | None, tuple[dict[str, Cell], ...]]:
    """The bottleneck of a pipeline, None without slow calls, and the graph of the execution that shows it."""
    if not pipeline.bottleneck:
        return None, _graph_rows(pipeline.executions[0], None)
    shown = next(
        (item for item in pipeline.executions if item.nodes[item.bottleneck].long_name == pipeline.bottleneck),
        pipeline.executions[0],
    )
    node = next((node for node in shown.nodes if node.long_name == pipeline.bottleneck), shown.nodes[shown.bottleneck])
    bottleneck: dict[str, Cell] = {
        "host": host,
        "pipeline": pipeline.name,
        "iterator": last_part(node.long_name),
        "long_name": node.long_name,
        "dataset_op": node.dataset_op or None,
        "self_us": round_us(node.self_ps),
        "slow_self_percent": pipeline.bottleneck_percent,
        "execution_us": round_us(shown.duration_ps),
        "suggestion": _suggest(pipeline, shown, node, runs_python),
    }
    return bottleneck, _graph_rows(shown, node.long_name)


def _suggest(pipeline: Pipeline, shown: Execution, node: IteratorNode, runs_python: bool) -> str:
    """What to change about a stage; about the stage that makes its dataset anew for each element, if one does."""
    around = [each for each in shown.nodes if _lies_below(node, each)]
    for at in (*around, node):
        inputs = [last_part(each.long_name) for each in shown.nodes if _lies_below(each, at)]
        if at is node or makes_datasets(last_part(at.long_name), inputs):
            break
    is_device = pipeline.name.startswith("Device")
    spent_us = _time_of_element(shown, at)
    return suggestion(last_part(at.long_name), at.dataset_op, is_device, runs_python, spent_us, inputs)


def _lies_below(node: IteratorNode, other: IteratorNode) -> bool:
    return node.long_name.startswith(f"{other.long_name}::")


def _time_of_element(execution: Execution, node: IteratorNode) -> float | None:
    """How long a stage takes for each element that it takes in, in us; None for a source."""
    taken = [each.calls for each in execution.nodes if parent_name(each.long_name) == node.long_name]
    return None if not taken or not max(taken) else node.self_ps / 1e6 / max(taken)


def _graph_rows(execution: Execution, bottleneck: str | None) -> Table:
    number = {node.long_name: at for at, node in enumerate(execution.nodes)}
    return tuple(
        {
            "id": at,
            "parent": number.get(parent_name(node.long_name)) if at else None,
            "name": last_part(node.long_name),
            "long_name": node.long_name,
            "start_ms": round_ms(node.start_ps),
            "total_us": round_us(node.total_ps),
            "self_us": round_us(node.self_ps),
            "calls": node.calls,
            "critical": node.critical,
            "bottleneck": node.long_name == bottleneck,
            "parallel": node.parallel,
            "dataset_op": node.dataset_op or None,
        }
        for at, node in enumerate(execution.nodes)
    )


def _pipeline_row(host: str, pipeline: Pipeline) -> Row:
    return make_row(
        PIPELINE_FIELDS,
        pipeline,
        host=host,
        mean_us=round_us(pipeline.total_ps / pipeline.calls),
        bottleneck=last_part(pipeline.bottleneck) or None,
    )


def _execution_row(host: str, pipeline: Pipeline, execution: Execution) -> dict[str, Any]:
    name = execution.nodes[execution.bottleneck].long_name if execution.duration_ps > SLOW_PS else None
    last = last_part(name) if name else None
    row = make_row(EXECUTION_FIELDS, execution, host=host, pipeline=pipeline.name, bottleneck=last)
    return {**row, "graph": list(_graph_rows(execution, name))}


def _summary(
    found: Sequence[tuple[str, Pipeline]], bottleneck: dict[str, Cell] | None, partials: Sequence[PipelinesOfHost]
) -> Iterator[str]:
    if not found:
        yield "no tf.data activity in this capture"
        return
    host, worst = found[0]
    shares = [part.input_percent for part in partials if part.input_percent is not None]
    is_fast = bool(shares) and max(shares) < LEAST_PERCENT
    if is_fast:
        yield f"the steps hardly wait for tf.data: input is {max(shares):.1f} % of the median step"
    if bottleneck is not None:
        spent = duration_text(amount(bottleneck["self_us"]) / 1e3)
        least = ", though making it faster would gain nothing" if is_fast else ""
        yield f"{bottleneck['iterator']} is the slowest stage of the input: {spent} of self time{least}"
    slow = sum(pipeline.slow_calls > 0 for _, pipeline in found)
    yield f"{slow} of {len(found)} input pipeline{'s' * (len(found) != 1)} had calls longer than 50 us"
    if bottleneck is None:
        yield "the input is not a bottleneck: its slowest call took " + duration_text(worst.max_ps / 1e9)
        return
    place = f"{worst.name} on {host}" if len(partials) == 1 else f"{worst.name} on {host}, the most input-bound host,"
    slowest = f"the slowest took {duration_text(worst.max_ps / 1e9)}"
    yield f"{place} is the slowest: {worst.slow_calls:,} of {worst.calls:,} calls were slow, {slowest}"
    yield (
        f"{worst.bottleneck_percent:.0f} % of the time for which its slow calls waited is in {bottleneck['long_name']}"
    )
    if not is_fast:
        yield f"what to do: {bottleneck['suggestion']}"


def _warnings(partials: Sequence[PipelinesOfHost]) -> Iterator[str]:
    if not any(part.pipelines for part in partials):
        yield _explain_empty(partials)
    if any(not part.has_roots for part in partials):
        yield (
            "no call of an outermost iterator ended during the capture, so the outermost recorded iterators are shown; "
            "capture for longer than one call takes"
        )


def _explain_empty(partials: Sequence[PipelinesOfHost]) -> str:
    frameworks = {part.framework for part in partials}
    if frameworks == {"pytorch"}:
        return (
            "no tf.data iterators: the program does not use tf.data; `stepscope input-pipeline` shows a recorded "
            "DataLoader"
        )
    waited = " The steps did wait for input." if any(part.waits for part in partials) else ""
    return (
        "no calls of tf.data iterators in this capture; programs that read a tf.data.Dataset record them with "
        f"ProfilerOptions(host_tracer_level=2) if a batch is fetched during the capture.{waited}"
    )
