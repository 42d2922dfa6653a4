# what Python itself keeps, before and after a training
import sys
import warnings
import linecache
import logging
import atexit
import signal
import threading
import os
import locale
import decimal
import tempfile
import socket
import builtins
import gc
import json
import io
import codecs
import copyreg
import types
import torch

m = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(m.parameters(), lr=0.1)


def state():
    return {
        "linecache": sorted(k for k in linecache.cache if "stepscope" in k or k == __file__),
        "handlers": [type(h).__name__ for h in logging.getLogger().handlers],
        "levels": logging.getLogger().level,
        "loggers": sorted(n for n in logging.Logger.manager.loggerDict if n.startswith(("stepscope", "grpc", "jax"))),
        "filters": len(warnings.filters),
        "hooks": [
            sys.excepthook is sys.__excepthook__,
            threading.excepthook is threading.__excepthook__,
            sys.unraisablehook is sys.__unraisablehook__,
            sys.displayhook is sys.__displayhook__,
        ],
        "path": sys.path[:1] != [""],
        "flags": tuple(sys.flags),
        "prec": decimal.getcontext().prec,
        "timeout": socket.getdefaulttimeout(),
        "builtins": sorted(set(vars(builtins))),
        "reg": len(copyreg.dispatch_table),
        "threads": threading.active_count(),
        "umask": os.umask(0o22) or os.umask(0o22),
        "globals": sorted(globals()),
        "tracing": [sys.gettrace(), sys.getprofile(), threading.gettrace(), threading.getprofile()],
        "coro": sys.get_coroutine_origin_tracking_depth(),
        "agen": sys.get_asyncgen_hooks()[0],
        "env": sorted(os.environ),
        "stdout": (sys.stdout.line_buffering, sys.stdout.encoding, sys.stdout.errors),
        "limit": sys.getrecursionlimit(),
        "intdigits": sys.get_int_max_str_digits(),
        "debug": gc.get_debug(),
        "th": gc.get_threshold(),
        "frozen": gc.get_freeze_count(),
        "meta_own": [type(x).__name__ for x in sys.path_hooks],
        "cwd": os.path.basename(os.getcwd()) in ("plain", "followed", "again"),
        "niceness": os.nice(0),
        "aff": len(os.sched_getaffinity(0)),
        "sid": os.getsid(0) == os.getpid(),
        "ctx": dict(__import__("contextvars").copy_context()) == {},
    }


a = state()
import time

for i in range(30):
    opt.zero_grad()
    m(torch.ones(2, 4)).sum().backward()
    opt.step()
    time.sleep(0.01)
time.sleep(0.7)
b = state()
print(json.dumps(a, default=str, indent=0))
print({k: (a[k], b[k]) for k in a if a[k] != b[k]})
