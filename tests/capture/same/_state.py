"""Prints how a training program sees its process, as JSON."""

import atexit
import builtins
import gc
import inspect
import json
import multiprocessing.process
import os
import resource
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
import warnings
from pathlib import Path

import torch

model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(12):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
handled = [s for s in signal.valid_signals() if isinstance(s, signal.Signals)]
functions = (os._exit, os.execv, os.fork, subprocess.Popen.__init__, multiprocessing.process.BaseProcess._bootstrap)
functions += (open, builtins.__import__, threading.Thread.start, time.sleep, print, atexit.register, warnings.warn)
state = {
    "modules": sorted(name for name in sys.modules if not name.startswith("torch")),
    "meta_path": [getattr(each, "__name__", type(each).__name__) for each in sys.meta_path],
    "path": [sys.path, [str(each) for each in sys.path_hooks], sys.argv, sys.orig_argv[1:], sys.executable],
    "flags": [str(sys.flags), sys.warnoptions, str(sys._xoptions)],
    "environment": dict(os.environ),
    "folder": [Path.cwd().name, os.umask(0o22)],
    "threads": [each.name for each in threading.enumerate()],
    "signals": {each.name: str(signal.getsignal(each)) for each in handled},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "hooks": [str(each) for each in (sys.excepthook, sys.displayhook, threading.excepthook, sys.unraisablehook)],
    "tracing": [sys.gettrace(), sys.getprofile(), tracemalloc.is_tracing()],
    "gc": [gc.isenabled(), gc.get_threshold(), [str(each) for each in gc.callbacks], gc.get_freeze_count()],
    "limits": [sys.getswitchinterval(), sys.getrecursionlimit(), resource.getrlimit(resource.RLIMIT_NOFILE)],
    "filters": [str(each) for each in warnings.filters],
    "main": [sorted(vars(sys.modules["__main__"])), __file__, __spec__, "__mp_main__" in sys.modules],
    "functions": [f"{each.__qualname__} {type(each).__name__}" for each in functions],
    "streams": [str(sys.stdout), str(sys.stderr), sys.stdout.line_buffering, str(sys.stdin)],
    "stack": len(inspect.stack()),
    "fds": len([*Path("/proc/self/fd").iterdir()]) if sys.platform == "linux" else 0,
    "task": len([*Path("/proc/self/task").iterdir()]) if sys.platform == "linux" else 0,
    "atexit": atexit._ncallbacks(),
    "sys": sorted(dir(sys)),
    "builtins": sorted(dir(builtins)),
}
print(json.dumps(state))
