"""Stepscope's own tracers, one by one, on clocks and machines that the tests make."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
import time
from array import array
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from places import ROOT
from waiting import await_until

from stepscope import capture as profiler
from stepscope.capture import tracers
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.own_threads import OwnThread
from stepscope.capture.tracers import cupti, nvml, python_calls, stack_samples, system
from stepscope.errors import CaptureError
from stepscope.formats.spool import layout
from stepscope.formats.spool.layout import Chunk
from stepscope.formats.spool.reader import parse, read
from stepscope.formats.xspace.merge import append_planes, start_unix_ns
from stepscope.formats.xspace.reader import read as read_xspace
from stepscope.formats.xspace.writer import write
from stepscope.kernels.stacks import Sampling
from stepscope.model import EventKind, HostTrace, LineKind, PlaneKind, TraceBuilder

SOURCE = ROOT / "src"


class Clock:
    """A clock that goes on by 10 ns with every reading."""

    now = 0

    def __call__(self) -> int:
        self.now += 10
        return self.now


def trace_of(chunks: list[Chunk]) -> HostTrace:
    """Chunks of a clock that began at 0, as the profile shows them."""
    spool = parse(b"".join((layout.session("vm", "", 0, 5_000_000), *map(layout.chunk, chunks), layout.end(10**6))))
    assert spool is not None
    return read_xspace(write(spool.trace("vm")), "spool", "vm")


def ranges(trace: HostTrace) -> list[tuple[str, int, int]]:
    """Name, begin and end in ns of all events."""
    begins, lengths = trace.events.start_ps // 1000, trace.events.duration_ps // 1000
    return [(trace.name_of(row), int(begins[row]), int(begins[row] + lengths[row])) for row in range(len(begins))]


# -- Python calls ------------------------------------------------------------------------------------------------------


def inner():
    return 1


def outer():
    return inner() + inner()


def generator():
    yield inner()


def python_calls_of(function, **options: float) -> list[str]:
    """The functions of this file whose calls are recorded while `function` runs, in the order of their ends."""
    tracer = python_calls.PythonTracer()
    tracer.start(ProfilerOptions(**options), Clock())
    function()
    tracer.stop()
    recorded = [chunk.names[row] for chunk in tracer.drain() for row in chunk.name]
    return [name.rpartition(" ")[2] for name in recorded if name.startswith("$test_capture_probes.py")]


FILTERS = [
    ({}, ["inner", "inner", "outer"]),
    ({"python_max_depth": 1}, ["outer"]),
    ({"python_min_us": 0.03}, ["outer"]),  # inner takes one tick of 10 ns, outer five
]


@pytest.mark.parametrize(("options", "kept"), FILTERS, ids=["all", "depth", "duration"])
def test_python_calls_are_kept_by_depth_and_duration(options, kept):
    assert python_calls_of(outer, **options) == kept


def test_a_generator_is_recorded_for_as_long_as_it_runs():
    assert python_calls_of(lambda: list(generator()))[:2] == ["inner", "generator"]


def test_a_call_that_raises_is_recorded():
    def fails():
        with pytest.raises(ValueError):
            int("x" + str(inner()))

    assert python_calls_of(fails) == ["inner", "fails"]


def test_what_recording_adds_is_told_by_the_number_of_calls(monkeypatch):
    took = iter((30.0, 280.0))
    monkeypatch.setattr(python_calls, "_time_calls", lambda: next(took))
    tracer = python_calls.PythonTracer()
    tracer.start(ProfilerOptions(), Clock())
    for _ in range(4000):
        inner()
    tracer.stop()

    assert tracer.cost_ms == pytest.approx(1.0, rel=0.01)


def recorded_beside(thread):
    """What the tracer has of a thread that runs `outer` and begins after it."""
    tracer = python_calls.PythonTracer()
    tracer.start(ProfilerOptions(), Clock())
    thread.start()
    thread.join(60)
    tracer.stop()
    return tracer.drain()


def test_threads_that_begin_later_are_recorded_on_lines_of_their_own():
    (chunk,) = [
        chunk for chunk in recorded_beside(threading.Thread(target=outer, name="loader")) if chunk.line == "loader"
    ]
    trace = trace_of([chunk])
    assert {EventKind(kind) for kind in trace.events.kind} == {EventKind.PYTHON_CALL}
    assert f"$test_capture_probes.py:{outer.__code__.co_firstlineno} outer" in {name for name, *_ in ranges(trace)}


def test_stepscopes_own_threads_are_left_out():
    assert not [
        name
        for chunk in recorded_beside(OwnThread(outer, name="flush"))
        for name in chunk.names
        if name.endswith(" outer")
    ]


def test_a_recording_that_ended_before_the_main_thread_could_join_it_is_forgotten():
    """The main thread waits outside of Python while another one records and is done."""
    program = """
