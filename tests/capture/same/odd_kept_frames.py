"""Tracebacks, frames, generators and coroutines of steps are kept, cleared and thrown into."""

import gc
import sys
import traceback
import weakref
import torch

model = torch.nn.Linear(2, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


class Thing:
    pass


kept, refs = [], []


def step(n):
    thing = Thing()
    refs.append(weakref.ref(thing))
    optimizer.zero_grad()
    loss = model(torch.ones(1, 2)).sum()
    loss.backward()
    optimizer.step()
    if n % 3 == 2:
        raise ValueError(n)
    return loss


def steps():
    try:
        for n in range(12):
            try:
                yield step(n)
            except ValueError as error:
                kept.append(error)
            try:
                yield None
            except KeyError as error:
                kept.append(error)
    finally:
        print("closed")


made = steps()
for n in range(9):
    next(made)
print(len(kept), [r() is not None for r in refs])
kept[0].__traceback__.tb_next.tb_frame.clear()
print([r() is not None for r in refs], sorted(kept[0].__traceback__.tb_next.tb_frame.f_locals))
made.throw(KeyError("in"))
print(repr(kept[-1]), made.gi_frame.f_lineno - made.gi_code.co_firstlineno, sorted(made.gi_frame.f_locals))
kept.clear()
gc.collect()
print([r() is not None for r in refs])
frame = sys._getframe()
frame_refs = sys.getrefcount(frame)
for n in range(2):
    step(n)
print(sys.getrefcount(frame) == frame_refs)
made.close()


async def astep(n):
    return step(n)


coroutine = astep(0)
try:
    coroutine.send(None)
except StopIteration as stop:
    print(stop.value.dim())
print([r() is not None for r in refs])
