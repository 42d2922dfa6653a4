# modes: run watch prove
"""A tracer of lines and opcodes of the program counts what it sees, jumps, and is handed from thread to thread."""

import collections
import sys
import threading

import torch

counts = collections.Counter()
model = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def local(frame, event, argument):
    counts[frame.f_code.co_name, event] += 1
    return local


def tracer(frame, event, argument):
    if frame.f_code.co_filename != __file__:
        counts["elsewhere", frame.f_globals.get("__name__", "").partition(".")[0]] += 1
        return None
    frame.f_trace_opcodes = frame.f_code.co_name == "step"
    return local


def step(at):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step()
    return loss


def train(count):
    for at in range(count):
        step(at)


train(4)
sys.settrace(tracer)
train(3)
print(sys.gettrace() is tracer)
threading.settrace(tracer)
thread = threading.Thread(target=train, args=(2,))
thread.start()
thread.join()
threading.settrace(None)
sys.settrace(None)
known = {name: each for name, each in counts.items() if name[0] != "elsewhere"}
print(sorted(known.items()))
print(sorted((name[1], each) for name, each in counts.items() if name[0] == "elsewhere"))


def jumps():
    found = []
    found.append(1)
    found.append(2)
    found.append(3)
    return found


def jumper(frame, event, argument):
    if frame.f_code is jumps.__code__ and event == "line" and frame.f_lineno == jumps.__code__.co_firstlineno + 3:
        frame.f_lineno += 1
    return jumper


sys.settrace(jumper)
print(jumps())
sys.settrace(None)
train(3)
print(sys.gettrace(), sys.getprofile(), threading.gettrace())
