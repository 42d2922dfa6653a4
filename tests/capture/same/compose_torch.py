# timeout: 1200
"""Wrappers of PyTorch, composed at random: values, graphs and breaks, how often the innermost function runs."""

import functools
import pickle
import random
import sys
import warnings

import torch
import torch._dynamo as dynamo
import torch.distributed as dist
from _show import clean
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.parallel import DistributedDataParallel
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


class Weighted(Net):
    def __init__(self, f):
        super().__init__(f)
        self.weight = torch.nn.Parameter(torch.ones(3))

    def forward(self, x):
        return self.f(x * self.weight)


def trained_on_one_rank(wrap):
    def made(f):
        module = wrap(Weighted(f))
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1)

        def step(x):
            optimizer.zero_grad()
            y = module(x)
            y.sum().backward()
            optimizer.step()
            return y.detach()

        return step

    return made


def scripted(f):
    return torch.jit.script(f if isinstance(f, torch.nn.Module) else Net(f))


def called(f):
    module = Weighted(f)
    return lambda x: torch.func.functional_call(module, {"weight": torch.full((3,), 2.0)}, (x,))


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
    "script": scripted,
    "called": called,
    "ddp": trained_on_one_rank(DistributedDataParallel),
    "fsdp": trained_on_one_rank(functools.partial(FullyShardedDataParallel, device_id=torch.device("cpu"))),
    "trace": lambda f: torch.jit.trace(f, torch.ones(3), check_trace=False),
    "export": lambda f: torch.export.export(Net(f), (torch.ones(3),), strict=False).module(),
    "no grad": torch.no_grad(),
    "optimized": optimized,
    "loaded": loaded,
    "pickled": pickled,
    "partial": lambda f: functools.partial(lambda f, self: f(self), f),
}
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
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
dist.destroy_process_group()