import _thread, gc, threading, time
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.python_calls import PythonTracer

def record():
    tracer = PythonTracer()
    tracer.start(ProfilerOptions(python_tracer_level=1), time.perf_counter_ns)
    tracer.stop()
    del tracer
    gc.collect()
    done.release()

for _ in range(20):
    done = _thread.allocate_lock()
    done.acquire()
    threading.Thread(target=record).start()
    done.acquire()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stderr) == (0, "")


def test_another_profiler_keeps_its_hook_and_the_capture_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("STEPSCOPE_TRACER", "host")  # other tests of this process may have imported a framework

    def other(*_: object) -> None: ...

    sys.setprofile(other)
    try:
        with profiler.Profile(tmp_path, ProfilerOptions(python_tracer_level=1)) as profile:
            pass
        assert sys.getprofile() is other
    finally:
        sys.setprofile(None)

    assert profile.path is not None
    assert "another profiler has Python's profile hook" in str(profiler.last_error())


def test_a_profiler_of_threads_that_begin_later_keeps_its_hook():
    def other(*_: object) -> None: ...

    threading.setprofile(other)
    try:
        with pytest.raises(CaptureError, match="another profiler"):
            python_calls.PythonTracer().start(ProfilerOptions(), Clock())
        assert threading.getprofile() is other
    finally:
        threading.setprofile(None)
        sys.setprofile(None)


def test_the_program_sees_no_hook_and_all_places_of_sys_monitoring_are_its_own():
    tracer = python_calls.PythonTracer()
    tracer.start(ProfilerOptions(), time.perf_counter_ns)
    try:
        outer()
        assert sys.getprofile() is None
        if hasattr(sys, "monitoring"):
            assert [sys.monitoring.get_tool(place) for place in range(6)] == [None] * 6
    finally:
        tracer.stop()
    assert [name for chunk in tracer.drain() for name in chunk.names if name.endswith(" outer")]


def test_a_profiler_that_the_program_sets_meanwhile_stays(monkeypatch):
    seen = []
    tracer = python_calls.PythonTracer()
    tracer.start(ProfilerOptions(), time.perf_counter_ns)
    sys.setprofile(lambda frame, event, _: seen.append(frame.f_code.co_name))
    try:
        tracer.stop()
        outer()
        assert sys.getprofile() is not None
    finally:
        sys.setprofile(None)
    assert "outer" in seen


def python_with_monitoring(minor: int) -> str:
    """The interpreter of Python 3.`minor`: this one, or one beside it."""
    if sys.version_info[:2] == (3, minor):
        return sys.executable
    found = sorted(Path(sys.base_prefix).parent.glob(f"3.{minor}.*/bin/python3.{minor}"))
    if not found:
        pytest.skip(f"there is no Python 3.{minor} beside this one")
    return str(found[-1])


MONITORED = """
from stepscope.capture.own_threads import OwnThread
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.python_calls import PythonTracer
import _thread, threading, time
def inner(): raise ValueError
def outer():
    try: inner()
    except ValueError: pass
def begun(name, work):
    thread = threading.Thread(target=work, name=name, daemon=True)
    thread.start()
    return thread
tracer = PythonTracer()
go, running, left, foreign = (threading.Event() for _ in range(4))
def wait_and_work(): running.set(); go.wait(); outer()
def work_and_stay(): outer(); left.set(); threading.Event().wait()
def work_without_a_thread_object(): outer(); foreign.set()
older = begun("older thread", wait_and_work)
running.wait()
tracer.start(ProfilerOptions(), time.perf_counter_ns)
go.set(); older.join(); begun("later thread", outer).join(); OwnThread(outer).start()
begun("thread that outlives the program", work_and_stay); left.wait()
_thread.start_new_thread(work_without_a_thread_object, ()); foreign.wait()
outer()
tracer.stop()
outer()
for chunk in tracer.drain():
    calls = [chunk.names[row].rpartition(" ")[2] for row in chunk.name if "<string>" in chunk.names[row]]
    print(chunk.line.replace(str(chunk.line_id), "N"), *[call for call in calls if call in ("inner", "outer")])
print("Python knows", *sorted(thread.name for thread in threading.enumerate()))
"""


@pytest.mark.parametrize("minor", [12, 13, 14])
def test_calls_of_all_threads_are_recorded_from_python_3_12_on(minor):
    command = [python_with_monitoring(minor), "-c", MONITORED]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == [
        "MainThread inner outer",
        "Python knows MainThread thread that outlives the program",
        "later thread inner outer",
        "older thread inner outer",
        "thread that outlives the program inner outer",
    ]


