"""What XProf says about the same files.

XProf (pip, tests only) runs in a process of its own on copies of the files, because it stores caches beside what it
reads.  Its JSON comes back as plain Python: numbers are floats, what it prints as NaN is None.
"""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stepscope.analysis.steps.find_steps import steps_of
from stepscope.model import HostTrace

TIMEOUT_S = 600  # of a machine that does other things as well

Row = dict[str, Any]

_BARE_NAN = re.compile(r"(?<=[:\[,])\s*[-+]?(?:nan|inf)(?=\s*[,}\]])", re.IGNORECASE)


class OracleError(Exception):
    """XProf gave no answer; the message ends with what it wrote to stderr."""


@dataclass(frozen=True)
class DataTable:
    """One of XProf's tables: a dict a row, keyed by column id, and the table's own properties as XProf prints them."""

    rows: tuple[Row, ...]
    properties: dict[str, str]


@dataclass(frozen=True)
class XprofStep:
    """One row of the step table, ms.  Multi-host profiles show host 0's steps."""

    step: str
    device_compute_ms: float
    device_to_device_ms: float
    collectives_ms: float
    host_compute_ms: float
    kernel_launch_ms: float
    input_ms: float
    output_ms: float
    compilation_ms: float
    other_ms: float
    step_time_ms: float


@dataclass(frozen=True)
class Spread:
    """Statistics as XProf prints them: rounded to 0.1, over all hosts; None where it prints NaN."""

    mean: float | None
    std: float | None
    min: float | None
    max: float | None


@dataclass(frozen=True)
class XprofOverview:
    """The overview page.

    Attributes:
        steps: the step table; XProf leaves out the first and the last of more than five.
        step_time: statistics over steps, ms, rounded to 0.1.
        input_conclusion: XProf's sentence about input.
        bottleneck: its class of input-boundness: host, both, device or unknown.
        precision_16bit_percent, precision_32bit_percent: share of device compute; None for profiles without a GPU.
        properties: everything that the first table says besides, as printed.
    """

    steps: tuple[XprofStep, ...]
    step_time: Spread
    input_conclusion: str
    bottleneck: str
    top_ops: tuple[Row, ...]
    precision_16bit_percent: float | None
    precision_32bit_percent: float | None
    host_count: int
    device_core_count: int
    device_type: str
    properties: dict[str, str]

    @property
    def input_percent(self) -> float | None:
        """Input as a share of the time of all shown steps, exact where `input_conclusion` is rounded; None without
        steps."""
        total = sum(step.step_time_ms for step in self.steps)
        return 100 * sum(step.input_ms for step in self.steps) / total if total else None


_STEP_FIELDS = {
    "deviceComputeTimeMs": "device_compute_ms",
    "deviceToDeviceTimeMs": "device_to_device_ms",
    "deviceCollectivesTimeMs": "collectives_ms",
    "hostComputeTimeMs": "host_compute_ms",
    "kernelLaunchTimeMs": "kernel_launch_ms",
    "infeedTimeMs": "input_ms",
    "outfeedTimeMs": "output_ms",
    "compileTimeMs": "compilation_ms",
    "otherTimeMs": "other_ms",
    "stepTimeMs": "step_time_ms",
}


def overview(paths: Sequence[Path]) -> XprofOverview:
    """XProf's overview of the hosts in `paths`, in that order."""
    analysis, steps, environment, advice, *_ = (_table(t) for t in _run("overview_page", paths))
    return XprofOverview(
        steps=tuple(_step(row) for row in steps.rows),
        step_time=_spread(steps.properties),
        input_conclusion=steps.properties.get("input_conclusion", ""),
        bottleneck=advice.properties.get("bottleneck", ""),
        top_ops=analysis.rows,
        precision_16bit_percent=_number(analysis.properties.get("device_compute_16bit_percent")),
        precision_32bit_percent=_number(analysis.properties.get("device_compute_32bit_percent")),
        host_count=int(environment.properties["host_count"]),
        device_core_count=int(environment.properties["device_core_count"]),
        device_type=environment.properties["device_type"],
        properties=analysis.properties,
    )


def input_pipeline(paths: Sequence[Path]) -> tuple[DataTable, ...]:
    """The five tables: busiest core (TPU), steps, host ops, recommendations, diagnostics."""
    return tuple(_table(table) for table in _run("input_pipeline_analyzer", paths))


def framework_op_stats(paths: Sequence[Path]) -> tuple[DataTable, DataTable]:
    """The op tables with and without idle time.  The percent columns are fractions."""
    with_idle, without_idle = (_table(table) for table in _run("framework_op_stats", paths))
    return with_idle, without_idle


