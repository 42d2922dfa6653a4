"""Worker processes: what they do is recorded in them, and lands in the capture of the process that started them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import worker_programs
from calm import taking_a_turn
from program_runs import UNHURRIED, profiles_below, read_profile, require_packages, run_command, run_warm, step_marks

import stepscope
from stepscope.capture import workers
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.workers import WorkersTracer
from stepscope.formats.spool.layout import WORKERS_PLANE

NAMES = {"loader": "DataLoader worker", "pool": "pool worker", "executor": "executor worker", "grain": "Grain worker"}
# Grain's workers read ahead: what they were at when the capture started is left out.
OPTIONS = {"grain": ["--steps", "40"]}


@pytest.fixture(scope="module", params=NAMES)
def program(request, tmp_path_factory) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def profile(program, tmp_path_factory) -> Path:
    """The profile of a program with two workers."""
    if program == "grain":
        require_packages(program)
    folder = tmp_path_factory.mktemp(program)
    words = ["-m", "stepscope", "run", "-q", "--logdir", "logs", *UNHURRIED, *OPTIONS.get(program, [])]
    words += [worker_programs.__file__, program]
    with taking_a_turn():
        done = run_warm("torch", words, folder) if program == "loader" else run_command(words, folder)
    assert done.returncode == 0, done.stderr[-3000:]
    (path,) = profiles_below(folder / "logs")
    return path


def test_the_batches_of_each_worker_are_on_a_line_of_its_own_on_the_clock_of_the_steps(profile, program):
    trace = read_profile(profile)
    lines = [row for row in range(len(trace.lines)) if trace.plane_name(int(trace.lines.plane[row])) == WORKERS_PLANE]
    rows = np.concatenate([np.arange(trace.lines.event_begin[row], trace.lines.event_end[row]) for row in lines])
    prepared = rows[[trace.name_of(row) == "prepare" for row in rows]]
    steps = sum(step_marks(profile).values())

    assert len(lines) == 2
    assert all(trace.line_label(row).startswith(NAMES[program]) for row in lines)
    assert len({int(trace.lines.line_id[row]) for row in lines}) == 2
    # No task takes less than the slow function sleeps, and all of them lie in the time that was recorded.
    assert trace.events.duration_ps[prepared].min() >= worker_programs.SLOW_S * 1e12
    assert trace.events.start_ps[prepared].min() >= 0
    assert (trace.events.start_ps + trace.events.duration_ps)[prepared].max() <= (steps + 60_000) * 1e9


def test_the_slow_function_of_the_workers_is_named_with_its_line(profile):
    report = stepscope.load(profile).input_pipeline().to_dict()
    source = Path(worker_programs.__file__).read_text().splitlines()

    assert len(report["workers"]) == 2
    for worker in report["workers"]:
        assert worker["function"] == "decode"
        file, _, line = worker["place"].rpartition(":")
        assert (Path(file).name, source[int(line) - 1].startswith("def decode")) == ("worker_programs.py", True)
        assert worker["function_percent"] > 50


def test_the_queue_of_a_loop_that_waits_for_its_workers_is_starved(profile, program):
    if program != "loader":
        pytest.skip("only a loader's calls show when the loop waits")
    report = stepscope.load(profile).input_pipeline().to_dict()

    assert report["queue"]["state"] == "starved"
    assert report["queue"]["workers"] == 2
    assert report["queue"]["useful_workers"] > 2
    assert any("2 worker processes take" in line and "decode; the loop waits" in line for line in report["summary"])


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(workers.Shared, "folder", str(tmp_path / "shared"))
    return tmp_path / "shared"


class Queue:
    def __init__(self) -> None:
        self.items = [1, 2, 3]
        self.closed = False

    def get(self, timeout: float = 0.0) -> int:
        return self.items.pop(0)

    def put(self, item: object) -> None:
        self.items.append(item)

    def close(self) -> None:
        self.closed = True


def pool_process(source: Queue, sink: Queue) -> SimpleNamespace:
    from multiprocessing import pool

    return SimpleNamespace(name="SpawnPoolWorker-7", _target=pool.worker, _args=(source, sink, None))


def test_a_worker_records_only_while_a_capture_asks_for_it(folder):
    process = pool_process(Queue(), Queue())
    worker = workers.WorkerProcess(process)
    source, sink = process._args[:2]

    def work() -> None:
        sink.put(source.get(timeout=1))
        worker._look()

    work()  # nobody asks
    tracer = WorkersTracer()
    tracer.start(ProfilerOptions(), time.perf_counter_ns)
    worker._look()
    work()
    tracer.stop()
    worker._look()
    work()  # nobody asks any more
    spans = [chunk for chunk in tracer.drain() if chunk.plane == WORKERS_PLANE]

    assert [(chunk.line, [chunk.names[row] for row in chunk.name]) for chunk in spans] == [
        (f"pool worker 7 ({os.getpid()})", ["prepare", "send"])
    ]
    assert not folder.exists()


def test_the_queues_of_a_worker_stay_what_they_are():
    source = Queue()
    timed = workers.Timed(source, "get", lambda begin, end, result: None)

    timed.close()

    assert (timed.get(), timed.items, source.closed) == (1, [2, 3], True)


def test_what_a_killed_worker_wrote_until_then_is_kept(folder, monkeypatch):
    monkeypatch.setattr("stepscope.capture.workers._PATIENCE_S", 0.0)
    process = pool_process(Queue(), Queue())
    worker = workers.WorkerProcess(process)
    tracer = WorkersTracer()
    tracer.start(ProfilerOptions(), time.perf_counter_ns)
    worker._look()
    process._args[1].put(process._args[0].get())
    assert worker._recording is not None
    worker._recording._flush(worker._take)
    worker._recording._sampler.stop()
    worker._recording._file.close()

    tracer.stop()

    assert WORKERS_PLANE in {chunk.plane for chunk in tracer.drain()}
