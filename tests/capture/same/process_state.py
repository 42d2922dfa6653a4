"""What a program finds of its process: words, environment, files, limits, signals, streams, modules, frames."""

import atexit
import decimal
import faulthandler
import gc
import importlib
import inspect
import json
import locale
import logging
import multiprocessing
import os
import random
import resource
import runpy
import signal
import subprocess
import sys
import time
import traceback
import warnings

import __main__


def said(*words):
    return subprocess.run(words, capture_output=True, text=True).stdout


def deep(n=0):
    try:
        return deep(n + 1)
    except RecursionError:
        return n


def shown(number):
    handler = signal.getsignal(number)
    return handler if handler in (signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler, None) else "own"


def stack():
    traceback.print_stack()
    return [(each.filename == __file__, each.function, each.lineno) for each in inspect.stack()]


class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == "zzz":
            print("asked")


try:
    print(os.waitpid(-1, os.WNOHANG))
except ChildProcessError as error:
    print(error)
print([os.open("/dev/null", os.O_RDONLY) for _ in range(5)])
print([n for n in os.listdir("/proc/self/fd") if int(n) < 256])
print(sys.argv, sys.orig_argv[1:], sys.flags, sys.warnoptions, sys._xoptions, sys.executable)
print(sys.path, sys.path[0] == os.path.dirname(os.path.abspath(__file__)))
print(open("/proc/self/cmdline").read().split("\0")[1:])
print(
    sorted(vars(__main__)), __spec__, __package__, __doc__, __loader__.__class__, __builtins__, __file__ == sys.argv[0]
)
print(sys._getframe().f_back, sys._getframe().f_code.co_filename == __file__)
print(sys.modules["__main__"] is __main__, "__mp_main__" in sys.modules, multiprocessing.current_process())
print(sorted(os.environ.items()))
print(sorted(line for line in said("env").splitlines() if not line.startswith("_=")))
print(said("sh", "-c", "env | grep -v -e ^_= -e PWD= | sort"))
print(said(sys.executable, "-c", "import os; print(sorted(os.environ.items()))"))
print(said(sys.executable, "-c", "import os; print(os.getppid())").strip() == str(os.getpid()))
mask = os.umask(0)
os.umask(mask)
print(oct(mask), os.getpriority(os.PRIO_PROCESS, 0), os.getpgrp() == os.getpid(), os.sched_getaffinity(0))
print([resource.getrlimit(getattr(resource, name)) for name in dir(resource) if name.startswith("RLIMIT_")])
print({each.name: shown(each) for each in signal.Signals if each.name not in ("SIGUSR2", "SIGTERM")})
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), faulthandler.is_enabled(), atexit._ncallbacks() < 50)
for each in (sys.stdin, sys.stdout, sys.stderr):
    print(each.name, each.mode, each.encoding, each.errors, each.line_buffering, each.write_through, each.isatty())
print(repr(sys.stdin.read()))
try:
    input("? ")
except EOFError as error:
    print(error)
print(sys.stdout is sys.__stdout__, locale.getlocale(), locale.setlocale(locale.LC_ALL), time.tzname)
gc.collect()
print(gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.callbacks, gc.garbage, sys.getswitchinterval())
print(
    logging.root.handlers, logging.root.level, logging.getLogger("x").getEffectiveLevel(), logging.root.manager.disable
)
print(warnings.filters, warnings.showwarning.__module__)
print(locale.getpreferredencoding(False), sys.getfilesystemencoding(), decimal.getcontext().prec, sys.float_repr_style)
os.environ["TZ"] = "Asia/Tokyo"
time.tzset()
print(time.strftime("%c %H %Z", time.localtime(0)), f"{1234567.891:n}", sys.get_int_max_str_digits())
random.seed(3)
print(random.random(), hash("abc"), hash(frozenset("abc")))
print(stack(), sys.getrecursionlimit(), deep())
sys.setrecursionlimit(300)
print(deep())
sys.setrecursionlimit(1000)
print(importlib.reload(json) is json)
sys.meta_path.insert(0, Finder())
for name in ("zzz", "sitecustomize"):
    try:
        __import__(name)
    except ImportError as error:
        print(error)
with open("_t_x.py", "w") as file:
    file.write("print(__name__)")
runpy.run_path("_t_x.py", run_name="__main__")
resource.setrlimit(resource.RLIMIT_CPU, (100, 200))
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
print([resource.getrlimit(each) for each in (resource.RLIMIT_CPU, resource.RLIMIT_FSIZE)])
