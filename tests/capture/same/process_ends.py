# arguments: functions
"""What a program leaves for its end: functions, threads, hooks, streams, another program."""

import atexit
import io
import os
import signal
import subprocess
import sys
import threading
import time


def atexit_cleared():
    atexit.register(print, "no")
    atexit._clear()


def atexit_exits():
    atexit.register(lambda: sys.exit(5))


def atexit_in_order():
    for each in range(5):
        atexit.register(print, each)
    atexit.register(print, "no")
    atexit.unregister(print)
    atexit.register(lambda: atexit.register(print, "inner"))
    atexit.register(lambda: print(subprocess.run(["echo", "hi"], capture_output=True, text=True).stdout))
    print("end", atexit._ncallbacks() < 50)


def atexit_ends():
    atexit.register(lambda: os._exit(6))
    print("end", flush=True)


def atexit_raises():
    atexit.register(lambda: 1 / 0)


def atexit_run():
    atexit.register(print, "once")
    atexit._run_exitfuncs()


def atexit_thread():
    def run():
        try:
            thread = threading.Thread(target=print, args=("t",))
            thread.start()
            thread.join()
        except RuntimeError as error:
            print(error)

    atexit.register(run)


def daemon_prints():
    threading.Thread(target=lambda: (time.sleep(5), print("never")), daemon=True).start()


def thread_prints_after():
    threading.Thread(target=lambda: (time.sleep(0.5), print("after"))).start()
    print("end")


def thread_prints_after_an_error():
    threading.Thread(target=lambda: (time.sleep(0.3), print("after"))).start()
    raise ValueError("main")


def thread_exits():
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()


def thread_ends():
    thread = threading.Thread(target=os._exit, args=(3,))
    thread.start()
    thread.join()


def thread_raises():
    thread = threading.Thread(target=lambda: 1 / 0, name="T")
    thread.start()
    thread.join()


def daemonized():
    print("p", flush=True)
    if os.fork():
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.closerange(3, 1024)
    print("d", flush=True)
    os._exit(0)


def hook():
    sys.excepthook = lambda kind, value, at: print("hook", kind.__name__, value, at.tb_frame.f_code.co_name)
    raise ValueError("h")


def hook_exits():
    sys.excepthook = lambda *a: sys.exit(9)
    raise ValueError("h")


def hook_fails():
    sys.excepthook = lambda *a: 1 / 0
    raise ValueError("h")


def huge_exit():
    # Python 3.12 and later end with an exception that nobody handles, which they write where `threading` is imported or not.
    print(threading.active_count(), flush=True)
    sys.exit(10**30)


def chained():
    try:
        1 / 0
    except ZeroDivisionError as error:
        raise RuntimeError("r") from error


def noted():
    error = ValueError("n")
    error.add_note("note")
    raise error


def again():
    os.execv(sys.executable, [sys.executable, __file__, "seen"])


def seen():
    print(sys.argv[1:], sorted(k for k in os.environ if "STEPSCOPE" in k and k != "STEPSCOPE_CACHE"))


def full_output():
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
    print("x")


def broken_pipe():
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    reader, writer = os.pipe()
    os.close(reader)
    os.write(writer, b"x")


def streams_replaced():
    out, err = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = io.StringIO(), io.StringIO()
    print("x")
    print("y", file=sys.stderr)
    print([sys.stdout.getvalue(), sys.stderr.getvalue()], file=out)
    err.write("end")


def detached():
    under = sys.stdout.detach()
    under.write(b"x\n")
    under.flush()


def unraisable():
    class Fails:
        def __del__(self):
            1 / 0

    Fails()


globals()[sys.argv[1]]()
