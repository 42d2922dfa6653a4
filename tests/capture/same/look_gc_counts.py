"""How many objects of the program's own kinds live, and who refers to them."""

import gc
import sys
import weakref

import torch


class Batch:
    def __init__(self, data):
        self.data = data


def train_step(model, batch):
    loss = model(batch.data).sum()
    loss.backward()
    return loss.detach()


model = torch.nn.Linear(2, 1)
alive = []
for step in range(12):
    batch = Batch(torch.ones(1, 2))
    alive.append(weakref.ref(batch))
    train_step(model, batch)
    gc.collect()
    print(step, sum(type(each) is Batch for each in gc.get_objects()), [r() is not None for r in alive].count(True))
print(sys.getrefcount(train_step), sys.getrefcount(Batch), sys.getrefcount(model), sys.getrefcount(batch))
print([type(each).__name__ for each in gc.get_referrers(model) if each is not vars()], len(gc.garbage))
