"""What a step sees of the stack below it, in a thread, in a coroutine, in a trace function, in a callback at exit."""

import asyncio
import atexit
import inspect
import sys
import threading
import traceback
import warnings


def names():
    return [each.function for each in inspect.stack(context=0)]


def step(n):
    local = n * 2
    frame = inspect.currentframe()
    return names(), sorted(frame.f_locals), frame.f_lineno - frame.f_code.co_firstlineno, local


for n in range(8):
    seen = step(n)
print(seen)
thread = threading.Thread(target=lambda: print(names(), len(traceback.extract_stack())))
thread.start()
thread.join()


async def main():
    print(names()[:2], len(asyncio.all_tasks()), asyncio.current_task().get_coro().__name__)
    await asyncio.sleep(0)
    return [each.name for each in traceback.StackSummary.extract(traceback.walk_stack(None))][:2]


print(asyncio.run(main()))


def traced(frame, event, arg):
    if frame.f_code.co_name == "step":
        events.append((event, frame.f_lineno - frame.f_code.co_firstlineno))
    return traced


for start in (sys.settrace, threading.settrace):
    events = []
    start(traced)
    if start is threading.settrace:
        thread = threading.Thread(target=step, args=(1,))
        thread.start()
        thread.join()
    else:
        step(1)
    print(len(events), events[:3], sys.gettrace() is traced)
    start(None)
calls = []
threading.setprofile(lambda frame, event, arg: calls.append((event, frame.f_code.co_name)))
thread = threading.Thread(target=step, args=(1,))
thread.start()
thread.join()
threading.setprofile(None)
print(len(calls), calls[:4])


def library(level):
    warnings.warn("here", UserWarning, stacklevel=level)


with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for level in (1, 2, 3, 9):
        library(level)
print([(each.filename.rpartition("/")[2], each.lineno > 0) for each in caught])
atexit.register(lambda: print(names(), inspect.getmodule(inspect.currentframe()).__name__))
frame = sys._getframe()
while frame.f_back:
    frame = frame.f_back
print(frame.f_code.co_name, frame.f_code.co_filename.rpartition("/")[2], frame.f_lineno > 0, frame.f_trace)
