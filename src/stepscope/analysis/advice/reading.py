"""Types for reading another tool's report in a rule: the tool's name selects the type of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, overload

if TYPE_CHECKING:
    from stepscope.analysis.input.input_pipeline_tool import InputPipelineReport
    from stepscope.analysis.input.tf_data_tool import TfDataReport
    from stepscope.analysis.ops.kernel_stats_tool import KernelStatsReport
    from stepscope.analysis.ops.op_stats_tool import OpStatsReport
    from stepscope.analysis.resources.memory_profile_tool import MemoryProfileReport
    from stepscope.analysis.resources.system_tool import SystemReport
    from stepscope.analysis.waits.critical_path_tool import CriticalPathReport
    from stepscope.analysis.workers.distributed_tool import DistributedReport
    from stepscope.report import Report


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
