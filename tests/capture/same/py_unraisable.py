# modes: run api watch prove
import gc
import sys
import threading
import weakref


class Bad:
    def __del__(self):
        raise RuntimeError("in del")


class Thing:
    pass


def complain(_):
    raise KeyError("in callback")


Bad()
thing = Thing()
reference = weakref.ref(thing, complain)
del thing
seen = []
sys.unraisablehook = lambda each: seen.append((each.exc_type.__name__, each.err_msg, each.exc_traceback.tb_lineno))
Bad()
cycle = [Bad()]
cycle.append(cycle)
del cycle
gc.collect()
print(seen)
sys.unraisablehook = sys.__unraisablehook__
threading.excepthook = lambda args: print("thread:", args.exc_type.__name__, args.thread.name)
thread = threading.Thread(target=lambda: [][1], name="fails")
thread.start()
thread.join()
print(threading.excepthook is threading.__excepthook__, sys.excepthook is sys.__excepthook__)


def generator():
    try:
        yield 1
    finally:
        raise OSError("at close")


next(generator())
gc.collect()
