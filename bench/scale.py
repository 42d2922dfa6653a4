"""Many hosts and large profiles: `python -m bench.scale`, which writes bench/SCALE.md.

    python -m bench.scale                       100 hosts of 27 thousand events, 10 M events
    python -m bench.scale --hosts 1000 --steps 12 --events 100000000
    python -m bench.scale --only growth store   measures these sections anew and leaves the others as they are

Sessions are made by `bench.sessions`, so their truth is known.  Times are of whole commands, in fresh processes; files
are in the page cache.  Processor time is that of the command and all processes that it waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from bench import profiles, sessions
from bench.scale_store import compare_speeds

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "bench" / "SCALE.md"
BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Run:
    """One command: elapsed and processor time in s, peak memory in bytes of the command itself and of all its
    processes together, and its JSON."""

    seconds: float
    cpu_seconds: float
    own_bytes: int
    all_bytes: int
    answer: dict[str, object]

    @property
    def row(self) -> str:
        """As cells of a table."""
        return (
            f"{self.seconds:,.1f} | {self.cpu_seconds:,.1f} | {self.own_bytes / 1e6:,.0f} | {self.all_bytes / 1e6:,.0f}"
        )


OPEN_RAY = {"RAY_AUTH_MODE": "disabled"}  # the cluster of a measurement asks nobody for a token


def command(words: Sequence[str], look: Callable[[int], None] = lambda _: None, **environment: str) -> Run:
    """Runs `stepscope WORDS --format json`."""
    out = Path(os.environ.get("TMPDIR", "/tmp")) / f"scale-{os.getpid()}.json"
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    with out.open("wb") as file:
        running = subprocess.Popen(
            [sys.executable, "-m", "stepscope", *words, "--format", "json"], stdout=file, env=os.environ | environment
        )
        own, whole = _watch(running, look)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if running.returncode:
        raise SystemExit(f"{' '.join(words)} failed with status {running.returncode}")
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answer = json.loads(out.read_bytes())
    out.unlink()
    return Run(time.monotonic() - started, cpu, own, whole, answer)


def _watch(running: subprocess.Popen[bytes], look: Callable[[int], None]) -> tuple[int, int]:
    own = whole = 0
    while running.poll() is None:
        sizes = [_resident(pid) for pid in _family(running.pid)]
        own, whole = max(own, sizes[0] if sizes else 0), max(whole, sum(sizes))
        look(running.pid)
        time.sleep(0.05)
    return own, whole


def _family(process: int) -> list[int]:
    """A process and all below it; threads have children of their own."""
    children: list[str] = []
    try:
        for thread in Path(f"/proc/{process}/task").iterdir():
            children += (thread / "children").read_text().split()
    except OSError:  # it has ended meanwhile
        return [process]
    return [process, *(found for child in children for found in _family(int(child)))]


def _resident(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:
        return 0


# ---- clusters --------------------------------------------------------------------------------------------------------


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _await_port(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            return


@contextmanager
def dask_cluster(workers: int) -> Iterator[str]:
    """A scheduler and its workers, each a process of one thread."""
    port = _free_port()
    address = f"tcp://127.0.0.1:{port}"
    words = [["dask", "scheduler", "--host", "127.0.0.1", "--port", str(port), "--dashboard-address", ":0"]]
    words += [["dask", "worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]] * workers
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [subprocess.Popen([BIN / each[0], *each[1:]], **quiet) for each in words]
    from distributed import Client

    _await_port(port)
    with Client(address, set_as_default=False) as client:
        client.wait_for_workers(workers)
    try:
        yield address
    finally:
        for process in reversed(running):
            process.terminate()
            process.wait()


@contextmanager
def ray_cluster(workers: int) -> Iterator[str]:
    """A head with some cores."""
    port = _free_port()
    words = ["start", "--head", f"--port={port}", f"--num-cpus={workers}", "--include-dashboard=false", "--block"]
    words += ["--object-store-memory=200000000", "--disable-usage-stats"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    head = subprocess.Popen([BIN / "ray", *words], env=os.environ | OPEN_RAY, **quiet, start_new_session=True)
    _await_port(port)
    address = f"127.0.0.1:{port}"
    # The port opens seconds before the node can work; a first task shows that it can.
    first = f"import ray; ray.init({address!r}, log_to_driver=False); ray.get(ray.remote(lambda: 0).remote())"
    subprocess.run([sys.executable, "-c", first], env=os.environ | OPEN_RAY, check=True, **quiet)
    try:
        yield address
    finally:
        os.killpg(head.pid, 9)
        head.wait()


# ---- measures --------------------------------------------------------------------------------------------------------


def many_hosts(folder: Path, counts: Sequence[int], steps: int) -> Iterator[str]:
    """Growth in the number of hosts; a single host's time is that of hosts in one process, which has started before."""
    yield f"Overview of 1 to {max(counts):,} hosts, two processes of this machine, without a cache.\n"
    yield "| hosts | MB | elapsed s | processor s | driver MB | all MB | per host s | sum of single hosts s | ratio |"
    yield "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    off = {"STEPSCOPE_CACHE": "off", "STEPSCOPE_ENGINE": "local=2"}
    for count in counts:
        logdir = _session(folder, count, steps)
        size = sum(path.stat().st_size for path in logdir.rglob("*.pb")) / 1e6
        single = _single_hosts(logdir)
        run = command(["overview", str(logdir)], **off)
        share = f"{run.cpu_seconds / count:.3f} | {single:,.1f} | {run.cpu_seconds / single:.2f}"
        yield f"| {count:,} | {size:,.0f} | {run.row} | {share} |"
    cache = folder / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    kept = {"STEPSCOPE_CACHE_DIR": str(cache), "STEPSCOPE_ENGINE": "local=2"}
    command(["overview", str(logdir)], **kept)
    again = command(["overview", str(logdir), "--top", "5"], **kept)
    yield f"\nThe second time, from the cache, {counts[-1]:,} hosts take {again.seconds:.2f} s elapsed, "
    yield f"{again.cpu_seconds:.2f} s of the processor. With few hosts the start of the processes counts, 0.5 s each.\n"


