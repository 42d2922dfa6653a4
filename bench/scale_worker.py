"""Every tool and the timeline on one profile, in one process that keeps to a set memory.

    python -m bench.scale_worker PROFILE --memory 4GB

Prints a JSON line for each piece of work: elapsed and processor time in s, and the process's peak memory during it.
Like a command with `--memory`, the process can keep large columns on disk.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from stepscope import kernels
from stepscope.engines.spilling import allow

if TYPE_CHECKING:
    from stepscope.model import HostTrace

ZOOMS = (1, 4, 16, 64, 256, 4096)
PLACES = (0.1, 0.5, 0.9)
WIDTH = 1200  # pixels of a window
MOST_SLICES = 200_000  # of an answer


def measure(name: str, work: Callable[[], object]) -> None:
    """Prints what a piece of work took."""
    forget_peak()
    started, cpu, system = time.perf_counter(), time.process_time(), os.times().system
    work()
    answer = {
        "work": name,
        "seconds": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "system": os.times().system - system,
        "peak": peak_bytes(),
        "spilled": kernels.memory.figures()[0],
    }
    print(json.dumps(answer), flush=True)


def forget_peak() -> None:
    """Has the system count the peak anew."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_bytes() -> int:
    """The process's largest memory since `forget_peak`, with what it holds of mapped files."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def run_everything(path: str, memory: str, with_tools: bool) -> None:
    """Decodes, computes every tool unless told not to, and asks for windows of the timeline."""
    import stepscope
    from stepscope.analysis.registry import all_tools
    from stepscope.cache import Cache, CacheOptions
    from stepscope.report.export import to_json

    profile = stepscope.load(path, memory=memory, cache=Cache(CacheOptions(None)))
    measure("decode", profile.trace)
    for tool in all_tools() if with_tools else ():
        measure(tool.name, lambda tool=tool: to_json(profile.report(tool.name)))  # type: ignore[misc]
    trace = profile.trace()
    measure("timeline: index", lambda: prepare_timeline(trace))
    for name, begin, end in windows(trace):
        measure(name, lambda begin=begin, end=end: ask_window(trace, begin, end))  # type: ignore[misc]


def run_single_hosts(path: str) -> None:
    """Computes the overview's part of each host, one after the other."""
    import stepscope
    from stepscope.shelf import TraceShelf

    profile = stepscope.load(path, shelf=TraceShelf())
    profile.analyse("overview", profile.hosts[0])  # imports what all hosts need
    profile.shelf.drop(lambda _: True)
    for host in profile.hosts:
        measure(host, lambda host=host: profile.analyse("overview", host))  # type: ignore[misc]


def prepare_timeline(trace: HostTrace) -> None:
    """What the page waits for before its first window."""
    from stepscope.analysis.timeline.index import index_of
    from stepscope.analysis.timeline.load import prepare_windows

    index_of(trace)
    prepare_windows(trace)


def windows(trace: HostTrace) -> Iterator[tuple[str, int, int]]:
    """Names and bounds in ps of windows: some places at each zoom."""
    begin, end = trace.span_ps()
    for zoom in ZOOMS:
        length = (end - begin) // zoom
        for place in PLACES if zoom > 1 else (0.5,):
            first = begin + round((end - begin - length) * place)
            yield f"timeline: a window, 1/{zoom}", first, first + length


def ask_window(trace: HostTrace, begin: int, end: int) -> None:
    """The slices of all tracks, and the load of all groups, as the page asks for them."""
    from stepscope.analysis.timeline.index import find_slices, index_of, level_for
    from stepscope.analysis.timeline.load import group_load
    from stepscope.analysis.timeline.tracks import all_groups, groups_of

    level = level_for(begin, end, WIDTH)
    find_slices(trace, begin, end, np.arange(index_of(trace).first_row[-1]), WIDTH, MOST_SLICES)
    for group in all_groups(groups_of(trace)):
        group_load(trace, group, begin >> level << level, -(-end >> level) - (begin >> level), level)


def main() -> None:
    """Measures in a process that can keep large columns on disk."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile")
    parser.add_argument("--memory", default="4GB")
    parser.add_argument("--timeline-only", action="store_true")
    parser.add_argument("--single-hosts", action="store_true", help="the overview's part of each host, and no more")
    options = parser.parse_args()
    if options.single_hosts:
        run_single_hosts(options.profile)
        return
    allow()
    run_everything(options.profile, options.memory, not options.timeline_only)


if __name__ == "__main__":
    main()
