"""Runs a process with a limit of time and memory, and measures it."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[1]
SHARE_OF_MEMORY = 0.9
OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "annot allocate memory", "memory allocation of", "ENOMEM")
# Linux counts peak memory in KiB, macOS in bytes.
RSS_UNIT = 1 if sys.platform == "darwin" else 1024


@dataclass(frozen=True)
class Limits:
    """What one process may use.  A process that exceeds it is stopped, and the tables say so."""

    seconds: float
    address_space_bytes: int

    @classmethod
    def for_this_machine(cls, seconds: float) -> Limits:
        """Limits with nine tenths of the physical memory as address space."""
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        return cls(seconds, int(physical * SHARE_OF_MEMORY))


@dataclass(frozen=True)
class Sample:
    """One run.

    Attributes:
        wall_s: the time from the start of the process to its exit.
        cpu_s: processor time of the process and all its threads.
        peak_bytes: its peak resident memory.
        calls_s: the times of calls that it measured itself; may be empty.
        answer: facts about its result; may be empty.
        failure: why there is no result, or None.
    """

    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_bytes: int = 0
    calls_s: tuple[float, ...] = ()
    answer: Mapping[str, Any] = field(default_factory=dict)
    failure: str | None = None


def _environment() -> dict[str, str]:
    """The environment of this process, but with bytecode: installed packages have theirs from the start."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Running:
    """A started process; `finish` waits for it."""

    def __init__(self, command: Sequence[str], limits: Limits, environment: Mapping[str, str]) -> None:
        self.limits = limits
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 - closed in `finish`
        self.begin = time.perf_counter()
        self.process = subprocess.Popen(
            list(command),
            stdout=self.out,
            stderr=self.err,
            cwd=REPOSITORY,
            env={**_environment(), **environment},
            preexec_fn=self._limit,
        )
        self.timed_out = False
        self.timer = threading.Timer(limits.seconds, self._stop)
        self.timer.start()

    def _limit(self) -> None:
        bound = self.limits.address_space_bytes
        resource.setrlimit(resource.RLIMIT_AS, (bound, bound))

    def _stop(self) -> None:
        self.timed_out = True
        self.send(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Sends a signal to the process.  Popen's own methods would first collect its exit, which `finish` needs."""
        if self.process.returncode is None:
            os.kill(self.process.pid, number)

    def finish(self) -> tuple[Sample, str]:
        """Waits for the end; returns the sample without calls and answer, and what the process printed."""
        _, status, usage = os.wait4(self.process.pid, 0)
        wall = time.perf_counter() - self.begin
        self.timer.cancel()
        self.process.returncode = os.waitstatus_to_exitcode(status)
        printed, complaint = _read_text(self.out), _read_text(self.err)
        failure = self._failure(complaint)
        processor = usage.ru_utime + usage.ru_stime
        return Sample(wall, processor, usage.ru_maxrss * RSS_UNIT, failure=failure), printed

    def _failure(self, complaint: str) -> str | None:
        code = self.process.returncode
        if self.timed_out:
            return f"stopped after {self.limits.seconds:.0f} s"
        if code == 0:
            return None
        if any(sign in complaint for sign in OUT_OF_MEMORY):
            return f"needs more than {self.limits.address_space_bytes / 1e9:.1f} GB of address space"
        lines = complaint.strip().splitlines() or ["no message"]
        return f"exit {code}: {lines[-1][:160]}"


def _read_text(file: Any) -> str:
    file.seek(0)
    with file:
        content: bytes = file.read()
    return content.decode(errors="replace")


def run_command(command: Sequence[str], limits: Limits, environment: Mapping[str, str]) -> tuple[Sample, str]:
    """Runs a command to its end."""
    return Running(command, limits, environment).finish()


def run_worker(command: Sequence[str], limits: Limits, environment: Mapping[str, str]) -> Sample:
    """Runs a command whose last line is what `bench.worker` prints."""
    sample, printed = run_command(command, limits, environment)
    if sample.failure:
        return sample
    result = json.loads(printed.strip().splitlines()[-1])
    return replace(sample, calls_s=tuple(result["calls"]), answer=result["answer"])


@contextmanager
def private_copy(path: Path) -> Iterator[Path]:
    """The file, not its bytes again, in a logdir of its own, for tools that store caches beside a profile."""
    with tempfile.TemporaryDirectory(prefix="bench-", dir=path.parents[3]) as logdir:
        run_folder = Path(logdir, "plugins", "profile", "run")
        run_folder.mkdir(parents=True)
        target = run_folder / path.name
        target.hardlink_to(path)
        yield target
