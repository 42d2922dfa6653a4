# modes: run watch prove
"""When models, optimizers, batches and iterators die, by `__del__`, weak references and finalizers, also at the end."""

import atexit
import gc
import sys
import weakref

import torch

said = []


class Told:
    def __init__(self, name):
        self.name = name

    def __del__(self):
        said.append(f"del {self.name}")


class Model(torch.nn.Linear):
    def __del__(self):
        said.append("del model")


class Batches:
    def __init__(self):
        self.told, self.at = Told("batches"), 0

    def __iter__(self):
        return self

    def __next__(self):
        self.at += 1
        if self.at > 6:
            raise StopIteration
        batch = torch.ones(2, 3)
        weakref.finalize(batch, said.append, f"batch {self.at}").atexit = False
        return batch


def train():
    model = Model(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weakref.finalize(optimizer, said.append, "optimizer")
    for batch in Batches():
        optimizer.zero_grad()
        loss = model(batch).sum()
        said.append(f"before {sys.getrefcount(batch)} {sys.getrefcount(loss)}")
        loss.backward()
        optimizer.step()
        del loss
    said.append("returns")


train()
print(said)
said.clear()
gc.collect()
print(said, gc.garbage)
said.clear()
for _ in range(3):
    train()
    gc.freeze()
gc.unfreeze()
print(said.count("del model"), said.count("optimizer"), gc.get_freeze_count())
said.clear()
loop = [Told("cycle")]
loop.append(loop)
del loop
print(gc.collect() > 0, said)
model = Model(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
print(
    [type(each).__name__ for each in gc.get_referrers(optimizer)],
    sys.getrefcount(optimizer),
    weakref.getweakrefcount(model),
)


class AtEnd:
    def __del__(self, out=sys.stdout):
        print("at the end", said[-1:], file=out)


kept = AtEnd()
weakref.finalize(model, print, "model finalized")
atexit.register(lambda: print("atexit", sys.getrefcount(model)))