def kernel_stats(paths: Sequence[Path]) -> DataTable:
    """The table of GPU kernels."""
    return _table(_run("kernel_stats", paths))


def hlo_stats(paths: Sequence[Path]) -> DataTable:
    """The table of HLO instructions; FLOP rates are GFLOP/s, bandwidths GiB/s."""
    return _table(_run("hlo_stats", paths))


def op_profile(path: Path) -> dict[str, Any]:
    """The trees of HLO instructions as they are: camelCase JSON, times in ps."""
    answer: dict[str, Any] = _run("op_profile", [path])
    return answer


def roofline(path: Path) -> DataTable:
    """The table of the roofline model: programs and instructions of the whole profile, then of steps."""
    return _table(_run("roofline_model", [path])[0])


def memory_profile(path: Path) -> dict[str, Any]:
    """XProf's memory profile of one host as it is: proto3 JSON, 64-bit integers as strings."""
    answer: dict[str, Any] = _run("memory_profile", [path])
    return answer


def memory_viewer(path: Path, program_id: str, module: str) -> dict[str, Any]:
    """The memory of one XLA program as it is: camelCase JSON, sizes in MiB."""
    answer: dict[str, Any] = _run("memory_viewer", [path], program_id=program_id, module_name=module)
    return answer


def pod_viewer(paths: Sequence[Path]) -> dict[str, Any]:
    """XProf's pod viewer as it is: camelCase JSON."""
    answer: dict[str, Any] = _run("pod_viewer", paths)
    return answer


def marked_ms(trace: HostTrace) -> dict[str, float]:
    """How long the mark of each step lasts.  That is XProf's step time on a host without devices; Stepscope's goes on
    to the next mark, as what the loop does between them is part of its time."""
    steps = steps_of(trace)
    lengths = (steps.end_ps - steps.start_ps).tolist()
    return {name: ps / 1e9 for name, ps in zip(steps.name, lengths, strict=True)}


def _run(tool: str, paths: Sequence[Path], **options: str) -> Any:
    if importlib.util.find_spec("xprof") is None:
        pytest.skip("XProf is not installed, so there is nothing to compare with (pip install xprof)")
    return _parse(_answer(tool, tuple(Path(path) for path in paths), tuple(options.items())))


@cache
def _answer(tool: str, paths: tuple[Path, ...], options: tuple[tuple[str, str], ...]) -> str:
    """The tool's text; the same question is asked once a test process."""
    if len({path.name for path in paths}) != len(paths):
        raise ValueError(f"XProf tells hosts by file name, and these repeat: {[path.name for path in paths]}")
    with tempfile.TemporaryDirectory(prefix="xprof-oracle-") as folder:
        copies = [str(shutil.copyfile(path, Path(folder, path.name))) for path in paths]
        output = Path(folder, "answer")
        worker = Path(__file__).with_name("oracle_worker.py")
        command = [sys.executable, str(worker), tool, str(output), json.dumps(dict(options)), *copies]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=TIMEOUT_S, check=False)
        if done.returncode != 0:
            raise OracleError(f"XProf has no {tool} of {copies} (exit {done.returncode}):\n{done.stderr[-2000:]}")
        return output.read_text(encoding="utf-8")


def _parse(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=lambda _: None)
    except json.JSONDecodeError:
        return json.loads(_BARE_NAN.sub("null", text), parse_constant=lambda _: None)


def _table(raw: dict[str, Any]) -> DataTable:
    names = [column["id"] for column in raw.get("cols", [])]
    rows = tuple(
        {name: cell.get("v") if cell else None for name, cell in zip(names, row["c"], strict=True)}
        for row in raw.get("rows", [])
    )
    return DataTable(rows, raw.get("p", {}))


def _step(row: Row) -> XprofStep:
    return XprofStep(step=row["stepnum"], **{field: row[name] for name, field in _STEP_FIELDS.items()})


def _spread(properties: dict[str, str]) -> Spread:
    return Spread(
        mean=_number(properties.get("steptime_ms_average")),
        std=_number(properties.get("steptime_ms_standard_deviation")),
        min=_number(properties.get("steptime_ms_minimum")),
        max=_number(properties.get("steptime_ms_maximum")),
    )


def _number(text: str | None) -> float | None:
    """`12.3%` and `12.3` as a number; None for nothing and for NaN in any of its spellings."""
    if text is None or "nan" in text.lower():
        return None
    return float(text.removesuffix("%"))