BESIDE_PROFILERS = """
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.python_calls import PythonTracer
import sys, threading, time
def hook(frame, event, argument): calls.append((event, frame.f_code.co_name))
def step(): pass
def profiled():
    sys.setprofile(hook)
    ready.set()
    go.wait()
    print("kept:", sys.getprofile() is hook)
    sys.setprofile(None)
def run(work): thread = threading.Thread(target=work); thread.start(); return thread

calls, tracer = [], PythonTracer()
tracer.start(ProfilerOptions(), time.perf_counter_ns)
step()
threading.setprofile(hook); run(step).join(); threading.setprofile(None)
print(calls[:2]); calls.clear()
tracer.stop()
print("recorded:", *[name.rpartition(" ")[2] for chunk in tracer.drain() for name in chunk.names if "<string>" in name])

ready, go = threading.Event(), threading.Event()
thread = run(profiled)
ready.wait()
try: PythonTracer().start(ProfilerOptions(), time.perf_counter_ns)
except Exception as error: print("another profiler" in str(error))
go.set(); thread.join()
"""


@pytest.mark.parametrize("minor", [12, 13, 14])
def test_a_profiler_of_other_threads_is_called_as_without_a_capture(minor):
    command = [python_with_monitoring(minor), "-c", BESIDE_PROFILERS]
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "[('call', 'run'), ('call', 'step')]",
        "recorded: step",
        "True",
        "kept: True",
    ]


# -- stack samples -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Code:
    """What a function is known by; one for each name, as in Python itself."""

    co_name: str
    co_filename: str = "job.py"
    co_firstlineno: int = 1


CODES = {name: Code(name) for name in ("main", "load", "read", "loader")}


def stack(*names: str) -> list[tuple[Code, int]]:
    """The frames of a thread, innermost first; each name is called by the one before it."""
    return [(CODES[name], 1) for name in reversed(names)]


def logged(*samples):
    """A log of samples, one each 10 ns: of each its threads, by number, system's number and name, and their stacks."""
    taken = [
        (10 * place, [(thread, frames, (stack.__code__, 0), []) for thread, frames in sample.items()])
        for place, sample in enumerate(samples, 1)
    ]
    return SimpleNamespace(take=lambda: [taken.pop(0) for _ in range(len(taken))])


def test_the_share_of_sampling_is_kept_over_a_second_so_that_short_captures_have_samples(monkeypatch):
    """At a hundred samples a second, each of which takes 0.5 ms of its thread's time."""
    now_s, taken = 0.0, []
    monkeypatch.setattr(stack_samples.time, "thread_time_ns", lambda: 500_000 * len(taken))
    sampler = stack_samples.StackSampler(reads_usage=False)
    sampler._clock = lambda: round(now_s * 1e9)
    sampler._log = SimpleNamespace(read=lambda clock, *_: taken.append(now_s) or (clock(), 0))
    sampling = sampler._make_sampling(0.01)

    while now_s < 20:
        now_s += sampling.sample()

    assert sum(at < 0.15 for at in taken) == 15
    assert 0.0005 * len(taken) <= stack_samples.MOST_SHARE * (20 + 1) + 0.0005


def test_a_switch_interval_follows_the_number_of_threads_that_compute():
    unknown, waiting = -1, 0
    computing, told = iter([waiting, 1, waiting, 1, 2, 3, waiting, 1, unknown]), []
    log = SimpleNamespace(read=lambda *_: (0, next(computing)))
    sampling = Sampling(log, time.perf_counter_ns, {}, (), {}, told.append, 0.01, 1.0, 1.0, 1.0, time.thread_time_ns)

    for _ in range(9):
        sampling.sample()

    assert told == [1, 2, 1, unknown]


def test_a_sampler_whose_log_fails_says_so_and_ends(caplog):
    failing = threading.Event()

    def read(*_):
        failing.set()
        raise OSError("no log")

    sampler = stack_samples.StackSampler()
    log, sampler._log = sampler._log, SimpleNamespace(read=read)
    sampler.start(ProfilerOptions(stack_samples_hz=1000), time.perf_counter_ns)
    assert failing.wait(60)
    await_until(lambda: not sampler._ticker._recurring._ended.locked(), 60, "the end of the sampler")
    sampler._log = log
    sampler.stop()

    assert "no log" in caplog.text


