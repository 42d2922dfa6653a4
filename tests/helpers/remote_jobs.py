"""The jobs of `remote_programs`, started for tests: each trains in a process of its own and can be captured."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from warm_python import WARM, WarmProcess

PROGRAMS = Path(__file__).with_name("remote_programs.py")


@dataclass
class Job:
    """A program that trains and can be captured."""

    process: subprocess.Popen[str] | WarmProcess
    clock: Path
    ports: dict[str, int]

    def address(self, whose: str = "ours") -> str:
        return f"localhost:{self.ports[whose]}"

    def durations_ms(self, numbers: list[int]) -> list[tuple[float, float]]:
        """The least and the most that each of these steps took by the loop's own clock, from its start to the start of
        the next one; the last one to its end."""
        lines = ([int(word) for word in line.split()] for line in self.clock.read_text().splitlines())
        at = {number: times for number, *times in lines}
        until = [*(at[number][:2] for number in numbers[1:]), *(at[number][2:] for number in numbers[-1:])]
        started = [at[number][:2] for number in numbers]
        return [
            ((end[0] - start[1]) / 1e6, (end[1] - start[0]) / 1e6) for start, end in zip(started, until, strict=True)
        ]


@contextmanager
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, and nobody else can take meanwhile."""
    with socket.socket() as held:
        held.bind(("localhost", 0))
        yield int(held.getsockname()[1])


@contextmanager
def running_jobs(folder: Path, names: Sequence[str]) -> Iterator[dict[str, Job]]:
    """Jobs by the names of their programs, all started at the same time; their clocks are files in `folder`."""
    processes = {name: start_job(name, folder / name) for name in names}
    try:
        yield {
            name: Job(process, folder / name, json.loads(process.stdout.readline()))  # type: ignore[union-attr]
            for name, process in processes.items()
        }
        for process in processes.values():
            process.communicate(timeout=300)
        assert {process.returncode for process in processes.values()} == {0}
    finally:
        for process in processes.values():
            if process.returncode is None:
                process.kill()
                process.communicate(timeout=600)


def start_job(name: str, clock: Path) -> subprocess.Popen[str] | WarmProcess:
    words = [str(PROGRAMS), name, str(clock)]
    if name != "plain":
        return WARM.start(name, words, os.environ, has_input=True)
    return subprocess.Popen(
        [sys.executable, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
