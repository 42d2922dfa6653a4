"""Optimizers that are odd: subclassed, wrapped, with slots, patched, called in threads, swapped in backward."""

import functools
import inspect
import threading
import torch
import types
from torch import nn
from _show import show


class Mine(torch.optim.SGD):
    steps = 0

    def step(self, closure=None, *, more=None):
        "mine"
        Mine.steps += 1
        return super().step(closure), more


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)

    def step(self, *a):
        return self.inner.step(*a)


class Late(torch.optim.Optimizer):
    def __init__(self, params):
        super().__init__(params, {"lr": 1})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p -= group["lr"] * p.grad
        return "late"


model = nn.Linear(2, 2)


def run(optimizer, *a, **k):
    optimizer.zero_grad()
    model(torch.ones(1, 2)).sum().backward()
    return optimizer.step(*a, **k)


print(
    [run(Mine(model.parameters(), lr=0.1), more=n) for n in range(4)],
    Mine.steps,
    Mine.step.__doc__,
    inspect.signature(Mine.step),
    inspect.getsource(Mine.step)[:30],
)
late = Late(model.parameters())
print([run(late) for n in range(5)], inspect.signature(late.step), late.step.__func__ is Late.step)
wrapped = Wrapper(Mine(model.parameters(), lr=0.1))
print([run(wrapped) for n in range(3)])
patched = torch.optim.Adam(model.parameters())
original = patched.step
calls = []
patched.step = types.MethodType(functools.wraps(original)(lambda self, *a: calls.append(1) or original(*a)), patched)
for n in range(4):
    run(patched)
print(len(calls), patched.step.__name__, torch.optim.Adam.step.hooked, torch.optim.Adam.step.__wrapped__.__name__)
out = []
threads = [
    threading.Thread(target=lambda: out.append(run(Late(nn.Linear(2, 2).parameters()) if 0 else late)))
    for _ in range(4)
]
for t in threads:
    t.start()
    t.join()
print(out)
optimizers = {p: torch.optim.SGD([p], lr=0.1) for p in model.parameters()}


def in_backward(p):
    optimizers[p].step()
    optimizers[p].zero_grad()


for p in model.parameters():
    p.register_post_accumulate_grad_hook(in_backward)
for n in range(5):
    model(torch.ones(1, 2)).sum().backward()
print([p.grad for p in model.parameters()])
show("no grads", lambda: torch.optim.SGD([], lr=0.1))
show("missing", lambda: late.step(1, 2, 3))


class Meta(type):
    def __instancecheck__(cls, other):
        print("instance?")
        return False


class Strange(torch.optim.SGD):
    __slots__ = ("x",)

    def __getattribute__(self, name):
        if name.startswith("__stepscope") or name == "x":
            raise RuntimeError(name)
        return super().__getattribute__(name)

    def __eq__(self, other):
        raise TypeError("eq")

    __hash__ = torch.optim.SGD.__hash__


for n in range(4):
    run(Strange(model.parameters(), lr=0.1))
print(
    torch.optim.Optimizer.step,
    torch.optim.Optimizer.__init__.__qualname__,
    inspect.signature(torch.optim.Optimizer.profile_hook_step),
)
