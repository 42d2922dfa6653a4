"""The stacks of all threads, read in one go."""

from __future__ import annotations

import gc
import itertools
import subprocess
import sys
import threading
from contextlib import contextmanager
from types import FunctionType

import pytest
from collectors import collecting_at_each_object

from stepscope.kernels.stacks import StackLog, file_of, list_objects, read_stack

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
sample = sampler._make_sampling(0.01).sample
for count in range(20_000):
    sample()
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


def read_stacks(*options, **more):
    """The shown frames of each thread, by Python's number of it."""
    log = StackLog(*options, **more)
    log.read(iter([5]).__next__, {}, ())
    ((now, threads),) = log.take()
    assert now == 5
    return {number: stack for (number, *_), stack, _, _ in threads}


def test_each_thread_has_its_frames_innermost_first():
    with waiting_thread() as thread:
        stacks = read_stacks(128, "nowhere")

    assert names(stacks[thread.ident])[-5:] == ["inner", "outer", "run", "_bootstrap_inner", "_bootstrap"]
    assert names(stacks[threading.get_ident()])[1] == "test_each_thread_has_its_frames_innermost_first"


def test_a_function_is_named_by_the_line_that_defines_it_and_read_where_it_runs():
    with waiting_thread() as thread:
        named = {code.co_name: line - code.co_firstlineno for code, line in read_stacks(128, "nowhere")[thread.ident]}
        running = {code.co_name: line - code.co_firstlineno for code, line in read_stack(thread.ident, 128)}

    assert (named["inner"], named["outer"]) == (0, 0)
    assert (running["inner"], running["outer"]) == (2, 1)


def test_code_of_a_module_that_has_no_lines_is_named_by_its_first_one():
    asked = "found = read_stacks(128, 'nowhere')[number], read_stack(number)"
    code = compile(asked, "made.py", "exec").replace(co_linetable=b"")
    known = {"read_stacks": read_stacks, "read_stack": read_stack, "number": threading.get_ident()}
    exec(code, known)

    assert [[line for each, line in stack if each is code] for stack in known["found"]] == [[1], [1]]


def test_stacks_are_cut_and_files_are_left_out():
    with waiting_thread() as thread:
        assert names(read_stacks(2, threading.__file__)[thread.ident]) == ["inner", "outer"]
        assert names(read_stacks(99, "/", __file__)[thread.ident]) == ["inner", "outer"]
        assert "_bootstrap" not in names(read_stacks(99, __file__, last=__file__)[thread.ident])
        assert len(read_stack(thread.ident, 3)) == 3
    assert read_stack(None, 3) == []


def test_a_stack_that_is_as_before_is_logged_once():
    log, sizes = StackLog(128, "nowhere"), [0]
    with waiting_thread() as thread:
        own = {each for each in sys._current_frames() if each != thread.ident}
        for now in (10, 20, 30):
            assert log.read(lambda now=now: now, {thread.ident: thread}, own)[0] == now
            sizes.append(len(log))
        samples = log.take()
        log.read(lambda: 40, {thread.ident: thread}, own)

    first, second, third = (size - before for before, size in itertools.pairwise(sizes))
    assert first > second == third
    assert [now for now, _ in samples] == [10, 20, 30]
    assert samples[0][1] == samples[1][1] == samples[2][1]
    assert samples[0][1][0][0] == (thread.ident, thread.native_id, thread.name)
    assert log.take() == [(40, samples[0][1])]
    assert log.take() == []


def test_samples_while_the_log_is_taken_are_kept_once():
    """Whenever an object is made the collector may run, in it code of the program, and the sampler meanwhile."""
    log, ticks = StackLog(128, "nowhere"), itertools.count()

    def sample():
        for _ in range(100):
            log.read(ticks.__next__, {}, ())

    sample()
    with collecting_at_each_object(sample):
        samples = log.take()
    samples += log.take()

    assert len(samples) > 100
    assert [now for now, _ in samples] == [*range(len(samples))]
    assert all("sample" in names(stack) for _, threads in samples for (number, *_), stack, *_ in threads
               if number == threading.get_ident())  # fmt: skip


def test_the_frames_of_no_library_say_where_they_are():
    log = StackLog(4, "nowhere", libraries=(threading.__file__,))
    with waiting_thread() as thread:
        log.read(lambda: 1, {}, {threading.get_ident()})
    ((_, threads),) = log.take()
    (frames, (code, place), own) = next(rest for (number, *_), *rest in threads if number == thread.ident)

    assert names(frames) == ["wait", "wait", "inner", "outer"]
    assert (code.co_name, names(own)) == ("wait", ["inner", "outer"])
    assert place > 0
    assert all(at > 0 for _, at in own)


def test_an_object_of_the_program_among_the_threads_is_a_thread_by_its_number():
    log, own = StackLog(128, "nowhere"), threading.get_ident()
    log.read(lambda: 1, {own: object()}, sys._current_frames().keys() - {own})

    ((_, (((number, system, name), *_),)),) = log.take()
    assert (number, system, name) == (own, own, f"thread {own}")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux says what a thread has run")
def test_threads_that_compute_are_counted():
    log = StackLog(128, "nowhere")
    with waiting_thread() as thread:
        main = threading.main_thread()
        named = {thread.ident: thread, main.ident: main}
        own = sys._current_frames().keys() - named.keys()
        log.read(lambda: 0, named, own)
        sum(range(1_000_000))

        assert log.read(lambda: 20_000_000, named, own)[1] == 1
        assert log.read(lambda: 10**15, named, own)[1] == 0


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
        return read_stacks(2, "nowhere")

    code = sent.__code__.replace(co_filename="<dynamic-code>")  # as cloudpickle makes it in a worker process
    stacks = FunctionType(code, {"__file__": "/jobs/train.py", "read_stacks": read_stacks})()

    assert [file_of(code) for code, _ in stacks[threading.get_ident()]] == [__file__, "/jobs/train.py"]
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
