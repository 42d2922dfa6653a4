"""The stacks of all threads, read in one go."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import FunctionType

from stepscope.kernels.stacks import file_of, list_objects, read_stack, read_stacks

# Threads that start and end all the time while their stacks are read.  Read frame by frame from Python, this ends
# with a segmentation fault on CPython 3.11.
CHURN = """
import sys, threading, time
from stepscope.capture.tracers.stack_samples import StackSampler

def recurse(depth):
    return recurse(depth - 1) if depth else time.sleep(0.0002)

def churn():
    while not over:
        thread = threading.Thread(target=recurse, args=(5,))
        thread.start()
        thread.join()

over = False
sys.setswitchinterval(1e-5)
threads = [threading.Thread(target=churn) for _ in range(3)]
for thread in threads:
    thread.start()
sampler = StackSampler()
for count in range(20_000):
    sampler.sample()
    if count % 100 == 0:
        sampler.drain()
over = True
for thread in threads:
    thread.join()
"""


@contextmanager
def waiting_thread():
    """Yields a thread that waits in `outer` -> `inner`."""
    started, over = threading.Event(), threading.Event()

    def inner():
        started.set()
        over.wait()

    def outer():
        inner()

    thread = threading.Thread(target=outer)
    thread.start()
    started.wait()
    try:
        yield thread
    finally:
        over.set()
        thread.join()


def names(stack):
    return [code.co_name for code, _ in stack]


def test_each_thread_has_its_frames_innermost_first():
    with waiting_thread() as thread:
        stacks = read_stacks(128, "nowhere")

    assert names(stacks[thread.ident])[-5:] == ["inner", "outer", "run", "_bootstrap_inner", "_bootstrap"]
    assert names(stacks[threading.get_ident()])[0] == "test_each_thread_has_its_frames_innermost_first"


def test_a_function_is_named_by_the_line_that_defines_it_and_read_where_it_runs():
    with waiting_thread() as thread:
        named = {code.co_name: line - code.co_firstlineno for code, line in read_stacks(128, "nowhere")[thread.ident]}
        running = {code.co_name: line - code.co_firstlineno for code, line in read_stack(thread.ident, 128)}

    assert (named["inner"], named["outer"]) == (0, 0)
    assert (running["inner"], running["outer"]) == (2, 1)


def test_stacks_are_cut_and_files_are_left_out():
    with waiting_thread() as thread:
        assert names(read_stacks(2, threading.__file__)[thread.ident]) == ["inner", "outer"]
        assert names(read_stacks(99, "/", __file__)[thread.ident]) == ["inner", "outer"]
        assert "_bootstrap" not in names(read_stacks(99, __file__, last=__file__)[thread.ident])
        assert len(read_stack(thread.ident, 3)) == 3
    assert read_stack(None, 3) == []


def test_the_collector_is_as_it_was():
    gc.disable()
    try:
        read_stacks(128, "nowhere")
        assert not gc.isenabled()
    finally:
        gc.enable()
    read_stack(threading.get_ident(), 128)
    assert gc.isenabled()


def test_threads_that_come_and_go_do_no_harm():
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == 0, done.stderr


def test_code_without_a_file_has_that_of_its_module():
    def sent():
        return read_stacks(1, "nowhere")

    code = sent.__code__.replace(co_filename="<dynamic-code>")  # as cloudpickle makes it in a worker process
    stacks = FunctionType(code, {"__file__": "/jobs/train.py", "read_stacks": read_stacks})()

    assert [file_of(code) for code, _ in stacks[threading.get_ident()]] == ["/jobs/train.py"]
    assert file_of(sent.__code__) == __file__


def test_objects_are_picked_by_their_exact_type():
    class Kind(type):
        __hash__ = None  # a program's types may be of any kind

        def __eq__(cls, other):
            raise AssertionError

    class Plain(metaclass=Kind): ...

    class Derived(Plain): ...

    plain, derived = Plain(), Derived()

    assert [id(each) for each in list_objects([Plain])] == [id(plain)]
    assert [id(each) for each in list_objects([Derived], 0)] == [id(derived)]
    assert list_objects([Plain], most=0) == []
    assert gc.isenabled()
