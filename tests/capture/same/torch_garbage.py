# gc.freeze, finalizers' order, callbacks of weakrefs, at the end of loops
import gc
import weakref
import torch
import atexit
import sys

order = []


class N:
    def __init__(self, n):
        self.n = n
        self.ring = self

    def __del__(self):
        order.append(self.n)


m = torch.nn.Linear(4, 4)
opt = torch.optim.SGD(m.parameters(), lr=0.01)
gc.disable()
gc.freeze()
base = gc.get_freeze_count() > 0
refs = []
for i in range(20):
    n = N(i)
    refs.append(weakref.ref(n, lambda r, i=i: order.append(-i)))
    del n
    opt.zero_grad()
    loss = m(torch.ones(2, 4)).sum()
    loss.backward()
    opt.step()
    if i % 5 == 4:
        gc.collect()
        order.append("|")
print(order, base, gc.isenabled(), gc.get_threshold())
gc.unfreeze()
gc.enable()
print(gc.get_freeze_count(), len(gc.garbage))
fin = weakref.finalize(m, print, "model gone")
atexit.register(print, "atexit", fin.alive)


class Last:
    def __del__(self):
        print("last", sys.is_finalizing())


keep = Last()
keep.me = keep
print(list(weakref.getweakrefs(opt)).__len__() <= 1)