def test_equal_neighbours_among_the_samples_are_joined():
    #   10     20     30     40     50     a change lies halfway between two samples
    #   main---main---main---main---|
    #   load---load---|      load---|
    #          read---|
    main, samples = (1, 77, "MainThread"), [("main", "load"), ("main", "load", "read"), ("main",), ("main", "load")]
    sampler = stack_samples.StackSampler()
    sampler._log = logged(*[{main: stack(*names)} for names in samples])
    sampler._note_samples()
    sampler._last_ns = 50
    sampler.stop()
    trace = trace_of([chunk for chunk in sampler.drain() if chunk.plane == stack_samples.PLANE])

    assert ranges(trace) == [
        ("$job.py:1 main", 10, 50),
        ("$job.py:1 load", 10, 25),
        ("$job.py:1 read", 15, 25),
        ("$job.py:1 load", 35, 50),
    ]
    assert trace.lines.line_id.tolist() == [77]
    assert trace.planes.kind[0] == PlaneKind.CUSTOM_DEVICE  # what was sampled is no measured host time


def test_what_goes_on_when_a_worker_writes_is_written_and_begins_anew():
    main, names = (1, 77, "MainThread"), ("main", "load")
    sampler = stack_samples.StackSampler()
    sampler._log = logged(*[{main: stack(*names)}] * 2)  # at 10 and 20
    sampler.end_open()
    chunks = sampler.drain()
    sampler._log = logged(*[{main: stack(*names)}] * 2)
    sampler.stop()
    chunks += sampler.drain()

    assert ranges(trace_of([chunk for chunk in chunks if chunk.plane == stack_samples.PLANE])) == [
        ("$job.py:1 main", 10, 20),
        ("$job.py:1 load", 10, 20),
        ("$job.py:1 main", 10, 20),
        ("$job.py:1 load", 10, 20),
    ]


def test_the_frames_of_the_command_that_runs_a_program_are_left_out_and_those_of_the_demo_are_not(monkeypatch):
    own = stack_samples._OWN_FOLDER
    seen = []
    sampler = stack_samples.StackSampler()
    monkeypatch.setattr(sampler, "_note", lambda thread, stack, now: seen.append((thread.number, stack)))
    call = sampler._make_sampling(0.01).sample
    for file in (
        f"{own}demo/data.py",
        "/home/train.py",
        f"{own}capture/auto/run.py",
        f"{own}cli/run.py",
        "/lib/click.py",
    ):
        names = {"inner": call}
        exec(compile("def call(): inner()", file, "exec"), names)
        call = names["call"]
    call()
    sampler.drain()

    files = [code.co_filename for code, _ in dict(seen)[threading.get_native_id()]]
    assert files == [f"{own}demo/data.py", "/home/train.py"]


def test_a_thread_that_has_ended_ends_its_stack():
    main, loader = (1, 11, "main"), (2, 12, "loader")
    sampler = stack_samples.StackSampler(reads_usage=False)
    sampler._log = logged({main: stack("main"), loader: stack("loader")}, {main: stack("main")})

    assert [(chunk.names, list(chunk.end)) for chunk in sampler.drain() if chunk.plane == stack_samples.PLANE] == [
        (["$job.py:1 loader"], [10])
    ]


def test_a_thread_that_gets_the_number_of_one_that_has_ended_has_a_line_of_its_own():
    first, second = (1, 77, "first"), (1, 78, "second")
    sampler = stack_samples.StackSampler(reads_usage=False)
    sampler._log = logged(*[{thread: stack("main")} for thread in (first, first, second, second)])
    sampler.stop()

    drained = {chunk.line: (chunk.line_id, list(chunk.begin), list(chunk.end)) for chunk in sampler.drain()}
    assert drained == {"first": (77, [10], [20]), "second": (78, [30], [40])}


# -- the system --------------------------------------------------------------------------------------------------------


def machine(folder: Path, busy: int, idle: int, pages: int, read: int) -> None:
    """What a Linux tells in /proc."""
    (folder / "self").mkdir(exist_ok=True)
    (folder / "stat").write_text(f"cpu  {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1 1 1 1\n")
    (folder / "meminfo").write_text("MemTotal: 100 kB\nMemFree: 1 kB\nMemAvailable: 2000000 kB\n")
    (folder / "self" / "statm").write_text(f"9999 {pages} 1 1 0 1 0\n")
    (folder / "self" / "io").write_text(f"rchar: 5\nread_bytes: {read}\nwrite_bytes: 0\n")


def values(trace: HostTrace) -> dict[str, float]:
    return {trace.name_of(row): trace.stats_of_event(row)["counter_value"] for row in range(len(trace.events))}


@pytest.fixture
def sampled(tmp_path):
    """Samples a machine twice, a second apart, and gives the last values."""

    def sample(gpus: nvml.Nvml | None) -> HostTrace:
        now, sought = [0], threading.Event()

        def open_gpus() -> nvml.Nvml | None:
            sought.set()
            return gpus

        tracer = system.SystemTracer(tmp_path, open_gpus)
        machine(tmp_path, busy=100, idle=100, pages=10, read=0)
        tracer.start(ProfilerOptions(system_interval_ms=3_600_000), lambda: now[0])
        machine(tmp_path, busy=130, idle=170, pages=1000, read=5_000_000)
        now[0] = 10**9
        assert sought.wait(60)  # on the sampling thread, which does not begin at all if it is stopped before
        tracer.stop()
        return trace_of(tracer.drain())

    return sample


