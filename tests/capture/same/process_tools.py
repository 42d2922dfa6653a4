# arguments: functions
"""Profilers, tracers, debuggers, logging and warnings of the program, each alone."""

import bdb
import contextlib
import contextvars
import faulthandler
import gc
import inspect
import io
import logging
import os
import re
import signal
import socket
import sys
import tempfile
import time
import warnings


def three(n=3):
    """
    >>> three()
    3
    """
    a = n
    return a


def debugger():
    class Debugger(bdb.Bdb):
        def user_line(self, frame):
            print("line", frame.f_lineno - frame.f_code.co_firstlineno)

    Debugger().runcall(three)


def context():
    value = contextvars.ContextVar("v", default=1)
    print(value.get(), list(contextvars.copy_context()))


def covered():
    import coverage

    measured = coverage.Coverage(data_file=None)
    measured.start()
    three()
    measured.stop()
    print(sorted(measured.get_data().lines(__file__)))


def cprofile():
    import cProfile
    import pstats

    profile = cProfile.Profile()
    profile.enable()
    three()
    sum(range(1000))
    profile.disable()
    print(sorted(key[2] for key in pstats.Stats(profile).stats))


def profiled():
    import profile

    print(profile.Profile().runcall(three))


def counted():
    import trace

    tracer = trace.Trace(count=1, trace=0)
    tracer.runfunc(three)
    print(sorted(count for (file, _), count in tracer.results().counts.items() if file == __file__))


def documented():
    import doctest

    print(doctest.testmod())


def tested():
    import unittest

    class Test(unittest.TestCase):
        def test_a(self):
            self.assertEqual(1, 1)

    said = io.StringIO()
    unittest.TextTestRunner(stream=said).run(unittest.defaultTestLoader.loadTestsFromTestCase(Test))
    print(re.sub(r"[0-9.]+s", "a time", said.getvalue()), file=sys.stderr)  # which differs under load


def dumped():
    time.sleep(0.3)
    faulthandler.dump_traceback(file=sys.stderr)
    faulthandler.register(signal.SIGUSR1, all_threads=False)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.2)


def referred():
    class Kept:
        pass

    kept = Kept()
    print(sys.getrefcount(kept), len(gc.get_referrers(kept)))


def inspected():
    print(inspect.getsource(three), inspect.getmodule(three), inspect.getfile(three) == __file__)


def local_names():
    a = 1
    b = 2
    names = locals()
    del names["a"]
    print(sorted(locals()))


def logged_to_a_closed_stream():
    logging.basicConfig(stream=sys.stderr)
    sys.stderr.close()
    print("x")


def logged():
    class Handler(logging.Handler):
        def emit(self, record):
            print("rec", record.name, record.getMessage())

    logging.root.addHandler(Handler())
    logging.root.setLevel(0)
    logging.warning("w")


def monitored():
    if hasattr(sys, "monitoring"):
        tools = sys.monitoring
        print([tools.get_tool(each) for each in range(6)])
        for each in range(6):
            tools.use_tool_id(each, str(each))
        seen = []
        tools.register_callback(2, tools.events.PY_START, lambda code, at: seen.append(code.co_name))
        tools.set_events(2, tools.events.PY_START)
        three()
        tools.set_events(2, 0)
        print(seen)
        for each in range(6):
            tools.free_tool_id(each)
    print("ok")


def numpy_state():
    import numpy as np

    np.random.seed(1)
    print(np.random.rand(3), np.geterr(), os.environ.get("OPENBLAS_NUM_THREADS"), np.show_config.__name__)


def pools():
    import threadpoolctl

    print([(each["user_api"], each["num_threads"]) for each in threadpoolctl.threadpool_info()])


def scheduled():
    import sched

    scheduler = sched.scheduler()
    scheduler.enter(0.1, 1, print, ("a",))
    scheduler.enter(0.05, 1, print, ("b",))
    scheduler.run()


def lines_traced():
    def trace(frame, event, given):
        if event == "call" and frame.f_code.co_name == "three":
            frame.f_trace_opcodes = False
            return lambda frame, event, given: print(event, frame.f_lineno - frame.f_code.co_firstlineno)

    sys.settrace(trace)
    three()
    sys.settrace(None)


def calls_of_c():
    seen = []

    def watch(frame, event, given):
        if event == "c_call":
            seen.append(given.__name__)

    sys.setprofile(watch)
    len([])
    max(1, 2)
    sys.setprofile(None)
    print(seen)


def connected():
    server = socket.create_server(("127.0.0.1", 0))
    client = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    client.send(b"x")
    print(accepted.recv(1), server.fileno(), client.fileno(), accepted.fileno())


def temporary():
    with tempfile.TemporaryDirectory() as folder:
        print(os.listdir(folder), oct(os.stat(folder).st_mode))
    print(tempfile.gettempdir(), os.path.exists("stepscope-logs"))


def allocated():
    import tracemalloc

    tracemalloc.start()
    kept = [0] * 100_000
    print(len(kept), tracemalloc.get_traced_memory()[0] > 700_000, tracemalloc.get_traceback_limit())
    tracemalloc.stop()


def warned():
    warnings.warn("w")
    warnings.warn("d", DeprecationWarning)
    warnings.warn("w", stacklevel=2)


def warned_once():
    warnings.simplefilter("once")
    for _ in range(3):
        warnings.warn("same")


def warned_by_an_error():
    warnings.filterwarnings("error", module="__main__")
    with contextlib.suppress(UserWarning):
        warnings.warn("w")
        print("no error")


def warned_of_a_file():
    warnings.simplefilter("always")
    file = open("/dev/null")
    del file


globals()[sys.argv[1]]()