def _single_hosts(logdir: Path) -> float:
    """The processor time of all hosts, one after the other in one process, in s."""
    words = [sys.executable, "-m", "bench.scale_worker", str(logdir), "--single-hosts"]
    lines = subprocess.run(words, check=True, capture_output=True, env=os.environ | {"STEPSCOPE_CACHE": "off"}).stdout
    return sum(float(json.loads(line)["cpu"]) for line in lines.splitlines())


def engines(folder: Path, count: int, steps: int) -> Iterator[str]:
    """One and two workers on each engine."""
    logdir = _session(folder, count, steps)
    yield f"{count:,} hosts, overview, without a cache.\n"
    yield "| engine | workers | elapsed s | processor s | driver MB | all MB | against one worker |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    off = {"STEPSCOPE_CACHE": "off"}
    expected = command(["overview", str(logdir)], STEPSCOPE_ENGINE="local=1", **off)
    yield f"| local | 1 | {expected.row} | 1.00 |"
    two = command(["overview", str(logdir)], STEPSCOPE_ENGINE="local=2", **off)
    yield f"| local | 2 | {two.row} | {expected.seconds / two.seconds:.2f} |"
    for name, cluster in (("dask", dask_cluster), ("ray", ray_cluster)):
        runs = []
        for workers in (1, 2):
            with cluster(workers) as address:
                runs.append(command(["overview", str(logdir)], STEPSCOPE_ENGINE=f"{name}={address}", **OPEN_RAY, **off))
            assert runs[-1].answer == expected.answer, f"{name} answers otherwise"
            yield f"| {name} | {workers} | {runs[-1].row} | {runs[0].seconds / runs[-1].seconds:.2f} |"
    yield "\nProcessor time of workers that a cluster started is not in these figures. All answers are equal.\n"


