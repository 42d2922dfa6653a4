"""How each of the three tools gets the same question."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.process import Limits, Running, Sample, private_copy, run_command, run_worker
from bench.worker import xprof_answer

CACHE_OFF = {"STEPSCOPE_CACHE": "off"}
# xprof-rs does not keep the result of a file that changed less than two seconds ago.
SETTLE_S = 2.5


@dataclass(frozen=True)
class Question:
    """One tool of Stepscope and the page of XProf that answers the same question.

    Attributes:
        tool: its name in Stepscope.
        page: its name in XProf and xprof-rs; empty if they have none.
    """

    tool: str
    page: str


OVERVIEW = Question("overview", "overview_page")
QUESTIONS = (
    Question("input-pipeline", "input_pipeline_analyzer"),
    Question("op-stats", "framework_op_stats"),
    Question("kernel-stats", "kernel_stats"),
    Question("memory-profile", "memory_profile"),
    Question("pod-viewer", "pod_viewer"),
    Question("tf-data", ""),
)


def worker_command(task: str, path: Path, *options: str) -> list[str]:
    """The command line of `bench.worker`."""
    return [sys.executable, "-m", "bench.worker", task, str(path), *options]


def find_xprof_rs() -> str | None:
    """The binary of xprof-rs: beside this Python or on the PATH."""
    beside = Path(sys.executable).with_name("xprof-rs")
    return str(beside) if beside.exists() else shutil.which("xprof-rs")


class Stepscope:
    """Stepscope, by its API unless the measure says otherwise."""

    name = "Stepscope"

    def run_cold(self, path: Path, limits: Limits) -> Sample:
        """A whole process: start, import, read, analyse, exit; nothing cached but compiled kernels."""
        return run_worker(worker_command("stepscope_tool", path, "--tool", OVERVIEW.tool), limits, CACHE_OFF)

    def call_warm(self, path: Path, small: Path, limits: Limits, asked: Question = OVERVIEW) -> Sample:
        """The first call on `path` in a process that has analysed `small`."""
        return self._run_warm("stepscope_tool", path, small, limits, asked)

    def use_decoded(self, path: Path, small: Path, limits: Limits, asked: Question) -> Sample:
        """A call on a trace that is in memory and that another tool has used."""
        return self._run_warm("stepscope_decoded", path, small, limits, asked)

    def _run_warm(self, task: str, path: Path, small: Path, limits: Limits, asked: Question) -> Sample:
        return run_worker(worker_command(task, path, "--tool", asked.tool, "--warm", str(small)), limits, CACHE_OFF)

    def reopen(self, path: Path, small: Path, limits: Limits) -> Sample:
        """A second process, after a first one filled the cache."""
        with tempfile.TemporaryDirectory(prefix="bench-cache-") as folder:
            environment = {"STEPSCOPE_CACHE": "on", "STEPSCOPE_CACHE_DIR": folder}
            command = worker_command("stepscope_tool", path, "--tool", OVERVIEW.tool)
            first = run_worker(command, limits, environment)
            return first if first.failure else run_worker(command, limits, environment)

    def run_command_line(self, path: Path, limits: Limits) -> Sample:
        """`stepscope overview FILE --format json` as a user types it, the cache off."""
        start = "from stepscope.cli.main import main; main()"
        command = [sys.executable, "-c", start, "overview", str(path), "--format", "json"]
        sample, printed = run_command(command, limits, CACHE_OFF)
        if sample.failure:
            return sample
        times = json.loads(printed)["step_time_ms"]
        return replace(sample, answer={"steps": times["count"], "mean_ms": times["mean"]})

    def run_first_time(self, path: Path, limits: Limits) -> Sample:
        """`cold` of a user who has neither settings nor results: an empty home and an empty cache."""
        with tempfile.TemporaryDirectory(prefix="bench-first-") as folder:
            environment = {"STEPSCOPE_CACHE": "on", "HOME": folder, "STEPSCOPE_CACHE_DIR": f"{folder}/cache"}
            return run_worker(worker_command("stepscope_tool", path, "--tool", OVERVIEW.tool), limits, environment)


class Xprof:
    """XProf by the conversion function that its server calls."""

    name = "XProf"

    def run_cold(self, path: Path, limits: Limits) -> Sample:
        """A whole process; no result stored beside the file."""
        with private_copy(path) as copy:
            return run_worker(worker_command("xprof_tool", copy, "--tool", OVERVIEW.page), limits, {})

    def call_warm(self, path: Path, small: Path, limits: Limits, asked: Question = OVERVIEW) -> Sample:
        """The first call on `path` in a process that has analysed `small`."""
        with private_copy(path) as copy, private_copy(small) as warm:
            command = worker_command("xprof_tool", copy, "--tool", asked.page, "--warm", str(warm))
            return run_worker(command, limits, {})

    def reopen(self, path: Path, small: Path, limits: Limits) -> Sample:
        """A second process, with the result of the first stored beside the file."""
        with private_copy(path) as copy:
            command = worker_command("xprof_tool", copy, "--tool", OVERVIEW.page)
            first = run_worker(command, limits, {})
            return first if first.failure else run_worker(command, limits, {})


class XprofRs:
    """xprof-rs: its command for whole processes, its server for a running process."""

    name = "xprof-rs"

    def __init__(self, binary: str) -> None:
        self.binary = binary

    def run_cold(self, path: Path, limits: Limits) -> Sample:
        """`xprof-rs get_overview`, which keeps no results."""
        with private_copy(path) as copy:
            sample, printed = run_command([self.binary, "get_overview", str(copy)], limits, {})
        if sample.failure:
            return sample
        summary = json.loads(printed)["performance_summary"]
        return replace(sample, answer={"mean_ms": float(summary["steptime_ms_average"])})

    def call_warm(self, path: Path, small: Path, limits: Limits, asked: Question = OVERVIEW) -> Sample:
        """The first request for `path` to a server that has answered for `small`."""
        return self._ask_server(path, small, limits, asked, requests=1)

    def reopen(self, path: Path, small: Path, limits: Limits) -> Sample:
        """The second request to the same server; there is no cache that outlives it."""
        return self._ask_server(path, small, limits, OVERVIEW, requests=2)

    def _ask_server(self, path: Path, small: Path, limits: Limits, asked: Question, requests: int) -> Sample:
        with tempfile.TemporaryDirectory(prefix="bench-", dir=path.parents[3]) as logdir:
            store_run(small, Path(logdir), "small")
            with self._start_server(Path(logdir), limits) as (running, address):
                calls: list[tuple[float, dict[str, Any]]] = []
                failure = None
                try:
                    _wait_until_alive(address)
                    _time_request(address, "small", small, limits, asked)
                    store_run(path, Path(logdir), "large")
                    time.sleep(SETTLE_S)
                    calls = [_time_request(address, "large", path, limits, asked) for _ in range(requests)]
                except (OSError, ValueError) as error:
                    failure = f"no answer from its server: {error}"
                running.send(signal.SIGTERM)
                sample, _ = running.finish()
        if failure:
            # The server's own exit says more, unless it is the one that was just requested.
            was_requested = running.process.returncode == -signal.SIGTERM
            return replace(sample, failure=failure if was_requested else sample.failure or failure)
        return replace(sample, failure=None, calls_s=tuple(seconds for seconds, _ in calls), answer=calls[-1][1])

    @contextmanager
    def _start_server(self, logdir: Path, limits: Limits) -> Iterator[tuple[Running, str]]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [self.binary, "--logdir", str(logdir), "--host", "127.0.0.1", "--port", str(port)]
        running = Running(command, limits, {})
        try:
            yield running, f"http://127.0.0.1:{port}"
        finally:
            if running.process.returncode is None:
                running.send(signal.SIGKILL)
                running.finish()


def store_run(path: Path, logdir: Path, name: str) -> None:
    """Puts a copy of a profile into a logdir, as a run of that name."""
    folder = logdir / "plugins" / "profile" / name
    folder.mkdir(parents=True)
    shutil.copyfile(path, folder / path.name)


def _fetch(url: str, timeout: float) -> bytes:
    """The answer of a server on this machine; any proxy of the environment is ignored."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(url, timeout=timeout) as response:
        content: bytes = response.read()
    return content


def _wait_until_alive(address: str) -> None:
    for _ in range(200):
        try:
            _fetch(f"{address}/runs", timeout=5)
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    raise OSError(f"nothing answers at {address}")


def _time_request(address: str, name: str, path: Path, limits: Limits, asked: Question) -> tuple[float, dict[str, Any]]:
    host = path.name.removesuffix(".xplane.pb")
    url = f"{address}/data/plugin/profile/data?run={name}&tag={asked.page}&host={host}"
    begin = time.perf_counter()
    data = _fetch(url, limits.seconds)
    return time.perf_counter() - begin, xprof_answer(asked.page, data)


def find_versions() -> Mapping[str, str]:
    """The versions of Python and of the compared packages, by name."""
    from importlib.metadata import PackageNotFoundError, version

    found = {"Python": sys.version.split()[0]}
    for package in ("stepscope", "xprof", "xprof-rs", "numpy"):
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def count_cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0))
