"""Finalizers and weak references at the end, in their order."""

import atexit
import weakref

import torch


class Thing:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        print("del", self.name)


first, second = Thing("first"), Thing("second")
weakref.finalize(first, print, "finalize first")
weakref.finalize(second, print, "finalize second").atexit = True
reference = weakref.ref(first, lambda _: print("gone"))
model = torch.nn.Linear(2, 1)
weakref.finalize(model, print, "finalize model")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
weakref.finalize(optimizer, print, "finalize optimizer")
for _ in range(12):
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
atexit.register(print, "atexit")
del first