def test_the_machine_is_on_counter_tracks(sampled):
    trace = sampled(None)
    found = values(trace)

    assert found.pop("CPU process %") >= 0  # this process' own time
    assert found == {
        "CPU machine %": 30.0,
        "Memory process GB": 1000 * os.sysconf("SC_PAGE_SIZE") / 1e9,
        "Memory available GB": 2.048,
        "Disk read MB/s": 5.0,
        "Disk write MB/s": 0.0,
    }
    assert {EventKind(kind) for kind in trace.events.kind} == {EventKind.COUNTER}
    assert trace.lines.kind.tolist() == [LineKind.COUNTERS]


def test_a_system_without_proc_tells_what_it_can(tmp_path):
    now = [0]
    tracer = system.SystemTracer(tmp_path / "none", lambda: None)
    tracer.start(ProfilerOptions(system_interval_ms=3_600_000), lambda: now[0])
    now[0] = 10**9
    tracer.stop()

    assert list(values(trace_of(tracer.drain()))) == ["CPU process %"]


def test_samples_that_cost_much_are_taken_less_often_but_every_second(tmp_path, monkeypatch):
    used = iter([0, 100_000, 1_100_000, 1_001_100_000])  # ns of the sampling thread: samples of 0.1 ms, 1 ms and 1 s
    monkeypatch.setattr(system.time, "thread_time_ns", lambda: next(used))
    tracer = system.SystemTracer(tmp_path, lambda: None)
    tracer._interval_s = 0.2
    tracer._find_gpus()

    assert [tracer._tick() for _ in range(3)] == [0.2, 0.001 / system.MOST_SHARE, 1.0]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell which files are open")
def test_the_files_of_the_system_are_open_for_as_long_as_it_is_sampled():
    before = open_files()
    tracer = system.SystemTracer(nvml=lambda: None)
    tracer.start(ProfilerOptions(system_interval_ms=3_600_000), time.perf_counter_ns)
    during = open_files()
    tracer.stop()

    assert (during - before, open_files() - before) == (4, 0)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not tell which files are open")
def test_a_driver_that_answers_late_closes_the_files_that_were_left_to_it():
    before = open_files()
    answer, left = threading.Event(), threading.Event()

    def slow_driver():
        left.set()
        answer.wait(60)

    tracer = system.SystemTracer(nvml=slow_driver)
    tracer.start(ProfilerOptions(system_interval_ms=3_600_000), time.perf_counter_ns)
    assert left.wait(60)
    tracer.stop()
    during = open_files()
    answer.set()
    await_until(lambda: open_files() == before, 60, "the files to be closed")

    assert during - before == 4


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_gpus_are_on_counter_tracks(sampled):
    found = values(sampled(nvml.Nvml.open(lambda _: FakeDriver())))

    assert {name: value for name, value in found.items() if name.startswith("GPU")} == {
        "GPU 0 utilisation %": 73.0,
        "GPU 0 memory GB": 40.0,
        "GPU 0 power W": 350.5,
        "GPU 1 utilisation %": 73.0,  # the second card tells nothing else
    }


class FakeDriver:
    """NVIDIA's library for a machine with two cards."""

    def __init__(self, error: int = 0) -> None:
        self.error = error
        self.handles: dict[int, int] = {}

    def nvmlInit_v2(self) -> int:  # noqa: N802 - NVIDIA's names
        return self.error

    def nvmlShutdown(self) -> int:  # noqa: N802
        return 0

    def nvmlDeviceGetCount_v2(self, count) -> int:  # noqa: N802
        count._obj.value = 2
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle) -> int:  # noqa: N802
        handle._obj.value = 100 + index.value
        return 0

    def nvmlDeviceGetUtilizationRates(self, handle, rates) -> int:  # noqa: N802
        rates._obj.gpu = 73
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory) -> int:  # noqa: N802
        memory._obj.used = 40 * 10**9
        return 0 if handle.value == 100 else 3

    def nvmlDeviceGetPowerUsage(self, handle, milliwatts) -> int:  # noqa: N802
        milliwatts._obj.value = 350_500
        return 0 if handle.value == 100 else 3


def no_library(name: str) -> ctypes.CDLL:
    raise OSError(f"{name}: cannot open shared object file")


@pytest.mark.parametrize("load", [no_library, lambda _: FakeDriver(error=9)], ids=["no library", "no driver"])
def test_a_machine_without_gpus_has_no_tracks_of_them(load):
    assert nvml.Nvml.open(load) is None


