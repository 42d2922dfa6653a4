"""Damaged files through all readers and all tools, by the million: `python fuzz/nightly.py STATE [options]`.

Inputs have numbers, and each is made from its number alone.  `STATE` is a folder that remembers how far earlier runs
came; a run does `--inputs` more, or as many as fit into `--minutes`, and the next one goes on after them.  Two of the
three outcomes are right: a sound trace that every tool reports on, or one plain error.  Anything else is a finding: an
exception, more than 20 s of processor time, more than 8 GiB, or the end of the process.  Findings are kept in
`STATE/findings`, the input beside what it did, a few of each kind.

    python fuzz/nightly.py STATE --inputs 100000 --jobs 2
    python fuzz/nightly.py STATE --only 4711        does one input again, in this process

It needs no other compiler and no other package than Stepscope itself; `run.py` is for guided search.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import injuries

from stepscope.analysis.registry import all_tools
from stepscope.errors import StepscopeError
from stepscope.formats.base import format_of
from stepscope.formats.riegeli import blocks

GOAL = 1_000_000
CPU_SECONDS = 20
MEMORY_BYTES = 8 << 30
KEPT_OF_A_KIND = 5

_BATCH = 500
_CHECKSUMS = (blocks.is_right, lambda content, checksum: True)


def attempt(number: int, sources: list[injuries.Seed]) -> str:
    """Reads the file of a number and asks every tool; returns the outcome.  What raises is a finding."""
    seed = injuries.damage(number, sources)
    form = format_of(seed.name)
    assert form is not None
    # Damage that a checksum gives away ends there, so every other file is read as if all checksums were right.
    blocks.is_right = _CHECKSUMS[number // len(sources) % 2]
    try:
        trace = form.read(seed.content, seed.name, "")
    except StepscopeError:
        return "refused"
    trace.check()
    for tool in all_tools():
        try:
            json.dumps(tool.merge([tool.partial(trace)]).to_dict())
        except StepscopeError:
            continue
    return "partial" if trace.partial else "whole"


# -- a process that does some of them -------------------------------------------------------------------------------


def work(first: int, count: int, sources: list[injuries.Seed]) -> None:
    """Does inputs and writes a line about each: its number before, its outcome after."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    for number in range(first, first + count):
        print(json.dumps({"starts": number}), flush=True)
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)  # its signal ends the process, compiled loops included
        found = _describe(number, sources)
        signal.setitimer(signal.ITIMER_PROF, 0)
        print(json.dumps(found), flush=True)


def _describe(number: int, sources: list[injuries.Seed]) -> dict[str, Any]:
    try:
        return {"number": number, "outcome": attempt(number, sources)}
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if "stepscope" in frame.filename] or list(frames)
        place = f"{Path(own[-1].filename).name}:{own[-1].lineno}"
        text = traceback.format_exc()
        return {"number": number, "outcome": "finding", "kind": f"{type(error).__name__} at {place}", "text": text}


# -- the run ----------------------------------------------------------------------------------------------------------


class State:
    """How far all runs came, in a folder.

    Args:
        folder: made if it is not there.

    Attributes:
        next: the first number that no run has done.
        outcomes: how many inputs had each outcome.
        kinds: how many findings there are of each kind.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        self.next = int(known.get("next", 0))
        self.outcomes = Counter[str](known.get("outcomes", {}))
        self.kinds = Counter[str](known.get("kinds", {}))
        self._done: dict[int, int] = {}  # batches that ended before an earlier one did

    @property
    def _path(self) -> Path:
        return self.folder / "state.json"

    def add(self, first: int, count: int, results: list[dict[str, Any]], sources: list[injuries.Seed]) -> None:
        """A batch is done."""
        for result in results:
            self.outcomes[result["outcome"]] += 1
            if result["outcome"] == "finding":
                self._keep(result, sources)
        self._done[first] = count
        while self.next in self._done:
            self.next += self._done.pop(self.next)
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps({"next": self.next, "outcomes": self.outcomes, "kinds": self.kinds}, indent=1))
        draft.replace(self._path)

    def _keep(self, result: dict[str, Any], sources: list[injuries.Seed]) -> None:
        self.kinds[result["kind"]] += 1
        if self.kinds[result["kind"]] > KEPT_OF_A_KIND:
            return
        folder = self.folder / "findings"
        folder.mkdir(exist_ok=True)
        seed = injuries.damage(result["number"], sources)
        (folder / f"{result['number']}-{seed.name}").write_bytes(seed.content)
        (folder / f"{result['number']}.txt").write_text(f"{result['kind']}\n\n{result['text']}")


def run(state: State, inputs: int, seconds: float, jobs: int, corpus: Path | None) -> None:
    """Does more inputs, several processes at a time, until there are enough or the time is over."""
    sources = injuries.make_seeds(corpus)
    end, last, first = time.monotonic() + seconds, state.next + inputs, state.next
    with ThreadPoolExecutor(jobs) as threads:
        running: dict[Future[list[dict[str, Any]]], tuple[int, int]] = {}
        while running or (first < last and time.monotonic() < end):
            while first < last and len(running) < jobs and time.monotonic() < end:
                count = min(_BATCH, last - first)
                running[threads.submit(do_batch, first, count, corpus)] = first, count
                first += count
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                state.add(*running.pop(future), future.result(), sources)
                print(f"{state.next:,} of {GOAL:,} inputs, {sum(state.kinds.values()):,} findings", file=sys.stderr)


def do_batch(first: int, count: int, corpus: Path | None) -> list[dict[str, Any]]:
    """Does inputs in another process, and in further ones after each that such a process did not survive."""
    results: list[dict[str, Any]] = []
    while len(results) < count:
        found, status = _do_in_process(first + len(results), count - len(results), corpus)
        results += found
        if status and len(results) < count:
            number = first + len(results)
            kind = f"ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            results.append({"number": number, "outcome": "finding", "kind": kind, "text": kind})
    return results


def _do_in_process(first: int, count: int, corpus: Path | None) -> tuple[list[dict[str, Any]], int]:
    command = [sys.executable, __file__, os.devnull, "--work", str(first), str(count)]
    command += [] if corpus is None else ["--corpus", str(corpus)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.endswith("}")]
    if not lines:
        raise RuntimeError(f"no input was started; see what `{' '.join(command)}` says")
    return [line for line in lines if "outcome" in line], done.returncode


def main() -> int:
    """Runs; the status is 1 if there are findings, those of earlier runs included."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("state", type=Path)
    parser.add_argument("--inputs", type=int, default=GOAL)
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--corpus", type=Path, help="a folder with small profiles, as further seeds")
    parser.add_argument("--only", type=int, help="do this input alone, and show what it does")
    parser.add_argument("--work", type=int, nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.work is not None:
        work(*asked.work, injuries.make_seeds(asked.corpus))
        return 0
    if asked.only is not None:
        print(attempt(asked.only, injuries.make_seeds(asked.corpus)))
        return 0
    state = State(asked.state)
    run(state, min(asked.inputs, max(GOAL - state.next, 0)), 60 * asked.minutes, asked.jobs, asked.corpus)
    print(json.dumps({"inputs": state.next, "outcomes": state.outcomes, "kinds": state.kinds}, indent=1))
    return 1 if state.kinds else 0


if __name__ == "__main__":
    sys.exit(main())
