# modes: run watch prove
"""What runs at the end and in which order: atexit, finalizers, threads' own, executors, logging and modules."""

import atexit
import concurrent.futures
import logging
import os
import sys
import tempfile
import threading
import weakref

import numpy as np

weights = np.eye(64)
for _ in range(40):
    weights = np.tanh(weights @ weights)


class Handler(logging.StreamHandler):
    def close(self):
        os.write(1, b"handler closes\n")
        super().close()


class Last:
    def __del__(self, write=os.write):
        write(1, b"last del\n")


logging.getLogger().addHandler(Handler())
folder = tempfile.TemporaryDirectory()
finalizer = weakref.finalize(weights, os.write, 1, b"weights\n")
pool = concurrent.futures.ThreadPoolExecutor(1)
pool.submit(threading.Event().wait, 0.3).add_done_callback(lambda _: os.write(1, b"pool done\n"))
threading._register_atexit(os.write, 1, b"threads' end\n")
late = threading.Thread(target=lambda: (threading.Event().wait(0.5), os.write(1, b"late thread\n")))
late.start()
atexit.register(lambda: os.write(1, f"last {threading.active_count()} {finalizer.alive}\n".encode()))
atexit.register(lambda: atexit.register(os.write, 1, b"from inside\n"))


@atexit.register
def trains():
    global weights
    for _ in range(5):
        weights = np.tanh(weights @ weights)
    os.write(1, f"trains {os.path.isdir(folder.name)} {sys.is_finalizing()}\n".encode())


@atexit.register
def raises():
    raise RuntimeError("in the end")


sys.modules["kept"] = Last()
sys.unraisablehook = lambda each: os.write(1, f"unraisable {type(each.exc_value).__name__}\n".encode())
print("end", flush=True)
