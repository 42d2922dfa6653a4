# timeout: 1200
"""Wrappers of PyTorch, composed at random: values, graphs and breaks, how often the innermost function runs."""

import functools
import pickle
import random
import sys
import warnings

import torch
import torch._dynamo as dynamo
from _show import clean
from torch.utils.checkpoint import checkpoint

warnings.simplefilter("ignore")
runs = []


def base(x):
    return torch.sin(x) * 0.5 + x


class Counted(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        runs.append(1)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        runs.append(2)
        return g * 2


class Net(torch.nn.Module):
    def __init__(self, f):
        super().__init__()
        self.f = f

    def forward(self, x):
        return self.f(x)


def grad(f):
    def slope(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(outputs=f(x).sum(), inputs=[x])[0]

    return slope


def backward(f):
    def slope(x):
        x = x.detach().clone().requires_grad_()
        f(x).sum().backward()
        return x.grad

    return slope


def optimized(f):
    def step(x):
        weight = torch.nn.Parameter(x.detach().clone())
        optimizer = torch.optim.SGD([weight], lr=0.1)
        optimizer.zero_grad()
        f(weight).sum().backward()
        optimizer.step()
        return weight.detach()

    return step


def loaded(f):
    return lambda x: torch.stack(
        [f(each[0][0]) for each in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x.detach()[None]))]
    )[0]


def pickled(f):
    try:
        pickle.dumps(f)
    except Exception as error:
        print("  not pickled:", type(error).__name__, end="")
    return f


WRAPPERS = {
    "compile": functools.partial(torch.compile, backend="eager"),
    "compile whole": functools.partial(torch.compile, backend="eager", fullgraph=True),
    "compile dynamic": functools.partial(torch.compile, backend="eager", dynamic=True),
    "compile aot": functools.partial(torch.compile, backend="aot_eager"),
    "compile module": lambda f: torch.compile(Net(f), backend="eager"),
    "disable": dynamo.disable,
    "grad": grad,
    "backward": backward,
    "func grad": lambda f: torch.func.grad(lambda x: f(x).sum()),
    "vmap": torch.func.vmap,
    "jvp": lambda f: lambda x: torch.func.jvp(f, (x,), (x,))[1],
    "checkpoint": lambda f: lambda x: checkpoint(f, x, use_reentrant=False),
    "reentrant": lambda f: lambda x: checkpoint(f, x, use_reentrant=True),
    "own function": lambda f: lambda x: Counted.apply(f(x)),
    "module": Net,
    "fx": lambda f: torch.fx.symbolic_trace(Net(f)),
    "trace": lambda f: torch.jit.trace(f, torch.ones(3), check_trace=False),
    "export": lambda f: torch.export.export(Net(f), (torch.ones(3),), strict=False).module(),
    "no grad": torch.no_grad(),
    "optimized": optimized,
    "loaded": loaded,
    "pickled": pickled,
    "partial": lambda f: functools.partial(lambda f, self: f(self), f),
}
first, count = (int(word) for word in sys.argv[1:3]) if len(sys.argv) > 2 else (0, 30)
for seed in range(first, first + count):
    chosen = random.Random(seed)
    names = [chosen.choice(list(WRAPPERS)) for _ in range(chosen.randint(2, 5))]
    runs.clear()
    dynamo.reset()
    dynamo.utils.counters.clear()
    print(seed, names, end=" ")
    try:
        f = base
        for name in names:
            f = WRAPPERS[name](f)
        results = [f(torch.arange(1.0, 4.0)) for _ in range(4)]
        print([round(float(each.sum()), 3) for each in results], end=" ")
    except Exception as error:
        print("raises", type(error).__name__, clean(str(error))[:60].splitlines()[:1], end=" ")
    counters = dynamo.utils.counters
    breaks = sorted(key[:40] for key in counters["graph_break"])
    print(len(runs), dict(counters["frames"]), dict(counters["stats"]), breaks)
