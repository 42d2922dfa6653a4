"""A tracer of opcodes, and one that jumps lines, while a step runs."""

import sys
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(n):
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step()
    done = "whole"
    return done


ops = []


def trace(frame, event, arg):
    if frame.f_code.co_name != "step":
        return None
    frame.f_trace_opcodes = True
    ops.append((event, frame.f_lasti if event == "opcode" else frame.f_lineno - frame.f_code.co_firstlineno))
    return trace


for n in range(3):
    step(n)
sys.settrace(trace)
for n in range(6):
    step(n)
sys.settrace(None)
print(len(ops), hash(tuple(ops)), ops[:12])


def jump(frame, event, arg):
    if frame.f_code.co_name != "step":
        return None
    if event == "line" and frame.f_lineno - frame.f_code.co_firstlineno == 1:
        frame.f_lineno = frame.f_code.co_firstlineno + 5
    return jump


sys.settrace(jump)
print([step(n) for n in range(6)])
sys.settrace(None)
