"""How long each part of a cold `stepscope overview FILE` takes: `python -m bench.budget FILE [--rounds N]`.

Each round is a fresh process that does one part after the other on one thread, with files in the page cache and modules
compiled to bytecode.  The figures are the least of all rounds, in processor time.  The command itself overlaps some
parts, so with two cores it takes less than their sum.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from bench.process import REPOSITORY

LIBRARY = ("re", "typing", "dataclasses", "inspect", "pathlib", "json", "threading", "concurrent.futures", "hashlib")
FACES = ("stepscope.cli.main", "stepscope.cli.tools", "stepscope.api")
READER, TOOL = "stepscope.formats.xspace.reader", "stepscope.analysis.overview.overview_tool"


def _importer(*modules: str) -> Callable[[], object]:
    return lambda: [importlib.import_module(module) for module in modules]


def measure_parts(path: str) -> dict[str, float]:
    """Does all parts in this process; returns the processor time of each in ms."""
    spent: dict[str, float] = {}
    kept: dict[str, Any] = {}

    def take(name: str, work: Callable[[], Any]) -> None:
        before = time.process_time()
        kept[name] = work()
        spent[name] = 1e3 * (time.process_time() - before)

    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as the command does
    take("standard library", _importer(*LIBRARY))
    take("numpy", _importer("numpy"))
    take("msgspec", _importer("msgspec"))
    take("command line, search, cache, report", _importer(*FACES))
    sys.modules["stepscope.kernels"].memory.prefer_large_heap()
    take("reader and its loops", _importer(READER))
    take("the tool and what it computes with", _importer(TOOL))
    reader, tool, store = sys.modules[READER], sys.modules[TOOL], sys.modules["stepscope.formats.store"]
    take("reading and decoding", lambda: reader.read(store.open_source(path), path, "bench"))
    take("analysis", lambda: tool.partial(kept["reading and decoding"]))
    take("merging, advice", lambda: tool.merge([kept["analysis"]]))
    take("JSON", lambda: kept["merging, advice"].to_json())
    return spent


def _run_in_process(*arguments: str) -> Mapping[str, float]:
    command = [sys.executable, "-m", "bench.budget", *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True)
    answer: dict[str, float] = json.loads(done.stdout)
    return answer


def _processor_ms(command: list[str], environment: Mapping[str, str]) -> float:
    """The processor time of a whole process, in ms."""
    before = os.times()
    subprocess.run(command, cwd=REPOSITORY, check=True, stdout=subprocess.DEVNULL, env={**os.environ, **environment})
    after = os.times()
    return 1e3 * (after.children_user + after.children_system - before.children_user - before.children_system)


def measure_commands(path: str, rounds: int) -> dict[str, float]:
    """The processor time in ms of the interpreter alone, the command without a cache, and its second run with one."""
    start = [sys.executable, "-c", "from stepscope.cli.main import main; main()", "overview", path, "--format", "json"]
    with tempfile.TemporaryDirectory() as folder:
        kept = {"STEPSCOPE_CACHE": "on", "STEPSCOPE_CACHE_DIR": folder}
        _processor_ms(start, kept)
        wanted = {
            "interpreter": ([sys.executable, "-c", "pass"], {}),
            "the command, first time": (start, {"STEPSCOPE_CACHE": "off"}),
            "the command, second time": (start, kept),
        }
        return {
            name: min(_processor_ms(command, environment) for _ in range(rounds))
            for name, (command, environment) in wanted.items()
        }


def main() -> None:
    """Prints the table, or with `--parts` the parts of this process."""
    parser = argparse.ArgumentParser(prog="python -m bench.budget", description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--parts", action="store_true", help="measure in this process")
    options = parser.parse_args()
    if options.parts:
        print(json.dumps(measure_parts(options.file)))
        return
    path = str(Path(options.file).resolve())
    found = [_run_in_process(path, "--parts") for _ in range(options.rounds)]
    totals = measure_commands(path, options.rounds)
    least = {name: min(each[name] for each in found) for name in found[0]}
    print("| part | ms |\n| --- | ---: |")
    for name, spent in [("interpreter", totals.pop("interpreter")), *least.items(), *totals.items()]:
        print(f"| {name} | {spent:.0f} |")


if __name__ == "__main__":
    main()
