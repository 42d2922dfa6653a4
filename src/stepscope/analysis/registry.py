"""What a tool is, and the one list of tools that the command line, the API and the docs read.

Adding a tool is one module and one line in `TOOLS`.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from stepscope.errors import UsageError
from stepscope.plugins import plugins_of
from stepscope.records import dataclass

if TYPE_CHECKING:
    from stepscope.model import HostTrace
    from stepscope.report import Comparable, Report


@dataclass(frozen=True)
class Tool:
    """One analysis.

    The module has two functions: `partial(trace) -> P` makes a small msgspec-encodable value of one host, whose type
    its annotation names; `merge([P]) -> Report`.  This seam gives caching per host and many hosts in parallel.
    `RELATIONS` names the attributes of P that hold rows of a relation: those of many hosts are folded into one.  Where
    P has other large parts, `combine_hosts([P]) -> [P]` makes them small without changing what `merge` makes of them.
    Its `COMPARABLES` say what of the report can be compared between two sessions, or `NOT_COMPARABLE` why nothing can.

    Attributes:
        name: as on the command line.
        summary: one line for help texts and docs.
        wing: the folder of `analysis/` that it lies in, as `<name>_tool.py`; imported on first use.
        partial_of: the tool whose partials it merges, so that they are computed and kept once; its own if empty.
        module_name: the dotted name of the module, for a tool that lies elsewhere.
        edition: the package and version of a tool of another package; what it computed is kept for that edition only.
        asks_for_all: it reads stats of `stepscope.formats.leaving_out`, so nothing that it reads is left out.
    """

    name: str
    summary: str
    wing: str = ""
    partial_of: str = ""
    module_name: str = ""
    edition: str = ""
    asks_for_all: bool = False

    @property
    def method(self) -> str:
        """The name as a Python method."""
        return self.name.replace("-", "_")

    @property
    def module(self) -> str:
        """The dotted name of the tool's module."""
        return self.module_name or f"stepscope.analysis.{self.wing}.{self.method}_tool"

    @property
    def cache_name(self) -> str:
        """The name under which its results are kept; that of another package's tool holds its version."""
        return (
            f"{self.name}-{re.sub('[^A-Za-z0-9.]+', '-', self.edition)[:_MOST_EDITION]}" if self.edition else self.name
        )

    @property
    def title(self) -> str:
        """The name as a heading."""
        return _TITLES.get(self.name) or self.name.replace("-", " ").capitalize()

    def partial(self, trace: HostTrace) -> Any:
        """What one host contributes."""
        return self._module_of_partial.partial(trace)

    def compute_ahead(self, trace: HostTrace) -> None:
        """Computes what `partial` needs late, and keeps it with the trace: for another thread, while `partial` begins.

        Few modules have a function of this name.
        """
        compute = getattr(self._module_of_partial, "compute_ahead", None)
        if compute:
            compute(trace)

    def combine_hosts(self, partials: Sequence[Any]) -> list[Any]:
        """As many partials in the same order, with what can be added up moved to one of them.

        `merge` makes the same report of them, and of these together with those of other hosts.
        """
        if len(partials) < 2:
            return [*partials]
        module = self._module_of_partial
        if relations := getattr(module, "RELATIONS", None):
            from stepscope.report.relation import fold_hosts

            return fold_hosts(partials, relations)
        combine_hosts = getattr(module, "combine_hosts", None)
        return combine_hosts(partials) if combine_hosts else [*partials]

    def merge(self, partials: Sequence[Any]) -> Report:
        """The report of all hosts; at least one partial."""
        report: Report = importlib.import_module(self.module).merge(partials)
        return report

    def finish(self, report: Report, read: Callable[[str], Report | None]) -> Report:
        """The report with what the results of other tools add.  Few modules have a function of this name.

        Args:
            read: gives another tool's report, None where it is not to be had.
        """
        finish = getattr(importlib.import_module(self.module), "finish", None)
        finished: Report = finish(report, read) if finish else report
        return finished

    @property
    def partial_type(self) -> type[Any]:
        """The type of what `partial` returns."""
        partial = self._module_of_partial.partial
        named: str | type[Any] = partial.__annotations__["return"]
        kind: type[Any] = partial.__globals__[named] if isinstance(named, str) else named
        return kind

    @property
    def comparables(self) -> tuple[Comparable, ...]:
        """What of its report can be compared between two sessions; a module without `COMPARABLES` declares nothing."""
        declared: tuple[Comparable, ...] = getattr(importlib.import_module(self.module), "COMPARABLES", ())
        return declared

    @property
    def not_comparable(self) -> str:
        """Why nothing of its report can be compared, from `NOT_COMPARABLE` of its module; empty if something can."""
        reason: str = getattr(importlib.import_module(self.module), "NOT_COMPARABLE", "")
        return reason

    @property
    def _module_of_partial(self) -> Any:
        return importlib.import_module(tool_named(self.partial_of).module if self.partial_of else self.module)


