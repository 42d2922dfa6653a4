"""How long threads ran and had no processor: what is read, and what a capture makes of it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import stepscope
from stepscope.analysis.account.account import account_of
from stepscope.capture.options import ProfilerOptions
from stepscope.capture.tracers.thread_usage import ThreadUsage
from stepscope.formats.spool.layout import RAN_NS, USAGE_PLANE

pytestmark = pytest.mark.skipif(not Path("/proc/self/schedstat").is_file(), reason="this system does not count it")

# Two processes share one processor: each runs for about half of the time, however busy the machine is.
SHARES_A_PROCESSOR = """
import os, subprocess, sys
import stepscope

os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
other = subprocess.Popen([sys.executable, "-c", "print(1, flush=True)\\nwhile True: pass"], stdout=subprocess.PIPE)
other.stdout.readline()
try:
    with stepscope.Profile(sys.argv[1]):
        for number in range(5):
            with stepscope.step(number):
                sum(range(2_000_000))
finally:
    other.kill()
    other.wait()
"""


def test_each_interval_says_how_long_the_thread_ran():
    usage = ThreadUsage()
    usage.start(ProfilerOptions(), time.perf_counter_ns)
    sum(range(300_000))
    usage.read()
    time.sleep(0.01)
    usage.stop()
    own = threading.get_native_id()  # other threads of this process may run
    chunk = next(each for each in usage.drain() if each.line_id == own)

    working, sleeping = (chunk.stats[row] for row in (0, 1))
    assert (chunk.plane, chunk.line_id) == (USAGE_PLANE, own)
    assert len(chunk.begin) == 2
    assert working[RAN_NS] > sleeping[RAN_NS]
    assert usage.drain() == []


def test_a_step_on_another_thread_is_read_there():
    usage = ThreadUsage()
    usage.start(ProfilerOptions(), time.perf_counter_ns)
    numbers = []

    def train() -> None:
        numbers.append(threading.get_native_id())
        for number in range(3):
            with stepscope.step(number):
                time.sleep(0.01)

    thread = threading.Thread(target=train)
    thread.start()
    thread.join()
    usage.stop()

    assert {chunk.line_id for chunk in usage.drain()} >= {threading.get_native_id(), *numbers}


def test_threads_that_run_already_are_read_as_well():
    usage, done = ThreadUsage(), threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()
    usage.start(ProfilerOptions(), time.perf_counter_ns)
    usage.stop()
    done.set()
    other.join()

    assert other.native_id in {chunk.line_id for chunk in usage.drain()}


def test_a_system_without_the_counters_records_nothing(monkeypatch):
    def refuse(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(os, "open", refuse)
    usage = ThreadUsage()
    usage.start(ProfilerOptions(), time.perf_counter_ns)
    usage.stop()

    assert usage.drain() == []


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="processes cannot be kept on one processor")
def test_a_program_that_shares_its_processor_is_told_so(tmp_path):
    subprocess.run([sys.executable, "-c", SHARES_A_PROCESSOR, str(tmp_path)], check=True, timeout=600)
    profile = stepscope.load(tmp_path)
    account = account_of(profile.trace())

    assert account is not None
    assert account.mean_percent["contention"] > 10
    assert any("the machine was busy" in warning for warning in profile.overview().to_dict()["warnings"])
