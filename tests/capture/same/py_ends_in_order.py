# arguments: plain thread pool exit raise atexit_thread interrupt weak
"""What happens in which order when a program with everything at once ends."""

import atexit
import concurrent.futures
import logging
import queue
import signal
import sys
import tempfile
import threading
import weakref

logging.basicConfig(stream=sys.stdout, format="%(levelname)s %(threadName)s %(message)s")


class Resource:
    def __init__(self, name):
        self.name = name
        weakref.finalize(self, print, "finalize", name)

    def __del__(self):
        print("del", self.name, sys.is_finalizing() if sys else "no sys")


def step(n):
    return sum(range(n * 10))


atexit.register(print, "registered first")
model = Resource("model")
cycle = [Resource("cycle")]
cycle.append(cycle)
folder = tempfile.TemporaryDirectory()
atexit.register(lambda: print("folder", __import__("os").path.isdir(folder.name)))
threading._register_atexit(print, "before threads are joined")
for n in range(10):
    step(n)
way = sys.argv[1]
if way == "thread":
    work = queue.Queue()

    def serve():
        while (item := work.get()) is not None:
            print("served", item)
        print("thread ends")

    threading.Thread(target=serve, name="server").start()
    for n in range(3):
        work.put(n)
    atexit.register(logging.warning, "at exit")
    threading._register_atexit(work.put, None)
elif way == "pool":
    pool = concurrent.futures.ThreadPoolExecutor(2)
    futures = [pool.submit(step, n) for n in range(20)]
    atexit.register(lambda: print("done", all(each.done() for each in futures)))
elif way == "exit":
    sys.exit("said at the end")
elif way == "raise":
    sys.excepthook = lambda kind, value, trace: print("hook", kind.__name__, value, trace.tb_lineno > 0)
    raise LookupError("lost")
elif way == "atexit_thread":

    def late():
        try:
            thread = threading.Thread(target=print, args=("late thread",))
            thread.start()
            thread.join()
        except RuntimeError as error:
            print("refused", error)

    atexit.register(late)
elif way == "interrupt":
    signal.raise_signal(signal.SIGINT)
elif way == "weak":
    keys = weakref.WeakKeyDictionary({model: "value"})
    values = weakref.WeakValueDictionary({"model": model})
    ref = weakref.ref(model, lambda ref: print("gone", ref() is None))
    proxy = weakref.proxy(model)
    print(len(keys), len(values), proxy.name, weakref.getweakrefcount(model))
    del model
    print(len(keys), len(values))
logging.warning("last line")