GUIDE_NAMES = {
    "overview_page": "overview",
    "input_pipeline_analyzer": "input-pipeline",
    "tensorflow_stats": "op-stats",
    "framework_op_stats": "op-stats",
    "tf_data_bottleneck_analysis": "tf-data",
    "roofline_model": "roofline",
    "inference_profile": "inference",
}
"""What the guide of the TensorFlow Profiler and XProf call tools that have another name here."""

_TITLES = {"tf-data": "tf.data", "hlo-stats": "HLO stats"}
"""Of tools whose title is not their name in other letters."""

TOOLS: tuple[Tool, ...] = (
    Tool("overview", "where the step time goes, what limits it, what to do first", "overview"),
    Tool("steps", "every step with its duration, and what it waited for", "account"),
    Tool("input-pipeline", "whether steps wait for input, and where the input's time goes", "input"),
    Tool("op-stats", "every op on hosts and devices, and the time it takes", "ops"),
    Tool("kernel-stats", "every kernel, the op it belongs to, and its launch", "ops", asks_for_all=True),
    Tool("memory-profile", "how full each memory is, and what fills it at its peak", "resources", asks_for_all=True),
    Tool("pod-viewer", "every step on every worker, and which worker is slowest", "workers"),
    Tool(
        "advice",
        "what to change first, why, and the step time to expect",
        "overview",
        partial_of="overview",
        asks_for_all=True,
    ),
    Tool("proofs", "what changes gave when they were tried in the running job", "overview", partial_of="overview"),
    Tool("tf-data", "which stage of a tf.data pipeline is slow, and what to change", "input"),
    Tool(
        "distributed",
        "how ranks spend their time, and which one holds up the others",
        "workers",
    ),
    Tool("idle", "why devices stand idle, and how launches reach their queues", "waits"),
    Tool("modules", "the modules of the model, and the time each takes", "ops"),
    Tool("annotations", "the ranges that the program named, and the time each takes", "ops"),
    Tool("syncs", "where the host waits for a device, and from which line", "waits"),
    Tool("op-shapes", "the lines that call ops, and each op by its input shapes", "ops"),
    Tool("critical-path", "what a step waits for, moment by moment", "waits"),
    Tool("sequences", "repeating sequences of kernels", "ops"),
    Tool(
        "op-profile",
        "the time of XLA programs as trees, and how much is wasted",
        "xla",
        partial_of="hlo-stats",
    ),
    Tool("hlo-stats", "every XLA instruction, and how near it is to the limits", "xla"),
    Tool("graph-viewer", "each XLA program as a graph, with its slowest path", "xla"),
    Tool("memory-viewer", "what fills the memory of each XLA program at its peak", "xla"),
    Tool("roofline", "how near each op and program is to the device's limits", "xla"),
    Tool("inference", "how long a model takes to answer, and why some runs are slow", "xla"),
    Tool("trust", "whether the recording can be trusted, and what was repaired", "trust"),
    Tool("system", "how busy CPU, memory, disk and GPU were during the capture", "resources", asks_for_all=True),
)


GROUP = "stepscope.tools"

_MOST_EDITION = 40  # characters


def all_tools() -> tuple[Tool, ...]:
    """The tools of this package and of installed ones."""
    added, taken = plugins_of(GROUP, Tool), {tool.name for tool in TOOLS}
    editions = zip(added.found, added.editions, strict=True)
    return (*TOOLS, *(replace(tool, edition=edition) for tool, edition in editions if tool.name not in taken))


def tool_named(name: str) -> Tool:
    """The tool of that name.  Raises UsageError with the list of tools if there is none."""
    found = _find_tool(TOOLS, name) or _find_tool(all_tools(), name)
    if found is None:
        from difflib import get_close_matches

        names = [tool.name for tool in all_tools()]
        near = get_close_matches(name, names, n=1)
        known = f"did you mean {near[0]!r}?" if near else f"tools: {', '.join(names)}"
        hints = (known, *plugins_of(GROUP, Tool).warnings)
        raise UsageError(f"there is no tool named {name!r}", hint="; ".join(hints))
    return found


def _find_tool(tools: Sequence[Tool], name: str) -> Tool | None:
    name = GUIDE_NAMES.get(name, name)
    return next((tool for tool in tools if tool.name == name or tool.method == name), None)
