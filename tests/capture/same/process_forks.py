# arguments: functions
"""Children by fork: what they print, close and run, how they end, and what Python warns of."""

import atexit
import multiprocessing
import os
import random
import signal
import sys
import threading
import time
import warnings


def ended(child=-1):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def exits():
    if not os.fork():
        sys.exit(3)
    print(ended())


def exits_at_once():
    for each in range(20):
        if not os.fork():
            os._exit(each)
    print(sorted(ended() for _ in range(20)))


def exits_after_its_functions():
    atexit.register(lambda: print("x", flush=True))
    if not os.fork():
        print("child")
        sys.exit(0)
    os.wait()
    print("parent")


def raises():
    if not os.fork():
        raise ValueError("c")
    print(ended())


def closes_all():
    if not os.fork():
        os.closerange(3, 65536)
        print(open("/dev/null", "w").fileno(), flush=True)
        os._exit(0)
    os.wait()


def lives_longer():
    if os.fork():
        print("parent", flush=True)
        sys.exit(0)
    os.setsid()
    os.closerange(0, 3)
    time.sleep(0.5)
    os._exit(0)


def runs_another_program():
    if not os.fork():
        os.execv(sys.executable, [sys.executable, "-c", "import os; print(sorted(os.environ))"])
    print(ended())


def has_a_child():
    if not os.fork():
        if not os.fork():
            print("g", flush=True)
            os._exit(0)
        os.wait()
        sys.exit(0)
    os.wait()
    print("p")


def is_killed():
    """A child that waits in C is ended by SIGTERM, and has no handler of anybody."""
    time.sleep(0.5)
    for _ in range(5):
        if not (child := os.fork()):
            print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, flush=True)
            time.sleep(60)
            os._exit(1)
        time.sleep(0.2)
        os.kill(child, signal.SIGTERM)
        print(ended(child))


def has_one_thread():
    threading.Thread(target=time.sleep, args=(0.5,)).start()
    if not os.fork():
        print(threading.active_count(), threading.enumerate()[0].name, flush=True)
        os._exit(0)
    os.wait()


def warns():
    """Python 3.12 and later warn when a process with a second thread forks: this one has none."""
    os.register_at_fork(after_in_parent=random.random)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(30):
            if not (child := os.fork()):
                os._exit(len(os.listdir("/proc/self/task")))
            print(ended(child), end=" ")
    print([str(each.message)[:20] for each in caught])


def warns_by_errors():
    """The same in a program that takes warnings for errors, with Python code of its own around each fork."""
    warnings.simplefilter("error")
    os.register_at_fork(before=lambda: time.sleep(0.001), after_in_parent=lambda: time.sleep(0.001))
    context = multiprocessing.get_context("fork")
    for _ in range(4):
        child = context.Process(target=abs, args=(3,))
        child.start()
        child.join()
        print(child.exitcode)
    print(len(os.listdir("/proc/self/task")) < 12)


globals()[sys.argv[1]]()
