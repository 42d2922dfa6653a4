"""Bad input: what goes wrong with the files of a job on their way, done to a folder of traces."""

from __future__ import annotations

import gzip
from collections.abc import Callable
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


def _keep_steps(trace: Trace, first: int, last: int) -> None:
    """As if the profiler had recorded only these steps, with the work that they started."""
    marks = {one["name"]: one for one in trace["traceEvents"] if one["name"].startswith("ProfilerStep#")}
    begin = marks[f"ProfilerStep#{first}"]["ts"]
    end = marks[f"ProfilerStep#{last}"]["ts"] + marks[f"ProfilerStep#{last}"]["dur"]
    trace["traceEvents"] = [one for one in trace["traceEvents"] if one["ph"] == "M" or begin <= one["ts"] < end]


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


def _different_steps(paths: list[Path]) -> None:
    for at, path in enumerate(paths):
        _change(path, lambda trace, at=at: _keep_steps(trace, at % 2, 2 + at % 2))  # type: ignore[misc]


def _for_all(change: Callable[[Trace], None]) -> Callable[[list[Path]], None]:
    return lambda paths: [_change(path, change) for path in paths] and None


def _for_last(change: Callable[[Trace], None]) -> Callable[[list[Path]], None]:
    return lambda paths: _change(paths[-1], change)


def _copy_rank(paths: list[Path]) -> None:
    first = paths[0]
    first.with_name(f"again{first.name}").write_bytes(first.read_bytes())


DAMAGES: dict[str, Callable[[list[Path]], None]] = {
    "one rank missing": lambda paths: paths[2].unlink(),
    "one file cut": lambda paths: paths[2].write_bytes(paths[2].read_bytes()[:-2000]) and None,
    "one rank stopped early": _for_last(_stop_early),
    "ranks recorded different steps": _different_steps,
    "another world size": _for_last(lambda trace: trace["distributedInfo"].update(world_size=512)),
    "one rank twice": _copy_rank,
    "no groups on one rank": _for_last(_remove_groups),
    "an unknown collective": _for_all(_rename_collective),
}
