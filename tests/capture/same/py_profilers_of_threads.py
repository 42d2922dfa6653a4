# modes: run samples
"""Profilers that a program sets for threads that begin later, and for all at once."""

import sys
import threading

calls = []


def hook(frame, event, arg):
    calls.append((event, frame.f_code.co_name))


def step(n):
    return len(str(n))


def train():
    sys.setprofile(hook)
    step(1)
    sys.setprofile(None)


for n in range(4):
    step(n)
threading.setprofile(hook)
thread = threading.Thread(target=step, args=(1,))
thread.start()
thread.join()
threading.setprofile(None)
print(len(calls), calls[:3], sys.getprofile())
calls.clear()
train()
print(len(calls), calls[:3])
calls.clear()
if hasattr(threading, "setprofile_all_threads"):
    ready, go = threading.Event(), threading.Event()

    def waits():
        ready.set()
        go.wait()
        step(1)

    thread = threading.Thread(target=waits)
    thread.start()
    ready.wait()
    threading.setprofile_all_threads(hook)
    step(2)
    go.set()
    thread.join()
    threading.setprofile_all_threads(None)
    print(len([each for each in calls if each == ("call", "step")]), sys.getprofile(), threading.getprofile())