# -- CUPTI -------------------------------------------------------------------------------------------------------------


def activity(kind: int, begin: int, end: int, **more: object) -> SimpleNamespace:
    return SimpleNamespace(kind=kind, start=begin, end=end, device_id=1, stream_id=7, correlation_id=5, **more)


class FakeCupti:
    """The module `cupti.cupti`, whose clock is 1,000 ns ahead of ours; hands its activities over at the last flush."""

    ActivityKind = SimpleNamespace(CONCURRENT_KERNEL=10, MEMCPY=1, MEMCPY2=22, MEMSET=2)

    def __init__(self) -> None:
        self.enabled: set[int] = set()
        self.activity_enable = self.enabled.add
        self.activity_disable = self.enabled.remove

    def get_timestamp(self) -> int:
        return 1_015

    def activity_register_callbacks(self, requested, completed) -> None:
        assert requested()[0] > 0
        self.completed = completed

    def activity_flush_all(self, forced: int) -> None:
        launch = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
        launch |= {"registers_per_thread": 32, "static_shared_memory": 0, "dynamic_shared_memory": 1024}
        if forced:
            self.completed([
                activity(10, 1_100, 1_200, name="gemm", **launch),
                activity(1, 1_210, 1_250, copy_kind=1, bytes=4096),
                activity(22, 1_260, 1_270, copy_kind=10, bytes=64),
                activity(2, 1_300, 0, bytes=8),  # not ended
                activity(99, 0, 0),
            ])  # fmt: skip


@pytest.fixture
def fake_cupti(monkeypatch) -> FakeCupti:
    fake = FakeCupti()
    monkeypatch.setitem(sys.modules, "cupti", SimpleNamespace(cupti=fake))
    monkeypatch.setitem(sys.modules, "cupti.cupti", fake)
    monkeypatch.setattr(cupti, "DELIVERY", cupti.Delivery())
    return fake


def test_what_runs_on_gpus_is_recorded_through_cupti(fake_cupti, caplog):
    tracer = cupti.CuptiTracer()
    tracer.start(ProfilerOptions(), Clock())
    assert fake_cupti.enabled == {10, 1, 22, 2}
    tracer.stop()
    trace = trace_of(tracer.drain())

    assert fake_cupti.enabled == set()
    assert ranges(trace) == [("gemm", 100, 200), ("MemcpyH2D", 210, 250), ("MemcpyP2P", 260, 270)]
    assert [EventKind(kind).name for kind in trace.events.kind] == ["KERNEL", "COPY_HOST_TO_DEVICE", "COPY_PEER"]
    assert (trace.plane_name(0), trace.planes.kind[0], trace.planes.ordinal[0]) == ("/device:GPU:1", PlaneKind.GPU, 1)
    assert trace.lines.kind.tolist() == [LineKind.STREAM]
    assert "dynamic_shared:1024 grid:1,1,1" in trace.stats_of_event(0)["kernel_details"]
    assert "1 kernels and copies are not in the profile" in caplog.text


def test_a_cupti_that_another_profiler_holds_is_left_as_it_was(fake_cupti):
    def refuse(kind: int) -> None:
        if kind == fake_cupti.ActivityKind.MEMSET:
            raise RuntimeError("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED")
        fake_cupti.enabled.add(kind)

    fake_cupti.activity_enable = refuse
    with pytest.raises(RuntimeError, match="MULTIPLE_SUBSCRIBERS"):
        cupti.CuptiTracer().start(ProfilerOptions(), Clock())

    assert fake_cupti.enabled == set()


def test_records_of_the_real_package_are_understood():
    real = pytest.importorskip("cupti.cupti", reason="cupti-python is not installed", exc_type=ImportError)

    def record(sort: str, kind: int, **fields: object) -> object:
        newest = max((name for name in dir(real) if re.fullmatch(rf"Activity{sort}\d+", name)), key=_number)
        made = getattr(real, newest)()
        for field, value in {"kind": kind, "device_id": 1, "stream_id": 7, "correlation_id": 5, **fields}.items():
            setattr(made, field, value)
        return made

    kinds = real.ActivityKind
    tracer = cupti.CuptiTracer()
    tracer._cupti = real
    tracer.add([
        record("Kernel", kinds.CONCURRENT_KERNEL, start=10, end=20, name="gemm", grid_x=2, block_y=3),
        record("Memcpy", kinds.MEMCPY, start=30, end=40, copy_kind=real.ActivityMemcpyKind.DTOH, bytes=8),
        record("MemcpyPtoP", kinds.MEMCPY2, start=50, end=60, copy_kind=real.ActivityMemcpyKind.PTOP, bytes=8),
        record("Memset", kinds.MEMSET, start=70, end=80, bytes=8),
    ])  # fmt: skip
    trace = trace_of(tracer.drain())

    expected = [("gemm", 10, 20), ("MemcpyD2H", 30, 40), ("MemcpyP2P", 50, 60), ("Memset", 70, 80)]
    assert ranges(trace) == expected
    assert "grid:2,0,0 block:0,3,0" in trace.stats_of_event(0)["kernel_details"]
    asked = ("get_timestamp", "activity_register_callbacks", "activity_enable", "activity_disable")
    assert all(hasattr(real, name) for name in (*asked, "activity_flush_all"))


