"""One measurement in a fresh process: `python -m bench.worker TASK FILE [--tool NAME] [--warm FILE] [--repeat N]
[--one-core]`.

Prints one JSON line with the time of each call and facts about the result, so that the tables can show that the tools
did the same work.  With `--warm` the task first runs on that small file, and that run does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Answer = dict[str, Any]
Task = Callable[[Path, str], tuple[float, Answer]]

HEAVY = ("numpy", "pyarrow", "pandas", "tensorflow", "jax", "torch")


def stepscope_tool(path: Path, tool: str) -> tuple[float, Answer]:
    """Times `stepscope.load(path).TOOL()` up to its dict."""
    import stepscope

    begin = time.perf_counter()
    result = stepscope.load(str(path)).report(tool).to_dict()
    return time.perf_counter() - begin, _stepscope_answer(tool, result)


def stepscope_decoded(path: Path, tool: str) -> tuple[float, Answer]:
    """The same on a trace that is already in memory and that another tool has used."""
    import stepscope

    profile = stepscope.load(str(path))
    profile.steps()
    begin = time.perf_counter()
    result = profile.report(tool).to_dict()
    return time.perf_counter() - begin, _stepscope_answer(tool, result)


def _stepscope_answer(tool: str, result: Answer) -> Answer:
    if tool == "overview":
        times = result["step_time_ms"]
        return {"steps": times["count"], "mean_ms": times["mean"]}
    lists = {"memory-profile": "memories", "tf-data": "pipelines"}
    what = lists.get(tool, "rows")
    return {what: len(result[what])}


def xprof_tool(path: Path, tool: str) -> tuple[float, Answer]:
    """Times a page of XProf up to its JSON text."""
    from xprof.convert import raw_to_tool_data

    begin = time.perf_counter()
    data, _ = raw_to_tool_data.xspace_to_tool_data([str(path)], tool, {})
    seconds = time.perf_counter() - begin
    if not data:
        raise RuntimeError("XProf returned no data")
    return seconds, xprof_answer(tool, data)


def xprof_answer(tool: str, data: bytes | str) -> Answer:
    """Facts for the tables about an answer of XProf, or of a server with the same protocol."""
    answer = json.loads(data)
    if tool == "overview_page":
        return {"steps": len(answer[1]["rows"]), "mean_ms": float(answer[1]["p"]["steptime_ms_average"])}
    if isinstance(answer, dict):
        return {"rows": len(answer["rows"])} if "rows" in answer else {"memories": len(answer.get("memoryIds", ()))}
    return {"rows": max(len(table.get("rows", ())) for table in answer)}


def stepscope_decode(path: Path, _: str) -> tuple[float, Answer]:
    """Times Stepscope's reader: bytes to columns."""
    from stepscope.formats.xspace.reader import read

    data = path.read_bytes()
    begin = time.perf_counter()
    trace = read(data, str(path), "bench")
    seconds = time.perf_counter() - begin
    return seconds, {"events": len(trace.events)}


def xprof_decode(path: Path, _: str) -> tuple[float, Answer]:
    """Times XProf's reader: bytes to a protobuf tree in C++, without analysis."""
    from xprof.profile_data import ProfileData

    data = path.read_bytes()
    begin = time.perf_counter()
    profile = ProfileData.from_serialized_xspace(data)
    seconds = time.perf_counter() - begin
    planes = sum(1 for _ in profile.planes)
    profile.close()
    return seconds, {"planes": planes}


def import_stepscope(_: Path, __: str) -> tuple[float, Answer]:
    """Times `import stepscope`, and lists the heavy packages that it imports."""
    before = set(sys.modules)
    begin = time.perf_counter()
    import stepscope  # noqa: F401 - the import is what is measured

    seconds = time.perf_counter() - begin
    return seconds, {"brought": [name for name in HEAVY if name in set(sys.modules) - before]}


def import_xprof(_: Path, __: str) -> tuple[float, Answer]:
    """Times the import of XProf's conversion module."""
    begin = time.perf_counter()
    from xprof.convert import raw_to_tool_data  # noqa: F401 - the import is what is measured

    return time.perf_counter() - begin, {}


TASKS: dict[str, Task] = {
    task.__name__: task
    for task in (
        stepscope_tool,
        stepscope_decoded,
        xprof_tool,
        stepscope_decode,
        xprof_decode,
        import_stepscope,
        import_xprof,
    )
}


def main() -> None:
    """Runs the task of the command line and prints its result."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=sorted(TASKS))
    parser.add_argument("file", type=Path)
    parser.add_argument("--tool", default="")
    parser.add_argument("--warm", type=Path)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--one-core", action="store_true")
    options = parser.parse_args()
    if options.one_core:
        # Before any library counts the cores.
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    task = TASKS[options.task]
    if options.warm:
        task(options.warm, options.tool)
    calls, answer = [], Answer()
    for _ in range(options.repeat):
        seconds, answer = task(options.file, options.tool)
        calls.append(seconds)
    print(json.dumps({"calls": calls, "answer": answer}))


if __name__ == "__main__":
    main()