def failures(folder: Path, count: int, steps: int) -> Iterator[str]:
    """Damaged hosts, and a worker that is killed in the middle."""
    damaged = max(1, count // 100)
    whole, broken = _session(folder, count, steps), _session(folder, count, steps, damaged)
    killed: list[int] = []

    def kill(process: int) -> None:
        children = _family(process)[1:]
        if children and not killed and time.monotonic() > start + 5:
            os.kill(children[0], 9)
            killed.append(children[0])

    off = {"STEPSCOPE_CACHE": "off", "STEPSCOPE_ENGINE": "local=2"}
    start = time.monotonic()
    run = command(["pod-viewer", str(broken)], kill, **off)
    expected = command(["pod-viewer", str(whole)], **off)
    lost = {f"{sessions.host_name(rank)}" for rank in range(count)} - set(run.answer["hosts"])  # type: ignore[call-overload]
    rows = [row for row in expected.answer["rows"] if row["host"] not in lost]  # type: ignore[attr-defined]
    same = rows == run.answer["rows"]
    yield f"{count:,} hosts, {damaged} of them damaged, a worker killed after five seconds.\n"
    named = sum(any(host in text for text in run.answer["warnings"]) for host in lost)  # type: ignore[attr-defined]
    yield f"{len(run.answer['hosts']):,} hosts answered ({named} of {len(lost)} others named), "  # type: ignore[arg-type]
    yield f"{'with the same rows as' if same else 'NOT with the same rows as'} in the whole session; "
    yield f"{len(killed)} worker was killed.\n"


def large_profile(events: int, memory: str) -> Iterator[str]:
    """One large profile within a set memory."""
    profile = profiles.obtain(events)
    profiles.read_once(profile)
    path = str(profile.path)
    yield f"{profile.events:,} events, {profile.bytes / 1e9:.2f} GB XSpace.\n"
    yield "| command | elapsed s | processor s | peak MB | all MB | same answer |"
    yield "| --- | ---: | ---: | ---: | ---: | --- |"
    for tool in ("overview", "op-stats", "idle"):
        usual = command([tool, path], STEPSCOPE_CACHE="off")
        kept = command([tool, path, "--memory", memory], STEPSCOPE_CACHE="off")
        yield f"| {tool} | {usual.row} | |"
        yield f"| {tool} --memory {memory} | {kept.row} | {'yes' if kept.answer == usual.answer else 'NO'} |"
    yield ""


def _session(folder: Path, hosts: int, steps: int, damaged: int = 0) -> Path:
    logdir = folder / f"hosts{hosts}-steps{steps}-damaged{damaged}"
    if not (logdir / "truth.json").exists():
        scenario = sessions.Scenario(
            hosts=hosts, steps=steps, damaged=damaged, straggler=min(7, hosts - 1), skew_ms=5.0
        )
        sessions.make_session(logdir, scenario, sessions.recorded_rank())
    return logdir


def every_tool(events: int, memory: str, recorded: Path | None) -> Iterator[str]:
    """Every tool and windows of the timeline on one large profile; `recorded` holds the lines of an earlier run."""
    profile = profiles.obtain(events)
    words = [sys.executable, "-m", "bench.scale_worker", str(profile.path), "--memory", memory]
    if recorded is None:
        profiles.read_once(profile)
        environment = os.environ | {"STEPSCOPE_CACHE": "off"}
        text = subprocess.run(words, check=True, stdout=subprocess.PIPE, env=environment).stdout.decode()
    else:
        text = recorded.read_text()
    yield f"{profile.events:,} events, {profile.bytes / 1e9:.2f} GB XSpace, {memory} set, in one process.\n"
    yield "| work | elapsed s | processor s | of it the system's | peak MB |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    windows: dict[str, list[float]] = {}
    for found in map(json.loads, text.splitlines()):
        if found["work"].startswith("timeline: a window"):
            windows.setdefault(found["work"], []).append(found["seconds"] * 1e3)
        else:
            times = f"{found['seconds']:,.1f} | {found['cpu']:,.1f} | {found['system']:,.1f}"
            yield f"| {found['work']} | {times} | {found['peak'] / 1e6:,.0f} |"
    yield ""
    for name, times_ms in windows.items():
        yield f"- {name} of the trace: {', '.join(f'{ms:.2f}' for ms in times_ms)} ms"
    yield ""


SECTIONS = {
    "growth": "Growth",
    "engines": "Engines",
    "failures": "Failures",
    "memory": "Memory",
    "tools": "Every tool",
    "store": "Object store",
}


def main() -> None:
    """Measures, and writes the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hosts", type=int, default=100)
    parser.add_argument("--steps", type=int, default=3, help="3 are 27 thousand events a host")
    parser.add_argument("--events", type=int, default=10_000_000, help="of the large profile")
    parser.add_argument("--memory", default="600MB", help="for the large profile")
    parser.add_argument("--only", nargs="*", choices=SECTIONS, default=[*SECTIONS], help="the sections to measure")
    parser.add_argument("--recorded", type=Path, help="what bench.scale_worker printed, for the section `tools`")
    options = parser.parse_args()
    folder = profiles.folder() / "scale"
    counts = [count for count in (1, 10, 50, 100, 200, 500) if count < options.hosts] + [options.hosts]
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "growth": lambda: many_hosts(folder, counts, options.steps),
        "engines": lambda: engines(folder, options.hosts, options.steps),
        "failures": lambda: failures(folder, options.hosts, options.steps),
        "memory": lambda: large_profile(options.events, options.memory),
        "tools": lambda: every_tool(options.events, options.memory, options.recorded),
        "store": compare_speeds,
    }
    for name in options.only:
        lines = [_how(options), *_print_each(parts[name]())]
        _write_section(SECTIONS[name], lines)


def _print_each(lines: Iterator[str]) -> Iterator[str]:
    for line in lines:
        print(line, flush=True)
        yield line


def _how(options: argparse.Namespace) -> str:
    words = f"--hosts {options.hosts} --steps {options.steps} --events {options.events} --memory {options.memory}"
    load = os.getloadavg()[0]
    return (
        f"By `python -m bench.scale {words}` on {datetime.now(UTC):%d %B %Y}, on {os.cpu_count()} cores with a load of "
        f"{load:.1f} when it started.\n"
    )


def _write_section(title: str, lines: Sequence[str]) -> None:
    """Puts a section into the results, in place of an earlier one."""
    kept = _sections(RESULTS.read_text()) if RESULTS.exists() else {}
    kept[title] = "\n".join(lines).strip()
    body = [f"## {each}\n\n{kept[each]}\n" for each in SECTIONS.values() if each in kept]
    RESULTS.write_text("\n".join([_HEAD, *body]))


def _sections(text: str) -> dict[str, str]:
    parts = text.split("\n## ")[1:]
    return {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


_HEAD = """# Scale

Written by `python -m bench.scale`; each section says when, and how busy the machine was. On a machine that has other
work to do, elapsed times are upper bounds; processor times vary less. Hosts are one rank of a PyTorch job on GPUs, bent
as `bench/sessions.py` says. Files are in the page cache.
"""


if __name__ == "__main__":
    main()