def _number(name: str) -> int:
    return int(re.findall(r"\d+", name)[-1])


WANTED = [
    # framework, options, what is imported, the tracers
    ("", {"host_tracer_level": 2}, (), {"system's counters", "processor time of threads"}),
    ("", {}, (), {"system's counters"}),
    ("", {"system_interval_ms": 0}, (), set()),
    ("", {"stack_samples_hz": 100}, (), {"stack samples", "system's counters"}),
    (
        *("", {"stack_samples_hz": 100}, ("multiprocessing.process",)),
        {"stack samples", "worker processes", "system's counters"},
    ),
    ("", {"python_tracer_level": 1}, (), {"Python calls", "system's counters"}),
    ("jax", {"python_tracer_level": 1}, (), {"system's counters"}),  # JAX traces Python itself
    ("jax", {"python_tracer_level": 1, "python_min_us": 50}, (), {"Python calls", "system's counters"}),
    ("", {}, ("cupy", "cupti"), {"system's counters", "work of the GPUs"}),
    ("torch", {}, ("cupy", "cupti"), {"system's counters"}),  # PyTorch uses CUPTI itself
    ("", {"device_tracer_level": 0}, ("cupy", "cupti"), {"system's counters"}),
]


@pytest.mark.parametrize(("framework", "options", "imported", "chosen"), WANTED)
def test_the_options_choose_the_tracers(monkeypatch, framework, options, imported, chosen):
    for name in (
        "multiprocessing.process",
        "torch",
        "tensorflow",
        "jax",
        "orbax.checkpoint",
    ):  # other tests import them
        monkeypatch.delitem(sys.modules, name, raising=False)
    for name in imported:
        monkeypatch.setitem(sys.modules, name, SimpleNamespace())
    monkeypatch.setattr(cupti, "available", lambda: "cupti" in imported)

    wanted = ProfilerOptions(**{"stack_samples_hz": 0, "host_tracer_level": 0, **options})
    found = {entry.what for entry in tracers.PROBES if entry.wanted(wanted, framework)}

    assert found == {f"the {what}" for what in chosen}


# -- spools ------------------------------------------------------------------------------------------------------------


def load_and_train() -> bytes:
    """A spool of two chunks."""

    def one(name: str, begin: int, end: int, **stats: object) -> bytes:
        times = {"name": array("i", [0]), "begin": array("q", [begin]), "end": array("q", [end])}
        return layout.chunk(Chunk("/host:CPU", "main", 1, "ANNOTATION", [name], **times, stats={0: stats}))

    train = one("train", 90, 300, step_num=4, _r=1, raw=b"\xff\x00")
    return layout.session("vm", "jax", 50, 5_000_000) + one("load", 100, 200) + train


def test_the_spool_of_a_killed_job_is_a_profile_with_a_warning():
    trace = read(load_and_train(), "vm.xplane.pb.partial", "")

    assert (trace.host, trace.start_unix_ns, trace.partial) == ("vm", 5_000_000, True)
    assert ranges(trace) == [("train", 40, 250), ("load", 50, 150)]
    assert trace.stats_of_event(0) == {"step_num": 4, "_r": 1, "raw": b"\xff\x00"}
    assert [problem.code for problem in trace.problems] == ["unfinished"]
    assert "2 events" in trace.problems[0].kept
    assert "jax" in trace.problems[0].lost


def test_a_spool_that_ends_anywhere_keeps_its_complete_records():
    data = load_and_train()
    begin = len(layout.session("vm", "jax", 50, 5_000_000))
    kept = [len(read(data[:size], "cut", "vm").events) for size in range(begin, len(data) + 1)]

    assert kept == sorted(kept)
    assert set(kept) == {0, 1, 2}


def test_records_that_make_no_sense_are_told():
    strange = layout.record({"is": "chunk", "kind": "OF A LATER VERSION"}) + layout.record({"is": "end", "clock": -1})
    trace = read(load_and_train() + strange + layout.end(400), "x", "")

    assert len(trace.events) == 2
    assert trace.partial
    assert [problem.code for problem in trace.problems] == ["unconverted", "damaged"]
    assert trace.problems[1].reason == "2 records could not be read"


