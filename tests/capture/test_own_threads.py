"""Threads of Stepscope that a program does not see."""

from __future__ import annotations

import _thread
import os
import subprocess
import sys
import threading

import pytest
from program_runs import require_packages

from stepscope.capture.own_threads import OwnThread, Recurring, is_main_thread

PATIENCE_S = 60.0
needs_fork = pytest.mark.skipif(sys.platform != "linux", reason="threads that wait outside of Python are Linux'")


def test_a_thread_is_one_of_the_system_whatever_the_program_puts_in_the_place_of_threads(monkeypatch):
    for name in ("start_new_thread", "allocate_lock", "get_ident"):
        monkeypatch.delattr(_thread, name)
    ran = []
    thread = OwnThread(lambda: ran.append((is_main_thread(), threading.get_native_id())))
    thread.start()
    thread.join(60)

    assert ran
    assert ran[0] != (is_main_thread(), threading.get_native_id())


def test_one_that_is_woken_calls_at_once():
    called = threading.Event()
    waiting = Recurring(lambda: called.set(), 1e6)
    waiting.start()

    waiting.wake()

    assert called.wait(PATIENCE_S)


def test_one_that_waits_for_files_is_woken_and_ends_too():
    reads, writes = os.pipe()
    called = threading.Semaphore(0)

    def call() -> float:
        called.release()
        return -1.0

    waiting = Recurring(call, -1.0, files=[reads])
    waiting.start()
    waiting.wake()
    assert called.acquire(timeout=PATIENCE_S)
    waiting.stop()

    assert waiting.join(PATIENCE_S)
    os.close(reads)
    os.close(writes)


@needs_fork
def test_none_lives_while_the_program_forks_and_each_goes_on_after_it():
    """Three threads wait: for long, for a file, and one is called all the time."""
    program = """
import os, threading, time
from stepscope.capture.own_threads import Recurring
os.register_at_fork(after_in_parent=lambda: time.sleep(0.001))
tasks = lambda: len(os.listdir("/proc/self/task"))
reads, writes = os.pipe()
called = threading.Semaphore(0)
woken = [threading.Event(), threading.Event()]
waiting = [Recurring(woken[0].set, 1e6), Recurring(woken[1].set, -1.0, files=[reads]),
           Recurring(lambda: called.release() or 0.0, 0.0)]
for each in waiting:
    each.start()
before = tasks()
for _ in range(20):
    called.acquire()
    if not (child := os.fork()):
        os._exit(tasks())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 1
waiting[0].wake()
os.write(writes, b"x")
print(before, [each.wait(60) for each in woken], called.acquire(timeout=60))
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=300, check=False
    )

    assert (done.stdout, done.stderr) == ("4 [True, True] True\n", "")


@needs_fork
def test_threads_of_the_program_may_fork_at_once():
    program = """
import os, threading
from stepscope.capture.own_threads import Recurring
waiting = [Recurring(lambda: None, 1e6) for _ in range(20)]
for each in waiting:
    each.start()

def fork():
    for _ in range(10):
        if not (child := os.fork()):
            os._exit(0)
        os.waitpid(child, 0)

forking = [threading.Thread(target=fork) for _ in range(4)]
for each in forking:
    each.start()
for each in forking:
    each.join()
for each in waiting:
    each.wake()
print([each.join(60) for each in waiting] == [True] * 20)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


@needs_fork
def test_pytorchs_profiler_leaves_no_thread_of_its_own():
    program = """
import os, torch
from stepscope.capture.tracers.kineto_thread import without_lasting_thread
tasks = lambda: len(os.listdir("/proc/self/task"))
before = tasks()
with without_lasting_thread():
    torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]).start()
    during = tasks()
print(during - before, tasks() - before)
"""
    require_packages("torch")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)

    assert done.stdout == "1 0\n", done.stderr


@needs_fork
def test_one_that_is_due_when_the_interpreter_has_ended_calls_nothing():
    """The C library ends the process by a call of sleep(1), long after Python's own end."""
    program = """
import ctypes, sys
from stepscope.kernels.waiting import Waiter
library = ctypes.CDLL(None)
library.on_exit(library.sleep, None)
waiting = Waiter(lambda goes_on: None, 0.4)
sys.exit(1)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)

    assert (done.returncode, done.stderr) == (1, "")
