"""Bad input: what goes wrong with the files of a job on their way, done to a folder of traces."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

Trace = dict[str, Any]


def damage_job(folder: Path, how: str) -> None:
    """Damages the traces in a folder; `how` is one of DAMAGES."""
    DAMAGES[how](sorted(folder.glob("*.pt.trace.json.gz")))


def _change(path: Path, change: Callable[[Trace], None]) -> None:
    trace = msgspec.json.decode(gzip.decompress(path.read_bytes()))
    change(trace)
    path.write_bytes(gzip.compress(msgspec.json.encode(trace), 1))


def _leave_out_step(trace: Trace, which: int) -> None:
    """As if the profiler had not recorded the first (0) or the last (-1) step, with the work that it started."""
    marks = sorted((one["ts"], one["dur"]) for one in trace["traceEvents"] if one["name"].startswith("ProfilerStep#"))
    begin, length = marks[which]
    trace["traceEvents"] = [
        one for one in trace["traceEvents"] if one["ph"] == "M" or not begin <= one["ts"] < begin + length
    ]


def _stop_early(trace: Trace) -> None:
    events = [one["ts"] for one in trace["traceEvents"]]
    middle = (min(events) + max(events)) / 2
    trace["traceEvents"] = [one for one in trace["traceEvents"] if one["ph"] == "M" or one["ts"] < middle]


def _remove_groups(trace: Trace) -> None:
    trace["distributedInfo"] = {
        "backend": "nccl",
        **{at: trace["distributedInfo"][at] for at in ("rank", "world_size")},
    }
    for one in trace["traceEvents"]:
        for name in ("Process Group Name", "Process Group Ranks", "Process Group Description"):
            one.get("args", {}).pop(name, None)


def _rename_collective(trace: Trace) -> None:
    for one in trace["traceEvents"]:
        if one.get("args", {}).get("Collective name") == "_reduce_scatter_base":
            one["args"]["Collective name"] = "permute_blocks"
            if one["cat"] == "kernel":
                one["name"] = "ncclDevKernel_PermuteBlocks_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def _keep_other_steps(paths: list[Path]) -> None:
    for at, path in enumerate(paths):
        _change(path, partial(_leave_out_step, which=-(at % 2)))


def _change_all(change: Callable[[Trace], None], paths: list[Path]) -> None:
    for path in paths:
        _change(path, change)


def _change_last(change: Callable[[Trace], None], paths: list[Path]) -> None:
    _change(paths[-1], change)


def _cut_file(paths: list[Path]) -> None:
    paths[2].write_bytes(paths[2].read_bytes()[:-2000])


def _copy_rank(paths: list[Path]) -> None:
    paths[0].with_name(f"again{paths[0].name}").write_bytes(paths[0].read_bytes())


DAMAGES: dict[str, Callable[[list[Path]], None]] = {
    "one rank missing": lambda paths: paths[2].unlink(),
    "one file cut": _cut_file,
    "one rank stopped early": partial(_change_last, _stop_early),
    "ranks recorded different steps": _keep_other_steps,
    "another world size": partial(_change_last, lambda trace: trace["distributedInfo"].update(world_size=512)),
    "one rank twice": _copy_rank,
    "no groups on one rank": partial(_change_last, _remove_groups),
    "an unknown collective": partial(_change_all, _rename_collective),
}