ONE = array("i", [0]).tobytes() + array("q", [10, 20]).tobytes()
STRANGE = {
    "a stat that is nothing": (ONE, {"stats": {"0": {"x": None}}}),
    "a stat that is a list": (ONE, {"stats": {"0": {"x": [1]}}}),
    "stats of no event": (b"", {"stats": {"-1": {"step_num": 1}}}),
    "a line of no 64 bits": (ONE, {"id": 1 << 70}),
    "half a pair of surrogates": (ONE, {"names": ["\ud800"]}),
}


@pytest.mark.parametrize("body, odd", STRANGE.values(), ids=STRANGE)
def test_a_strange_chunk_costs_no_other(body: bytes, odd: dict[str, object]):
    head = {"is": "chunk", "plane": "/host:CPU", "line": "t", "id": 7, "kind": "ANNOTATION", "names": ["a"]}
    chunk = layout.record({**head, "stats": {}, **odd}, body)
    trace = read(load_and_train() + chunk + layout.end(400), "x", "")

    assert {"load", "train"} <= {trace.name_of(row) for row in range(len(trace.events))}


def test_a_record_that_is_nested_too_deep_ends_the_spool():
    deep = b"[" * 100_000
    trace = read(load_and_train() + layout.LENGTHS.pack(len(deep), 0) + deep + layout.end(400), "x", "")

    assert (len(trace.events), [problem.code for problem in trace.problems]) == (2, ["unfinished"])


def test_metadata_of_any_size_costs_no_capture():
    chunk = Chunk("/host:CPU", "main", 1, "ANNOTATION", ["train"], *(array(sort, [9]) for sort in "iqq"))
    chunk.name[0] = 0
    chunk.stats[0] = {"seed": 2**70}
    trace = parse(layout.session("vm", "", 0, 5_000_000) + layout.chunk(chunk)).trace("vm")

    assert trace.stats_of_event(0) == {"seed": str(2**70)}


def test_bytes_that_are_damaged_never_break_the_reader():
    data = bytearray(load_and_train())
    for at in range(len(layout.MAGIC), len(data)):
        broken = data[:]
        broken[at] ^= 0x5A
        spool = parse(bytes(broken))
        if spool is not None:
            spool.trace("vm").check()


def test_python_calls_stand_with_the_annotations_of_their_thread_where_no_framework_has_a_place_for_them():
    def planes(framework: str) -> list[str]:
        at = array("q", [10])
        chunks = [
            Chunk("/host:CPU", "main", 1, "ANNOTATION", ["load"], array("i", [0]), at, at),
            Chunk("/host:python-tracer", "main", 1, "PYTHON_CALL", ["$a.py:1 f"], array("i", [0]), at, at),
        ]
        spool = parse(layout.session("vm", framework, 0, 5_000_000) + b"".join(map(layout.chunk, chunks)))
        trace = spool.trace("vm")
        return [trace.plane_name(plane) for plane in trace.lines.plane]

    assert planes("") == ["/host:CPU"]
    assert planes("jax") == ["/host:CPU", "/host:python-tracer"]


# -- joining -----------------------------------------------------------------------------------------------------------


def test_planes_are_added_to_a_frameworks_file_on_its_clock():
    framework = TraceBuilder("vm", start_unix_ns=10**18)
    framework.framework = "jax"
    line = framework.line(framework.plane("/host:CPU", PlaneKind.HOST), "python", 1)
    line.event("PjitFunction(step)", 1_000, 2_000)
    own = TraceBuilder("vm")
    counters = own.line(own.plane("/device:CUSTOM:System"), "_counters_", 0, LineKind.COUNTERS)
    counters.event("CPU %", 500_000, 0, EventKind.COUNTER, {"counter_value": 7.5})

    file = write(framework.build())
    joined = read_xspace(append_planes(file, own.build()), "joined", "vm")

    assert start_unix_ns(file) == 10**18
    planes = [joined.plane_name(row) for row in range(len(joined.planes))]
    assert planes == ["/host:CPU", "Task Environment", "/device:CUSTOM:System"]
    assert ranges(joined) == [("PjitFunction(step)", 1, 3), ("CPU %", 500, 500)]
    assert joined.start_unix_ns == 10**18
    assert joined.problems == ()


NO_XSPACES = {"text": b"profile", "cut": b"\x0a\xff", "endless number": b"\x0a" + b"\xff" * 11}


@pytest.mark.parametrize("data", NO_XSPACES.values(), ids=list(NO_XSPACES))
def test_what_is_no_xspace_gets_nothing_added(data):
    with pytest.raises(ValueError, match="byte"):
        start_unix_ns(data)
